/* SPDX-License-Identifier: MIT */
/* The file of the trace (core/account/trace.h): its name, and who gets one. */
#ifndef CW_HOOK_TRACE_FILE_H
#define CW_HOOK_TRACE_FILE_H

#include "base/options/options.h"

/* After arming, by any number of threads: opens the file that TRACE names, if it names one. Says in
 * one line why there is none. */
void cw_trace_file_open(const struct cw_options *options);

/* At the program's request: a file of exactly this name. 0, or the errno; EBUSY: one is open. Any
 * thread. */
int cw_trace_file_start(const char *name);

/* In a forked child: it gets a trace only if the name differs by process. */
void cw_trace_file_forked(void);

#endif
