/* SPDX-License-Identifier: MIT */
/*
 * Ready blocks: where an idle block goes once the device is done with it. To the calling thread
 * (core/cache/thread_cache.h), to a shared bucket (core/cache/bucket.h) or, if there is no room,
 * back to the driver. Stateless; no lock.
 */
#ifndef CW_CORE_READY_H
#define CW_CORE_READY_H

#include <stdint.h>

#include "core/cache/pool_context.h"

/* Places a ready block that was just freed and counts as kept: with the calling thread, in a
 * bucket, or back with the driver. */
void cw_ready_keep(struct cw_pool *pool, uint32_t block);
/* Puts an idle, ready block into its bucket, whatever the bounds. kept: also counts a kept free. */
void cw_ready_put(struct cw_pool *pool, uint32_t block, int kept);
/* Puts linked, counted blocks of the pool context into their buckets. */
void cw_ready_share(struct cw_pool_context *pool_context, uint32_t list);
/* The same for blocks that have just become ready: the calling thread's cache comes first. */
void cw_ready_hand_over(struct cw_pool_context *pool_context, uint32_t list);

#endif
