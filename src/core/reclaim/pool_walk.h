/* SPDX-License-Identifier: MIT */
/*
 * Walks over the pool contexts, and over the pools, of a device. Owns nothing, no lock: what comes
 * or closes during a walk may be met or not.
 */
#ifndef CW_CORE_POOL_WALK_H
#define CW_CORE_POOL_WALK_H

#include <stdint.h>

#include "core/cache/pool_context.h"

/* The next usable pool context after context *at, on this device (CW_DEVICE_HOST: any). */
struct cw_pool_context *cw_pool_walk_context(uint8_t device, uint32_t *at);

/* All pools of memory of the device, or of the host, one after the other: begins at {0}. */
struct cw_pool_walk {
    uint32_t context;
    unsigned class; /* of the next pool in pool_context */
    struct cw_pool_context *pool_context;
};

/* NULL: that was all. */
struct cw_pool *cw_pool_walk_next(uint8_t device, struct cw_pool_walk *walk);

#endif
