/* SPDX-License-Identifier: MIT */
/* See freed.h. */
#include "core/account/freed.h"

#include <stdatomic.h>

#define BITS    12
#define ENTRIES (1u << BITS)

static struct {
    _Atomic uint64_t key;
    _Atomic uint32_t site, alloc_site;
} entries[ENTRIES];

static uint32_t place_of(uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> (64 - BITS));
}

void cw_freed_remember(uint64_t key, struct cw_freed freed)
{
    uint32_t place = place_of(key);

    atomic_store_explicit(&entries[place].site, freed.site, memory_order_relaxed);
    atomic_store_explicit(&entries[place].alloc_site, freed.alloc_site, memory_order_relaxed);
    atomic_store_explicit(&entries[place].key, key, memory_order_relaxed);
}

struct cw_freed cw_freed_find(uint64_t key)
{
    uint32_t place = place_of(key);

    if (atomic_load_explicit(&entries[place].key, memory_order_relaxed) != key)
        return (struct cw_freed){.site = 0};
    return (struct cw_freed){
        .site = atomic_load_explicit(&entries[place].site, memory_order_relaxed),
        .alloc_site = atomic_load_explicit(&entries[place].alloc_site, memory_order_relaxed)};
}

void cw_freed_reset(void)
{
    for (uint32_t i = 0; i < ENTRIES; i++)
        atomic_store_explicit(&entries[i].key, 0, memory_order_relaxed);
}
