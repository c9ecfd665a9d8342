/* SPDX-License-Identifier: MIT */
/* The counters of a site, updated by threads that do not own it. See site_count.h. */
#include "core/account/site_count.h"

#include "live/view.h"

CW_HOT_DATA struct cw_live_device *cw_site_count_devices;
static _Atomic uint64_t managed;

void cw_site_count_init(struct cw_arena *arena)
{
    cw_site_count_devices = arena->header->device;
    atomic_store(&managed, 0);
}

uint64_t cw_site_count_managed(void)
{
    return atomic_load(&managed);
}

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *peak, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);

    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               peak, &seen, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

void cw_site_count_peak(struct cw_live_site *site, uint64_t version)
{
    struct cw_site_sums sums;

    cw_view_site_sums(site, &sums);
    atomic_store_explicit(&site->at_peak_blocks, sums.live_blocks, memory_order_relaxed);
    atomic_store_explicit(&site->at_peak_bytes, sums.live_bytes, memory_order_relaxed);
    atomic_store_explicit(&site->at_peak_version, version, memory_order_release);
}

static void count_managed(const struct cw_live_site *site, uint64_t bytes)
{
    const struct cw_live_site *own = cw_site_own(site);

    if (own->kind == CW_KIND_MANAGED && own->device == CW_DEVICE_HOST)
        add(&managed, bytes);
}

void cw_site_raise_peaks(struct cw_live_site *site)
{
    struct cw_site_sums sums;

    cw_view_site_sums(site, &sums);
    raise_to(&site->peak_blocks, sums.live_blocks);
    raise_to(&site->peak_bytes, sums.live_bytes);
}

void cw_site_count_in_shared(struct cw_live_site *site, uint64_t bytes, uint64_t extra)
{
    add(&site->allocs, 1);
    add(&site->total_bytes, bytes);
    if (extra != 0)
        add(&site->extra_bytes, extra);
}

void cw_site_count_out_far(struct cw_live_site *site, uint64_t bytes, uint64_t extra)
{
    add(&site->far_frees, 1);
    add(&site->far_bytes, bytes);
    if (extra != 0)
        add(&site->far_extra, extra);
}

void cw_site_count_ended(struct cw_live_site *site, uint64_t bytes)
{
    add(&site->ended_bytes, bytes);
}

void cw_site_count_reclaimed(struct cw_live_site *site, uint64_t bytes, uint64_t held)
{
    uint8_t device = cw_site_counted_on(site);

    cw_site_save_at_peak(site);
    count_managed(site, -bytes);
    add(&site->reclaimed, 1);
    add(&site->reclaimed_bytes, bytes);
    add(&site->far_extra, held - bytes);
    if (device != CW_DEVICES)
        cw_usage_sub(device, bytes, held);
}

void cw_site_count_in(struct cw_live_site *site, uint64_t bytes, uint64_t held, uint64_t more,
                      uint64_t now_ns)
{
    uint8_t device = cw_site_counted_on(site);

    cw_site_add(site, bytes, held, now_ns);
    count_managed(site, bytes);
    if (device != CW_DEVICES)
        cw_usage_add(device, bytes, more, now_ns);
}

void cw_site_count_out(struct cw_live_site *site, uint64_t bytes, uint64_t held, uint64_t less)
{
    uint8_t device = cw_site_counted_on(site);

    cw_site_sub(site, bytes, held);
    count_managed(site, -bytes);
    if (device != CW_DEVICES)
        cw_usage_sub(device, bytes, less);
}
