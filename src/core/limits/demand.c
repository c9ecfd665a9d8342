/* SPDX-License-Identifier: MIT */
/* The window of what was live. See demand.h. */
#include "core/limits/demand.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "core/limits/bound.h"
#include "core/limits/pressure.h"
#include "core/process/session.h"
#include "core/account/usage.h"

/* From level MEDIUM on, so many 64ths of the live peak may be held beyond it, and from HIGH on
 * nothing: a little less than a quarter, so that at most a fifth of the held bytes lies idle at the
 * peaks. What goes is chosen in core/reclaim/reclaim_turn.c. */
#define SPARE_64THS     15
#define MORE_THAN_SHARE ((uint64_t)47 << 20)

static struct {
    const struct cw_options *options;
    _Atomic unsigned slot;                              /* of the window, that is open */
    _Atomic uint64_t peak[CW_DEMAND_SLOTS][CW_DEVICES]; /* the most that was live */
    _Atomic uint64_t prewarmed[CW_DEVICES];
} self;

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

void cw_demand_init(const struct cw_options *options)
{
    self.options = options;
    cw_demand_reset();
}

void cw_demand_reset(void)
{
    for (unsigned d = 0; d < CW_DEVICES; d++) {
        store(&self.prewarmed[d], 0);
        for (unsigned i = 0; i < CW_DEMAND_SLOTS; i++)
            store(&self.peak[i][d], 0);
    }
}

/* ---- the window ---- */

/* The shared sum is what is live and what threads keep as slack, which is the most that was live
 * since the slack was taken back last: just what is wanted. */
void cw_demand_note(uint8_t device, uint64_t more)
{
    uint64_t most = cw_usage_live_sum(device), live = 0;
    _Atomic uint64_t *peak =
        &self.peak[atomic_load_explicit(&self.slot, memory_order_relaxed)][device];

    if (more != 0)
        live = cw_usage_device(device).live + more;
    if ((int64_t)most < (int64_t)live)
        most = live;
    if ((int64_t)most > (int64_t)load(peak))
        store(peak, most);
}

uint64_t cw_demand_live(uint8_t device)
{
    uint64_t most = load(&self.prewarmed[device]);

    for (unsigned i = 0; i < CW_DEMAND_SLOTS; i++)
        if (load(&self.peak[i][device]) > most)
            most = load(&self.peak[i][device]);
    return most;
}

/* A program of 64 MiB may hold half of that, which harms nobody, and its few blocks are worth
 * keeping; from 100 MiB on the share applies. */
static uint64_t spare_for(uint64_t live)
{
    uint64_t share = live / 64 * SPARE_64THS;
    uint64_t least = share < MORE_THAN_SHARE ? MORE_THAN_SHARE - share : 0;

    if (least > CW_DEMAND_LITTLE)
        least = CW_DEMAND_LITTLE;
    return share > least ? share : least;
}

static uint64_t cap_by_demand(uint8_t device)
{
    uint64_t live, roomy;

    /* POOL_MAX alone bounds pinned memory, which has no level. */
    if (self.options->pool_bucket_max != CW_COUNT_AUTO || device >= CW_MAX_DEVICES)
        return UINT64_MAX;
    /* While nothing may be rounded (core/limits/excess.h) hardly two blocks are alike. */
    roomy = load(&cw_usage_most_excess[device]) != 0 ? cw_pressure_most_at_low(device) : 0;
    live = cw_demand_live(device);
    if (cw_pressure_level(device) < CW_LEVEL_HIGH)
        live += spare_for(live);
    return live > roomy ? live : roomy;
}

uint64_t cw_demand_cap(uint8_t device)
{
    uint64_t cap = cap_by_demand(device), bound = UINT64_MAX;

    if (cw_bound_is_on())
        bound = cw_bound_most(device);
    return cap < bound ? cap : bound;
}

void cw_demand_prewarmed(uint8_t device, uint64_t bytes)
{
    atomic_fetch_add_explicit(&self.prewarmed[device], bytes, memory_order_relaxed);
}

uint64_t cw_demand_ahead(uint8_t device)
{
    return load(&self.prewarmed[device]);
}

void cw_demand_turn(void)
{
    unsigned next = (atomic_load_explicit(&self.slot, memory_order_relaxed) + 1) % CW_DEMAND_SLOTS;

    for (unsigned d = 0; d < CW_DEVICES; d++)
        cw_demand_note((uint8_t)d, 0);
    cw_usage_settle_slack();
    for (unsigned d = 0; d < CW_DEVICES; d++)
        store(&self.peak[next][d], 0);
    atomic_store_explicit(&self.slot, next, memory_order_relaxed);
    for (unsigned d = 0; d < CW_DEVICES; d++)
        cw_demand_note((uint8_t)d, 0);
}
