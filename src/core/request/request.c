/* SPDX-License-Identifier: MIT */
/* Calls in terms of the tracker, sites and events. See request.h. */
#include "core/request/request.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/device/graph.h"
#include "core/device/vmm.h"
#include "core/account/event.h"
#include "core/account/freed.h"
#include "core/account/idle.h"
#include "core/process/gate.h"
#include "core/growth/growth.h"
#include "core/limits/bound.h"
#include "core/limits/limit.h"
#include "core/request/oom.h"
#include "core/pending/patience.h"
#include "core/pool/pool.h"
#include "core/limits/pressure.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/usage.h"
#include "core/account/trace.h"
#include "core/account/tracker.h"

#define SEARCHES_MAX 1000 /* invalid frees after which no more blocks are searched for them */

/* ---- calls ---- */

/* Between samples the level follows what this process takes and gives back, once it has risen, or
 * where there is a limit or a bound. */
static void follow(uint8_t device, uint32_t api, int is_limited)
{
    if (CW_UNLIKELY(is_limited || cw_pressure_is_followed(device)))
        cw_pressure_update(device, api, cw_session_now());
}

uint32_t cw_request_granted(const struct cw_request *request, uint32_t api)
{
    uint32_t site = cw_site_here(api, request->kind, request->device), block;
    uint64_t now = cw_session_now();

    block = cw_tracker_insert(request, site, now);
    if (cw_kind_counted(request->kind) != CW_COUNTED_NONE)
        cw_growth_expect(request->device);
    cw_deadline_look(now);
    if (CW_UNLIKELY(request->reserved != 0)) {
        if (block != 0) {
            /* First, so that a change of level has this stack. */
            cw_pressure_update(request->device, api, cw_session_now());
            cw_limit_committed(request->device, request->reserved);
        } else /* no memory for a record: it is held all the same, but not by any count */
            cw_limit_cancel(request->device, request->reserved);
    }
    if (block != 0 && request->kind == CW_KIND_ASYNC && request->device < CW_MAX_DEVICES)
        cw_driver_pool_taken(request->device, request->held);
    cw_device_describe(request->device);
    if (request->device != CW_DEVICE_HOST)
        cw_device_sample_at(now, api);
    follow(request->device, api, request->reserved != 0);
    return block;
}

uint32_t cw_request_failed(const struct cw_request *request, uint32_t api, int code,
                           enum cw_cause cause)
{
    uint32_t site = cw_site_here(api, request->kind, request->device);
    int is_oom = cause != CW_CAUSE_COUNT;
    struct cw_live_sums sums;
    uint32_t event;

    cw_device_describe(request->device);
    cw_tracker_fail(site, is_oom);
    if (!is_oom)
        return 0;
    cw_trace_failed(request, api);
    cw_device_sample(api);
    atomic_fetch_add(&cw_device_at(request->device)->memory.refused[cause], 1);
    sums = cw_usage_device(request->device);
    event = cw_event_add(&(struct cw_live_event){.type = CW_EVENT_OOM,
                                                 .site = site,
                                                 .device = request->device,
                                                 .cause = (uint8_t)cause,
                                                 .bytes = request->bytes,
                                                 .code = code,
                                                 .live = sums.live,
                                                 .held = sums.held,
                                                 .idle = cw_idle_bytes(request->device)});
    return cw_oom_record(request, site, event, code, cause);
}

void cw_request_free_begin(enum cw_space space, uint64_t key, struct cw_request_free *out)
{
    *out =
        (struct cw_request_free){.space = space, .key = key, .block = cw_tracker_take(space, key)};
}

static _Atomic uint64_t invalid_frees; /* what is shown is not read */

void cw_request_reset(void)
{
    atomic_store(&invalid_frees, 0);
}

static uint32_t site_of(uint32_t block)
{
    return atomic_load_explicit(&cw_tracker_at(block)->site, memory_order_relaxed);
}

