/* SPDX-License-Identifier: MIT */
/*
 * Functions of the program that want to know: of changes of pressure, and before a request fails
 * for lack of memory.
 *
 * Owns two tables of listeners; no lock: each row is taken, filled and given up by a change of its
 * turn, whose values are never used again, so a function and an argument that were read in one turn
 * are one listener's. Calls are counted, and whoever removes a listener waits for them. A change of
 * pressure is told by due work (core/process/due.h), by a thread of the program's.
 */
#ifndef CW_API_LISTENERS_H
#define CW_API_LISTENERS_H

#include "api/api.h"

int cw_api_pressure_listen(cuwarden_pressure_fn fn, void *arg, int is_on);
int cw_api_memory_listen(cuwarden_memory_fn fn, void *arg, int is_on);

/* Due work: tells which levels have changed since they were last told. */
void cw_api_notice_serve(void);
int cw_api_notice_is_here(void);

/* In a forked child: levels are low; who listened goes on. */
void cw_api_listeners_reset(void);

#endif
