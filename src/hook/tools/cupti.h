/* SPDX-License-Identifier: MIT */
/*
 * The tool's side of the audit (core/account/audit.h): CUPTI's activity records of memory.
 *
 * CUPTI is opened at run time, and only for CUPTI=audit. It serves one client in a process: if
 * another tool uses it, or is about to, there is no audit, and one line names the tool.
 */
#ifndef CW_HOOK_CUPTI_H
#define CW_HOOK_CUPTI_H

#include "base/options/options.h"

/* After arming, by any number of threads, inside a hook. Returns 1 to the one caller that has
 * started it and must arrange that cw_cupti_end is called at exit. */
int cw_cupti_start(const struct cw_options *options);
/* Has CUPTI deliver the rest and ends its use. At an orderly exit, on a thread without locks; does
 * nothing if it was not started. */
void cw_cupti_end(void);
/* In a forked child: CUPTI no longer works there if the parent used it. */
void cw_cupti_forked(void);

#endif
