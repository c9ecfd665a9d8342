/* SPDX-License-Identifier: MIT */
/* See arrivals.h. */
#include "api/arrivals.h"

#include "core/process/gate.h"

/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED to CUDA_ERROR_CAPTURED_EVENT. A capture that the gate has
 * not seen gives them, too. */
#define CAPTURED_FIRST 900
#define CAPTURED_LAST  907

int cw_arrival_is_captured(int code)
{
    return code >= CAPTURED_FIRST && code <= CAPTURED_LAST;
}

int cw_arrival_ask(const struct cw_transfer_ops *driver, void *begin, void *done, uint64_t *out_ns)
{
    int code;

    if (!cw_gate_enter())
        return CW_ARRIVAL_NOT_NOW;
    code = driver->event_query(done);
    if (code == 0 && driver->event_elapsed(begin, done, out_ns) != 0)
        *out_ns = 0;
    cw_gate_leave();
    return cw_arrival_is_captured(code) ? CW_ARRIVAL_NOT_NOW : code;
}

int cw_arrival_wait(const struct cw_transfer_ops *driver, void *done)
{
    int code;

    if (!cw_gate_enter_wait())
        return CW_ARRIVAL_NOT_NOW;
    code = driver->event_wait(done);
    cw_gate_leave_wait();
    return cw_arrival_is_captured(code) ? CW_ARRIVAL_NOT_NOW : code;
}
