/* SPDX-License-Identifier: MIT */
/* The beginning and end of every driver call, of every thread and of the process.
 *
 * sim_enter() holds the order of the checks: life of the process, scripted failure, context,
 * capture. It returns CUDA_SUCCESS with sim.lock held, or an error without it.
 */
#include "sim_lazy.h"
#include "sim_script.h"
#include "sim_site.h"
#include "sim_take.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct sim_state_all sim = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static void (*_Atomic entered)(const char *symbol);
static atomic_ullong thread_ids;
static _Thread_local struct sim_thread thread_state;

struct sim_thread *sim_thread(void)
{
    if (!thread_state.id)
        thread_state.id = atomic_fetch_add(&thread_ids, 1) + 1;
    return &thread_state;
}

void cusim_here(struct cusim_here *out)
{
    *out = sim_thread()->here;
}

void cusim_set_entered(void (*function)(const char *symbol))
{
    atomic_store(&entered, function);
}

static void tell_of_entry(const char *symbol)
{
    void (*function)(const char *symbol) = atomic_load_explicit(&entered, memory_order_acquire);

    if (function)
        function(symbol);
}

uint64_t sim_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void spend(unsigned long long ns)
{
    uint64_t end = sim_now_ns() + ns;

    while (sim_now_ns() < end)
        continue;
}

static CUresult check_context(void)
{
    const struct sim_thread *self = sim_thread();
    struct sim_context *ctx;

    if (self->depth == 0 || !self->stack[self->depth - 1].ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    ctx = sim_context_current();
    if (!ctx)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return ctx->sticky;
}

static CUresult check_life(const struct sim_row *row)
{
    if (row->guard == SIM_NEEDS_NOTHING)
        return CUDA_SUCCESS;
    if (sim.is_forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (sim.is_down) {
        sim_misuse("after_teardown", "%s called after the driver's teardown", row->symbol);
        return CUDA_ERROR_DEINITIALIZED;
    }
    if (!sim.is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    return sim_thread()->is_callback ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

static CUresult check(unsigned index)
{
    const struct sim_row *row = &sim_rows[index];
    CUresult status = check_life(row);

    if (status == CUDA_SUCCESS && sim_tallies[index].rules)
        status = sim_script_check(index);
    if (status == CUDA_SUCCESS && (row->guard & SIM_NEEDS_CONTEXT))
        status = check_context();
    if (status == CUDA_SUCCESS && (row->guard & SIM_UNSAFE) && sim_capture_forbids()) {
        sim_misuse("capture", "%s called where a stream capture forbids it", row->symbol);
        sim_capture_invalidate_visible();
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return status == CUDA_SUCCESS ? sim_take(index) : status;
}

__attribute__((used)) CUresult sim_enter(unsigned index, const void *caller)
{
    struct sim_thread *self = sim_thread();
    struct sim_tally *tally = &sim_tallies[index];
    CUresult status;

    atomic_fetch_add_explicit(&tally->calls, 1, memory_order_relaxed);
    tell_of_entry(sim_rows[index].symbol);
    self->here.calls++;
    self->here.frees += (sim_rows[index].guard & SIM_FREES) != 0;
    pthread_mutex_lock(&sim.lock);
    if (!sim.is_configured)
        sim_config_load();
    if (tally->cost_ns) {
        unsigned long long cost = tally->cost_ns;

        pthread_mutex_unlock(&sim.lock);
        spend(cost);
        self->here.cost_ns += cost;
        pthread_mutex_lock(&sim.lock);
    }
    if (sim.config.is_lazy && !sim.is_down)
        sim_engine_stroll();
    self->row = &sim_rows[index];
    self->caller = caller;
    if (sim.config.has_sites)
        sim_site_count(index, caller);
    self->is_per_thread = sim_rows[index].flavour != SIM_PLAIN;
    status = check(index);
    if (status != CUDA_SUCCESS)
        return sim_leave(status);
    return status;
}

__attribute__((used)) CUresult sim_leave(CUresult status)
{
    sim_thread()->here.refused += status == CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&sim.lock);
    return status;
}

static void before_fork(void)
{
    pthread_mutex_lock(&sim.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&sim.lock);
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&sim.lock, NULL);
    sim_engine_forget();
    sim_share_forget();
    sim.is_forked = sim.is_initialised;
}

__attribute__((constructor)) static void start(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sim.done, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

__attribute__((destructor)) static void end(void)
{
    pthread_mutex_lock(&sim.lock);
    if (!sim.is_configured)
        sim_config_load();
    sim.is_down = true;
    pthread_mutex_unlock(&sim.lock);
    if (sim.is_forked)
        return;
    sim_engine_stop();
    pthread_mutex_lock(&sim.lock);
    sim_counter_fini();
    pthread_mutex_unlock(&sim.lock);
}
