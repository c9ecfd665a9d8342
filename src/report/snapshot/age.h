/* SPDX-License-Identifier: MIT */
/* How old the live blocks are: of each site the oldest, and those that have reached a given age. */
#ifndef CW_REPORT_AGE_H
#define CW_REPORT_AGE_H

#include "report/snapshot/snapshot.h"

/*
 * Fills what the snapshot says of age as of `now_ns`, after the classes are known: the list `old`
 * has the counted leaks with blocks of at least `old_ns`, most bytes of them first. Without memory
 * it stays empty.
 */
void cw_snapshot_ages(struct cw_snapshot *snapshot, uint64_t now_ns, uint64_t old_ns);

#endif
