/* SPDX-License-Identifier: MIT */
/*
 * The tool's side of the audit (core/account/audit.h): CUPTI's activity records of memory.
 *
 * CUPTI is opened at run time, where CUPTI=audit asks for it and nowhere else. It serves one client
 * in a process, so where another tool has it, or is about to, there is no audit, and one line says
 * whose it is.
 */
#ifndef CW_HOOK_CUPTI_H
#define CW_HOOK_CUPTI_H

#include "base/options/options.h"

/* After arming, by any number of threads, inside a hook. 1 to the one caller that has started it,
 * and must see to it that cw_cupti_end is called at exit. */
int cw_cupti_start(const struct cw_options *options);
/* Takes what CUPTI has not delivered yet and lets go of it. At an orderly exit, on a thread that
 * holds nothing; does nothing where it was not started. */
void cw_cupti_end(void);
/* In a forked child: CUPTI does not work there any more if it did in the parent. */
void cw_cupti_forked(void);

#endif
