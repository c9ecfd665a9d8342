/* SPDX-License-Identifier: MIT */
/*
 * Statistics of a device or a tag. See api.h.
 *
 * Added up from the records of sites, buckets and resizes, and from counters by tag, while others
 * write them: no lock, each figure right for some moment of the call. The driver is asked how many
 * devices there are for those of all; and with a limit what each of them is, once.
 */
#include "api/stats.h"

#include <stdatomic.h>
#include <string.h>

#include "api/transfers.h"
#include "base/float_env.h"
#include "core/account/tag_count.h"
#include "core/account/usage.h"
#include "core/device/device.h"
#include "core/limits/limit.h"
#include "core/pool/pool.h"
#include "core/tags/tag_name.h"
#include "live/view.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

struct wanted {
    struct cw_view view;
    uint8_t first, end; /* devices */
    int by_tag;
    uint16_t tag; /* if by_tag; 0: without any */
};

static int is_wanted_device(const struct wanted *wanted, unsigned device)
{
    return device >= wanted->first && device < wanted->end;
}

/* ---- of sites ---- */

static void add_site(const struct wanted *wanted, const struct cw_live_site *site,
                     struct cuwarden_stats *stats)
{
    struct cw_site_sums sums;

    if (!is_wanted_device(wanted, cw_kind_home(site->kind, site->device)) ||
        (wanted->by_tag && site->tag != wanted->tag))
        return;
    cw_view_site_sums(site, &sums);
    stats->allocations += sums.allocs;
    stats->frees += sums.frees;
    stats->failures += sums.failed;
    stats->out_of_memory += sums.oom;
    stats->live_blocks += sums.live_blocks;
    stats->live_bytes += sums.live_bytes;
    stats->allocated_bytes += sums.live_held;
    stats->total_bytes += sums.total_bytes;
    if (wanted->by_tag)
        stats->peak_bytes += sums.peak_bytes;
}

static void add_sites(const struct wanted *wanted, struct cuwarden_stats *stats)
{
    uint32_t count = cw_view_count(&wanted->view, CW_TABLE_SITE);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_site *site = cw_view_site(&wanted->view, i);

        if (site != NULL && site->api != 0)
            add_site(wanted, site, stats);
    }
    stats->efficiency =
        stats->allocated_bytes != 0 ? cw_float_ratio(stats->live_bytes, stats->allocated_bytes) : 1;
}

/* ---- of the pool ---- */

/* A block may come in by one record and leave by another: only the sum is never below zero for
 * long. */
static void add_buckets(const struct wanted *wanted, struct cuwarden_stats *stats)
{
    uint32_t count = cw_view_count(&wanted->view, CW_TABLE_BUCKET);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_bucket *bucket = cw_view_bucket(&wanted->view, i);

        if (bucket == NULL || !is_wanted_device(wanted, bucket->device))
            continue;
        stats->hits += LOAD(bucket->hits);
        stats->misses += LOAD(bucket->misses);
        stats->idle_blocks += LOAD(bucket->idle_blocks);
        stats->idle_bytes += LOAD(bucket->idle_bytes);
    }
    if ((int64_t)stats->idle_blocks <= 0 || (int64_t)stats->idle_bytes <= 0)
        stats->idle_blocks = stats->idle_bytes = 0;
}

static void add_resizes(const struct wanted *wanted, struct cuwarden_stats *stats)
{
    uint32_t count = cw_view_count(&wanted->view, CW_TABLE_REGROWTH);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_regrowth *regrowth = cw_view_regrowth(&wanted->view, i);
        const struct cw_live_site *site =
            regrowth != NULL ? cw_view_site(&wanted->view, regrowth->site) : NULL;

        if (site == NULL || !is_wanted_device(wanted, cw_kind_home(site->kind, site->device)))
            continue;
        stats->resizes += LOAD(regrowth->resizes);
        stats->resized_bytes += LOAD(regrowth->copied_bytes);
    }
}

/* ---- of devices ---- */

/* Returns what of it may be used. */
static uint64_t add_device(uint8_t index, struct cuwarden_stats *stats)
{
    const struct cw_live_device *device = cw_device_at(index);
    const struct cw_device_state *state = cw_device_state(index);
    uint64_t total = LOAD(state->driver_total), used = LOAD(state->driver_used);
    uint64_t limit = cw_limit_of(index);
    struct cw_live_sums sums = cw_usage_device(index);

    stats->peak_bytes += LOAD(device->peak_bytes);
    stats->reserved_bytes += sums.held;
    stats->peak_reserved_bytes += LOAD(device->peak_held);
    stats->fallbacks += LOAD(device->memory.fallbacks);
    stats->fallback_bytes += LOAD(device->memory.fallback_bytes);
    stats->limit_bytes += limit;
    stats->device_free_bytes += total > used ? total - used : 0;
    if (total == 0) /* never looked at */
        total = state->total;
    stats->device_total_bytes += total;
    return limit != 0 ? limit : total;
}

