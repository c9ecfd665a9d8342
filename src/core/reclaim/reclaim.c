/* SPDX-License-Identifier: MIT */
/* Releases when memory is short. See reclaim.h. */
#include "core/reclaim/reclaim.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/cache/retention.h"
#include "core/pending/patience.h"
#include "core/pending/pending.h"
#include "core/reclaim/pool_walk.h"
#include "core/reclaim/quiet.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "core/cache/thread_cache.h"
#include "core/account/tracker.h"
#include "core/pending/ready.h"
#include "core/pending/release.h"

#define OTHERS_TURNS 20000u /* of cw_lock_relax: about a second */

/* ---- all that is idle ---- */

/* quiet NULL: whatever the context does. So below. */
static uint64_t release_ready(uint8_t device, struct cw_quiet *quiet, enum cw_release why)
{
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;
    uint64_t bytes = 0;

    while ((pool = cw_quiet_next(device, &walk, quiet)) != NULL) {
        uint32_t own = cw_thread_cache_seize(pool, CW_SIZE_CLASSES);

        bytes += cw_release_list(pool->pool_context, own, why);
        bytes += cw_release_list(pool->pool_context, cw_bucket_take_all(pool), why);
    }
    return bytes;
}

/* Of the device, and pinned memory. */
static uint64_t release_all_ready(uint8_t device, struct cw_quiet *quiet, enum cw_release why)
{
    uint64_t bytes = release_ready(device, quiet, why);

    return bytes + release_ready(CW_DEVICE_HOST, quiet, why);
}

/* ---- a request that found no memory ---- */

void cw_reclaim_gather_ready(uint8_t device)
{
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;

    cw_retention_reclaim_begins();
    while ((pool = cw_pool_walk_next(device, &walk)) != NULL)
        cw_ready_share(pool->pool_context, cw_thread_cache_seize(pool, CW_SIZE_CLASSES));
    cw_retention_reclaim_ends(0);
}

void cw_reclaim_gather(uint8_t device)
{
    struct cw_pool_context *pool_context;
    uint32_t at = 0;

    cw_reclaim_gather_ready(device);
    cw_reclaim_gather_ready(CW_DEVICE_HOST);
    while ((pool_context = cw_pool_walk_context(device, &at)) != NULL)
        cw_pending_collect(pool_context);
}

/* Releases one block of the class with at least `need` bytes; 0: there is none. */
static uint64_t release_one(uint8_t device, unsigned size_class, uint64_t need,
                            struct cw_quiet *quiet, enum cw_release why)
{
    struct cw_pool_walk walk = {0};
    struct cw_pool *pool;
    uint32_t block;

    while ((pool = cw_quiet_next(device, &walk, quiet)) != NULL) {
        block = cw_bucket_take_least(pool, size_class, need);
        if (block != 0)
            return cw_release_list(pool->pool_context, block, why);
    }
    return 0;
}

static uint64_t release_largest(uint8_t device, uint64_t need, struct cw_quiet *quiet,
                                enum cw_release why)
{
    uint64_t bytes = 0, more;

    for (unsigned c = CW_SIZE_CLASSES; c-- > 0 && bytes < need;)
        do {
            more = release_one(device, c, 0, quiet, why);
            bytes += more;
        } while (more != 0 && bytes < need);
    return bytes;
}

uint64_t cw_reclaim_sufficient(uint8_t device, uint64_t need, int may_wait)
{
    struct cw_quiet quiet;
    uint64_t bytes = 0;

    if (need == 0 || need > CW_SIZE_MOST || cw_bucket_idle(device) < need)
        return 0;
    cw_quiet_init(&quiet, may_wait ? cw_quiet_own() : NULL);
    cw_retention_reclaim_begins();
    for (unsigned c = need < CW_SIZE_LEAST ? 0 : cw_size_class_down(need);
         bytes == 0 && c < CW_SIZE_CLASSES; c++)
        bytes = release_one(device, c, need, &quiet, CW_RELEASE_OOM);
    if (bytes == 0)
        bytes = release_largest(device, need, &quiet, CW_RELEASE_OOM);
    return cw_retention_reclaim_ends(bytes);
}

/* Where the only memory left is that of contexts with work, waiting for it is better than none. */
uint64_t cw_reclaim_all(uint8_t device, int is_pinned, int may_wait, int *out_has_more)
{
    struct cw_quiet quiet;
    uint64_t bytes;

    cw_quiet_init(&quiet, may_wait ? cw_quiet_own() : NULL);
    cw_retention_reclaim_begins();
    bytes = release_all_ready(device, &quiet, CW_RELEASE_OOM);
    *out_has_more = bytes != 0 && quiet.has_skipped;
    if (bytes == 0 && quiet.has_skipped && may_wait)
        bytes = release_ready(is_pinned ? CW_DEVICE_HOST : device, NULL, CW_RELEASE_OOM);
    return cw_retention_reclaim_ends(bytes);
}

/* After one wait for the context the frees of its pending blocks need not wait. The outcome of that
 * wait is ignored: if it was in vain, each free waits by itself or does not, as the program's would
 * have. */
