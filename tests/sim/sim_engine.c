/* SPDX-License-Identifier: MIT */
/* Works off operations: a directed graph of struct sim_op, executed when their time has come.
 *
 * An operation waits for those it depends on, then for the configured delay, and is then executed
 * by the one engine thread with sim.lock held; streams, events and graphs are only ways to make
 * dependencies. Host functions must not be called with the lock held, nor hold up other streams, so
 * helper threads run them. All threads start at first use and block every signal. When the driver
 * is lazy, operations that take time wait in sim_lazy.c instead of the heap, the engine thread has
 * nothing to do, and whoever has the lock carries out what the dice and the waiting calls demand.
 *
 * Everything here is guarded by sim.lock.
 */
#include "sim_lazy.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_NS 50000 /* how often an unsatisfied wait on a memory word is looked at */

static struct {
    pthread_t thread;
    pthread_cond_t wake;
    bool is_started, is_stopping, is_made;
    struct sim_op **heap; /* by due time, then by age */
    size_t n, room;
    size_t outstanding;
    uint64_t sequence;
    struct sim_op *spare;
    struct sim_op *host_first, *host_last;
    pthread_cond_t host_wake;
    unsigned idle_helpers;
} engine;

static void complete(struct sim_op *op);
static void run_instants(void);

/* ---- the heap ---- */

static bool is_before(const struct sim_op *a, const struct sim_op *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static void heap_push(struct sim_op *op)
{
    size_t i = engine.n++;

    if (i == engine.room) {
        engine.room = engine.room ? 2 * engine.room : 256;
        engine.heap = realloc(engine.heap, engine.room * sizeof *engine.heap);
        if (!engine.heap)
            abort();
    }
    for (; i > 0 && is_before(op, engine.heap[(i - 1) / 2]); i = (i - 1) / 2)
        engine.heap[i] = engine.heap[(i - 1) / 2];
    engine.heap[i] = op;
}

static struct sim_op *heap_pop(void)
{
    struct sim_op *top = engine.heap[0], *last = engine.heap[--engine.n];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < engine.n && is_before(engine.heap[child + 1], engine.heap[child]))
            child++;
        if (child >= engine.n || is_before(last, engine.heap[child]))
            break;
        engine.heap[i] = engine.heap[child];
        i = child;
    }
    engine.heap[i] = last;
    return top;
}

/* ---- threads ---- */

static void make_conditions(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&engine.wake, &attributes);
    pthread_cond_init(&engine.host_wake, &attributes);
    pthread_condattr_destroy(&attributes);
    engine.is_made = true;
}

static bool start_thread(pthread_t *thread, void *(*run)(void *), bool is_detached)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    int failure;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes,
                                is_detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failure = pthread_create(thread, &attributes, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return !failure;
}

static void call_application(const struct sim_work *work, CUresult status)
{
    if (work->task == SIM_DO_CALLBACK)
        work->callback.function(work->callback.stream, status, work->callback.argument);
    else
        work->host.function(work->host.argument);
}

static void *run_helper(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&sim.lock);
    sim_thread()->is_callback = true;
    while (!engine.is_stopping) {
        struct sim_op *op = engine.host_first;
        CUresult status;

        if (!op) {
            engine.idle_helpers++;
            pthread_cond_wait(&engine.host_wake, &sim.lock);
            engine.idle_helpers--;
            continue;
        }
        engine.host_first = op->next;
        status = op->ctx->sticky;
        pthread_mutex_unlock(&sim.lock);
        call_application(&op->work, status);
        pthread_mutex_lock(&sim.lock);
        complete(op);
        run_instants();
    }
    pthread_mutex_unlock(&sim.lock);
    return NULL;
}

static void hand_to_helper(struct sim_op *op)
{
    pthread_t thread;
    unsigned waiting = 1;

    for (struct sim_op *other = engine.host_first; other; other = other->next)
        waiting++;
    op->next = NULL;
    if (engine.host_first)
        engine.host_last->next = op;
    else
        engine.host_first = op;
    engine.host_last = op;
    if (engine.idle_helpers < waiting)
        start_thread(&thread, run_helper, true);
    pthread_cond_signal(&engine.host_wake);
}

