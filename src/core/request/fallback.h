/* SPDX-License-Identifier: MIT */
/*
 * The fallback (FALLBACK=managed): when a device has no memory left, managed memory that prefers to
 * stay on the host and is mapped for the device. Never more than the host's spare memory, from
 * which managed memory already held counts in full, because its pages may not have been touched
 * yet. Counted on the host, as kind MANAGED. Not for pinned blocks, arrays and handles.
 *
 * The driver cannot free managed memory in stream order (cuMemFreeAsync), and the work that uses it
 * may not even have begun. Such a block is left here, with or without a pool, until a call of the
 * program that looks (a wait for a context, a free, the next request of the fallback) finds that
 * all the work that every live context had when it was left is done, by the program's own wait or
 * by an event, and that its own context has no work now, for which the driver's free of it might
 * wait. Only such a request waits, for its own context: where that cannot be asked
 * (core/reclaim/quiet.h), and before the host refuses for what is left.
 * The lock of what is left has CW_RANK_POOL and is not held across the driver.
 */
#ifndef CW_CORE_FALLBACK_H
#define CW_CORE_FALLBACK_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "core/process/types.h"

void cw_fallback_init(const struct cw_options *options);
/* In a forked child. */
void cw_fallback_reset(void);
int cw_fallback_is_on(void);

/* 0, and what the block is in *out (key, kind, flags, held); -1: the device cannot, or the host has
 * too little to spare, and out->unserved says which. Inside a hook, with no lock held. May wait for
 * the device. */
int cw_fallback_alloc(uint8_t device, uint64_t bytes, struct cw_request *out);

/* The block that came of it has its record. */
void cw_fallback_committed(uint64_t bytes);

/* Bytes that are left. */
extern CW_HIDDEN _Atomic uint64_t cw_fallback_left;

static inline int cw_fallback_has_left(void)
{
    return atomic_load_explicit(&cw_fallback_left, memory_order_relaxed) != 0;
}

/* A block of the fallback that the program has freed in stream order: it is left until it may go.
 * 0, or -1: no memory for it, or its context cannot be worked with. */
int cw_fallback_leave(uint32_t block);
/* 1 if the program has freed this address, and only we still have it. */
int cw_fallback_is_left(uint64_t key);
/* Releases the blocks left of this context, with 0 of all, that no work uses. Does not wait. */
void cw_fallback_release_idle(uint32_t context);
/* The same of all once the program has waited for all of this context (0: for none as a whole),
 * with the ticket (cw_batch_sync_begin) from before its wait, 0 if there was none. */
void cw_fallback_synced(uint32_t context, uint64_t ticket);

#endif
