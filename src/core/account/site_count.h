/* SPDX-License-Identifier: MIT */
/*
 * Counts a block that comes or goes: in its site, and in the sums of its device
 * (core/account/usage.h).
 *
 * A site's own counters have one writer, the thread in its slot `owner` (live/layout.h); other
 * threads that free its blocks add to the far ones, atomically. No lock. Every hit of the pool and
 * every free comes through here, so all but the owner's common case is out of line. The sum of
 * managed memory that stands in for device memory is in private memory.
 */
#ifndef CW_CORE_SITE_COUNT_H
#define CW_CORE_SITE_COUNT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/process/slot.h"
#include "core/account/site.h"
#include "core/account/usage.h"
#include "core/process/thread.h"
#include "core/process/types.h"
#include "core/python/python.h"
#include "live/arena.h"

void cw_site_count_init(struct cw_arena *arena);

extern CW_HIDDEN struct cw_live_device *cw_site_count_devices;

/* 1 if the calling thread alone writes this record's own counters. */
static inline int cw_site_is_mine(const struct cw_live_site *site)
{
    uint8_t owner = cw_site_own(site)->owner;

    return CW_LIKELY(owner != 0 && owner == cw_thread.slot);
}

static inline uint8_t cw_site_device(const struct cw_live_site *site)
{
    return cw_site_own(site)->device;
}

static inline int cw_site_is_counted(const struct cw_live_site *site)
{
    return cw_kind_counted(cw_site_own(site)->kind) != CW_COUNTED_NONE;
}

/* The device that counts a block of this site, CW_DEVICES for none. */
static inline uint8_t cw_site_counted_on(const struct cw_live_site *site)
{
    return cw_site_is_counted(site) ? cw_site_device(site) : CW_DEVICES;
}

/* Saves the current value as the one at that peak. */
CW_NOINLINE void cw_site_count_peak(struct cw_live_site *site, uint64_t version);

/* Saves what a site held at its device's last peak, before the site's first change since then. */
static inline void cw_site_save_at_peak(struct cw_live_site *site)
{
    const struct cw_live_device *device = &cw_site_count_devices[cw_site_device(site)];
    uint64_t version = atomic_load_explicit(&device->peak_version, memory_order_relaxed);

    if (CW_UNLIKELY(atomic_load_explicit(&site->at_peak_version, memory_order_relaxed) != version))
        cw_site_count_peak(site, version);
}

CW_NOINLINE void cw_site_raise_peaks(struct cw_live_site *site);

/* A new maximum of the site. Concurrent frees by others may make the value negative. */
static inline int cw_site_is_peak(const struct cw_live_site *site)
{
    uint64_t blocks = atomic_load_explicit(&site->allocs, memory_order_relaxed) -
                      atomic_load_explicit(&site->frees, memory_order_relaxed) -
                      atomic_load_explicit(&site->far_frees, memory_order_relaxed) -
                      atomic_load_explicit(&site->reclaimed, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&site->total_bytes, memory_order_relaxed) -
                     atomic_load_explicit(&site->freed_bytes, memory_order_relaxed) -
                     atomic_load_explicit(&site->far_bytes, memory_order_relaxed) -
                     atomic_load_explicit(&site->reclaimed_bytes, memory_order_relaxed);

    return (int64_t)blocks >
               (int64_t)atomic_load_explicit(&site->peak_blocks, memory_order_relaxed) ||
           (int64_t)bytes > (int64_t)atomic_load_explicit(&site->peak_bytes, memory_order_relaxed);
}

/* By a thread that is not the owner. */
CW_NOINLINE void cw_site_count_in_shared(struct cw_live_site *site, uint64_t bytes, uint64_t extra);
CW_NOINLINE void cw_site_count_out_far(struct cw_live_site *site, uint64_t bytes, uint64_t extra);

/* The program has a block: updates all but the device's sums. */
static CW_INLINE void cw_site_add(struct cw_live_site *site, uint64_t bytes, uint64_t held,
                                  uint64_t now_ns)
{
    cw_site_save_at_peak(site);
    if (CW_UNLIKELY(atomic_load_explicit(&site->first_ns, memory_order_relaxed) == 0))
        atomic_store_explicit(&site->first_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&site->last_ns, now_ns, memory_order_relaxed);
    if (cw_site_is_mine(site)) {
        cw_slot_add(&site->allocs, 1);
        cw_slot_add(&site->total_bytes, bytes);
        cw_slot_add(&site->extra_bytes, held - bytes);
    } else {
        cw_site_count_in_shared(site, bytes, held - bytes);
    }
    if (CW_UNLIKELY(cw_site_is_peak(site)))
        cw_site_raise_peaks(site);
}

/* The interpreter frees it, as it ends. */
CW_NOINLINE void cw_site_count_ended(struct cw_live_site *site, uint64_t bytes);

/* The program has freed it. */
static inline void cw_site_sub(struct cw_live_site *site, uint64_t bytes, uint64_t held)
{
    cw_site_save_at_peak(site);
    if (cw_python_is_ending())
        cw_site_count_ended(site, bytes);
    if (cw_site_is_mine(site)) {
        cw_slot_add(&site->frees, 1);
        cw_slot_add(&site->freed_bytes, bytes);
        cw_slot_add(&site->freed_extra, held - bytes);
    } else {
        cw_site_count_out_far(site, bytes, held - bytes);
    }
}

/* The same with the device's sums. more: bytes that were neither held nor reserved before; less:
 * bytes that are no longer held. */
void cw_site_count_in(struct cw_live_site *site, uint64_t bytes, uint64_t held, uint64_t more,
                      uint64_t now_ns);
void cw_site_count_out(struct cw_live_site *site, uint64_t bytes, uint64_t held, uint64_t less);

/* Live bytes of managed memory that stands in for device memory (core/request/fallback.h). */
uint64_t cw_site_count_managed(void);

/* It went with its context. */
void cw_site_count_reclaimed(struct cw_live_site *site, uint64_t bytes, uint64_t held);

#endif
