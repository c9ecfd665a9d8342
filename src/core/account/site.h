/* SPDX-License-Identifier: MIT */
/*
 * Sites: where the program allocates, and their counters.
 *
 * A site is (call stack, API, kind, device, context, tag of the thread's range). A context counts
 * by its number among those of its device (core/device/context.h). Sites are interned: found
 * without a lock through chains that are only ever extended at their head, added under
 * cw_intern_lock. The counters are atomics in the site's record; nobody needs the lock for them.
 */
#ifndef CW_CORE_SITE_H
#define CW_CORE_SITE_H

#include <stdint.h>

#include "base/compiler.h"
#include "core/stacks/stack.h"
#include "core/tags/tag.h"
#include "core/process/thread.h"
#include "core/process/types.h"

/* Stacks too: see cw_stack_init. 0, or -1: no memory. */
int cw_site_init(struct cw_arena *arena, enum cw_stacks stacks, unsigned depth);
/* In a forked child. */
void cw_site_reset(void);

/* The number of the thread's current context, from now on. */
void cw_site_set_context(uint8_t number);

/* cached: the thread's cache entry for it; NULL: none. */
CW_NOINLINE uint32_t cw_site_find(uint32_t stack, uint32_t api, uint32_t where,
                                  struct cw_site_cache_entry *cached);

/* No multiplication in the hash: it is on the critical path of a hit. Stacks and names are numbered
 * consecutively, kinds and devices are few. The names are spread, lest the next stack under the
 * name before it, as an allocation and its free may be, falls on the same entry each time. */
static inline uint32_t cw_site_of(uint32_t stack, uint32_t api, enum cw_kind kind, uint8_t device)
{
    uint32_t where = cw_tag_stack.where | (uint32_t)kind << 8 | device;
    struct cw_thread_caches *caches = cw_thread_caches_here();
    struct cw_site_cache_entry *cached;

    if (CW_UNLIKELY(caches == NULL))
        return cw_site_find(stack, api, where, NULL);
    cached = &caches->site[(stack + api * 8 + (where ^ where >> 7 ^ where >> 14)) % CW_SITE_CACHE];
    if (CW_LIKELY(cached->stack == stack && cached->api == api && cached->where == where &&
                  cached->site != 0))
        return cached->site;
    return cw_site_find(stack, api, where, cached);
}

/* The calling thread's own record of the site of its current call; 0 when out of memory. No lock
 * held. */
static inline uint32_t cw_site_here(uint32_t api, enum cw_kind kind, uint8_t device)
{
    return cw_site_of(cw_stack_here(), api, kind, device);
}

/* The site's record that belongs to no thread, for blocks that any thread may make. */
uint32_t cw_site_shared(uint32_t site);

extern CW_HIDDEN struct cw_arena *cw_site_arena;
extern CW_HIDDEN ptrdiff_t cw_site_own_offset; /* the arena's `own`, at hand */

static inline struct cw_live_site *cw_site_at(uint32_t site)
{
    return cw_arena_at_shape(cw_site_arena, CW_TABLE_SITE, CW_SITES_FIRST,
                             sizeof(struct cw_live_site), site);
}

/* The same with what never changes in it: stack, API, kind, device, context, owner, tag. */
static inline const struct cw_live_site *cw_site_own(const struct cw_live_site *site)
{
    return (const struct cw_live_site *)((const char *)site + cw_site_own_offset);
}

/* Text of a name that lives as long as the library, 0 when out of memory. */
uint32_t cw_site_text(const char *name);

#endif
