/* SPDX-License-Identifier: MIT */
/* The list of events. See event.h. */
#include "core/account/event.h"

#include <stdatomic.h>

#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/site_count.h"

#define EVENTS_MAX 4096u
#define ERRORS_MAX 256u /* of programs, beyond that */

static struct cw_arena *arena;

void cw_event_init(struct cw_arena *in)
{
    arena = in;
}

struct cw_live_event *cw_event_at(uint32_t index)
{
    return cw_arena_at(arena, CW_TABLE_EVENT, index);
}

/* A program that oscillates around a threshold must not push its errors out of the list, nor may
 * refusals that it takes in its stride those that end it. */
static uint32_t most_events(uint8_t type)
{
    if (type == CW_EVENT_FATAL || type == CW_EVENT_INVALID_FREE)
        return EVENTS_MAX + ERRORS_MAX;
    return type == CW_EVENT_PRESSURE ? EVENTS_MAX / 2 : EVENTS_MAX;
}

uint32_t cw_event_add(const struct cw_live_event *what)
{
    const struct cw_live_device *device;
    struct cw_live_event *event;
    uint8_t ordinal = what->device;
    uint32_t index = 0;

    if (cw_arena_count(arena, CW_TABLE_EVENT) <= most_events(what->type))
        index = cw_arena_append(arena, CW_TABLE_EVENT);
    if (index == 0) {
        atomic_fetch_add(&arena->header->events_dropped, 1);
        return 0;
    }
    event = cw_event_at(index);
    *event = *what;
    if (what->site != 0)
        ordinal = cw_site_device(cw_site_at(what->site));
    event->device = ordinal;
    device = &arena->header->device[ordinal];
    event->total_bytes = atomic_load(&device->driver_total);
    event->free_bytes = event->total_bytes - atomic_load(&device->driver_used);
    if (atomic_load(&event->count) == 0)
        atomic_store(&event->count, 1);
    event->t_ns = cw_session_now(); /* set last: readers skip an event without a time */
    return index;
}
