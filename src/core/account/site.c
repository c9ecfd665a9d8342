/* SPDX-License-Identifier: MIT */
/* Interning of sites. See site.h. */
#include "core/account/site.h"

#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/mem.h"
#include "core/tags/tag.h"
#include "core/process/intern.h"
#include "core/process/thread.h"

/* Heads of the hash chains; zero pages until touched. */
#define SITE_HEADS (1u << 14)

/* The place but for stack and API, in one word: tag (16 bits), context (3), kind (5), device (8).
 */
#define CONTEXT_SHIFT 13
_Static_assert(CW_KIND_COUNT <= 1 << 5 && CW_CONTEXT_NUMBERS <= 1 << 3, "they share a byte");

CW_HOT_DATA struct cw_arena *cw_site_arena;
CW_HOT_DATA ptrdiff_t cw_site_own_offset;
static _Atomic uint32_t *site_heads;

int cw_site_init(struct cw_arena *in, enum cw_stacks stacks, unsigned depth)
{
    cw_site_arena = in;
    cw_site_own_offset = in->own;
    site_heads = cw_mem_alloc(SITE_HEADS * sizeof(*site_heads));
    if (site_heads == NULL)
        return -1;
    return cw_stack_init(in, stacks, depth);
}

void cw_site_reset(void)
{
    site_heads = NULL;
    cw_stack_reset();
}

uint32_t cw_site_text(const char *name)
{
    return cw_arena_text(cw_site_arena, name, strlen(name));
}

void cw_site_set_context(uint8_t number)
{
    cw_tag_stack.where = (cw_tag_stack.where & 0xffff0000u) | (uint32_t)number << CONTEXT_SHIFT;
}

struct site_key {
    uint32_t stack, api;
    uint16_t tag;
    uint8_t kind, device, context, owner;
};

static uint64_t hash_site(const struct site_key *key)
{
    return cw_hash_mix(cw_hash_mix(key->stack, key->api),
                       (uint64_t)key->context << 40 | (uint64_t)key->tag << 24 |
                           (uint64_t)key->owner << 16 | (uint64_t)key->kind << 8 | key->device);
}

static uint32_t find_site(const struct site_key *key)
{
    uint32_t i =
        atomic_load_explicit(&site_heads[hash_site(key) & (SITE_HEADS - 1)], memory_order_acquire);

    while (i != 0) {
        const struct cw_live_site *site = cw_site_own(cw_site_at(i));

        if (site->stack == key->stack && site->api == key->api && site->kind == key->kind &&
            site->device == key->device && site->context == key->context &&
            site->owner == key->owner && site->tag == key->tag)
            return i;
        i = cw_arena_older(i, site->hash_next);
    }
    return 0;
}

static uint32_t add_site_locked(const struct site_key *key)
{
    _Atomic uint32_t *head = &site_heads[hash_site(key) & (SITE_HEADS - 1)];
    uint32_t index = cw_arena_append(cw_site_arena, CW_TABLE_SITE);
    struct cw_live_site *site, *shown;

    if (index == 0)
        return 0;
    shown = cw_site_at(index);
    site = cw_arena_own(cw_site_arena, shown);
    site->stack = key->stack;
    site->kind = key->kind;
    site->device = key->device;
    site->context = key->context;
    site->owner = key->owner;
    site->tag = key->tag;
    site->hash_next = atomic_load_explicit(head, memory_order_relaxed);
    if (shown != site)
        memcpy(shown, site, sizeof(*site)); /* its counters are all zero */
    /* Last: one without an API is not complete, should the process be killed here. */
    atomic_thread_fence(memory_order_release);
    site->api = shown->api = key->api;
    atomic_store_explicit(head, index, memory_order_release);
    return index;
}

static uint32_t intern_site(const struct site_key *key)
{
    uint32_t site = find_site(key);

    if (site != 0)
        return site;
    cw_lock_acquire(&cw_intern_lock);
    site = find_site(key);
    if (site == 0)
        site = add_site_locked(key);
    cw_lock_release(&cw_intern_lock);
    return site;
}

/* A cache's key does not include the owner: the cache goes when the slot does. */
uint32_t cw_site_find(uint32_t stack, uint32_t api, uint32_t where,
                      struct cw_site_cache_entry *cached)
{
    struct site_key key = {.stack = stack,
                           .api = api,
                           .tag = (uint16_t)(where >> 16),
                           .context = (uint8_t)(where >> CONTEXT_SHIFT & 7),
                           .kind = (uint8_t)(where >> 8 & 0x1f),
                           .device = (uint8_t)where,
                           .owner = cw_thread_slot()};
    uint32_t site = intern_site(&key);

    if (site != 0 && cached != NULL)
        *cached =
            (struct cw_site_cache_entry){.stack = stack, .api = api, .where = where, .site = site};
    return site;
}

uint32_t cw_site_shared(uint32_t index)
{
    const struct cw_live_site *site = index ? cw_site_own(cw_site_at(index)) : NULL;
    struct site_key key;

    if (site == NULL || site->owner == 0)
        return index;
    key = (struct site_key){.stack = site->stack,
                            .api = site->api,
                            .tag = site->tag,
                            .kind = site->kind,
                            .device = site->device,
                            .context = site->context};
    return intern_site(&key);
}
