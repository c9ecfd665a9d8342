/* SPDX-License-Identifier: MIT */
/*
 * The account of an out of memory at the moment it happens, as text for people.
 *
 * Called inside the program's failing call, by a thread that holds no lock of ours: no malloc,
 * stdio, driver call, and next to no stack; errno is preserved. The names of functions are read
 * from files, which takes some milliseconds: the caller sees to it that this is rare.
 */
#ifndef CW_REPORT_REPORT_OOM_H
#define CW_REPORT_REPORT_OOM_H

#include "report/report.h"

/*
 * Writes record `oom_index` of CW_TABLE_OOM, some forty lines in one write, to request->fd; the
 * last line names request->destination, if there is one, as where the whole report is. Nothing
 * else of the request counts. Its holders are printed if somebody has filled them in
 * (report/leaks/holders.h). 0, or -1: no such record, no memory, or it could not be written.
 */
int cw_report_oom(const struct cw_view *view, uint32_t oom_index,
                  const struct cw_report_request *request);

#endif
