/* SPDX-License-Identifier: MIT */
/* The order of starts and ends. See lifecycle.h. */
#include "core/control/lifecycle.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/account/budget.h"
#include "core/account/event.h"
#include "core/account/freed.h"
#include "core/account/idle.h"
#include "core/account/index.h"
#include "core/account/regrowth.h"
#include "core/account/site.h"
#include "core/account/usage.h"
#include "core/account/trace.h"
#include "core/account/tag_count.h"
#include "core/account/tracker.h"
#include "core/cache/bucket.h"
#include "core/cache/retention.h"
#include "core/cache/pool_context.h"
#include "core/cache/thread_cache.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/device/graph.h"
#include "core/device/pitch.h"
#include "core/device/variable.h"
#include "core/device/vmm.h"
#include "core/growth/growth.h"
#include "core/limits/bound.h"
#include "core/limits/demand.h"
#include "core/limits/excess.h"
#include "core/limits/inject.h"
#include "core/limits/lending.h"
#include "core/limits/limit.h"
#include "core/limits/pressure.h"
#include "core/limits/scope.h"
#include "core/pending/pending.h"
#include "core/pool/context_life.h"
#include "core/pool/pool.h"
#include "core/process/describe.h"
#include "core/process/gate.h"
#include "core/process/intern.h"
#include "core/process/session.h"
#include "core/process/slot.h"
#include "core/process/thread.h"
#include "core/reclaim/reclaim.h"
#include "core/reclaim/sweep.h"
#include "core/request/fallback.h"
#include "core/request/neighbours.h"
#include "core/request/request.h"
#include "core/request/oom.h"
#include "core/stacks/module.h"
#include "core/stacks/stack.h"
#include "core/stacks/unwind.h"
#include "core/tags/tag.h"

/* ---- news that go upwards ---- */

static const struct cw_device_listener on_device = {
    .described = cw_limit_check_devices,
    .sampled = cw_pressure_update,
};

/* ---- the beginning ---- */

void cw_lifecycle_prepare(void)
{
    cw_slot_prepare();
}

/* No other thread is at work yet. First the arena and the clock, which all others use; the
 * listeners before the modules that call them; the name of the live file last, so that readers find
 * complete tables. */
static int build(const struct cw_launcher *launcher, unsigned driver_version)
{
    const struct cw_options *options = cw_session.options;
    struct cw_arena *arena = &cw_session.arena;

    if (cw_session_make_arena() != 0)
        return -1;
    cw_slot_init();
    cw_describe_process(launcher, driver_version);
    cw_device_set_listener(&on_device);
    cw_context_set_listener(&cw_context_life_listener);
    cw_module_init(arena);
    cw_context_init(arena, cw_session.ops);
    cw_device_init(arena);
    cw_event_init(arena);
    cw_oom_init(arena);
    cw_idle_init(arena);
    cw_limit_init(options);
    cw_bound_init(options);
    cw_scope_init(options);
    cw_pressure_init(options);
    cw_inject_init(&options->fail);
    cw_fallback_init(options);
    cw_neighbours_init(options);
    cw_bucket_init(arena);
    cw_excess_init();
    cw_retention_init(options);
    cw_reclaim_init(options);
    cw_demand_init(options);
    cw_sweep_init(options);
    cw_pool_init(arena, options);
    cw_usage_init(arena);
    cw_tracker_init(arena);
    cw_regrowth_init(arena, options->growth == CW_GROWTH_ON);
    cw_tag_init(arena);
    cw_budget_init(arena, &options->budget);
    if (cw_site_init(arena, options->stacks, (unsigned)options->stack_depth) != 0)
        return -1;
    cw_growth_init(arena, options);
    return cw_session_publish();
}

void cw_lifecycle_arm(const struct cw_driver_ops *ops, const struct cw_options *options,
                      const struct cw_launcher *launcher, unsigned driver_version)
{
    int is_built;

    if (!cw_session_begin(ops, options))
        return;
    is_built = build(launcher, driver_version) == 0;
    cw_session_begun(is_built);
    if (!is_built)
        return;
    /* Now that nobody waits for this thread. */
    if (options->stacks == CW_STACKS_FULL)
        cw_unwind_prepare();
    cw_log(CW_LOG_DEBUG, "armed, driver %u.%u", driver_version / 1000, driver_version % 1000 / 10);
}

