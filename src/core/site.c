/* SPDX-License-Identifier: MIT */
/* Capture and interning of stacks and sites. See site.h. */
#include "core/site.h"

#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "core/module.h"
#include "core/thread.h"

/* Heads of the hash chains; zero pages until touched. */
#define FRAME_HEADS (1u << 18)
#define SITE_HEADS  (1u << 14)
/* Our own frames above the program's: the hook, the core's entry, the capture. */
#define OWN_FRAMES 12

/* <execinfo.h>'s, as an optional function. */
extern int backtrace(void **buffer, int size) CW_OPTIONAL;

struct cw_lock cw_site_lock = CW_LOCK_INIT(CW_RANK_SITE);

static struct cw_arena *arena;
static enum cw_stacks mode;
static unsigned depth_limit;
static _Atomic uint32_t *frame_heads;
static _Atomic uint32_t *site_heads;
/* The epoch in which the table of modules was last read. Guarded by cw_site_lock. */
static uint32_t modules_epoch;

static uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 32);
}

void cw_stack_warm_up(void)
{
    void *first[1];

    if (backtrace != NULL)
        backtrace(first, 1);
}

int cw_site_init(struct cw_arena *in, enum cw_stacks stacks, unsigned depth)
{
    arena = in;
    mode = stacks;
    depth_limit = depth < CW_DEPTH_MAX ? depth : CW_DEPTH_MAX;
    frame_heads = cw_mem_alloc(FRAME_HEADS * sizeof(*frame_heads));
    site_heads = cw_mem_alloc(SITE_HEADS * sizeof(*site_heads));
    if (frame_heads == NULL || site_heads == NULL)
        return -1;
    return 0;
}

void cw_site_reset(void)
{
    cw_lock_reset(&cw_site_lock);
    frame_heads = NULL;
    site_heads = NULL;
    modules_epoch = 0;
}

struct cw_live_site *cw_site_at(uint32_t site)
{
    return cw_arena_at(arena, CW_TABLE_SITE, site);
}

uint32_t cw_site_text(const char *name)
{
    return cw_arena_text(arena, name, strlen(name));
}

unsigned cw_stack_capture(uint64_t *pcs, unsigned max)
{
    void *raw[CW_DEPTH_MAX + OWN_FRAMES];
    unsigned count = 0, from = 0;
    int taken;

    if (mode == CW_STACKS_OFF || max == 0)
        return 0;
    if (mode == CW_STACKS_FULL && backtrace != NULL) {
        if (max > depth_limit)
            max = depth_limit;
        taken = backtrace(raw, (int)(max + OWN_FRAMES));
        while (from < (unsigned)taken && cw_module_is_self((uint64_t)(uintptr_t)raw[from]))
            from++;
        while (from + count < (unsigned)taken && count < max) {
            pcs[count] = (uint64_t)(uintptr_t)raw[from + count];
            count++;
        }
    }
    /* STACKS=caller, or the unwinder found nothing (no libgcc_s, no unwind tables). */
    if (count == 0 && cw_thread.caller != NULL)
        pcs[count++] = (uint64_t)(uintptr_t)cw_thread.caller;
    return count;
}

static struct cw_live_frame *frame_at(uint32_t frame)
{
    return cw_arena_at(arena, CW_TABLE_FRAME, frame);
}

static _Atomic uint32_t *frame_head(uint32_t parent, uint64_t pc)
{
    return &frame_heads[mix(parent, pc) & (FRAME_HEADS - 1)];
}

static uint32_t find_frame(uint32_t parent, uint64_t pc, uint32_t module)
{
    uint32_t i = atomic_load_explicit(frame_head(parent, pc), memory_order_acquire);

    while (i != 0) {
        const struct cw_live_frame *frame = frame_at(i);

        if (frame->pc == pc && frame->parent == parent && frame->module == module)
            return i;
        i = frame->hash_next;
    }
    return 0;
}

static uint32_t add_frame_locked(uint32_t parent, uint64_t pc, uint32_t module)
{
    _Atomic uint32_t *head = frame_head(parent, pc);
    uint32_t index = cw_arena_append(arena, CW_TABLE_FRAME);
    struct cw_live_frame *frame;

    if (index == 0)
        return 0;
    frame = frame_at(index);
    frame->pc = pc;
    frame->parent = parent;
    frame->module = module;
    frame->depth = parent ? frame_at(parent)->depth + 1 : 1;
    frame->hash_next = atomic_load_explicit(head, memory_order_relaxed);
    atomic_store_explicit(head, index, memory_order_release);
    return index;
}

/* 1 if the table of modules is fit for this stack: nothing was unloaded since it was read, and it
 * knows all the addresses (an unknown one may lie in an object that was loaded since). */
static int knows_modules_locked(const uint64_t *pcs, unsigned count, uint32_t epoch)
{
    if (modules_epoch != epoch)
        return 0;
    for (unsigned i = 0; i < count; i++)
        if (cw_module_find_locked(pcs[i] - 1) == 0)
            return 0;
    return 1;
}

/* From the outermost frame inwards, so that stacks share their outer part. */
static uint32_t intern_locked(const uint64_t *pcs, unsigned count)
{
    uint32_t frame = 0;

    for (unsigned i = count; i-- > 0;) {
        /* pc - 1: a call that does not return may be the last instruction of its module. */
        uint32_t module = cw_module_find_locked(pcs[i] - 1);
        uint32_t next = find_frame(frame, pcs[i], module);

        if (next == 0)
            next = add_frame_locked(frame, pcs[i], module);
        if (next == 0)
            return 0;
        frame = next;
    }
    return frame;
}

