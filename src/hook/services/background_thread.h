/* SPDX-License-Identifier: MIT */
/*
 * The background thread does what the user wants at intervals (core/control/tick.h) or at a signal,
 * and looks after idle memory once there is a lot of it (THREAD). It also does due work
 * (core/process/due.h), so that a sleeping program answers. Without such options and with little
 * idle memory there is none. It takes none of the program's signals, and its driver calls are over
 * before the process ends.
 */
#ifndef CW_HOOK_BACKGROUND_THREAD_H
#define CW_HOOK_BACKGROUND_THREAD_H

#include "base/options/options.h"

/* Once the session is armed, once per process: starts what the options ask for. */
void cw_background_thread_start(const struct cw_options *options);
/* Much lies idle (CW_DUE_WATCH): starts the background thread whatever the options say. */
void cw_background_thread_watch(void);
/* 1: the thread exists and was not asked to stop. */
int cw_background_thread_runs(void);
/* Makes it look for due work at once. May be called in a signal handler. */
void cw_background_thread_wake(void);
/* A context has ended. If nothing is idle any more and the options ask for nothing, the thread ends
 * first: natively the program may have no other thread now, and unshare(2) of a user namespace
 * demands that. No lock held. */
void cw_background_thread_leave(void);
/* At the end: once this returns, the thread makes no driver calls. */
void cw_background_thread_stop(void);
/* In a forked child, which has none. */
void cw_background_thread_reset(void);

#endif
