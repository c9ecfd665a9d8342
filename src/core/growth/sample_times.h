/* SPDX-License-Identifier: MIT */
/*
 * Sample times: which of an ever growing number of moments stay in a fixed number of slots.
 *
 * Each moment has a number, a multiple of the stride. When all slots are taken the stride doubles,
 * and every second moment goes, the oldest first: one with each new moment, so that the first and
 * the newest always stay and the gaps between neighbours are one stride or two. The period doubles
 * with the stride, at least until it fits the pace at which moments came, which may be slower than
 * was asked for. Nothing moves: what belongs to a moment stays in its slot.
 *
 * One writer at a time; a struct of zeros must be initialised before use.
 */
#ifndef CW_CORE_SAMPLE_TIMES_H
#define CW_CORE_SAMPLE_TIMES_H

#include <stdint.h>

struct cw_sample_times {
    uint64_t *number; /* by slot */
    unsigned slots, used;
    unsigned newest; /* slot */
    uint64_t taken;
    uint64_t next, stride;
    uint64_t period_ns; /* between two moments, at least */
    uint64_t first_ns, last_ns;
};

/* number: room for as many as there are slots; an even number of them. */
void cw_sample_times_init(struct cw_sample_times *moments, uint64_t *number, unsigned slots,
                          uint64_t period_ns);

/* The slot for a new moment, or the last one's if the time is the same, as with a coarse clock. The
 * time must not go back. */
unsigned cw_sample_times_take(struct cw_sample_times *moments, uint64_t t_ns);

#endif
