/* SPDX-License-Identifier: MIT */
/*
 * Taking and interning of stacks. See stack.h.
 *
 * Owns the heads of the chains of frames; frames are added under cw_site_lock, and found without.
 */
#include "core/stack.h"

#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "core/module.h"
#include "core/site.h"
#include "core/thread.h"

/* Heads of the hash chains; zero pages until touched. */
#define FRAME_HEADS (1u << 18)

static struct cw_arena *arena;
static enum cw_stacks mode;
static unsigned depth_limit;
static _Atomic uint32_t *frame_heads;
/* The epoch in which the table of modules was last read. Guarded by cw_site_lock. */
static uint32_t modules_epoch;

static uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 32);
}

int cw_stack_init(struct cw_arena *in, enum cw_stacks stacks, unsigned depth)
{
    arena = in;
    mode = stacks;
    depth_limit = depth < CW_DEPTH_MAX ? depth : CW_DEPTH_MAX;
    frame_heads = cw_mem_alloc(FRAME_HEADS * sizeof(*frame_heads));
    return frame_heads != NULL ? 0 : -1;
}

void cw_stack_reset(void)
{
    frame_heads = NULL;
    modules_epoch = 0;
}

/* ---- interning ---------------------------------------------------------------------------------
 */

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

/* ---- taking ------------------------------------------------------------------------------------
 */

/* STACKS=caller, or the unwinder found nothing (no libgcc_s, no unwind tables). */
static unsigned take_caller(uint64_t *pc)
{
    *pc = (uint64_t)(uintptr_t)cw_thread.caller;
    return cw_thread.caller != NULL;
}

unsigned cw_stack_capture(uint64_t *pcs, unsigned max)
{
    struct cw_walk walk = {0};

    if (mode == CW_STACKS_OFF || max == 0)
        return 0;
    if (mode == CW_STACKS_FULL)
        cw_unwind_walk(&walk, max < depth_limit ? max : depth_limit);
    if (walk.count == walk.own)
        return take_caller(pcs);
    memcpy(pcs, &walk.pc[walk.own], (walk.count - walk.own) * sizeof(*pcs));
    return walk.count - walk.own;
}

static uint32_t caller_here(void)
{
    uint64_t pc;

    return cw_stack_intern(&pc, take_caller(&pc));
}

static CW_NOINLINE uint32_t walk_here(const void *frame, struct cw_thread_caches *caches,
                                      struct cw_memo_entry *entry, uint32_t epoch)
{
    struct cw_walk walk;
    uint32_t stack;

    cw_unwind_walk(&walk, depth_limit);
    if (walk.count == walk.own)
        return caller_here();
    stack = cw_stack_intern(&walk.pc[walk.own], walk.count - walk.own);
    if (stack != 0 && entry != NULL)
        cw_memo_note(&caches->memo, entry, frame, &walk, stack, epoch);
    return stack;
}

/* Not inlined: the memo knows places by this frame. */
CW_NOINLINE uint32_t cw_stack_here(void)
{
    const void *frame = __builtin_frame_address(0);
    uint32_t epoch = atomic_load_explicit(&cw_epoch, memory_order_relaxed), stack;
    struct cw_thread_caches *caches;
    struct cw_memo_entry *entry = NULL;

    if (mode != CW_STACKS_FULL)
        return mode == CW_STACKS_CALLER ? caller_here() : 0;
    caches = cw_thread_caches_here();
    if (CW_LIKELY(caches != NULL)) {
        /* The outermost hook's caller: close to what the program's line is. */
        entry = cw_memo_find(&caches->memo, frame, (uint64_t)(uintptr_t)cw_thread.caller, epoch);
        if (CW_LIKELY(entry->stack != 0))
            return entry->stack;
    }
    stack = walk_here(frame, caches, entry, epoch);
    __asm__ volatile("" ::: "memory"); /* something to come back for: the walk needs this frame */
    return stack;
}
