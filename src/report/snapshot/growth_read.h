/* SPDX-License-Identifier: MIT */
/* Reads growth (snapshot_growth.h) from a live layout. */
#ifndef CW_REPORT_GROWTH_READ_H
#define CW_REPORT_GROWTH_READ_H

#include "report/snapshot/snapshot.h"

/* A part that runs out of memory stays empty. `now_ns`: the present, or the last known moment of a
 * process without a recorded end. */
void cw_snapshot_growth_read(struct cw_snapshot *snapshot, uint64_t now_ns);

/* Parts of cw_snapshot_growth_read in separate files. */
void cw_snapshot_read_steps(struct cw_snapshot *snapshot);
void cw_snapshot_read_regrowth(struct cw_snapshot *snapshot);
void cw_snapshot_read_timelines(struct cw_snapshot *snapshot);

#endif