static void sleep_until(pthread_cond_t *condition, uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};

    pthread_cond_timedwait(condition, &sim.lock, &until);
}

static bool is_hosts(const struct sim_op *op)
{
    return op->work.task == SIM_DO_HOST || op->work.task == SIM_DO_CALLBACK;
}

static void execute(struct sim_op *op)
{
    CUresult status = CUDA_SUCCESS;

    if (!sim_work_is_ready(&op->work)) {
        op->due_ns = sim_now_ns() + POLL_NS;
        heap_push(op);
        return;
    }
    /* A broken context carries nothing out any more, yet its operations do end; callbacks run. */
    if (is_hosts(op)) {
        if (op->ctx->sticky == CUDA_SUCCESS || op->work.task == SIM_DO_CALLBACK) {
            hand_to_helper(op);
            return;
        }
    } else if (op->ctx->sticky == CUDA_SUCCESS || op->work.task == SIM_DO_FREE) {
        status = sim_work_execute(op);
    }
    if (status != CUDA_SUCCESS)
        op->ctx->sticky = status;
    complete(op);
}

static void *run_engine(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&sim.lock);
    while (!engine.is_stopping) {
        if (engine.n == 0)
            pthread_cond_wait(&engine.wake, &sim.lock);
        else if (engine.heap[0]->due_ns > sim_now_ns())
            sleep_until(&engine.wake, engine.heap[0]->due_ns);
        else
            execute(heap_pop());
    }
    pthread_mutex_unlock(&sim.lock);
    return NULL;
}

static void start_engine(void)
{
    if (engine.is_started || sim.is_down)
        return;
    if (!engine.is_made)
        make_conditions();
    engine.is_started = start_thread(&engine.thread, run_engine, false);
}

void sim_engine_stop(void)
{
    bool is_started;

    pthread_mutex_lock(&sim.lock);
    engine.is_stopping = true;
    is_started = engine.is_started;
    if (engine.is_made) {
        pthread_cond_broadcast(&engine.wake);
        pthread_cond_broadcast(&engine.host_wake);
    }
    pthread_cond_broadcast(&sim.done);
    pthread_mutex_unlock(&sim.lock);
    if (is_started)
        pthread_join(engine.thread, NULL);
}

void sim_engine_forget(void)
{
    memset(&engine, 0, sizeof engine);
    sim_lazy_forget();
    pthread_cond_init(&sim.done, NULL);
}

void sim_engine_wake(void)
{
    if (engine.is_started)
        pthread_cond_signal(&engine.wake);
}

/* ---- operations ---- */

struct sim_op *sim_op_create(struct sim_context *ctx, const struct sim_work *work)
{
    struct sim_op *op = engine.spare;

    if (op) {
        struct sim_op **waiters = op->waiters;
        unsigned room = op->room;

        engine.spare = op->next;
        memset(op, 0, sizeof *op);
        op->waiters = waiters;
        op->room = room;
    } else {
        op = calloc(1, sizeof *op);
        if (!op)
            abort();
    }
    if (work)
        op->work = *work;
    op->ctx = ctx;
    op->row = sim_thread()->row;
    op->refs = 1;
    op->sequence = engine.sequence++;
    op->is_instant = op->work.task == SIM_NOTHING || op->work.task == SIM_DO_RECORD ||
                     op->work.task == SIM_DO_ALLOC;
    sim_work_identify(&op->work, op->ids);
    return op;
}

struct sim_op *sim_op_ref(struct sim_op *op)
{
    op->refs++;
    return op;
}

void sim_op_unref(struct sim_op *op)
{
    if (!op || --op->refs > 0)
        return;
    op->next = engine.spare;
    engine.spare = op;
}

bool sim_op_is_done(const struct sim_op *op)
{
    return !op || op->is_done;
}

void sim_op_depend(struct sim_op *op, struct sim_op *on)
{
    if (!on || on->is_done || on == op)
        return;
    if (on->nwaiters == on->room) {
        on->room = on->room ? 2 * on->room : 4;
        on->waiters = realloc(on->waiters, on->room * sizeof *on->waiters);
        if (!on->waiters)
            abort();
    }
    on->waiters[on->nwaiters++] = op;
    op->pending++;
}