static uint64_t release_pending(struct cw_pool_context *pool_context, enum cw_release why)
{
    int code;

    if (cw_batch_is_any())
        cw_patience_wait(pool_context, &code, NULL);
    return cw_release_list(pool_context, cw_pending_seize(pool_context), why);
}

/* Pending blocks first: those that others make ready during the waits are among the ready ones. */
static uint64_t release_rest(uint8_t device, struct cw_quiet *quiet, enum cw_release why)
{
    struct cw_pool_context *pool_context;
    uint64_t bytes = 0;
    uint32_t at = 0;

    while ((pool_context = cw_pool_walk_context(device, &at)) != NULL)
        if (cw_quiet_may_free(quiet, pool_context))
            bytes += release_pending(pool_context, why);
    return bytes + release_all_ready(device, quiet, why);
}

uint64_t cw_reclaim_rest(uint8_t device, int may_wait, int *out_has_more)
{
    struct cw_quiet quiet;
    uint64_t bytes;

    cw_quiet_init(&quiet, may_wait ? cw_quiet_own() : NULL);
    cw_retention_reclaim_begins();
    bytes = release_rest(device, &quiet, CW_RELEASE_OOM);
    *out_has_more = bytes != 0 && quiet.has_skipped;
    if (bytes == 0 && quiet.has_skipped && may_wait)
        bytes = release_rest(device, NULL, CW_RELEASE_OOM);
    return cw_retention_reclaim_ends(bytes);
}

/* What waits for an event that has failed is freed by the driver, which waits for the context: the
 * background thread leaves it to the program's own calls. */
static int may_release(void)
{
    return !cw_thread.is_helper;
}

uint32_t cw_reclaim_harvest(uint8_t device)
{
    struct cw_pool_context *pool_context;
    uint32_t blocks = 0, at = 0;

    if (!cw_batch_is_any())
        return 0;
    cw_pending_close(0);
    while ((pool_context = cw_pool_walk_context(device, &at)) != NULL)
        blocks += cw_pending_harvest(pool_context, UINT32_MAX, UINT32_MAX, may_release());
    return blocks;
}

int cw_reclaim_wait_for_others(uint32_t since)
{
    unsigned turns = 0;

    while (atomic_load(&cw_retention_reclaims_done) == since &&
           atomic_load(&cw_retention_reclaims_running) != 0 && turns < OTHERS_TURNS)
        cw_lock_relax(&turns);
    return atomic_load(&cw_retention_reclaims_done) != since;
}

/* ---- another process asks ---- */

uint64_t cw_reclaim_asked(uint8_t device, int gathers, int may_wait)
{
    struct cw_quiet own, *quiet = cw_quiet_for_helper(&own);
    uint64_t bytes;

    if (gathers)
        cw_reclaim_gather(device);
    cw_reclaim_harvest(device);
    cw_retention_reclaim_begins();
    bytes = release_all_ready(device, quiet, CW_RELEASE_ASKED);
    if (may_wait)
        bytes += release_rest(device, quiet, CW_RELEASE_ASKED);
    return cw_retention_reclaim_ends(bytes);
}

uint64_t cw_reclaim_surplus(uint8_t device, uint64_t most)
{
    struct cw_quiet own, *quiet = cw_quiet_for_helper(&own);
    uint64_t idle, bytes;

    cw_reclaim_gather_ready(device);
    cw_reclaim_harvest(device);
    idle = cw_bucket_idle(device);
    cw_retention_reclaim_begins();
    bytes = idle > most ? release_largest(device, idle - most, quiet, CW_RELEASE_ASKED) : 0;
    return cw_retention_reclaim_ends(bytes);
}

/* A driver that cannot say whether a free waits is asked in the program's own frees only. */
uint64_t cw_reclaim_excess(uint8_t device)
{
    struct cw_quiet quiet;
    uint64_t bytes = 0;

    cw_quiet_init(&quiet, NULL);
    cw_reclaim_gather(device);
    cw_reclaim_harvest(device);
    cw_retention_reclaim_begins();
    if (cw_thread.is_helper || cw_session.ops->has_context_events())
        bytes = release_largest(device, cw_retention_excess(device), &quiet, CW_RELEASE_ASKED);
    if (cw_retention_is_exceeded(device))
        cw_reclaim_due_set(device, CW_RECLAIM_MOST);
    return cw_retention_reclaim_ends(bytes);
}

/* ---- for the background thread ---- */

int cw_reclaim_is_calm(void)
{
    struct cw_pool_context *pool_context;
    struct cw_quiet quiet;
    uint32_t at = 0;

    cw_quiet_init(&quiet, NULL);
    while ((pool_context = cw_pool_walk_context(CW_DEVICE_HOST, &at)) != NULL) {
        if (!cw_quiet_may_free(&quiet, pool_context))
            return 0;
        cw_patience_renew(pool_context);
    }
    return 1;
}

void cw_reclaim_settle(void)
{
    struct cw_pool_context *pool_context;
    uint32_t at = 0;

    while ((pool_context = cw_pool_walk_context(CW_DEVICE_HOST, &at)) != NULL) {
        cw_pending_collect(pool_context);
        cw_pending_harvest(pool_context, UINT32_MAX, UINT32_MAX, may_release());
    }
}
