/* SPDX-License-Identifier: MIT */
/* Pressure, trims and limits. See api.h and core/control/adjust.h. */
#include "api/control.h"

#include "base/float_env.h"
#include "core/account/usage.h"
#include "core/control/adjust.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/limits/limit.h"
#include "core/limits/pressure.h"
#include "core/pool/pool.h"
#include "live/view.h"

/* ---- which devices ---- */

/* One device must be there, and be used if needs_use is set. */
static int check_device(int device, int needs_use, uint8_t *out_first, uint8_t *out_end)
{
    int error = cw_api_check_started();

    if (error == CUWARDEN_OK)
        error = cw_api_check_device(device, out_first, out_end);
    if (error != CUWARDEN_OK || device == CUWARDEN_ALL_DEVICES || !needs_use ||
        cw_usage_is_used(*out_first))
        return error;
    return cw_api_fail(CUWARDEN_UNUSED_DEVICE, "the program has no memory on device %d", device);
}

/* ---- pressure ---- */

void cw_api_pressure_of(uint8_t device, struct cuwarden_pressure *out)
{
    struct cw_pressure_state state;

    cw_pressure_read(device, &state);
    *out = (struct cuwarden_pressure){.use = cw_float_ratio(state.share, 10000),
                                      .used_bytes = state.device_used,
                                      .total_bytes = state.device_total,
                                      .held_bytes = state.held,
                                      .limit_bytes = state.limit,
                                      .level = (int32_t)cw_pressure_level(device),
                                      .device = device};
}

int cw_api_pressure(int device, struct cuwarden_pressure *out, size_t size)
{
    struct cuwarden_pressure most = {.use = -1}, one;
    uint8_t first, end;
    int error = device == CUWARDEN_HOST
                    ? cw_api_fail(CUWARDEN_INVALID, "pressure is that of devices, not of the host")
                    : check_device(device, 1, &first, &end);

    if (error != CUWARDEN_OK)
        return error;
    for (unsigned i = first; i < end; i++) {
        if (!cw_usage_is_used((uint8_t)i))
            continue;
        cw_api_pressure_of((uint8_t)i, &one);
        if (one.use > most.use)
            most = one;
    }
    if (most.use < 0)
        return cw_api_fail(CUWARDEN_UNUSED_DEVICE, "the program has no memory on any device");
    cw_api_give(out, size, &most, sizeof(most));
    return CUWARDEN_OK;
}

/* ---- what calls the driver ---- */

int cw_api_trim(int device, int how, uint64_t *out_bytes)
{
    static const enum cw_trim trims[] = {[CUWARDEN_SHRINK] = CW_TRIM_SHRINK,
                                         [CUWARDEN_CLEAR] = CW_TRIM_CLEAR,
                                         [CUWARDEN_EMERGENCY] = CW_TRIM_ALL};
    uint64_t bytes = 0;
    uint8_t first, end;
    unsigned depth;
    int error;

    if (how < CUWARDEN_SHRINK || how > CUWARDEN_EMERGENCY)
        return cw_api_fail(CUWARDEN_INVALID, "there is no way %d to trim: 0 to %d", how,
                           CUWARDEN_EMERGENCY);
    error = check_device(device, 1, &first, &end);
    if (error == CUWARDEN_OK)
        error = cw_api_check_driver();
    if (error != CUWARDEN_OK)
        return error;
    depth = cw_api_enter();
    for (unsigned i = first; i < end; i++) {
        if (!cw_usage_is_used((uint8_t)i))
            continue;
        bytes += cw_adjust_trim((uint8_t)i, trims[how]);
        if (how == CUWARDEN_EMERGENCY && i < CW_MAX_DEVICES)
            bytes += cw_driver_pool_trim((uint8_t)i);
    }
    cw_api_leave(depth);
    if (out_bytes != NULL)
        *out_bytes = bytes;
    return CUWARDEN_OK;
}

/* Of all devices that are there, not of the 64 that could be. */
static int adjust(int device, uint64_t bytes, uint64_t (*one)(uint8_t device, uint64_t bytes))
{
    uint8_t first, end;
    unsigned depth;
    int error = check_device(device, 0, &first, &end);

    if (error == CUWARDEN_OK)
        error = cw_api_check_driver();
    if (error != CUWARDEN_OK)
        return error;
    depth = cw_api_enter();
    if (device == CUWARDEN_ALL_DEVICES)
        end = (uint8_t)cw_api_device_count();
    for (unsigned i = first; i < end; i++)
        one((uint8_t)i, bytes);
    cw_api_leave(depth);
    return CUWARDEN_OK;
}

int cw_api_limit(int device, uint64_t bytes)
{
    if (device == CUWARDEN_HOST)
        return cw_api_fail(CUWARDEN_INVALID, "there is no limit on memory of the host");
    return adjust(device, bytes, cw_adjust_limit);
}

int cw_api_pool_max(int device, uint64_t bytes)
{
    if (cw_session_is_armed() && !cw_pool_is_on())
        return cw_api_fail(CUWARDEN_UNSUPPORTED, "there is no pool (CUWARDEN_MODE=track)");
    return adjust(device, bytes, cw_adjust_pool_max);
}
