/* SPDX-License-Identifier: MIT */
/*
 * What happened to a tag's allocations besides coming and going, by tag and by the device that
 * counts them (cw_kind_home): which of them the driver served, which had to be served by managed
 * memory, and which were replaced by larger ones. A hit of the pool is an allocation that the
 * driver did not serve, so hits cost nothing here: they are the allocations of the sites with the
 * tag (core/account/site.h) less those granted.
 *
 * Private memory, atomics, no lock; of tag 0 what has none. Pages of tags that nobody uses are
 * never touched.
 */
#ifndef CW_CORE_TAG_COUNT_H
#define CW_CORE_TAG_COUNT_H

#include <stdint.h>

#include "core/process/types.h"
#include "live/arena.h"

struct cw_tag_sums {
    uint64_t granted; /* allocations that the driver served */
    uint64_t misses;  /* those of them that the pool would have */
    uint64_t fallbacks, fallback_bytes;
    uint64_t resizes, resized_bytes;
};

/* A block of this site came from the driver; before the site counts it. Without a pool (MODE=track)
 * nothing is a hit, and nothing is counted. */
void cw_tag_count_granted(const struct cw_live_site *site, const struct cw_request *request);
/* A request of the calling thread for so many bytes of the device got managed memory. */
void cw_tag_count_fallback(uint8_t device, uint64_t bytes);
/* A block was replaced by a larger one of this site. */
void cw_tag_count_resize(const struct cw_live_site *site, uint64_t copied);

/* Adds what a tag had on a device (or CW_DEVICE_HOST) to *sums. */
void cw_tag_count_add(uint16_t tag, uint8_t device, struct cw_tag_sums *sums);
/* With the pool, requests are counted as hits or misses. */
void cw_tag_count_init(int is_pool_on);
/* In a forked child. */
void cw_tag_count_reset(void);

#endif
