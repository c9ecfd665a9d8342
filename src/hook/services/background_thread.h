/* SPDX-License-Identifier: MIT */
/*
 * The background thread: a thread of our own for what the user asks to be done at intervals
 * (core/control/tick.h) or at a signal, and for idle memory once there is a lot of it (THREAD). It
 * also does what has come due (core/process/due.h), so a program that sleeps is served. There is
 * none where nothing is asked for and little lies idle. It takes none of the program's signals, and
 * its driver calls are over before the process ends.
 */
#ifndef CW_HOOK_BACKGROUND_THREAD_H
#define CW_HOOK_BACKGROUND_THREAD_H

#include "base/options/options.h"

/* Once the session is armed; once per process: what the options ask for. */
void cw_background_thread_start(const struct cw_options *options);
/* Much lies idle (CW_DUE_WATCH): the background thread is wanted, whatever the options ask for. */
void cw_background_thread_watch(void);
/* 1: there is one, and it is not asked to stop. */
int cw_background_thread_runs(void);
/* It looks at once what has come due. Also in a signal handler. */
void cw_background_thread_wake(void);
/* At the end: when this returns, it makes no driver call any more. */
void cw_background_thread_stop(void);
/* In a forked child, which has none. */
void cw_background_thread_reset(void);

#endif
