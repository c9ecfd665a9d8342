/* SPDX-License-Identifier: MIT */
/* See freed.h. */
#include "core/account/freed.h"

#include <stdatomic.h>

#define BITS    12
#define ENTRIES (1u << BITS)

static struct {
    _Atomic uint64_t key;
    _Atomic uint32_t site;
} entries[ENTRIES];

static uint32_t place_of(uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> (64 - BITS));
}

void cw_freed_remember(uint64_t key, uint32_t site)
{
    uint32_t place = place_of(key);

    atomic_store_explicit(&entries[place].site, site, memory_order_relaxed);
    atomic_store_explicit(&entries[place].key, key, memory_order_relaxed);
}

uint32_t cw_freed_find(uint64_t key)
{
    uint32_t place = place_of(key);

    return atomic_load_explicit(&entries[place].key, memory_order_relaxed) == key
               ? atomic_load_explicit(&entries[place].site, memory_order_relaxed)
               : 0;
}

void cw_freed_reset(void)
{
    for (uint32_t i = 0; i < ENTRIES; i++)
        atomic_store_explicit(&entries[i].key, 0, memory_order_relaxed);
}
