/* SPDX-License-Identifier: MIT */
/* The sum of idle bytes, and of blocks on their way to the driver. See idle.h. */
#include "core/account/idle.h"

#include <stdatomic.h>

#define PAGE_BYTES (UINT64_C(2) << 20) /* of the driver */

static struct {
    struct cw_arena *arena;
    _Atomic uint64_t leaving[CW_DEVICES];  /* bytes that the driver is being given back */
    _Atomic uint32_t departures, arrivals; /* of blocks that it is being given back */
} self;

void cw_idle_init(struct cw_arena *arena)
{
    self.arena = arena;
    for (int i = 0; i < CW_DEVICES; i++)
        atomic_store_explicit(&self.leaving[i], 0, memory_order_relaxed);
    atomic_store(&self.departures, 0);
    atomic_store(&self.arrivals, 0);
}

void cw_idle_departs(uint8_t device, uint64_t bytes)
{
    atomic_fetch_add(&self.departures, 1);
    atomic_fetch_add(&self.leaving[device], bytes);
}

void cw_idle_arrives(uint8_t device, uint64_t bytes)
{
    atomic_fetch_sub(&self.leaving[device], bytes);
    atomic_fetch_add(&self.arrivals, 1);
}

uint64_t cw_idle_motion(void)
{
    uint64_t arrivals = atomic_load(&self.arrivals); /* first: never more than departures */

    return (uint64_t)atomic_load(&self.departures) << 32 | arrivals;
}

int cw_idle_is_settled(uint64_t before)
{
    return cw_idle_motion() == before && before >> 32 == (uint32_t)before;
}

/* `page` for each block. */
static uint64_t sum(uint8_t device, uint64_t page)
{
    uint64_t idle = atomic_load(&self.leaving[device]);
    uint32_t total = cw_arena_count(self.arena, CW_TABLE_BUCKET);

    for (uint32_t i = 1; i < total; i++) {
        const struct cw_live_bucket *bucket =
            cw_arena_own(self.arena, cw_arena_at(self.arena, CW_TABLE_BUCKET, i));

        if (atomic_load_explicit(&bucket->size, memory_order_acquire) != 0 &&
            bucket->device == device)
            idle += atomic_load_explicit(&bucket->idle_bytes, memory_order_relaxed) +
                    page * atomic_load_explicit(&bucket->idle_blocks, memory_order_relaxed);
    }
    /* One thread's record may be read before a block came in, another's after it left. */
    return (int64_t)idle > 0 ? idle : 0;
}

uint64_t cw_idle_bytes(uint8_t device)
{
    return sum(device, 0);
}

uint64_t cw_idle_most(uint8_t device)
{
    return sum(device, PAGE_BYTES);
}
