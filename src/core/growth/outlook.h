/* SPDX-License-Identifier: MIT */
/*
 * The outlook of a device: its points are collected, their forecast (core/growth/forecast.h) is
 * published where other processes read it, and is said once with LOG=info.
 *
 * Owns the full_* fields of struct cw_live_memory. One thread at a time calls, as
 * core/growth/growth.h arranges; no lock. A look takes some ten microseconds and is taken after
 * every 64th part of the life, so the time that it costs is bounded however long the process lives.
 */
#ifndef CW_CORE_OUTLOOK_H
#define CW_CORE_OUTLOOK_H

#include <stdint.h>

#include "live/arena.h"

void cw_outlook_init(struct cw_arena *arena);
/* After a point at this moment. */
void cw_outlook_look(uint8_t device, const struct cw_live_timeline *timeline, uint64_t now_ns);

#endif
