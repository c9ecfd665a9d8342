/* SPDX-License-Identifier: MIT */
/*
 * Growth: when it is time to write down what is held, and what each site held at that moment.
 *
 * Owns header.growth and CW_TABLE_SERIES, and the clock by which samples of sites and points of
 * devices (core/growth/timeline.h) come due. A thread that allocates has read the time and compares
 * it with one word (core/process/deadline.h); when it has come, CW_DUE_GROWTH is raised, and the
 * next thread that leaves a call does the rest (hook/services/dispatch.h). No lock is held: one
 * thread at a time is let in, others return at once. Frees do nothing here.
 *
 * Always: a sweep over all sites costs at most a thousandth of the time until the next, and one of
 * more sites than CW_GROWTH_PART is spread over several calls of the program's, some milliseconds
 * apart; there are at most CW_SERIES_MOST series, however long the process lives. A reader of a
 * series checks, before and after, that the series names the site and the site names the series
 * (layout.h): a series of a site that has held nothing for a while is handed on to another.
 */
#ifndef CW_CORE_GROWTH_H
#define CW_CORE_GROWTH_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "core/process/deadline.h"
#include "core/growth/timeline.h"
#include "live/arena.h"

#define CW_SERIES_MOST 4096u
#define CW_GROWTH_PART 16384u /* site records in one call: a millisecond at most */

void cw_growth_init(struct cw_arena *arena, const struct cw_options *options);
/* In a forked child. */
void cw_growth_reset(void);

/* The device holds something now: if it has no timeline yet, the timeline begins. */
static inline void cw_growth_expect(uint8_t device)
{
    if (CW_UNLIKELY(cw_timeline_is_missing(device)) &&
        atomic_load_explicit(&cw_deadlines.growth_ns, memory_order_relaxed) != UINT64_MAX)
        atomic_store_explicit(&cw_deadlines.growth_ns, 0, memory_order_relaxed);
}

/* Takes what is due. No lock held. */
void cw_growth_serve(void);

/* Takes the last sample and the last points. Takes no lock, and does nothing if a sample may have
 * been interrupted. */
void cw_growth_finish(uint64_t end_ns);

#endif
