/* SPDX-License-Identifier: MIT */
/*
 * Limits, levels of pressure and what was done about them, read once: a part of the snapshot
 * (report/snapshot/snapshot.h). Words as in live/layout.h.
 */
#ifndef CW_REPORT_SNAPSHOT_PRESSURE_H
#define CW_REPORT_SNAPSHOT_PRESSURE_H

#include <stdint.h>

#include "live/view.h"

struct cw_snapshot_rung {
    uint8_t rung;
    uint64_t tried, helped, released;
};

struct cw_snapshot_pressure_device {
    uint8_t ordinal;
    uint8_t used;             /* there is something to tell */
    uint64_t limit, min_free; /* 0: none */
    uint64_t held, peak_held, spare;
    unsigned level;       /* enum cw_level, at the end */
    uint64_t highest_use; /* in 1/10000 */
    uint64_t level_ns[CW_LEVEL_COUNT], level_entered[CW_LEVEL_COUNT];
    uint64_t time_ns; /* at all levels */
    uint64_t changes; /* of level */
    uint64_t refused[CW_CAUSE_COUNT], limited;
    struct cw_snapshot_rung rung[CW_RUNG_COUNT];
    uint64_t fallbacks, fallback_bytes;
    uint64_t pressure_blocks, pressure_bytes;
};

struct cw_snapshot_pressure {
    struct cw_snapshot_pressure_device device[CW_DEVICES];
    struct cw_snapshot_pressure_device all; /* sums: refused to pressure_bytes; used if any is */
};

/* now_ns: to which the present level has lasted, since the process's start. */
void cw_snapshot_pressure_init(struct cw_snapshot_pressure *pressure, const struct cw_view *view,
                               uint64_t now_ns);

/* Adds a device to the sums. */
void cw_snapshot_pressure_add(struct cw_snapshot_pressure_device *all,
                              const struct cw_snapshot_pressure_device *device);

/* ---- accounts of out of memory, which are read where they lie ---- */

/* Of the device's memory, what is neither free nor this process's: other processes, and contexts
 * and modules of this one. 0 when the device was not asked. */
uint64_t cw_oom_others(const struct cw_live_oom *oom);
/* The driver refused although it had enough in sum. */
int cw_oom_is_fragmented(const struct cw_live_oom *oom);
/* Entries of oom->holder that may be read. */
unsigned cw_oom_holders(const struct cw_live_oom *oom);

#endif
