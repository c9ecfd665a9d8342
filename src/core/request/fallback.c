/* SPDX-License-Identifier: MIT */
/* Managed memory in place of device memory. See fallback.h. */
#include "core/request/fallback.h"

#include "base/host_memory.h"
#include "base/lock.h"
#include "base/mem.h"
#include "core/account/debug_log.h"
#include "core/device/device.h"
#include "core/process/gate.h"
#include "core/device/living.h"
#include "core/pending/batch.h"
#include "core/pending/patience.h"
#include "core/process/session.h"
#include "core/reclaim/quiet.h"
#include "core/account/site_count.h"
#include "core/account/tag_count.h"
#include "core/account/tracker.h"

/* One part in so many of the host's spare memory is left for the program itself. */
#define LEFT_SHARE 8

struct left {
    struct left *next;
    uint64_t key, bytes;
    uint64_t stamp; /* of the free (core/pending/batch.h) */
    uint32_t context;
};

static int on;
static _Atomic uint64_t under_way; /* asked for, and not among the sites yet */
static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_POOL); /* guards the list */
static struct left *list;
_Atomic uint64_t cw_fallback_left;

void cw_fallback_init(const struct cw_options *options)
{
    on = options->fallback == CW_FALLBACK_MANAGED;
    atomic_store(&under_way, 0);
}

void cw_fallback_reset(void)
{
    cw_lock_reset(&lock);
    list = NULL;
    atomic_store(&cw_fallback_left, 0);
}

int cw_fallback_is_on(void)
{
    return on;
}

/* The kernel counts pages only once they are touched. All managed memory of the program is assumed
 * to be untouched still. */
static int host_can_spare(uint64_t bytes)
{
    uint64_t available = cw_host_memory_available(), there = available - available / LEFT_SHARE;
    uint64_t taken =
        cw_site_count_managed() + atomic_load(&under_way) + atomic_load(&cw_fallback_left) - bytes;

    return taken <= there && bytes <= there - taken;
}

static enum cw_unserved ask(uint8_t device, uint64_t bytes, uint64_t *out_key)
{
    unsigned passed;
    int rc;

    if (!host_can_spare(bytes))
        return CW_UNSERVED_HOST;
    passed = cw_gate_enter_beside(CW_GATE_ALL);
    if (passed == 0)
        return CW_UNSERVED_UNASKED;
    rc = cw_session.ops->fallback_alloc(device, bytes, out_key);
    cw_gate_leave_beside(passed);
    return rc == 0 ? CW_UNSERVED_COUNT : CW_UNSERVED_DEVICE;
}

static void release(uint32_t context, int may_wait);

/* A program that runs ahead is always at work when it asks: what it has freed goes only if somebody
 * waits, and before memory has run out nobody need. */
static int has_waited_for_own(void)
{
    struct cw_pool_context *own = cw_quiet_own();
    int code;

    return own != NULL && cw_pool_context_is_usable(own) &&
           cw_patience_wait(own, &code, NULL) == CW_PATIENCE_PASSED;
}

int cw_fallback_alloc(uint8_t device, uint64_t bytes, struct cw_request *out)
{
    struct cw_live_memory *memory = &cw_device_at(device)->memory;
    enum cw_unserved why;

    if (!on)
        return -1;
    release(0, 1);
    atomic_fetch_add(&under_way, bytes);
    why = ask(device, bytes, &out->key);
    if (why == CW_UNSERVED_HOST && cw_fallback_has_left() && has_waited_for_own()) {
        release(0, 0);
        why = ask(device, bytes, &out->key);
    }
    if (why != CW_UNSERVED_COUNT) {
        atomic_fetch_sub(&under_way, bytes);
        out->unserved = (uint8_t)why;
        return -1;
    }
    out->space = CW_SPACE_ADDRESS;
    out->kind = CW_KIND_MANAGED;
    out->flags |= CW_BLOCK_FALLBACK;
    out->bytes = bytes;
    out->held = bytes;
    atomic_fetch_add(&memory->fallbacks, 1);
    atomic_fetch_add(&memory->fallback_bytes, bytes);
    cw_tag_count_fallback(device, bytes);
    cw_debug_log_fallback(device, bytes);
    return 0;
}

void cw_fallback_committed(uint64_t bytes)
{
    atomic_fetch_sub(&under_way, bytes);
}

/* ---- what is left of blocks that were freed in stream order ---- */

static const struct cw_live_context *context_of(uint32_t context)
{
    return cw_arena_at(&cw_session.arena, CW_TABLE_CONTEXT, context);
}

/* It went with its context, and the address may belong to another block by now. */
static int is_gone(const struct left *left)
{
    return atomic_load(&context_of(left->context)->state) == CW_CONTEXT_DEAD;
}

static void push(struct left *left)
{
    cw_lock_acquire(&lock);
    left->next = list;
    list = left;
    cw_lock_release(&lock);
}

