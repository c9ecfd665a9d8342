/* SPDX-License-Identifier: MIT */
/*
 * Ready blocks: where an idle block goes that the device is done with. To the calling thread
 * (core/cache/thread_cache.h), to all (core/cache/bucket.h), or where there is no room for it back
 * to the driver. No state and no lock of its own.
 */
#ifndef CW_CORE_READY_H
#define CW_CORE_READY_H

#include <stdint.h>

#include "core/cache/pool_context.h"

/* A ready block that was just freed, and is counted as kept: to the calling thread or to all, or
 * back. */
void cw_ready_keep(struct cw_pool *pool, uint32_t block);
/* An idle, ready block for all, whatever the bounds; kept: and counts it as a kept free. */
void cw_ready_put(struct cw_pool *pool, uint32_t block, int kept);
/* Linked, counted blocks of the pool_context, for all. */
void cw_ready_share(struct cw_pool_context *pool_context, uint32_t list);
/* The same of blocks that have just become ready: for the calling thread first. */
void cw_ready_hand_over(struct cw_pool_context *pool_context, uint32_t list);

#endif
