/* SPDX-License-Identifier: MIT */
/*
 * Sums of the pool's activity: a part of the snapshot (report/snapshot/snapshot.h).
 *
 * Glossary
 *   bucket   here: all records of equal device, kind and size, whatever their context and thread.
 *   used     of a device: the pool had something to do with it.
 *   live, held, idle as in live/layout.h. Idle blocks are in no sum of the other parts of a
 *            snapshot: their sites count them as freed.
 */
#ifndef CW_REPORT_SNAPSHOT_POOL_H
#define CW_REPORT_SNAPSHOT_POOL_H

#include <stdint.h>

#include "live/view.h"

struct cw_bucket_sums {
    uint64_t hits, misses;
    uint64_t asked_bytes, given_bytes; /* of both */
    uint64_t kept;
    uint64_t released, released_bytes;
    uint64_t idle_blocks, idle_bytes;
};

struct cw_snapshot_bucket {
    uint64_t size;
    uint8_t kind;
    uint8_t device;
    struct cw_bucket_sums sums;
};

struct cw_snapshot_pool_device {
    uint8_t ordinal;
    uint8_t used;
    struct cw_bucket_sums sums; /* over its buckets */
    uint32_t first, buckets;    /* its part of `bucket` */
    /* Live blocks of the pool: requested bytes, and block sizes. */
    uint64_t requested_bytes, allocated_bytes;
    /* All memory that this process has from the driver there, pooled or not. */
    uint64_t live_bytes, held_bytes, peak_held;
    /* Fragmentation in bytes: held less live, now (idle blocks and rounding); their peaks. */
    uint64_t spare, peak_spare;
    uint64_t saved_frees; /* frees that did not reach the driver */
    /* Requests left to the driver, retries, and released blocks. */
    uint64_t bypassed[CW_BYPASS_COUNT];
    uint64_t exact_retries, oom_retries;
    struct {
        uint64_t blocks, bytes;
    } released[CW_RELEASE_COUNT];
    uint64_t abandoned;
    uint64_t harvested_by_sync, harvested_by_event, event_records, event_queries;
    uint64_t prewarmed, ooms;
    uint64_t put_off, events_refused; /* core/pending/patience.h */
};

struct cw_snapshot_pool {
    uint8_t on;                        /* MODE=pool */
    uint8_t deferred;                  /* the effective FREE_SYNC */
    struct cw_snapshot_bucket *bucket; /* by device, kind and size */
    uint32_t buckets;
    uint32_t limit; /* entries in `bucket` */
    uint64_t hits, misses;
    struct cw_snapshot_pool_device device[CW_DEVICES];
    struct cw_snapshot_pool_device all; /* devices, the host aside; its peaks are sums of theirs */
    unsigned devices;                   /* their number */
};

/* 0, or -1 if out of memory. The view must stay mapped, as in snapshot.h. */
int cw_snapshot_pool_init(struct cw_snapshot_pool *pool, const struct cw_view *view);
void cw_snapshot_pool_fini(struct cw_snapshot_pool *pool);

/* Computes `spare` and `peak_spare` of each device, and `all`, from the other values. */
void cw_snapshot_pool_add_up(struct cw_snapshot_pool *pool, const uint64_t peak_live[CW_DEVICES]);

/* Whether so much is held in vain that the reader should be told what to do. A program that has
 * freed everything has not that problem: all that is held is for the next one that it asks for. */
int cw_pool_is_fragmented(const struct cw_snapshot_pool_device *device);

static inline uint64_t cw_pool_waste(const struct cw_snapshot_pool_device *device)
{
    return device->allocated_bytes > device->requested_bytes
               ? device->allocated_bytes - device->requested_bytes
               : 0;
}

/* Why the pool did not serve or keep a block: the JSON name, and the text. */
const char *cw_bypass_label(unsigned reason);

#endif
