/* SPDX-License-Identifier: MIT */
/*
 * Releases: idle blocks go back to the driver. All of them are made here; core/reclaim
 * chooses the blocks when memory is short or no longer needed.
 *
 * A release happens inside the program's own frees and waits, never inside an allocation, where the
 * device might have to be waited for, unless the driver has said that it is out of memory. No lock
 * is held across the driver. A block that cannot go now, because the gate is closed, waits again.
 */
#ifndef CW_CORE_RELEASE_H
#define CW_CORE_RELEASE_H

#include <stdint.h>

#include "core/cache/pool_context.h"
#include "live/layout.h"

/* Releases linked idle blocks of the pool context. Returns the bytes. */
uint64_t cw_release_list(struct cw_pool_context *pool_context, uint32_t list, enum cw_release why);
/* The same; returns how many blocks wait again. */
uint32_t cw_release_batch(struct cw_pool_context *pool_context, uint32_t list, enum cw_release why);
void cw_release_one(struct cw_pool *pool, uint32_t block, enum cw_release why);

#endif
