/* SPDX-License-Identifier: MIT */
/*
 * Neighbours: other processes of the user under this library, on the same device, whose pools have
 * idle memory (NEIGHBOURS). They are found by their live files and asked by the mailbox there
 * (live/mailbox.h); core/control/adjust.h has the other side.
 *
 * What stands in another's file is a hint: whom to ask first, and when to stop waiting. Nothing of
 * ours depends on it but a wait that ends by the clock, and whether the driver is asked once more.
 * Who does not answer, or has nothing after all, is left alone for a while.
 *
 * One thread at a time asks; others that found no memory wait for it, as long as they would have
 * waited themselves. No lock; the gate is not held; the driver is only asked how much is free.
 */
#ifndef CW_CORE_NEIGHBOURS_H
#define CW_CORE_NEIGHBOURS_H

#include <stdint.h>

#include "base/options/options.h"

/* What one recovery waits for neighbours, all in all. */
#define CW_NEIGHBOURS_WAIT_NS UINT64_C(50000000)

void cw_neighbours_init(const struct cw_options *options);
/* In a forked child. */
void cw_neighbours_reset(void);

/* A request of this size found no memory (0: of unknown size). Asks those that have most idle for
 * what is missing, is_all: for all that they have. Takes what it waited from *left_ns. The bytes
 * that they say they gave back. */
uint64_t cw_neighbours_ask(uint8_t device, uint64_t bytes, int is_all, uint64_t *left_ns);

/* Devices are scarce of memory (CW_DUE_NEIGHBOURS): whoever has most idle on one, and more than
 * this process, is asked to look at it, without a wait. No lock held. */
void cw_neighbours_nudge(void);

#endif
