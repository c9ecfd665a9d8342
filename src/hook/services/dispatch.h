/* SPDX-License-Identifier: MIT */
/* Does due work (core/process/due.h) on the thread that finds it first. A dump takes long and is
 * left to the background thread, if there is one. */
#ifndef CW_HOOK_DISPATCH_H
#define CW_HOOK_DISPATCH_H

/* Inside a call of the program, before it leaves, or on the background thread: no lock held, hooks
 * of this thread pass through. One thread at a time serves; others return at once. */
void cw_dispatch_due(void);
/* In a forked child. */
void cw_dispatch_reset(void);

#endif
