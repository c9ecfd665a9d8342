/* SPDX-License-Identifier: MIT */
/*
 * PREWARM: blocks that are taken from the driver before the program asks for them.
 *
 * They come at the first request in a context, inside the program's call, within the limits, and
 * lie idle from then on. No lock is held across the driver.
 */
#ifndef CW_CORE_PREWARM_H
#define CW_CORE_PREWARM_H

#include <stdint.h>

#include "base/options/options.h"
#include "core/cache/bucket.h"

/* api: text of the name that the program called. Stops where there is no memory, with a warning. */
void cw_prewarm(struct cw_pool *pool, const struct cw_option_batches *batches, uint32_t api);

#endif
