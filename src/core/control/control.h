/* SPDX-License-Identifier: MIT */
/*
 * Requests of other processes (live/layout.h: struct cw_live_control): `cuwarden ctl` writes them
 * into the live file, and the next thread that leaves a call, or the background thread, answers.
 * Nothing written there is trusted. No lock: taking a request is one exchange, and one thread at a
 * time serves (hook/services/dispatch.h).
 */
#ifndef CW_CORE_CONTROL_H
#define CW_CORE_CONTROL_H

#include <stddef.h>
#include <stdint.h>

/* Answers the request, if there is one that was not withdrawn. No lock held; calls the driver. */
void cw_control_serve(void);

#endif