/* So that a second free can be shown with the first. */
static void remember_free(const struct cw_request_free *call, uint32_t api)
{
    const struct cw_live_site *site;

    if (call->block == 0 || call->space != CW_SPACE_ADDRESS)
        return;
    site = cw_site_own(cw_site_at(site_of(call->block)));
    cw_freed_remember(call->key, cw_site_here(api, site->kind, site->device), site_of(call->block));
}

/* ---- why a free was refused ---- */

/* What the call is for. The driver takes some other kinds, too. */
static int is_meant_for(enum cw_freeing how, enum cw_kind kind)
{
    switch (how) {
    case CW_FREES_DEVICE:
        return kind == CW_KIND_DEVICE || kind == CW_KIND_PITCHED || kind == CW_KIND_MANAGED ||
               kind == CW_KIND_ASYNC || kind == CW_KIND_GRAPH || kind == CW_KIND_EXTERNAL_MAP;
    case CW_FREES_HOST:
        return kind == CW_KIND_PINNED;
    case CW_FREES_ORDERED:
        return kind == CW_KIND_ASYNC || kind == CW_KIND_GRAPH;
    case CW_FREES_REGISTERED:
        return kind == CW_KIND_REGISTERED;
    default:
        return kind == CW_KIND_IPC;
    }
}

/* One function for each thing that may be known of the address now, asked in turn. 1: that explains
 * the refusal. */

/* A live block. Where the function is the right one, only the driver knows why it refuses. */
static int is_live(const struct cw_request_free *call, enum cw_free_result result,
                   struct cw_live_event *event)
{
    if (call->block == 0 || cw_tracker_find(CW_SPACE_ADDRESS, call->key) != call->block)
        return 0;
    event->alloc_site = site_of(call->block);
    if (result == CW_FREE_STREAM)
        event->misuse = CW_MISUSE_STREAM;
    else if (!is_meant_for(call->how, cw_site_own(cw_site_at(event->alloc_site))->kind))
        event->misuse = CW_MISUSE_FUNCTION;
    return 1;
}

/* A block of the pool: idle, or another thread's by now. Its record tells who freed it last. */
static int is_pooled(const struct cw_request_free *call, struct cw_live_event *event)
{
    struct cw_pool_view view;

    if (!cw_pool_look(call->key, &view))
        return 0;
    event->misuse = CW_MISUSE_DOUBLE;
    if (view.bytes != 0)
        return 1;
    event->other_site =
        atomic_load_explicit(&cw_tracker_at(view.block)->maps, memory_order_relaxed);
    event->alloc_site = site_of(view.block);
    return 1;
}

/* Memory with a free of its own: mapped, reserved addresses, or a handle. */
static int is_other_memory(uint64_t key, struct cw_live_event *event)
{
    uint32_t block = cw_vmm_block_at(key);

    for (unsigned space = CW_SPACE_ADDRESS + 1; block == 0 && space <= CW_SPACE_MODULE; space++)
        block = cw_tracker_find((enum cw_space)space, key);
    if (block == 0)
        return 0;
    event->misuse = CW_MISUSE_FUNCTION;
    event->alloc_site = site_of(block);
    return 1;
}

/* Among the last that ended. */
static int has_ended(uint64_t key, struct cw_live_event *event)
{
    struct cw_freed freed = cw_freed_find(key);

    if (freed.how == CW_FREED_NOT || freed.how == CW_FREED_UNKNOWN)
        return 0;
    event->misuse = freed.how == CW_FREED_WITH_CONTEXT ? CW_MISUSE_CONTEXT : CW_MISUSE_DOUBLE;
    event->other_site = freed.site;
    event->alloc_site = freed.alloc_site;
    return 1;
}

/* A graph's, behind which no launch has left memory. */
static int is_of_graph(uint64_t key, struct cw_live_event *event)
{
    uint32_t site = cw_graph_node_site(key);

    if (site == 0)
        return 0;
    event->misuse = CW_MISUSE_GRAPH;
    event->alloc_site = site;
    return 1;
}

