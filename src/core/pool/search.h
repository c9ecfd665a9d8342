/* SPDX-License-Identifier: MIT */
/*
 * Search: finds the idle block that serves a request, and takes it.
 *
 * In the thread's own blocks, then in the shared ones, among what has become ready since, in other
 * threads' hands, and where much is pending of the size, what the device is done with next. The
 * excess that a block has for the request (core/limits/excess.h) is reserved before and is the
 * block's after. No lock held by the caller; may ask the driver about events, and wait for one.
 */
#ifndef CW_CORE_SEARCH_H
#define CW_CORE_SEARCH_H

#include <stdint.h>

#include "core/cache/bucket.h"

/* Blocks that one call takes in from batches: some hundred microseconds. */
#define CW_SEARCH_HARVEST 4096u

/* An idle block for the request, counted as a hit; 0 for none. The second: one of up to `most`
 * bytes. To be handed out. */
uint32_t cw_search_take(struct cw_pool *pool, uint64_t bytes);
uint32_t cw_search_take_larger(struct cw_pool *pool, uint64_t bytes, uint64_t most);

/* A block that was taken and is none any more: its address is a newer one's. */
CW_COLD void cw_search_drop(struct cw_pool *pool, uint32_t block, uint64_t bytes);

#endif
