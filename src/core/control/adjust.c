/* SPDX-License-Identifier: MIT */
/* Limits and trims at run time. See adjust.h. */
#include "core/control/adjust.h"

#include "core/cache/retention.h"
#include "core/limits/limit.h"
#include "core/limits/pressure.h"
#include "core/process/session.h"
#include "core/process/thread.h"
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
    return cw_reclaim_sufficient(device, shortfall < idle ? shortfall : idle);
}

uint64_t cw_adjust_pool_max(uint8_t device, uint64_t bytes)
{
    cw_retention_set_most(device, bytes);
    return cw_reclaim_surplus(device, bytes);
}
