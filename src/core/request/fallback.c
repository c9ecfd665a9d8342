/* SPDX-License-Identifier: MIT */
/* Managed memory in place of device memory. See fallback.h. */
#include "core/request/fallback.h"

#include "base/host_memory.h"
#include "base/lock.h"
#include "base/mem.h"
#include "core/account/debug_log.h"
#include "core/device/device.h"
#include "core/process/gate.h"
#include "core/cache/pool_context.h"
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
    int rc;

    if (!host_can_spare(bytes))
        return CW_UNSERVED_HOST;
    if (!cw_gate_enter())
        return CW_UNSERVED_UNASKED;
    rc = cw_session.ops->fallback_alloc(device, bytes, out_key);
    cw_gate_leave();
    return rc == 0 ? CW_UNSERVED_COUNT : CW_UNSERVED_DEVICE;
}

int cw_fallback_alloc(uint8_t device, uint64_t bytes, struct cw_request *out)
{
    struct cw_live_memory *memory = &cw_device_at(device)->memory;
    enum cw_unserved why;

    if (!on)
        return -1;
    cw_fallback_release_idle(0);
    atomic_fetch_add(&under_way, bytes);
    why = ask(device, bytes, &out->key);
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

    if (context == 0 || atomic_load(&context_of(context)->fatal) != 0)
        return -1;
    left = cw_mem_alloc(sizeof(*left));
    if (left == NULL)
        return -1;
    *left = (struct left){
        .key = atomic_load(&record->key), .bytes = cw_tracker_held(block), .context = context};
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

/* One of this context, or one that is gone; of any with 0. */
static struct left *take(uint32_t context)
{
    struct left **at = &list, *left;

    cw_lock_acquire(&lock);
    while (*at != NULL && context != 0 && (*at)->context != context && !is_gone(*at))
        at = &(*at)->next;
    left = *at;
    if (left != NULL)
        *at = left->next;
    cw_lock_release(&lock);
    return left;
}

/* 1: free it, and leave. The end of the context must not overtake the free: with a pool its
 * pool_context sees to that. Without one the end waits for whoever is inside the gate, who must not
 * wait for long. */
static int enter_free(struct cw_pool_context *pool_context, struct cw_context_name name)
{
    if (pool_context != NULL)
        return cw_pool_context_enter_free(pool_context);
    if (!cw_gate_enter_wait())
        return 0;
    cw_session.ops->context_wait(name);
    cw_gate_leave_wait();
    return cw_gate_enter();
}

static void leave_free(struct cw_pool_context *pool_context)
{
    if (pool_context != NULL)
        cw_pool_context_leave_free(pool_context);
    else
        cw_gate_leave();
}

static int free_by_driver(const struct left *left)
{
    struct cw_pool_context *pool_context = cw_pool_context_of(left->context);
    struct cw_context_name name = cw_context_name(context_of(left->context));

    if (is_gone(left))
        return 0;
    if (!enter_free(pool_context, name))
        return -1;
    if (!is_gone(left))
        cw_session.ops->block_free(name, CW_KIND_DEVICE, left->key);
    leave_free(pool_context);
    return 0;
}

void cw_fallback_release(uint32_t context)
{
    struct left *left;

    while (cw_fallback_has_left() && (left = take(context)) != NULL) {
        if (free_by_driver(left) != 0) { /* a capture, or a context is about to end */
            push(left);
            return;
        }
        atomic_fetch_sub(&cw_fallback_left, left->bytes);
        cw_mem_free(left, sizeof(*left));
    }
}

void cw_fallback_release_idle(uint32_t context)
{
    struct cw_pool_context *pool_context;
    struct cw_quiet quiet;
    uint32_t at = 0;

    if (!cw_fallback_has_left())
        return;
    if (cw_session.options->mode != CW_MODE_POOL) {
        cw_fallback_release(context);
        return;
    }
    cw_fallback_release(UINT32_MAX); /* of no context: what is gone */
    cw_quiet_init(&quiet, NULL);
    while ((pool_context = cw_pool_walk_context(CW_DEVICE_HOST, &at)) != NULL)
        if ((context == 0 || context == pool_context->context) &&
            cw_quiet_may_free(&quiet, pool_context))
            cw_fallback_release(pool_context->context);
}
