/* SPDX-License-Identifier: MIT */
/*
 * What a process holds on each device, from one refresh. See fleet.h.
 *
 * Peaks, limits and levels are in the header; allocations by kind are sums over site records, and
 * pool counters are sums over bucket records.
 */
#include "cli/fleet/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void add_sites(struct cw_fleet_device *device, const struct cw_view *view)
{
    uint32_t count = cw_view_count(view, CW_TABLE_SITE);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_site *site = cw_view_site(view, i);
        unsigned home = site ? cw_kind_home(site->kind, site->device) : CW_DEVICES;
        struct cw_site_sums sums;
        struct cw_fleet_kind *kind;

        if (home >= CW_DEVICES)
            continue;
        cw_view_site_sums(site, &sums);
        kind = &device[home].kind[site->kind];
        kind->live_bytes += sums.live_bytes;
        kind->live_blocks += sums.live_blocks;
        kind->allocs += sums.allocs;
        kind->frees += sums.frees;
        kind->failed += sums.failed;
        device[home].live_blocks += sums.live_blocks;
        device[home].allocs += sums.allocs;
        device[home].frees += sums.frees;
        device[home].failed += sums.failed;
    }
}

/* Sums of idle bytes may wrap temporarily: a single record may be negative. */
static void add_buckets(struct cw_fleet_device *device, const struct cw_view *view)
{
    uint32_t count = cw_view_count(view, CW_TABLE_BUCKET);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_bucket *bucket = cw_view_bucket(view, i);

        if (!bucket || bucket->device >= CW_DEVICES)
            continue;
        device[bucket->device].hits += LOAD(bucket->hits);
        device[bucket->device].misses += LOAD(bucket->misses);
        device[bucket->device].idle += LOAD(bucket->idle_bytes);
    }
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        if ((int64_t)device[i].idle < 0)
            device[i].idle = 0;
    }
}

static void print_uuid(char *buf, size_t cap, const uint8_t uuid[16])
{
    size_t len = (size_t)snprintf(buf, cap, "GPU");

    for (int i = 0; i < 16 && len < cap; i++)
        len +=
            (size_t)snprintf(buf + len, cap - len, "%s%02x",
                             i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

/* A forecast is good for some time: a process that takes no more gets no newer one. */
static double oom_eta_of(const struct cw_live_memory *memory, uint64_t life_ns)
{
    uint64_t full_ns = LOAD(memory->full_ns);

    if (full_ns == 0 || LOAD(memory->full_until_ns) < life_ns)
        return -1;
    return (double)since(full_ns, life_ns) / 1e9;
}

static void read_header(struct cw_fleet_device *device, const struct cw_view *view,
                        unsigned ordinal, uint64_t life_ns)
{
    const struct cw_live_device *live = &cw_view_header(view)->device[ordinal];
    struct cw_live_sums sums = cw_view_device_live(view, ordinal);

    device->ordinal = ordinal;
    device->live = sums.live;
    device->held = sums.held;
    device->peak = LOAD(live->peak_bytes);
    device->peak_held = LOAD(live->peak_held);
    device->limit = LOAD(live->memory.limit);
    device->min_free = LOAD(live->memory.min_free);
    device->driver_total = LOAD(live->driver_total);
    device->driver_used = LOAD(live->driver_used);
    device->level = LOAD(live->memory.level) < CW_LEVEL_COUNT ? LOAD(live->memory.level) : 0;
    device->pressure = device->driver_total != 0 || device->limit != 0
                           ? (double)LOAD(live->memory.share) / 10000
                           : -1;
    device->oom_eta = oom_eta_of(&live->memory, life_ns);
    device->fallbacks = LOAD(live->memory.fallbacks);
    device->fallback_bytes = LOAD(live->memory.fallback_bytes);
    for (unsigned i = 0; i < CW_RELEASE_COUNT; i++) {
        device->trimmed_bytes[i] = LOAD(live->pool.released[i].bytes);
        device->all_trimmed_bytes += device->trimmed_bytes[i];
    }
    device->neighbours_asked = LOAD(live->memory.neighbours.asked);
    device->neighbours_silent = LOAD(live->memory.neighbours.silent);
    device->neighbours_served = LOAD(live->memory.neighbours.served);
    device->neighbours_bytes = LOAD(live->memory.rung[CW_RUNG_NEIGHBOURS].released);
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        device->ooms[i] = LOAD(live->memory.refused[i]);
    if (ordinal == CW_DEVICE_HOST) {
        snprintf(device->name, sizeof(device->name), "host");
    } else if (atomic_load(&live->known)) {
        snprintf(device->name, sizeof(device->name), "%.*s", (int)sizeof(live->name) - 1,
                 live->name);
        print_uuid(device->uuid, sizeof(device->uuid), live->uuid);
    }
}

static int is_used(const struct cw_fleet_device *device)
{
    uint64_t sum = device->held | device->peak_held | device->allocs | device->failed |
                   device->hits | device->misses;

    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        sum |= device->ooms[i];
    return sum != 0 || device->uuid[0] != '\0';
}

static void work_out_rates(struct cw_fleet_device *device, const struct cw_fleet_device *before,
                           uint64_t passed_ns)
{
    static const struct cw_fleet_device nothing;
    uint64_t hits, asked;

    if (!before)
        before = &nothing;
    hits = since(device->hits, before->hits);
    asked = hits + since(device->misses, before->misses);
    device->alloc_rate =
        passed_ns ? (double)since(device->allocs, before->allocs) * 1e9 / (double)passed_ns : 0;
    device->hit_share = asked ? (double)hits / (double)asked : -1;
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole == 0 ? -1 : part < whole ? (double)part / (double)whole : 1;
}

static void work_out_shares(struct cw_fleet_device *device)
{
    uint64_t used = device->held > device->idle ? device->held - device->idle : 0;

    device->efficiency = device->live > 0 ? share_of(device->live, used) : -1;
    device->fragmentation = share_of(since(device->held, device->live), device->held);
    device->peak_fragmentation =
        share_of(since(device->peak_held, device->peak), device->peak_held);
}

static const struct cw_fleet_device *find(const struct cw_fleet_process *process, uint32_t ordinal)
{
    for (uint32_t i = 0; i < process->devices; i++) {
        if (process->device[i].ordinal == ordinal)
            return &process->device[i];
    }
    return NULL;
}

int cw_fleet_read_devices(struct cw_fleet_process *process, uint64_t now_ns)
{
    const struct cw_view *view = &process->look.view;
    uint64_t start_ns = process->looked_ns ? process->looked_ns : cw_view_header(view)->start_ns;
    struct cw_fleet_device *all = calloc(CW_DEVICES, sizeof(*all));
    uint32_t used = 0;

    if (!all)
        return -1;
    add_sites(all, view);
    add_buckets(all, view);
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        read_header(&all[i], view, i, since(now_ns, cw_view_header(view)->start_ns));
        if (!is_used(&all[i]))
            continue;
        work_out_rates(&all[i], find(process, i), since(now_ns, start_ns));
        work_out_shares(&all[i]);
        if (process->state != CW_FLEET_RUNNING) { /* nothing goes on any more */
            all[i].alloc_rate = 0;
            all[i].oom_eta = -1;
        }
        all[used++] = all[i];
    }
    free(process->device);
    process->device = used ? reallocarray(all, used, sizeof(*all)) : all;
    if (!process->device) /* only shrinks: on failure it is unchanged */
        process->device = all;
    process->devices = used;
    return 0;
}
