/* SPDX-License-Identifier: MIT */
/* Limits and pressure at one moment. See snapshot_pressure.h. */
#include "report/snapshot/snapshot_pressure.h"

#include <string.h>

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void read_levels(struct cw_snapshot_pressure_device *device,
                        const struct cw_live_memory *live, uint64_t now_ns)
{
    uint64_t since_ns = LOAD(live->level_since_ns);

    device->level = LOAD(live->level) < CW_LEVEL_COUNT ? LOAD(live->level) : CW_LEVEL_LOW;
    for (unsigned i = 0; i < CW_LEVEL_COUNT; i++) {
        device->level_ns[i] = LOAD(live->level_ns[i]);
        device->level_entered[i] = LOAD(live->level_entered[i]);
        device->changes += device->level_entered[i];
        if (i == device->level && now_ns > since_ns)
            device->level_ns[i] += now_ns - since_ns;
        device->time_ns += device->level_ns[i];
    }
    device->highest_use = LOAD(live->highest_use);
    device->share = LOAD(live->share);
}

static void read_ladder(struct cw_snapshot_pressure_device *device,
                        const struct cw_live_memory *live)
{
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        device->refused[i] = LOAD(live->refused[i]);
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++)
        device->rung[i] = (struct cw_snapshot_rung){.rung = (uint8_t)i,
                                                    .tried = LOAD(live->rung[i].tried),
                                                    .helped = LOAD(live->rung[i].helped),
                                                    .released = LOAD(live->rung[i].released)};
    device->limited = LOAD(live->limited);
    device->fallbacks = LOAD(live->fallbacks);
    device->fallback_bytes = LOAD(live->fallback_bytes);
    device->neighbours.asked = LOAD(live->neighbours.asked);
    device->neighbours.silent = LOAD(live->neighbours.silent);
    device->neighbours.wait_ns = LOAD(live->neighbours.wait_ns);
    device->neighbours.served = LOAD(live->neighbours.served);
}

static uint64_t beyond(uint64_t bytes, uint64_t bound)
{
    return bytes > bound ? bytes - bound : 0;
}

/* The level is looked at now and then; what is held is known at any time, and its peak. */
static void read_bounds(struct cw_snapshot_pressure_device *device,
                        const struct cw_live_memory *live)
{
    device->is_platform = LOAD(live->is_platform) != 0;
    device->borrowed = LOAD(live->borrowed);
    device->peak_borrowed = LOAD(live->peak_borrowed);
    for (unsigned i = 0; i < CW_BOUND_COUNT; i++) {
        uint64_t bytes = LOAD(live->bound[i]), most = beyond(device->peak_held, bytes);

        device->bound[i] = (struct cw_snapshot_bound){.bound = (uint8_t)i, .bytes = bytes};
        if (bytes == 0 || cw_bound_kind((enum cw_bound)i)->force != CW_BOUND_SOFT)
            continue;
        if (most > device->peak_borrowed)
            device->peak_borrowed = most;
    }
}

static int is_used(const struct cw_snapshot_pressure_device *device)
{
    uint64_t sum = device->limit | device->min_free | device->limited | device->fallbacks |
                   device->pressure_blocks | device->level | device->changes |
                   device->neighbours.asked | device->neighbours.served;

    for (unsigned i = 0; i < CW_BOUND_COUNT; i++)
        sum |= device->bound[i].bytes;
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        sum |= device->refused[i];
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++)
        sum |= device->rung[i].tried;
    return sum != 0;
}

int cw_snapshot_has_soft_bound(const struct cw_snapshot_pressure_device *device)
{
    for (unsigned i = 0; i < CW_BOUND_COUNT; i++)
        if (device->bound[i].bytes != 0 && cw_bound_kind((enum cw_bound)i)->force == CW_BOUND_SOFT)
            return 1;
    return 0;
}

void cw_snapshot_pressure_add(struct cw_snapshot_pressure_device *all,
                              const struct cw_snapshot_pressure_device *device)
{
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        all->refused[i] += device->refused[i];
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++) {
        all->rung[i].tried += device->rung[i].tried;
        all->rung[i].helped += device->rung[i].helped;
        all->rung[i].released += device->rung[i].released;
    }
    all->limited += device->limited;
    all->fallbacks += device->fallbacks;
    all->fallback_bytes += device->fallback_bytes;
    all->pressure_blocks += device->pressure_blocks;
    all->pressure_bytes += device->pressure_bytes;
    all->neighbours.asked += device->neighbours.asked;
    all->neighbours.silent += device->neighbours.silent;
    all->neighbours.wait_ns += device->neighbours.wait_ns;
    all->neighbours.served += device->neighbours.served;
    all->used |= device->used;
}

void cw_snapshot_pressure_init(struct cw_snapshot_pressure *pressure, const struct cw_view *view,
                               uint64_t now_ns)
{
    memset(pressure, 0, sizeof(*pressure));
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct cw_live_device *live = &cw_view_header(view)->device[i];
        struct cw_snapshot_pressure_device *device = &pressure->device[i];

        device->limit = LOAD(live->memory.limit);
        device->min_free = LOAD(live->memory.min_free);
        device->spare = LOAD(live->memory.spare);
        device->held = cw_view_device_live(view, i).held;
        device->peak_held = LOAD(live->peak_held);
        device->pressure_blocks = LOAD(live->pool.released[CW_RELEASE_PRESSURE].blocks);
        device->pressure_bytes = LOAD(live->pool.released[CW_RELEASE_PRESSURE].bytes);
        read_bounds(device, &live->memory);
        read_levels(device, &live->memory, now_ns);
        read_ladder(device, &live->memory);
        device->ordinal = (uint8_t)i;
        device->used = (uint8_t)is_used(device);
        cw_snapshot_pressure_add(&pressure->all, device);
    }
}

uint64_t cw_oom_others(const struct cw_live_oom *oom)
{
    uint64_t known = oom->free_bytes + oom->held + oom->spare;

    return oom->total_bytes > known ? oom->total_bytes - known : 0;
}

int cw_oom_is_fragmented(const struct cw_live_oom *oom)
{
    return oom->cause == CW_CAUSE_DRIVER && oom->bytes != 0 && oom->total_bytes != 0 &&
           oom->free_bytes >= oom->bytes;
}

unsigned cw_oom_holders(const struct cw_live_oom *oom)
{
    uint32_t count = atomic_load_explicit(&oom->holders, memory_order_acquire);

    return count < CW_OOM_HOLDERS ? count : CW_OOM_HOLDERS;
}
