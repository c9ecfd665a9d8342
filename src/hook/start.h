/* SPDX-License-Identifier: MIT */
/* The first call of CUDA. */
#ifndef CW_HOOK_START_H
#define CW_HOOK_START_H

/* Before the driver's cuInit. */
void cw_start_prepare(void);

/* The program called CUDA: prints complaints about the options and arms the session, unless the
 * mode is off. 1 if calls are accounted for. Cheap once that is decided. */
int cw_start_arm(void);
/* As cw_start_arm, for a call of the driver: not where another library answers in its place, of
 * which a line is said. */
int cw_start_arm_at_driver(void);

/* The driver refused to start, with this code: that is a report of its own, where one was asked
 * for. */
void cw_start_refused(int code);

/* In a forked child. */
void cw_start_reset(void);

#endif