static void find_around(const struct cw_request_free *call, enum cw_free_result result,
                        struct cw_live_event *event)
{
    uint32_t outer = cw_tracker_find_around(call->key);

    if (outer != 0) {
        event->misuse = CW_MISUSE_INSIDE;
        event->alloc_site = site_of(outer);
    } else if (result == CW_FREE_STREAM) {
        event->misuse = CW_MISUSE_STREAM;
    } else if (cw_freed_find(call->key).how == CW_FREED_NOT) {
        event->misuse = CW_MISUSE_FOREIGN;
    }
}

/* What the free was, as far as what we know of memory tells. before: refused frees so far. */
static void find_misuse(const struct cw_request_free *call, enum cw_free_result result,
                        uint64_t before, struct cw_live_event *event)
{
    if (call->space != CW_SPACE_ADDRESS || is_live(call, result, event) || is_pooled(call, event) ||
        is_other_memory(call->key, event) || has_ended(call->key, event) ||
        is_of_graph(call->key, event))
        return;
    if (before < SEARCHES_MAX)
        find_around(call, result, event);
}

static void refused_free(const struct cw_request_free *call, uint32_t api,
                         enum cw_free_result result, int code)
{
    struct cw_live_event event = {.type = CW_EVENT_INVALID_FREE, .key = call->key, .code = code};
    uint8_t device;

    cw_context_current(&device);
    event.site = cw_site_here(api, CW_KIND_DEVICE, device);
    atomic_fetch_add(&cw_session.arena.header->invalid_frees, 1);
    find_misuse(call, result, atomic_fetch_add(&invalid_frees, 1), &event);
    cw_event_add(&event);
}

/* ---- the end of a free ---- */

void cw_request_free_end(const struct cw_request_free *call, uint32_t api,
                         enum cw_free_result result, int code)
{
    if (CW_UNLIKELY(call->probe.context != 0))
        cw_patience_learn(&call->probe);
    if (CW_LIKELY(result == CW_FREE_DONE))
        remember_free(call, api);
    if (call->block != 0) {
        const struct cw_live_site *site =
            cw_site_own(cw_site_at(atomic_load(&cw_tracker_at(call->block)->site)));

        if (site->kind == CW_KIND_ASYNC && site->device < CW_MAX_DEVICES && result == CW_FREE_DONE)
            cw_driver_pool_returned(site->device, cw_tracker_held(call->block));
        cw_tracker_finish(call->block, result);
        follow(site->device, api, 0);
    } else if (result == CW_FREE_DONE && code == 0) /* else the driver is gone */
        atomic_fetch_add(&cw_session.arena.header->untracked_frees, 1);
    if (CW_UNLIKELY(result == CW_FREE_REFUSED || result == CW_FREE_STREAM))
        refused_free(call, api, result, code);
}

void cw_request_fatal_in(uint32_t context, uint32_t api, int code)
{
    struct cw_live_event event = {.type = CW_EVENT_FATAL, .code = code};
    enum cw_bound bound;
    uint8_t device = 0;

    if (!cw_context_set_fatal(context, code))
        return;
    cw_context_device(context, &device);
    event.site = cw_site_here(api, CW_KIND_DEVICE, device);
    /* Whoever borrows may be ended by those that it borrows from. */
    event.bytes = cw_bound_borrowed(device, cw_usage_device(device).held, &bound);
    event.bound = (uint8_t)bound;
    cw_event_add(&event);
}

/* A context that has failed may not even say its id. */
void cw_request_fatal(uint32_t api, int code)
{
    uint8_t device;
    uint32_t context = cw_context_current(&device);
    uint64_t handle = 0;

    if (context == 0 && cw_session.ops->context_current(&handle) == 0)
        context = cw_context_of(handle, &device);
    cw_request_fatal_in(context, api, code);
}
