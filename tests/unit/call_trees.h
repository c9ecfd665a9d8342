/* SPDX-License-Identifier: MIT */
/*
 * Random chains of calls, through frames of all kinds: fixed and varying in size, realigned, with
 * every register in use, with pointers into themselves, with libc in between. Many chains are alike
 * but for one frame, or as deep as another with other frames. Also compiled by
 * check/unwind.test, with the options of other programs.
 */
#ifndef CW_TESTS_CALL_TREES_H
#define CW_TESTS_CALL_TREES_H

#include <stdint.h>

/* Calls leaf() so many times, by a function of libc, each at the end of a chain. Any thread. */
void call_trees_run(uint64_t seed, unsigned calls, void (*leaf)(void));

#endif