static void add_devices(const struct wanted *wanted, struct cuwarden_stats *stats)
{
    uint64_t usable = 0;

    for (unsigned i = wanted->first; i < wanted->end; i++)
        usable += add_device((uint8_t)i, stats);
    stats->utilisation = cw_float_ratio(stats->allocated_bytes, usable);
    if (stats->peak_reserved_bytes > stats->peak_bytes)
        stats->fragmentation = cw_float_ratio(stats->peak_reserved_bytes - stats->peak_bytes,
                                              stats->peak_reserved_bytes);
}

static void add_transfers(const struct wanted *wanted, struct cuwarden_stats *stats)
{
    struct cw_transfers sums = {0};
    struct cw_carried carried = {0};
    uint16_t tag = wanted->by_tag ? wanted->tag : CW_TRANSFERS_ANY;

    for (unsigned i = wanted->first; i < wanted->end; i++) {
        cw_transfers_sum((uint8_t)i, tag, &sums);
        cw_transfers_sum_carried((uint8_t)i, tag, &carried);
    }
    stats->transfers = sums.count;
    stats->transfer_bytes = sums.bytes;
    stats->transfer_ns = sums.ns;
    stats->transfer_waited_ns = sums.waited_ns;
    stats->transfer_overlap = cw_transfers_overlap(&sums);
    stats->peer_transfers = carried.count[CW_WAY_PEER];
    stats->peer_bytes = carried.bytes[CW_WAY_PEER];
    stats->staged_transfers = carried.count[CW_WAY_STAGED];
    stats->staged_bytes = carried.bytes[CW_WAY_STAGED];
}

/* ---- of a tag ---- */

/* After add_sites: what is allocated meanwhile is no hit yet. */
static void add_tag(const struct wanted *wanted, struct cuwarden_stats *stats)
{
    struct cw_tag_sums sums = {0};

    for (unsigned i = wanted->first; i < wanted->end; i++)
        cw_tag_count_add(wanted->tag, (uint8_t)i, &sums);
    if (cw_pool_is_on() && stats->allocations > sums.granted)
        stats->hits = stats->allocations - sums.granted;
    stats->misses = sums.misses;
    stats->fallbacks = sums.fallbacks;
    stats->fallback_bytes = sums.fallback_bytes;
    stats->resizes = sums.resizes;
    stats->resized_bytes = sums.resized_bytes;
}

/* ---- the call ---- */

static int find_tag(struct wanted *wanted, const char *tag)
{
    wanted->by_tag = tag != NULL;
    if (tag == NULL || tag[0] == '\0')
        return CUWARDEN_OK;
    wanted->tag = cw_tag_name_find(0, tag);
    return wanted->tag != 0 ? CUWARDEN_OK
                            : cw_api_fail(CUWARDEN_NOT_FOUND, "nobody has used a tag '%s'", tag);
}

static void fill(const struct wanted *wanted, struct cuwarden_stats *stats)
{
    add_sites(wanted, stats);
    if (wanted->by_tag) {
        add_tag(wanted, stats);
    } else {
        add_buckets(wanted, stats);
        add_resizes(wanted, stats);
        add_devices(wanted, stats);
    }
    add_transfers(wanted, stats);
    stats->hit_rate = cw_float_ratio(stats->hits, stats->hits + stats->misses);
    stats->backend = cw_pool_is_on() ? "pool" : "track";
}

int cw_api_stats(int device, const char *tag, struct cuwarden_stats *out, size_t size)
{
    struct cuwarden_stats stats = {.efficiency = 1, .backend = ""};
    struct wanted wanted = {.by_tag = 0};
    int error = cw_api_check_active();

    if (error == CUWARDEN_OK)
        error = cw_api_check_device(device, &wanted.first, &wanted.end);
    if (error == CUWARDEN_OK)
        error = find_tag(&wanted, tag);
    if (error != CUWARDEN_OK)
        return error;
    if (cw_session_is_armed()) {
        if (device == CUWARDEN_ALL_DEVICES)
            wanted.end = (uint8_t)cw_api_device_count();
        cw_arena_view(&cw_session.arena, &wanted.view);
        fill(&wanted, &stats);
    }
    cw_api_give(out, size, &stats, sizeof(stats));
    return CUWARDEN_OK;
}
