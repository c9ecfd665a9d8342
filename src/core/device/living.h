/* SPDX-License-Identifier: MIT */
/*
 * Living contexts: those that have not ended, for whoever visits all of them. Their records stay in
 * the table for ever, so a walk over that would cost what ever was.
 *
 * Owns their indices, ascending, which is the order in which they were made. Guarded by its own
 * lock (CW_RANK_LIVING). Always: a context is among them from before its index is known until it
 * is dead (core/device/context.c).
 */
#ifndef CW_CORE_LIVING_H
#define CW_CORE_LIVING_H

#include <stdint.h>

/* In a forked child: there are none. */
void cw_living_reset(void);

/* Makes room for one more, which no other thread may take. 0; -1: no memory. */
int cw_living_reserve(void);
/* A context larger than all before. */
void cw_living_add(uint32_t context);
void cw_living_remove(uint32_t context);

/* The next one after `context`, 0: there is none. So a walk begins with 0, and may meet what comes
 * or goes meanwhile or not. */
uint32_t cw_living_next(uint32_t context);

#endif