/* Reads the loader's list first if need be: without the lock, and only then, because the loader's
 * own lock is the whole process's. */
static uint32_t intern(const uint64_t *pcs, unsigned count, uint32_t epoch)
{
    uint32_t stack = 0;
    int known;

    cw_lock_acquire(&cw_site_lock);
    known = knows_modules_locked(pcs, count, epoch);
    if (known)
        stack = intern_locked(pcs, count);
    cw_lock_release(&cw_site_lock);
    if (known)
        return stack;
    cw_module_refresh();
    cw_lock_acquire(&cw_site_lock);
    modules_epoch = epoch;
    stack = intern_locked(pcs, count);
    cw_lock_release(&cw_site_lock);
    return stack;
}

uint32_t cw_stack_intern(const uint64_t *pcs, unsigned count)
{
    uint32_t epoch = atomic_load_explicit(&cw_epoch, memory_order_relaxed);
    struct cw_thread_caches *caches = cw_thread_caches_here();
    struct cw_stack_cache_entry *cached = NULL;
    uint64_t hash = count;
    uint32_t stack;

    if (count == 0)
        return 0;
    for (unsigned i = 0; i < count; i++)
        hash = mix(hash, pcs[i]);
    if (CW_LIKELY(caches != NULL))
        cached = &caches->stack[hash & (CW_STACK_CACHE - 1)];
    if (CW_LIKELY(cached != NULL && cached->hash == hash && cached->epoch == epoch))
        return cached->stack;

    stack = intern(pcs, count, epoch);
    if (stack != 0 && cached != NULL)
        *cached = (struct cw_stack_cache_entry){.hash = hash, .stack = stack, .epoch = epoch};
    return stack;
}

struct site_key {
    uint32_t stack, api;
    uint8_t kind, device, owner;
};

static uint64_t hash_site(const struct site_key *key)
{
    return mix(mix(key->stack, key->api),
               (uint64_t)key->owner << 16 | (uint64_t)key->kind << 8 | key->device);
}

static uint32_t find_site(const struct site_key *key)
{
    uint32_t i =
        atomic_load_explicit(&site_heads[hash_site(key) & (SITE_HEADS - 1)], memory_order_acquire);

    while (i != 0) {
        const struct cw_live_site *site = cw_site_at(i);

        if (site->stack == key->stack && site->api == key->api && site->kind == key->kind &&
            site->device == key->device && site->owner == key->owner)
            return i;
        i = site->hash_next;
    }
    return 0;
}

static uint32_t add_site_locked(const struct site_key *key)
{
    _Atomic uint32_t *head = &site_heads[hash_site(key) & (SITE_HEADS - 1)];
    uint32_t index = cw_arena_append(arena, CW_TABLE_SITE);
    struct cw_live_site *site;

    if (index == 0)
        return 0;
    site = cw_site_at(index);
    site->stack = key->stack;
    site->api = key->api;
    site->kind = key->kind;
    site->device = key->device;
    site->owner = key->owner;
    site->hash_next = atomic_load_explicit(head, memory_order_relaxed);
    atomic_store_explicit(head, index, memory_order_release);
    return index;
}

static uint32_t intern_site(const struct site_key *key)
{
    uint32_t site = find_site(key);

    if (site != 0)
        return site;
    cw_lock_acquire(&cw_site_lock);
    site = find_site(key);
    if (site == 0)
        site = add_site_locked(key);
    cw_lock_release(&cw_site_lock);
    return site;
}

uint32_t cw_site_here(uint32_t api, enum cw_kind kind, uint8_t device)
{
    uint64_t pcs[CW_DEPTH_MAX];
    uint32_t epoch = atomic_load_explicit(&cw_epoch, memory_order_relaxed);
    struct site_key key = {
        .api = api, .kind = (uint8_t)kind, .device = device, .owner = cw_thread_slot()};
    uint32_t where = (uint32_t)kind << 8 | device;
    struct cw_thread_caches *caches = cw_thread_caches_here();
    struct cw_site_cache_entry *cached;
    uint32_t site;

    key.stack = cw_stack_intern(pcs, cw_stack_capture(pcs, CW_DEPTH_MAX));
    if (CW_UNLIKELY(caches == NULL))
        return intern_site(&key);
    cached = &caches->site[hash_site(&key) & (CW_SITE_CACHE - 1)];
    if (CW_LIKELY(cached->stack == key.stack && cached->api == api && cached->where == where &&
                  cached->epoch == epoch))
        return cached->site;
    site = intern_site(&key);
    if (site != 0)
        *cached = (struct cw_site_cache_entry){
            .stack = key.stack, .api = api, .where = where, .site = site, .epoch = epoch};
    return site;
}

uint32_t cw_site_shared(uint32_t index)
{
    const struct cw_live_site *site = index ? cw_site_at(index) : NULL;
    struct site_key key;

    if (site == NULL || site->owner == 0)
        return index;
    key = (struct site_key){
        .stack = site->stack, .api = site->api, .kind = site->kind, .device = site->device};
    return intern_site(&key);
}
