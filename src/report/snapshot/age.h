/* SPDX-License-Identifier: MIT */
/* Ages of live blocks: the oldest of each site, and the blocks that have reached a given age. */
#ifndef CW_REPORT_AGE_H
#define CW_REPORT_AGE_H

#include "report/snapshot/snapshot.h"

/*
 * Fills the snapshot's ages as of `now_ns`, after classification: the list `old` has the counted
 * leaks with blocks of at least `old_ns`, most bytes in such blocks first. Empty if out of memory.
 */
void cw_snapshot_ages(struct cw_snapshot *snapshot, uint64_t now_ns, uint64_t old_ns);

#endif
