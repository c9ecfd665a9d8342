/* SPDX-License-Identifier: MIT */
/*
 * Whether what was transferred has arrived. Questions to the driver, and waits, pass the gate
 * (core/process/gate.h): one that lands in a capture spoils it, and is answered by a code that says
 * nothing of the transfer. No state.
 */
#ifndef CW_API_ARRIVALS_H
#define CW_API_ARRIVALS_H

#include "api/transfer_ops.h"

#define CW_ARRIVAL_NOT_NOW (-1) /* a stream is captured, or a context ends */

/* 1: the driver's code is about a capture that was in the way, not about what was asked. */
int cw_arrival_is_captured(int code);

/* 0: `done` has passed, *out_ns after `begin` (0: that is not known). CW_TRANSFER_NOT_READY,
 * CW_ARRIVAL_NOT_NOW: ask again. Another code: the transfer has failed. Never waits. */
int cw_arrival_ask(const struct cw_transfer_ops *driver, void *begin, void *done, uint64_t *out_ns);

/* Until `done` has passed. 0, CW_ARRIVAL_NOT_NOW, or the driver's code. */
int cw_arrival_wait(const struct cw_transfer_ops *driver, void *done);

#endif
