/* SPDX-License-Identifier: MIT */
/* Does what has come due (core/process/due.h), on whichever thread finds it first; a dump takes
 * long, and is left to the background thread where there is one. */
#ifndef CW_HOOK_DISPATCH_H
#define CW_HOOK_DISPATCH_H

/* Inside a call of the program's, before it leaves, or on the background thread: no lock held,
 * hooks of this thread pass through. One thread at a time serves; another one leaves it alone. */
void cw_dispatch_due(void);
/* In a forked child. */
void cw_dispatch_reset(void);

#endif
