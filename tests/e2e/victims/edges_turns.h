/* SPDX-License-Identifier: MIT */
/* Turns: one thread of a program at a time, so that it runs the same way each time, more or less.
 *
 * A thread that has the turn and waits inside a library for another, which has not, would wait for
 * ever: who has waited for its turn for a while, and nothing has changed, takes it.
 */
#ifndef EDGES_TURNS_H
#define EDGES_TURNS_H

#include <stdint.h>

enum { TURNS_MOST = 16 };

/* For so many threads; 0: there are no turns, and the other functions do nothing. */
void turns_begin(unsigned nthreads, uint64_t seed);
/* The first thing that a thread does, and the last. */
void turns_enter(unsigned index);
void turns_leave(void);
/* Others go on, and one day the caller. */
void turns_pass(void);

#endif
