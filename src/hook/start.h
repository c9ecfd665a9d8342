/* SPDX-License-Identifier: MIT */
/* The first call of CUDA. */
#ifndef CW_HOOK_START_H
#define CW_HOOK_START_H

/* The program called CUDA: reads out what the options had to complain of and arms the session
 * unless the mode says otherwise. 1 if calls are to be accounted for. Cheap when that was decided
 * before. */
int cw_start_arm(void);

/* In a forked child. */
void cw_start_reset(void);

#endif