int cw_fallback_leave(uint32_t block)
{
    const struct cw_live_block *record = cw_tracker_at(block);
    uint32_t context = atomic_load(&record->context);
    struct left *left;

    if (atomic_load(&context_of(context)->fatal) != 0)
        return -1;
    left = cw_mem_alloc(sizeof(*left));
    if (left == NULL)
        return -1;
    *left = (struct left){.key = atomic_load(&record->key),
                          .bytes = cw_tracker_held(block),
                          .stamp = cw_batch_stamp(),
                          .context = context};
    atomic_fetch_add(&cw_fallback_left, left->bytes);
    push(left);
    return 0;
}

int cw_fallback_is_left(uint64_t key)
{
    const struct left *left;

    cw_lock_acquire(&lock);
    for (left = list; left != NULL && (left->key != key || is_gone(left)); left = left->next)
        continue;
    cw_lock_release(&lock);
    return left != NULL;
}

/* One of this context with a stamp below, or one that is gone. */
static struct left *take(uint32_t context, uint64_t stamp)
{
    struct left **at = &list, *left;

    cw_lock_acquire(&lock);
    while (*at != NULL && ((*at)->context != context || (*at)->stamp >= stamp) && !is_gone(*at))
        at = &(*at)->next;
    left = *at;
    if (left != NULL)
        *at = left->next;
    cw_lock_release(&lock);
    return left;
}

/* The end of the context does not overtake the free. -1: a capture, or a context is about to end.
 */
static int free_by_driver(const struct left *left)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(left->context);
    unsigned passed;

    if (is_gone(left))
        return 0;
    passed = cw_pool_context_enter_free(pool_context, 0);
    if (passed == 0)
        return -1;
    if (!is_gone(left))
        cw_session.ops->block_free(cw_context_name(context_of(left->context)), CW_KIND_DEVICE,
                                   left->key);
    cw_pool_context_leave_free(pool_context, passed);
    return 0;
}

static void release_of(uint32_t context, uint64_t stamp)
{
    struct left *left;

    while ((left = take(context, stamp)) != NULL) {
        if (free_by_driver(left) != 0) {
            push(left);
            return;
        }
        atomic_fetch_sub(&cw_fallback_left, left->bytes);
        cw_mem_free(left, sizeof(*left));
    }
}

/* ---- the work that may use it ---- */

static int waits_for(struct cw_pool_context *pool_context)
{
    int code;

    return cw_patience_wait_inside(pool_context, &code) == CW_PATIENCE_PASSED;
}

/* The ticket that the context has passed, at best the one that was drawn before it is asked. */
static uint64_t passed_by(struct cw_pool_context *pool_context, uint64_t ticket,
                          struct cw_quiet *quiet, int may_wait)
{
    enum cw_quiet_answer answer = CW_QUIET_BUSY;

    if (atomic_load(&pool_context->state) == CW_POOL_CONTEXT_DEAD ||
        atomic_load(&pool_context->record->fatal) != 0) /* no work is left there */
        return UINT64_MAX;
    if (cw_pool_context_is_usable(pool_context))
        answer = cw_quiet_ask(quiet, pool_context);
    if (answer == CW_QUIET_IDLE || (answer == CW_QUIET_UNKNOWN && may_wait &&
                                    pool_context == cw_quiet_own() && waits_for(pool_context)))
        cw_batch_sync_end(pool_context, ticket);
    return atomic_load(&pool_context->synced);
}

/* What was freed with a stamp below is in use in no context. */
static uint64_t passed_by_all(struct cw_quiet *quiet, int may_wait)
{
    uint64_t ticket = cw_batch_sync_begin(), least = UINT64_MAX, passed;

    for (uint32_t i = 0; (i = cw_living_next(i)) != 0;) {
        struct cw_pool_context *pool_context = cw_pool_context_of(i);

        if (pool_context == NULL) /* without memory for it, or not yet */
            return 0;
        passed = passed_by(pool_context, ticket, quiet, may_wait);
        if (passed < least)
            least = passed;
    }
    return least;
}

/* may_wait: for the thread's own context, if it cannot be asked. All are asked about what is left
 * by now; then blocks go whose own context is not at work, because the driver's free might wait for
 * that. */
static void release(uint32_t context, int may_wait)
{
    struct cw_pool_context *pool_context;
    struct cw_quiet quiet;
    uint64_t stamp;
    uint32_t at = 0;

    if (!cw_fallback_has_left())
        return;
    release_of(0, 0); /* what is gone, whatever the others do */
    cw_quiet_init(&quiet, NULL);
    stamp = passed_by_all(&quiet, may_wait);
    while ((pool_context = cw_pool_walk_context(CW_DEVICE_HOST, &at)) != NULL)
        if ((context == 0 || context == pool_context->context) &&
            cw_quiet_may_free(&quiet, pool_context))
            release_of(pool_context->context, stamp);
}

void cw_fallback_release_idle(uint32_t context)
{
    release(context, 0);
}

void cw_fallback_synced(uint32_t context, uint64_t ticket)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(context);

    if (pool_context != NULL)
        cw_batch_sync_end(pool_context, ticket);
    release(0, 0);
}
