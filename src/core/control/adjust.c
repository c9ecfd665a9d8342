/* SPDX-License-Identifier: MIT */
/* Limits and trims at run time. See adjust.h. */
#include "core/control/adjust.h"

#include <errno.h>

#include "core/cache/retention.h"
#include "core/device/device.h"
#include "core/limits/lending.h"
#include "core/limits/limit.h"
#include "core/limits/pressure.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/request/neighbours.h"
#include "core/reclaim/reclaim.h"

uint64_t cw_adjust_trim(uint8_t device, enum cw_trim how)
{
    switch (how) {
    case CW_TRIM_SHRINK: /* what threads keep is not counted before */
        cw_reclaim_gather(device);
        return cw_reclaim_surplus(device, cw_bucket_idle(device) / 2);
    case CW_TRIM_READY:
        return cw_reclaim_asked(device, 0, 0);
    case CW_TRIM_CLEAR:
        return cw_reclaim_asked(device, 1, 0);
    default:
        return cw_reclaim_asked(device, 1, !cw_thread.is_helper);
    }
}

/* The level of pressure depends on the limit. */
uint64_t cw_adjust_limit(uint8_t device, uint64_t bytes)
{
    uint64_t shortfall, idle;

    cw_limit_set(device, bytes);
    cw_pressure_update(device, 0, cw_session_now());
    if (bytes == 0)
        return 0;
    cw_reclaim_gather(device);
    cw_reclaim_harvest(device);
    shortfall = cw_limit_shortfall(device, 0);
    idle = cw_bucket_idle(device);
    return cw_reclaim_sufficient(device, shortfall < idle ? shortfall : idle, 1);
}

uint64_t cw_adjust_pool_max(uint8_t device, uint64_t bytes)
{
    cw_retention_set_most(device, bytes);
    return cw_reclaim_excess(device);
}

#define TURNS 64 /* of cw_reclaim_work, on the background thread */

/* The driver's free may wait for the device, so outside of the program's own frees only where there
 * is nothing to wait for; and in a call of the program one turn at most, and none if the driver
 * does not tell: the call may be one that does not wait. */
static void work_if_calm(void)
{
    unsigned turns = cw_thread.is_helper ? TURNS : 1;

    if (!cw_thread.is_helper && !cw_session.ops->has_context_events())
        return;
    while (turns-- > 0 && cw_reclaim_is_due() && cw_gate_is_open() && cw_reclaim_is_calm())
        cw_reclaim_work();
}

static uint64_t released(uint8_t device)
{
    const struct cw_live_released *sums = cw_device_at(device)->pool.released;

    return atomic_load(&sums[CW_RELEASE_NEIGHBOUR].bytes) +
           atomic_load(&sums[CW_RELEASE_PRESSURE].bytes);
}

int cw_adjust_lend(uint8_t device, uint64_t bytes, uint64_t *out_bytes)
{
    uint64_t before = released(device), now = cw_session_now();

    *out_bytes = 0;
    if (cw_session.options->neighbours == CW_NEIGHBOURS_OFF ||
        cw_session.options->mode != CW_MODE_POOL)
        return EPERM;
    atomic_fetch_add(&cw_device_at(device)->memory.neighbours.served, 1);
    cw_reclaim_gather(device);
    cw_reclaim_harvest(device);
    if (bytes != 0) {
        cw_lending_want(device, bytes, now, now + CW_NEIGHBOURS_WAIT_NS);
        cw_reclaim_due_set(device, CW_RECLAIM_LENT);
    } else {
        cw_device_sample_now(device, 0);
    }
    work_if_calm();
    *out_bytes = released(device) - before;
    return (cw_reclaim_due_of(device) & CW_RECLAIM_LENT) != 0 ? EINPROGRESS : 0;
}
