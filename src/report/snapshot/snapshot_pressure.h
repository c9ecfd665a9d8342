/* SPDX-License-Identifier: MIT */
/*
 * Limits, pressure levels and the actions taken: a part of the snapshot
 * (report/snapshot/snapshot.h). Terms as in live/layout.h.
 */
#ifndef CW_REPORT_SNAPSHOT_PRESSURE_H
#define CW_REPORT_SNAPSHOT_PRESSURE_H

#include <stdint.h>

#include "live/view.h"

struct cw_snapshot_rung {
    uint8_t rung;
    uint64_t tried, helped, released;
};

struct cw_snapshot_bound {
    uint8_t bound;  /* enum cw_bound */
    uint64_t bytes; /* 0: none */
};

struct cw_snapshot_pressure_device {
    uint8_t ordinal;
    uint8_t used;             /* it has something to report */
    uint8_t is_platform;      /* the limit is the lowest hard bound */
    uint64_t limit, min_free; /* 0: none */
    struct cw_snapshot_bound bound[CW_BOUND_COUNT];
    uint64_t borrowed, peak_borrowed; /* beyond the lowest soft bound: now, and at most */
    uint64_t held, peak_held, spare;
    unsigned level;              /* enum cw_level, at the end */
    uint64_t share, highest_use; /* in use when last looked at, and at most, in 1/10000 */
    uint64_t level_ns[CW_LEVEL_COUNT], level_entered[CW_LEVEL_COUNT];
    uint64_t time_ns; /* at all levels */
    uint64_t changes; /* of level */
    uint64_t refused[CW_CAUSE_COUNT], limited;
    struct cw_snapshot_rung rung[CW_RUNG_COUNT];
    uint64_t fallbacks, fallback_bytes;
    uint64_t pressure_blocks, pressure_bytes;
    struct {
        uint64_t asked, silent, wait_ns, served;
    } neighbours; /* struct cw_live_neighbours */
};

struct cw_snapshot_pressure {
    struct cw_snapshot_pressure_device device[CW_DEVICES];
    struct cw_snapshot_pressure_device all; /* sums: refused to neighbours; used if any is */
};

/* now_ns: the end of the current level, since the process's start. */
void cw_snapshot_pressure_init(struct cw_snapshot_pressure *pressure, const struct cw_view *view,
                               uint64_t now_ns);

int cw_snapshot_has_soft_bound(const struct cw_snapshot_pressure_device *device);

/* Adds a device to the sums. */
void cw_snapshot_pressure_add(struct cw_snapshot_pressure_device *all,
                              const struct cw_snapshot_pressure_device *device);

/* ---- out-of-memory accounts, read in place ---- */

/* The device's memory that is neither free nor tracked for this process: other processes, and this
 * process's contexts and modules. 0 if the device was not queried. */
uint64_t cw_oom_others(const struct cw_live_oom *oom);
/* Whether the driver refused although it had enough in total. */
int cw_oom_is_fragmented(const struct cw_live_oom *oom);
/* The number of valid entries of oom->holder. */
unsigned cw_oom_holders(const struct cw_live_oom *oom);

#endif
