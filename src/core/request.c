/* SPDX-License-Identifier: MIT */
/* Calls in terms of the tracker, sites and events. See request.h. */
#include "core/request.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "core/context.h"
#include "core/freed.h"
#include "core/gate.h"
#include "core/graph.h"
#include "core/pool.h"
#include "core/session.h"
#include "core/site.h"
#include "core/tally.h"
#include "core/tracker.h"

#define SAMPLE_PERIOD_NS 100000000u
#define EVENTS_MAX       4096u
#define OTHERS_TURNS     20000u /* of cw_lock_relax: about a second */

static _Atomic(cw_reclaim_fn) reclaim_idle;
static _Atomic uint32_t reclaims_running, reclaims_done; /* that gave something back */

static struct cw_live_device *device_at(uint8_t device)
{
    return &cw_session.arena.header->device[device < CW_DEVICES ? device : 0];
}

/* ---- what the device is and holds --------------------------------------------------------------
 */

static void describe_device(uint8_t ordinal)
{
    struct cw_live_device *device = device_at(ordinal);
    struct cw_device_facts facts;
    int rc;

    if (CW_LIKELY(atomic_load_explicit(&device->known, memory_order_acquire)) ||
        ordinal == CW_DEVICE_HOST || atomic_exchange(&device->asked, 1))
        return;
    rc = cw_gate_enter() ? 0 : -1;
    if (rc == 0) {
        rc = cw_session.ops->device_facts(ordinal, &facts);
        cw_gate_leave();
    }
    if (rc != 0) {
        atomic_store(&device->asked, 0); /* the next allocation tries again */
        return;
    }
    device->total = facts.total;
    memcpy(device->uuid, facts.uuid, sizeof(device->uuid));
    memcpy(device->name, facts.name, sizeof(device->name));
    atomic_store_explicit(&device->known, 1, memory_order_release);
}

static void store_sample(struct cw_live_device *device, uint64_t free_bytes, uint64_t total_bytes)
{
    atomic_store(&device->driver_used, total_bytes - free_bytes);
    atomic_store(&device->sample_held, cw_tally_device((uint8_t)(device - device_at(0))).held);
    atomic_store(&device->driver_total, total_bytes);
}

static int is_sample_due(uint64_t last_ns, uint64_t now_ns)
{
    /* Another thread may have sampled after now_ns was read. */
    return last_ns == 0 || now_ns >= last_ns + SAMPLE_PERIOD_NS;
}

void cw_request_sample(void)
{
    uint64_t free_bytes = 0, total_bytes = 0, now = cw_session_now(), last;
    struct cw_live_device *device;
    uint8_t ordinal;
    int rc = -1;

    if (cw_context_current(&ordinal) == 0)
        return;
    device = device_at(ordinal);
    last = atomic_load(&device->sample_ns);
    if (!is_sample_due(last, now) || !cw_gate_enter())
        return;
    /* One thread samples in a period; a closed gate has not used the period up. */
    if (atomic_compare_exchange_strong(&device->sample_ns, &last, now))
        rc = cw_session.ops->memory_info(&free_bytes, &total_bytes);
    cw_gate_leave();
    if (rc == 0 && total_bytes != 0)
        store_sample(device, free_bytes, total_bytes);
}

void cw_request_sampled(uint64_t free_bytes, uint64_t total_bytes)
{
    uint8_t ordinal;

    if (total_bytes == 0 || cw_context_current(&ordinal) == 0)
        return;
    atomic_store(&device_at(ordinal)->sample_ns, cw_session_now());
    store_sample(device_at(ordinal), free_bytes, total_bytes);
}

/* ---- events ------------------------------------------------------------------------------------
 */

/* Type, site, key, bytes and code are the caller's. */
static void add_event(const struct cw_live_event *what)
{
    struct cw_arena *arena = &cw_session.arena;
    const struct cw_live_table *table = &arena->header->table[CW_TABLE_EVENT];
    struct cw_live_event *event;
    uint32_t index = 0;

    if (atomic_load(&table->count) <= EVENTS_MAX)
        index = cw_arena_append(arena, CW_TABLE_EVENT);
    if (index == 0) {
        atomic_fetch_add(&arena->header->events_dropped, 1);
        return;
    }
    event = cw_arena_at(arena, CW_TABLE_EVENT, index);
    *event = *what;
    if (event->site != 0) {
        const struct cw_live_device *device = device_at(cw_site_at(event->site)->device);

        event->total_bytes = atomic_load(&device->driver_total);
        event->free_bytes = event->total_bytes - atomic_load(&device->driver_used);
    }
    event->t_ns = cw_session_now(); /* last: a reader skips an event without a time */
}

/* ---- calls -------------------------------------------------------------------------------------
 */

