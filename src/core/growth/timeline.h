/* SPDX-License-Identifier: MIT */
/*
 * The timeline: what each device and the host held over time. Each point has the highest live bytes
 * since the point before, which accounting keeps (core/account/usage.h): a peak between two points
 * is not lost, also when points are thinned out.
 *
 * Owns CW_TABLE_TIMELINE: one record per device, from when it first holds something. One thread at
 * a time calls, as core/growth/growth.h arranges; no lock.
 */
#ifndef CW_CORE_TIMELINE_H
#define CW_CORE_TIMELINE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "live/arena.h"

/* By device: 1 if it has a record, or there was no room for one. */
extern CW_HIDDEN _Atomic uint8_t cw_timeline_begun[CW_DEVICES];

static inline int cw_timeline_is_missing(uint8_t device)
{
    return device < CW_DEVICES &&
           !atomic_load_explicit(&cw_timeline_begun[device], memory_order_relaxed);
}

void cw_timeline_init(struct cw_arena *arena);
/* In a forked child. */
void cw_timeline_reset(void);

/* Takes the points that are due. Returns when the next one is; UINT64_MAX: no device has a record.
 * No lock held. */
uint64_t cw_timeline_serve(uint64_t now_ns);
/* A last point of each device that has a record; takes no lock. */
void cw_timeline_finish(uint64_t end_ns);

#endif
