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

#define UNKNOWN UINT64_MAX

/* How the most that was taken of a device rises: looked at anew after CW_EXCESS_LOOK_NS, if there
 * were CW_EXCESS_LOOK_WISHES for excess meanwhile. No lock: it is about as much. */
static struct {
    _Atomic uint64_t look_ns;       /* 0: never looked */
    _Atomic uint64_t wishes, rises; /* since then; those that would have made a new peak */
    _Atomic uint64_t taken;         /* at most, at that time */
    _Atomic uint64_t more;          /* that the program may come to take beyond that, or UNKNOWN */
} growth[CW_DEVICES];

static void store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

void cw_excess_init(void)
{
    for (unsigned d = 0; d < CW_DEVICES; d++) {
        atomic_store(&sums[d].tick, 0);
        store(&growth[d].look_ns, 0);
        store(&growth[d].wishes, 0);
        store(&growth[d].rises, 0);
        store(&growth[d].more, UNKNOWN);
    }
}

/* While a program loads what it will keep, nearly each request makes a new peak. */
static uint64_t expected_more(uint8_t device, uint64_t taken)
{
    uint64_t last = load(&growth[device].taken), more;

    return load(&growth[device].rises) * CW_EXCESS_LOADING >= load(&growth[device].wishes) ||
                   __builtin_mul_overflow(taken > last ? taken - last : 0, CW_EXCESS_LOOKS_AHEAD,
                                          &more)
               ? UNKNOWN
               : more;
}

static CW_NOINLINE void look_at_growth(uint8_t device, uint64_t taken)
{
    uint64_t last = load(&growth[device].look_ns), now = cw_session_now();

    if (now < last + CW_EXCESS_LOOK_NS ||
        !atomic_compare_exchange_strong(&growth[device].look_ns, &last, now))
        return;
    store(&growth[device].more, last != 0 ? expected_more(device, taken) : UNKNOWN);
    store(&growth[device].taken, taken);
    store(&growth[device].wishes, 0);
    store(&growth[device].rises, 0);
}

static void count_wish(uint8_t device, uint64_t taken, int is_rise)
{
    uint64_t before = atomic_fetch_add_explicit(&growth[device].wishes, 1, memory_order_relaxed);

    if (is_rise)
        atomic_fetch_add_explicit(&growth[device].rises, 1, memory_order_relaxed);
    if (CW_UNLIKELY(before % CW_EXCESS_LOOK_WISHES == CW_EXCESS_LOOK_WISHES - 1))
        look_at_growth(device, taken);
}

/* The most that the program is likely to take of the device, with a block of so many bytes and
 * later. What was taken ahead of requests it has, whether it grows or not. */
static uint64_t likely_peak(uint8_t device, uint64_t bytes)
{
    uint64_t taken = cw_usage_peak_taken(device), ahead = cw_demand_ahead(device);
    uint64_t live = cw_usage_device(device).live + bytes, peak = load(&cw_usage_peak[device]);

    count_wish(device, taken, live > peak);
    if (live <= ahead && peak <= ahead)
        return taken;
    if (live > peak)
        taken += live - peak;
    return __builtin_add_overflow(taken, load(&growth[device].more), &taken) ? UNKNOWN : taken;
}

/* What the program leaves free when it has taken so much, of the device as last sampled and of its
 * limit; 0 until the device has said how large it is, unless there is a limit. */
static uint64_t least_free(uint8_t device, uint64_t taken)
{
    uint64_t limit = cw_limit_of(device), least = UINT64_MAX;
    uint64_t total = cw_device_describe(device) ? cw_device_state(device)->total : 0;
    int64_t left = cw_device_free_when(device, taken);

    if (limit != 0)
        least = limit > taken ? limit - taken : 0;
    if (left == INT64_MAX) /* never sampled */
        left = total != 0 || limit == 0 ? (int64_t)(total - taken) : INT64_MAX;
    return left <= 0 ? 0 : (uint64_t)left < least ? (uint64_t)left : least;
}

uint64_t cw_excess_reserve(uint8_t device, uint64_t bytes, uint64_t excess)
{
    uint64_t taken, most = 0;

    if (excess == 0 || device == CW_DEVICE_HOST)
        return excess;
    taken = likely_peak(device, bytes);
    if (taken != UNKNOWN)
        most = least_free(device, taken) / CW_EXCESS_SHARE;
    return cw_usage_take_excess(device, excess, most);
}

uint64_t cw_excess_reserve_last(uint8_t device, uint64_t bytes, uint64_t excess)
{
    uint64_t limit = cw_limit_of(device);

    return limit != 0 && excess != 0 && device != CW_DEVICE_HOST
               ? cw_usage_take_excess(device, excess, limit / CW_EXCESS_SHARE)
               : cw_excess_reserve(device, bytes, excess);
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

/* How much larger than `bytes` a block for them may be, so that `efficient` thousandths of all
 * bytes given were asked for. */
static uint64_t spare_of(uint8_t device, uint64_t bytes, unsigned efficient)
{
    uint32_t now = cw_session_tick(cw_session_now());
    unsigned __int128 most, given;

    if (atomic_exchange(&sums[device].tick, now) != now)
        add_up(device);
    most = ((unsigned __int128)atomic_load(&sums[device].asked) + bytes) * 1000 / efficient;
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
    return cw_excess_reserve(device, bytes,
                             least(least(bytes / CW_EXCESS_LARGER_SHARE, most - there),
                                   spare_of(device, bytes, CW_EXCESS_EFFICIENT_LARGER)));
}

uint64_t cw_excess_round(uint8_t device, uint64_t bytes, uint64_t *out_excess)
{
    uint64_t rounded = cw_size_round(bytes), excess = cw_size_excess(rounded, bytes);

    *out_excess = 0;
    if (excess == 0)
        return rounded;
    if (rounded - bytes > spare_of(device, bytes, CW_EXCESS_EFFICIENT))
        return cw_size_exact(bytes);
    *out_excess = cw_excess_reserve(device, bytes, excess);
    if (CW_LIKELY(*out_excess == excess))
        return rounded;
    cw_usage_give_excess(device, *out_excess);
    *out_excess = 0;
    return cw_size_exact(bytes);
}
