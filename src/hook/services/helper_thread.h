/* SPDX-License-Identifier: MIT */
/* Threads of our own: they take none of the program's signals, and count as inside a hook. No
 * state.
 */
#ifndef CW_HOOK_HELPER_THREAD_H
#define CW_HOOK_HELPER_THREAD_H

/* A thread calls work and ends when it returns. 0, or -1: none can be made here. */
int cw_helper_thread_start(void (*work)(void));

#endif