uint32_t cw_request_granted(const struct cw_request *request, uint32_t api)
{
    uint32_t block;

    block = cw_tracker_insert(request, cw_site_here(api, request->kind, request->device),
                              cw_session_now());
    describe_device(request->device);
    if (request->device != CW_DEVICE_HOST)
        cw_request_sample();
    return block;
}

void cw_request_failed(const struct cw_request *request, uint32_t api, int code, int is_oom)
{
    uint32_t site = cw_site_here(api, request->kind, request->device);

    describe_device(request->device);
    cw_tracker_fail(site, is_oom);
    if (!is_oom)
        return;
    cw_request_sample();
    add_event(&(struct cw_live_event){
        .type = CW_EVENT_OOM, .site = site, .bytes = request->bytes, .code = code});
}

void cw_request_free_begin(enum cw_space space, uint64_t key, struct cw_request_free *out)
{
    *out =
        (struct cw_request_free){.space = space, .key = key, .block = cw_tracker_take(space, key)};
}

/* So that a second free can be shown with the first. */
static void remember_free(const struct cw_request_free *call, uint32_t api)
{
    const struct cw_live_site *site;

    if (call->block == 0 || call->space != CW_SPACE_ADDRESS)
        return;
    site = cw_site_at(atomic_load(&cw_tracker_at(call->block)->site));
    cw_freed_remember(call->key, cw_site_here(api, site->kind, site->device));
}

/* Of an idle block the record knows who freed it, of others the last frees. */
static uint32_t first_freed(const struct cw_request_free *call)
{
    struct cw_pool_view view;

    if (call->block != 0 || call->space != CW_SPACE_ADDRESS)
        return 0;
    if (cw_pool_look(call->key, &view))
        return view.bytes == 0
                   ? atomic_load_explicit(&cw_tracker_at(view.block)->maps, memory_order_relaxed)
                   : 0;
    return cw_freed_find(call->key);
}

static void refused_free(const struct cw_request_free *call, uint32_t api, int code)
{
    uint8_t device;

    cw_context_current(&device);
    atomic_fetch_add(&cw_session.arena.header->invalid_frees, 1);
    add_event(&(struct cw_live_event){.type = CW_EVENT_INVALID_FREE,
                                      .site = cw_site_here(api, CW_KIND_DEVICE, device),
                                      .key = call->key,
                                      .code = code,
                                      .other_site = first_freed(call)});
}

void cw_request_free_end(const struct cw_request_free *call, uint32_t api,
                         enum cw_free_result result, int code)
{
    if (CW_LIKELY(result == CW_FREE_DONE))
        remember_free(call, api);
    if (call->block != 0)
        cw_tracker_finish(call->block, result);
    else if (result == CW_FREE_DONE)
        atomic_fetch_add(&cw_session.arena.header->untracked_frees, 1);
    if (result == CW_FREE_REFUSED)
        refused_free(call, api, code);
}

void cw_request_set_reclaim(cw_reclaim_fn reclaim)
{
    atomic_store(&reclaim_idle, reclaim);
}

/* Another thread has taken all that lay idle into its hands, and is still giving it back. */
static int wait_for_others(uint32_t since)
{
    unsigned turns = 0;

    while (atomic_load(&reclaims_done) == since && atomic_load(&reclaims_running) != 0 &&
           turns < OTHERS_TURNS)
        cw_lock_relax(&turns);
    return atomic_load(&reclaims_done) != since;
}

uint32_t cw_request_reclaims(void)
{
    return atomic_load_explicit(&reclaims_done, memory_order_relaxed);
}

int cw_request_wants_retry(uint8_t device, uint32_t since)
{
    cw_reclaim_fn reclaim = atomic_load(&reclaim_idle);
    uint64_t bytes;

    if (reclaim == NULL || cw_capture_is_active())
        return 0;
    atomic_fetch_add(&reclaims_running, 1);
    bytes = reclaim(device);
    atomic_fetch_sub(&reclaims_running, 1);
    if (bytes != 0)
        atomic_fetch_add(&reclaims_done, 1);
    else if (!wait_for_others(since))
        return 0;
    atomic_fetch_add(&device_at(device)->pool.oom_retries, 1);
    return 1;
}

void cw_request_fatal_in(uint32_t context, uint32_t api, int code)
{
    uint8_t device = 0;

    if (!cw_context_set_fatal(context, code))
        return;
    cw_context_device(context, &device);
    add_event(&(struct cw_live_event){
        .type = CW_EVENT_FATAL, .site = cw_site_here(api, CW_KIND_DEVICE, device), .code = code});
}

void cw_request_fatal(uint32_t api, int code)
{
    uint8_t device;

    cw_request_fatal_in(cw_context_current(&device), api, code);
}