/* ---- the end ---- */

/* Takes no lock: the thread that ends the process may hold any. */
int cw_lifecycle_finish(enum cw_exit_kind kind, int code)
{
    enum cw_session_state was = cw_session_close();
    struct cw_live_header *header = cw_session.arena.header, *own;
    uint64_t now;

    if (was == CW_SESSION_NEW)
        return 0;
    cw_stack_note_python();
    own = cw_arena_own(&cw_session.arena, header);
    atomic_store(&own->exit_kind, (uint32_t)kind);
    atomic_store(&own->exit_code, code);
    atomic_store(&header->exit_kind, (uint32_t)kind);
    atomic_store(&header->exit_code, code);
    now = cw_session_now();
    if (was == CW_SESSION_ARMED) /* what came after a disarm is not in any counter */
        cw_growth_finish(now);
    atomic_store(&header->end_ns, now);
    return 1;
}

/* ---- accounting has stopped ---- */

static _Atomic int has_given_back, giving_back;

/* Threads that were inside their slots when the barrier failed have left them by then, and what
 * they wrote can be seen. */
#define SETTLE_NS UINT64_C(10000000)

/* Nothing serves from the pool any more, so what is idle there would be lost to the program. */
void cw_lifecycle_give_back(void)
{
    unsigned turns = 0;
    uint64_t left = 0;
    int has_more;

    if (atomic_load(&has_given_back) || cw_thread.depth != 0 || !cw_pool_is_on() ||
        atomic_exchange(&giving_back, 1))
        return;
    cw_thread.depth = 1; /* the driver's own calls are not the program's */
    while (cw_clock_ns() < atomic_load(&cw_session.disarmed_ns) + SETTLE_NS)
        cw_lock_relax(&turns);
    for (unsigned d = 0; d < CW_DEVICES; d++) {
        if (d != CW_DEVICE_HOST && cw_usage_is_used((uint8_t)d))
            cw_reclaim_rest((uint8_t)d, 1, &has_more);
        left += cw_idle_bytes((uint8_t)d);
    }
    atomic_store(&has_given_back, left == 0);
    cw_thread.depth = 0;
    atomic_store(&giving_back, 0);
}

/* ---- a forked child ---- */

/* The calling thread is the only one. Threads that no longer exist may have held locks: all become
 * free. The arena, shared with the parent, goes last. */
void cw_lifecycle_reset(void)
{
    cw_lock_reset_thread();
    cw_mem_reset();
    cw_gate_reset();
    cw_intern_reset();
    cw_index_reset();
    cw_site_reset();
    cw_module_reset();
    cw_tracker_reset();
    cw_regrowth_reset();
    cw_tag_count_reset();
    cw_budget_reset();
    cw_usage_reset();
    cw_tag_reset();
    cw_pool_reset();
    cw_sweep_reset();
    cw_demand_reset();
    cw_reclaim_reset();
    cw_thread_cache_reset();
    cw_pending_reset();
    cw_pool_context_reset();
    cw_bucket_reset();
    cw_limit_reset();
    cw_bound_reset();
    cw_scope_reset();
    cw_pressure_reset();
    cw_inject_reset();
    cw_driver_pool_reset();
    cw_freed_reset();
    cw_pitch_reset();
    cw_request_reset();
    cw_fallback_reset();
    cw_neighbours_reset();
    cw_lending_reset();
    cw_slot_reset();
    cw_context_reset();
    cw_variable_reset();
    cw_vmm_reset();
    cw_graph_reset();
    cw_growth_reset();
    cw_trace_reset();
    cw_thread_reset();
    atomic_store(&has_given_back, 0);
    atomic_store(&giving_back, 0);
    cw_session_reset();
}

/* ---- the end of a thread ---- */

/* The slot goes last: until then the thread may work inside it. */
void cw_lifecycle_thread_ends(void)
{
    cw_capture_thread_ends();
    cw_pending_thread_ends();
    cw_tracker_thread_ends();
    cw_pool_context_thread_ends();
    cw_gate_thread_ends();
    cw_thread_ends();
}
