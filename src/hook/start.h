/* SPDX-License-Identifier: MIT */
/* The first call of CUDA. */
#ifndef CW_HOOK_START_H
#define CW_HOOK_START_H

/* The program called CUDA: prints complaints about the options and arms the session, unless the
 * mode is off. 1 if calls are accounted for. Cheap once that is decided. */
int cw_start_arm(void);

/* In a forked child. */
void cw_start_reset(void);

#endif
