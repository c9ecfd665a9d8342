/* SPDX-License-Identifier: MIT */
/* Walks over pools. See pool_walk.h. */
#include "core/reclaim/pool_walk.h"

#include <stdatomic.h>
#include <stddef.h>

#include "core/device/living.h"

struct cw_pool_context *cw_pool_walk_context(uint8_t device, uint32_t *at)
{
    while ((*at = cw_living_next(*at)) != 0) {
        struct cw_pool_context *pool_context = cw_pool_context_of(*at);

        if (pool_context != NULL && (device == CW_DEVICE_HOST || pool_context->device == device) &&
            cw_pool_context_is_usable(pool_context))
            return pool_context;
    }
    return NULL;
}

/* Pools of device memory come first. */
_Static_assert(CW_POOL_DEVICE == 0 && CW_POOL_PITCHED == 1 && CW_POOL_HOST == 2,
               "classes below CW_POOL_HOST are those of the device");

static struct cw_pool *pool_of(struct cw_pool_context *pool_context, unsigned class)
{
    return atomic_load_explicit(&pool_context->pool[class], memory_order_acquire);
}

struct cw_pool *cw_pool_walk_next(uint8_t device, struct cw_pool_walk *walk)
{
    unsigned first = device == CW_DEVICE_HOST ? CW_POOL_HOST : 0;
    unsigned end = device == CW_DEVICE_HOST ? CW_POOL_CLASSES : CW_POOL_HOST;

    for (;;) {
        if (walk->pool_context == NULL || walk->class >= end) {
            walk->pool_context = cw_pool_walk_context(device, &walk->context);
            walk->class = first;
        }
        if (walk->pool_context == NULL)
            return NULL;
        while (walk->class < end) {
            struct cw_pool *pool = pool_of(walk->pool_context, walk->class ++);

            if (pool != NULL)
                return pool;
        }
    }
}
