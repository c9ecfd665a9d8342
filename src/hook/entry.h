/* SPDX-License-Identifier: MIT */
/* Where lifetimes start and end: loading, the first CUDA call, fork, exit. */
#ifndef CW_HOOK_ENTRY_H
#define CW_HOOK_ENTRY_H

/* The program called CUDA: reads out what the options had to complain of and arms the session
 * unless the mode says otherwise. 1 if calls are to be accounted for. Cheap when that was decided
 * before. */
int cw_entry_arm(void);

/* As it is now. */
char *const *cw_entry_environment(void);
/* 1 if the options leave anything to do with the ranges and marks of a program. Any time. */
int cw_entry_wants_tags(void);

#endif
