/* SPDX-License-Identifier: MIT */
/* Events of the report: what happened, when, to which device, and by which call. A bounded list; no
 * lock. */
#ifndef CW_CORE_EVENT_H
#define CW_CORE_EVENT_H

#include <stdint.h>

#include "live/arena.h"

void cw_event_init(struct cw_arena *arena);

/* Appends a copy, with the time, the device's last sample and, where it has a site, the device
 * filled in. Its index, or 0 when the list is full. */
uint32_t cw_event_add(const struct cw_live_event *what);
struct cw_live_event *cw_event_at(uint32_t index);

#endif
