/* SPDX-License-Identifier: MIT */
/*
 * Bin records: the records of the live layout in which a thread counts the blocks that it keeps to
 * itself (core/cache/thread_cache.h).
 *
 * One for each device, kind and bin that the slot ever had, whatever context the blocks are of: so
 * there are no more of them the more contexts have come and gone. Used inside the slot, or in a
 * forked child; no lock. Never freed.
 */
#ifndef CW_CORE_BIN_RECORDS_H
#define CW_CORE_BIN_RECORDS_H

#include <stdint.h>

#include "core/cache/bucket.h"

/* Of a slot, for blocks of one device and kind. */
struct cw_bin_records {
    struct cw_bin_records *next;
    uint8_t device, kind;
    struct cw_live_bucket *bin[CW_BINS]; /* NULL: not made yet, or no memory */
};

/* In a forked child: there are none. */
void cw_bin_records_reset(void);

/* Those for the pool's blocks; NULL without memory. */
struct cw_bin_records *cw_bin_records_for(unsigned slot, const struct cw_pool *pool);
/* The record of a bin, made at first use; NULL without memory. */
struct cw_live_bucket *cw_bin_records_at(struct cw_bin_records *records, unsigned slot,
                                         const struct cw_pool *pool, unsigned bin);

#endif
