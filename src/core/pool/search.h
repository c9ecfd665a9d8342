/* SPDX-License-Identifier: MIT */
/*
 * Search: finds the idle block that serves a request, and takes it.
 *
 * Looks in the thread's cache, in the shared buckets, among blocks that have become ready since,
 * and in other threads' caches. If much of the size is pending, waits for the batch that comes
 * next. The block's excess for the request (core/limits/excess.h) is reserved first and belongs to
 * the block afterwards. No lock held by the caller; may ask the driver about events, and wait for
 * one.
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

/* A block that was taken no longer exists: its address belongs to a newer one. */
CW_COLD void cw_search_drop(struct cw_pool *pool, uint32_t block, uint64_t bytes);

#endif
