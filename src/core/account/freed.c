/* SPDX-License-Identifier: MIT */
/* See freed.h. */
#include "core/account/freed.h"

#include <stdatomic.h>

#define BITS    12
#define ENTRIES (1u << BITS)
#define NO_CALL UINT32_MAX /* in place of a site: the block went with its context */

static struct {
    _Atomic uint64_t key;
    _Atomic uint32_t site, alloc_site;
} entries[ENTRIES];
static _Atomic uint8_t lost[ENTRIES]; /* 1: an entry was replaced by another address's */

static uint32_t place_of(uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> (64 - BITS));
}

void cw_freed_remember(uint64_t key, uint32_t site, uint32_t alloc_site)
{
    uint32_t place = place_of(key);
    uint64_t old = atomic_load_explicit(&entries[place].key, memory_order_relaxed);

    if (old != key && old != 0)
        atomic_store_explicit(&lost[place], 1, memory_order_relaxed);
    atomic_store_explicit(&entries[place].site, site, memory_order_relaxed);
    atomic_store_explicit(&entries[place].alloc_site, alloc_site, memory_order_relaxed);
    atomic_store_explicit(&entries[place].key, key, memory_order_relaxed);
}

void cw_freed_remember_ended(uint64_t key, uint32_t alloc_site)
{
    cw_freed_remember(key, NO_CALL, alloc_site);
}

void cw_freed_forget(uint64_t key)
{
    uint64_t old = key;

    atomic_compare_exchange_strong(&entries[place_of(key)].key, &old, 0);
}

struct cw_freed cw_freed_find(uint64_t key)
{
    uint32_t place = place_of(key), site;

    if (key == 0 || atomic_load_explicit(&entries[place].key, memory_order_relaxed) != key)
        return (struct cw_freed){.how = atomic_load_explicit(&lost[place], memory_order_relaxed)
                                            ? CW_FREED_UNKNOWN
                                            : CW_FREED_NOT};
    site = atomic_load_explicit(&entries[place].site, memory_order_relaxed);
    return (struct cw_freed){
        .how = site == NO_CALL ? CW_FREED_WITH_CONTEXT : CW_FREED_BY_CALL,
        .site = site == NO_CALL ? 0 : site,
        .alloc_site = atomic_load_explicit(&entries[place].alloc_site, memory_order_relaxed)};
}

void cw_freed_reset(void)
{
    for (uint32_t i = 0; i < ENTRIES; i++) {
        atomic_store_explicit(&entries[i].key, 0, memory_order_relaxed);
        atomic_store_explicit(&lost[i], 0, memory_order_relaxed);
    }
}