static void make_due(struct sim_op *op)
{
    op->due_ns = 0;
    if (sim.config.is_lazy && !op->is_instant) {
        sim_lazy_hold(op);
        return;
    }
    if (!op->is_instant) {
        uint64_t delay = (uint64_t)sim.config.delay_us * 1000 + sim_work_spin_ns(&op->work);

        if (delay)
            op->due_ns = sim_now_ns() + delay;
    }
    heap_push(op);
}

static void complete(struct sim_op *op)
{
    op->is_done = true;
    op->done_ns = sim_now_ns();
    for (unsigned i = 0; i < op->nwaiters; i++) {
        struct sim_op *waiter = op->waiters[i];

        if (--waiter->pending == 0 && waiter->is_submitted)
            make_due(waiter);
    }
    if (op->nwaiters > 0)
        sim_engine_wake();
    op->nwaiters = 0;
    engine.outstanding--;
    op->ctx->live_ops--;
    free(op->work.owned);
    op->work.owned = NULL;
    sim_op_unref(op);
    pthread_cond_broadcast(&sim.done);
}

/* Work that could start and end at once may as well do so in the calling thread. */
static bool can_be_inline(const struct sim_op *op)
{
    if (op->pending > 0 || is_hosts(op) || !sim_work_is_ready(&op->work))
        return false;
    return op->is_instant ||
           (op->is_awaited && sim.config.delay_us == 0 && !sim_work_spin_ns(&op->work));
}

void sim_op_submit(struct sim_op *op)
{
    op->is_submitted = true;
    engine.outstanding++;
    op->ctx->live_ops++;
    if (op->pending > 0)
        return;
    if (can_be_inline(op)) {
        execute(op);
        run_instants();
        return;
    }
    if (!sim.config.is_lazy)
        start_engine();
    make_due(op);
    sim_engine_wake();
}

/* ---- laziness ---- */

/* What takes no time is not held back. */
static void run_instants(void)
{
    while (sim.config.is_lazy && engine.n > 0)
        execute(heap_pop());
}

bool sim_engine_step(const struct sim_op *target)
{
    struct sim_op *op = sim_lazy_take(target);

    if (!op)
        return false;
    execute(op);
    run_instants();
    return true;
}

void sim_engine_stroll(void)
{
    if (sim_lazy_is_stirred())
        sim_engine_step(NULL);
    sim_lazy_pause();
}

void sim_engine_nudge(const struct sim_op *op)
{
    if (sim.config.is_lazy && !sim_op_is_done(op) && sim_lazy_roll(2))
        sim_engine_step(op);
}

void sim_engine_settle(void)
{
    while (engine.outstanding > 0 && !sim.is_down)
        if (!sim.config.is_lazy)
            pthread_cond_wait(&sim.done, &sim.lock);
        else if (!sim_engine_step(NULL))
            sleep_until(&sim.done, sim_now_ns() + POLL_NS);
}

/* Now and then something goes by that nobody asked for. A host function has to be waited for. */
static void step_towards(const struct sim_op *op)
{
    if (sim_lazy_is_stirred())
        sim_engine_step(NULL);
    if (!op->is_done && !sim_engine_step(op))
        sleep_until(&sim.done, sim_now_ns() + POLL_NS);
    sim_lazy_pause();
}

void sim_op_wait(struct sim_op *op)
{
    if (sim_op_is_done(op))
        return;
    sim_thread()->here.waits++;
    sim_op_ref(op);
    while (!op->is_done && !sim.is_down) {
        if (sim.config.is_lazy) {
            step_towards(op);
            continue;
        }
        /* Doing what is due beats waiting for a thread to wake up and do it. */
        if (engine.n > 0 && engine.heap[0]->due_ns <= sim_now_ns())
            execute(heap_pop());
        else
            pthread_cond_wait(&sim.done, &sim.lock);
    }
    sim_op_unref(op);
}
