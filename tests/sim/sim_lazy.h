/* SPDX-License-Identifier: MIT */
/* Laziness: work that could run is held back until somebody needs it. Described in README.md. */
#ifndef CUSIM_SIM_LAZY_H
#define CUSIM_SIM_LAZY_H

#include "sim.h"

#pragma GCC visibility push(hidden)

/* 0 turns it off. Nothing may be outstanding. */
void sim_lazy_seed(uint64_t seed);
void sim_lazy_forget(void); /* in a forked child: what is held is the parent's */
/* A number below n; the caller holds sim.lock, as for everything here. */
unsigned sim_lazy_roll(unsigned n);
/* Whether it is time for some work that nobody has asked for. */
bool sim_lazy_is_stirred(void);
/* Op could run now: it is kept until it is taken. */
void sim_lazy_hold(struct sim_op *op);
/* One of those that target waits for, directly or not, or any one if target is NULL; NULL if there
 * is none that could run. */
struct sim_op *sim_lazy_take(const struct sim_op *target);
/* Lets other threads in, for as long as the seed says. Gives the lock away. */
void sim_lazy_pause(void);
void sim_lazy_set_pause(void (*pause)(void));

/* In sim_engine.c: carries such an operation out; false if there was none. */
bool sim_engine_step(const struct sim_op *target);
/* What a call does besides its own work: by chance, one operation. */
void sim_engine_stroll(void);
/* A program that asks often enough must see op end. */
void sim_engine_nudge(const struct sim_op *op);

#pragma GCC visibility pop

#endif
