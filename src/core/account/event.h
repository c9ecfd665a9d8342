/* SPDX-License-Identifier: MIT */
/* Events of the report: what happened, when, to which device, and by which call. A bounded list; no
 * lock. */
#ifndef CW_CORE_EVENT_H
#define CW_CORE_EVENT_H

#include <stdint.h>

#include "live/arena.h"

void cw_event_init(struct cw_arena *arena);

/* Appends a copy and fills in the time, the device's last sample and, for an event with a site, the
 * device. Its index; 0: the list is full. */
uint32_t cw_event_add(const struct cw_live_event *what);
struct cw_live_event *cw_event_at(uint32_t index);

#endif
