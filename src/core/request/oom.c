/* SPDX-License-Identifier: MIT */
/* Accounts of out of memory. See oom.h. */
#include "core/request/oom.h"

#include <stdatomic.h>

#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/request/fallback.h"
#include "core/limits/limit.h"
#include "core/limits/scope.h"
#include "core/process/session.h"
#include "core/account/budget.h"
#include "core/account/site.h"
#include "core/account/usage.h"
#include "core/account/idle.h"
#include "core/process/gate.h"

#define RECORDS_MAX 16u
#define PERIOD_NS   UINT64_C(10000000000)

static struct cw_arena *arena;
static _Atomic uint64_t last_ns; /* 0: none yet */

void cw_oom_init(struct cw_arena *in)
{
    arena = in;
    atomic_store(&last_ns, 0);
}

static int is_due(uint64_t now)
{
    uint64_t last = atomic_load(&last_ns);

    return (last == 0 || now >= last + PERIOD_NS) &&
           cw_arena_count(arena, CW_TABLE_OOM) <= RECORDS_MAX &&
           atomic_compare_exchange_strong(&last_ns, &last, now);
}

/* The largest request that would have been served: by the limits, and by what is free on the device
 * once idle memory is given back. */
static uint64_t what_fits(uint8_t device, const struct cw_live_oom *oom)
{
    uint64_t room = cw_limit_room(device), there = oom->free_bytes + oom->idle;

    if (oom->total_bytes == 0)
        return room == UINT64_MAX ? 0 : room;
    return room < there ? room : there;
}

/* What was asked for is known by its kind; a call that only takes memory on the way has no size. */
static uint8_t why_unserved(const struct cw_request *request)
{
    int could_be =
        request->bytes != 0 && (request->kind == CW_KIND_DEVICE ||
                                request->kind == CW_KIND_PITCHED || request->kind == CW_KIND_ASYNC);

    if (!cw_fallback_is_on())
        return CW_UNSERVED_UNASKED;
    if (request->unserved != CW_UNSERVED_UNASKED)
        return request->unserved;
    if (!could_be)
        return CW_UNSERVED_KIND;
    return cw_gate_is_capturing() ? CW_UNSERVED_CAPTURE : CW_UNSERVED_UNASKED;
}

static void fill(struct cw_live_oom *oom, uint8_t device)
{
    const struct cw_live_device *live = cw_device_at(device);
    struct cw_live_sums sums = cw_usage_device(device);

    oom->limit = cw_limit_of(device);
    oom->scope_others = cw_scope_others(device);
    oom->min_free = atomic_load(&live->memory.min_free);
    oom->live = sums.live;
    oom->held = sums.held;
    oom->idle = cw_idle_bytes(device);
    oom->spare = cw_driver_pool_spare(device);
    oom->total_bytes = atomic_load(&live->driver_total);
    oom->free_bytes = oom->total_bytes - atomic_load(&live->driver_used);
    oom->fits = what_fits(device, oom);
}

/* What the program sees is that its own tag has no more. */
static void fill_budget(struct cw_live_oom *oom, uint32_t site)
{
    struct cw_budget_view view;

    oom->budget = site != 0 ? cw_budget_of(cw_site_own(cw_site_at(site))->tag) : 0;
    if (cw_budget_read(oom->budget, &view) != 0)
        return;
    oom->budget_bytes = view.rule.bytes;
    oom->budget_used = view.used_bytes;
    oom->fits = view.rule.bytes > view.used_bytes ? view.rule.bytes - view.used_bytes : 0;
}

uint32_t cw_oom_record(const struct cw_request *request, uint32_t site, uint32_t event, int code,
                       enum cw_cause cause)
{
    uint64_t now = cw_session_now();
    struct cw_live_oom *oom;
    uint32_t index;

    /* A user who injects failures needs no report of them. */
    if (cause == CW_CAUSE_INJECTED || !is_due(now))
        return 0;
    index = cw_arena_append(arena, CW_TABLE_OOM);
    if (index == 0)
        return 0;
    if (request->device != CW_DEVICE_HOST)
        cw_device_sample_now(request->device, 0);
    oom = cw_arena_at(arena, CW_TABLE_OOM, index);
    *oom = (struct cw_live_oom){.site = site,
                                .event = event,
                                .code = code,
                                .device = request->device,
                                .cause = (uint8_t)cause,
                                .unserved = why_unserved(request),
                                .bytes = request->bytes};
    fill(oom, request->device);
    if (cause == CW_CAUSE_BUDGET)
        fill_budget(oom, site);
    oom->t_ns = now; /* last: a reader skips one without a time */
    return index;
}

void cw_oom_set_holders(uint32_t index, const struct cw_oom_holder *holder, unsigned count,
                        uint64_t rest_bytes, uint64_t rest_blocks)
{
    struct cw_live_oom *oom = cw_arena_at(arena, CW_TABLE_OOM, index);

    for (unsigned i = 0; i < count && i < CW_OOM_HOLDERS; i++) {
        oom->holder[i].site = holder[i].site;
        oom->holder[i].bytes = holder[i].bytes;
        oom->holder[i].blocks = holder[i].blocks;
    }
    oom->rest_bytes = rest_bytes;
    oom->rest_blocks = rest_blocks;
    atomic_store_explicit(&oom->holders, count < CW_OOM_HOLDERS ? count : CW_OOM_HOLDERS,
                          memory_order_release);
}
