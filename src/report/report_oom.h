/* SPDX-License-Identifier: MIT */
/*
 * The text account of an out-of-memory error, written when it happens.
 *
 * Runs inside the program's failing call, in a thread that holds none of our locks: no malloc,
 * stdio or driver call, and very little stack; preserves errno. Function names are read from files,
 * which takes some milliseconds: the caller must keep this rare.
 */
#ifndef CW_REPORT_REPORT_OOM_H
#define CW_REPORT_REPORT_OOM_H

#include "report/report.h"

/*
 * Writes record `oom_index` of CW_TABLE_OOM, some forty lines in one write, to request->fd; the
 * last line names request->destination, if set, as the place of the full report. Ignores the rest
 * of the request. Prints the holders if they are filled in (report/leaks/holders.h). 0, or -1: no
 * such record, out of memory, or write error.
 */
int cw_report_oom(const struct cw_view *view, uint32_t oom_index,
                  const struct cw_report_request *request);

#endif
