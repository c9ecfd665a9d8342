/* SPDX-License-Identifier: MIT */
/* Reading what grew (snapshot_growth.h) from a live layout. */
#ifndef CW_REPORT_GROWTH_READ_H
#define CW_REPORT_GROWTH_READ_H

#include "report/snapshot/snapshot.h"

/* Without memory for a part, that part stays empty. `now_ns`: of a process that has not ended the
 * last moment that is known, or the present. */
void cw_snapshot_growth_read(struct cw_snapshot *snapshot, uint64_t now_ns);

/* Parts of cw_snapshot_growth_read, in files of their own. */
void cw_snapshot_read_steps(struct cw_snapshot *snapshot);
void cw_snapshot_read_regrowth(struct cw_snapshot *snapshot);
void cw_snapshot_read_timelines(struct cw_snapshot *snapshot);

#endif
