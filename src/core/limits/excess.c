/* SPDX-License-Identifier: MIT */
/* The bounds of excess. See excess.h. */
#include "core/limits/excess.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/limits/demand.h"
#include "core/device/device.h"
#include "core/limits/limit.h"
#include "core/process/session.h"
#include "core/account/usage.h"
#include "core/account/size_class.h"

/* Sums of what was ever asked and given, as last added up: a sum over all records of buckets. */
static struct {
    _Atomic uint32_t tick; /* core/process/session.h; 0: never */
    _Atomic uint64_t asked, given;
} sums[CW_DEVICES];

void cw_excess_init(void)
{
    for (unsigned d = 0; d < CW_DEVICES; d++)
        atomic_store(&sums[d].tick, 0);
}

/* 0 until the device says how large it is, unless there is a limit. */
static uint64_t most_of(uint8_t device)
{
    uint64_t limit = cw_limit_of(device);
    uint64_t total = cw_device_describe(device) ? cw_device_state(device)->total : 0;

    return (limit != 0 && (total == 0 || limit < total) ? limit : total) / CW_EXCESS_SHARE;
}

uint64_t cw_excess_reserve(uint8_t device, uint64_t bytes)
{
    return bytes == 0 || device == CW_DEVICE_HOST
               ? bytes
               : cw_usage_take_excess(device, bytes, most_of(device));
}

/* ---- efficiency ---- */

static void add_up(uint8_t device)
{
    const struct cw_arena *arena = &cw_session.arena;
    uint64_t asked = 0, given = 0;
    uint32_t count = cw_arena_count(arena, CW_TABLE_BUCKET);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_bucket *bucket =
            cw_arena_own(arena, cw_arena_at(arena, CW_TABLE_BUCKET, i));

        if (atomic_load_explicit(&bucket->size, memory_order_acquire) == 0 ||
            bucket->device != device)
            continue;
        asked += atomic_load_explicit(&bucket->asked_bytes, memory_order_relaxed);
        given += atomic_load_explicit(&bucket->given_bytes, memory_order_relaxed);
    }
    atomic_store(&sums[device].asked, asked);
    atomic_store(&sums[device].given, given);
}

/* How much larger than `bytes` a block for them may be. */
static uint64_t spare_of(uint8_t device, uint64_t bytes)
{
    uint32_t now = cw_session_tick(cw_session_now());
    unsigned __int128 most, given;

    if (atomic_exchange(&sums[device].tick, now) != now)
        add_up(device);
    most =
        ((unsigned __int128)atomic_load(&sums[device].asked) + bytes) * 1000 / CW_EXCESS_EFFICIENT;
    given = (unsigned __int128)atomic_load(&sums[device].given) + bytes;
    return most <= given ? 0 : most - given > UINT64_MAX ? UINT64_MAX : (uint64_t)(most - given);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t cw_excess_reserve_larger(uint8_t device, uint64_t bytes)
{
    uint64_t most = cw_demand_live(device) / CW_EXCESS_LIVE_SHARE, there = cw_usage_excess(device);

    if (device == CW_DEVICE_HOST || there >= most)
        return 0;
    return cw_excess_reserve(device, least(least(bytes / CW_EXCESS_LARGER_SHARE, most - there),
                                           spare_of(device, bytes)));
}

uint64_t cw_excess_round(uint8_t device, uint64_t bytes, uint64_t *out_excess)
{
    uint64_t rounded = cw_size_round(bytes), excess = cw_size_excess(rounded, bytes);

    *out_excess = 0;
    if (excess == 0)
        return rounded;
    if (rounded - bytes > spare_of(device, bytes))
        return cw_size_exact(bytes);
    *out_excess = cw_excess_reserve(device, excess);
    if (CW_LIKELY(*out_excess == excess))
        return rounded;
    cw_usage_give_excess(device, *out_excess);
    *out_excess = 0;
    return cw_size_exact(bytes);
}
