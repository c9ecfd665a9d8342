/* SPDX-License-Identifier: MIT */
/*
 * The account of an out of memory that the program gets to see (live/layout.h: struct cw_live_oom):
 * who asked, what would have fit, what the memory is used for. The first of a process has one,
 * and later ones some seconds apart, a bounded number in all. No lock.
 *
 * Who holds the memory is added up from the sites by whoever can (report/leaks/holders.h), and told
 * here.
 */
#ifndef CW_CORE_OOM_H
#define CW_CORE_OOM_H

#include <stdint.h>

#include "core/process/types.h"
#include "live/arena.h"

void cw_oom_init(struct cw_arena *arena);

/* Its index, or 0 when it has none. Asks the driver for a fresh sample if it may be asked. */
uint32_t cw_oom_record(const struct cw_request *request, uint32_t site, uint32_t event, int code,
                       enum cw_cause cause);

struct cw_oom_holder {
    uint32_t site;
    uint64_t bytes, blocks;
};
/* Most first; rest: of all others together. */
void cw_oom_set_holders(uint32_t index, const struct cw_oom_holder *holder, unsigned count,
                        uint64_t rest_bytes, uint64_t rest_blocks);

#endif
