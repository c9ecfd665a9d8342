/* SPDX-License-Identifier: MIT */
/*
 * Requests of other processes (live/layout.h: struct cw_live_control): `cuwarden ctl` writes them
 * into the live file, and the next thread that leaves a call, or the background thread, answers.
 * What is written there is not trusted. No lock: taking a request is one exchange, and one thread
 * at a time serves (hook/services/dispatch.h).
 */
#ifndef CW_CORE_CONTROL_H
#define CW_CORE_CONTROL_H

#include <stddef.h>
#include <stdint.h>

/* Makes a report for process `asker`: 0 and its name in text, or an errno and why not. */
typedef int (*cw_control_dump_fn)(uint32_t asker, char *text, size_t cap);
/* Who makes reports; until then, and with NULL, nobody does. */
void cw_control_set_dump(cw_control_dump_fn dump);

/* Answers the request, if there is one that was not withdrawn. No lock held; calls the driver. */
void cw_control_serve(void);

#endif
