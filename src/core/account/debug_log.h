/* SPDX-License-Identifier: MIT */
/*
 * With LOG=debug, a line for what moves between the driver and the process: each block that is
 * taken or given back, with what is held then; each request that managed memory served instead, and
 * each call that the pool passed to the driver, with how many there have been. Pool hits have none.
 *
 * Owns nothing. Callers may hold locks, as a line at debug never waits (base/log.h).
 */
#ifndef CW_CORE_DEBUG_LOG_H
#define CW_CORE_DEBUG_LOG_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/log.h"
#include "live/layout.h"

static inline int cw_debug_log_is_on(void)
{
    return CW_UNLIKELY(cw_log_get_level() >= CW_LOG_DEBUG);
}

CW_NOINLINE void cw_debug_log_block(const struct cw_live_block *block, int is_taken);

/* The block's record and site are still valid; the sums have it counted in, or out. */
static inline void cw_debug_log_taken(const struct cw_live_block *block)
{
    if (cw_debug_log_is_on())
        cw_debug_log_block(block, 1);
}

static inline void cw_debug_log_given(const struct cw_live_block *block)
{
    if (cw_debug_log_is_on())
        cw_debug_log_block(block, 0);
}

void cw_debug_log_fallback(uint8_t device, uint64_t bytes);
void cw_debug_log_bypass(uint8_t device, enum cw_bypass why);

#endif
