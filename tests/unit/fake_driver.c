/* SPDX-License-Identifier: MIT */
/* A driver for tests, and the core on top of it. See fake_driver.h. */
#include "fake_driver.h"
#include "fake_memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "core/thread.h"
#include "core/context.h"
#include "core/device.h"
#include "core/event.h"
#include "core/gate.h"
#include "core/module.h"
#include "core/session.h"
#include "core/site.h"
#include "core/tally.h"
#include "core/tracker.h"

struct fake_driver fake_driver;
static __thread uint64_t current;

static struct fake_event {
    unsigned slot;
    uint32_t generation;
    _Atomic uint64_t stands_for; /* 0: never recorded */
} events[FAKE_EVENTS];
static _Atomic unsigned next_event;

void fake_broken(const char *what)
{
    fprintf(stderr, "fake driver: %s\n", what);
    abort();
}

/* Debug builds stop at an acquisition out of order, and this rank comes before all others. */
static void check_no_lock(void)
{
    struct cw_lock first = CW_LOCK_INIT(CW_RANK_SESSION);

    cw_lock_acquire(&first);
    cw_lock_release(&first);
}

static void check_gate(enum fake_call call)
{
    const struct cw_slot *slot = &cw_slots[cw_thread_slot()];

    int waits = call == FAKE_CONTEXT_WAIT || call == FAKE_EVENT_WAIT || call == FAKE_BLOCK_FREE;

    if (atomic_load(waits ? &slot->waiting : &slot->calling) == 0)
        fake_broken("called outside of the gate");
    /* A capture begins without a call that waits and comes late. */
    if (!waits && atomic_load(&fake_driver.shut))
        fake_broken("called while the gate is shut");
    if (fake_driver.gate_may_close)
        return;
    if (!cw_gate_enter())
        fake_broken("called with the gate closed");
    cw_gate_leave();
}

int fake_begin(enum fake_call call)
{
    check_no_lock();
    if (call != FAKE_CURRENT)
        check_gate(call);
    atomic_fetch_add(&fake_driver.calls[call], 1);
    if (fake_driver.inside != NULL)
        fake_driver.inside(call);
    return fake_driver.fails[call] ? -1 : 0;
}

static uint64_t now_ns(void)
{
    check_no_lock();
    return atomic_fetch_add(&fake_driver.now_ns, fake_driver.clock_step);
}

static uint64_t work_ns(void)
{
    return atomic_fetch_add(&fake_driver.worked_ns, fake_driver.work_step);
}

static struct fake_context *find_context(uint64_t handle)
{
    for (int i = 0; i < FAKE_CONTEXTS; i++)
        if (handle != 0 && fake_driver.context[i].handle == handle)
            return &fake_driver.context[i];
    return NULL;
}

static int context_current(uint64_t *out_handle)
{
    if (fake_begin(FAKE_CURRENT) != 0)
        return -1;
    *out_handle = current;
    return 0;
}

static int has_context_ids(void)
{
    return !fake_driver.has_no_context_ids;
}

static int context_identity(uint64_t handle, uint64_t *out_identity)
{
    const struct fake_context *context;

    if (fake_begin(FAKE_CURRENT) != 0)
        return -1;
    if (handle == 0)
        handle = current;
    context = find_context(handle);
    if (handle == 0 || (context == NULL && has_context_ids()))
        return -1;
    *out_identity = has_context_ids() ? context->id : handle;
    return 0;
}

/* The context, if its handle is still its own: what a call of ours about another one must fail for.
 */
static struct fake_context *named(struct cw_context_name name)
{
    struct fake_context *context = find_context(name.handle);

    return context != NULL && (name.id == 0 || context->id == name.id) ? context : NULL;
}

int fake_is_itself(struct cw_context_name name)
{
    return named(name) != NULL;
}

static int context_facts(uint64_t handle, struct cw_context_facts *out)
{
    if (handle != current)
        fake_broken("asked for a context that is not current");
    if (fake_begin(FAKE_CONTEXT_FACTS) != 0)
        return -1;
    for (int i = 0; i < FAKE_CONTEXTS; i++) {
        const struct fake_context *context = &fake_driver.context[i];

        if (context->handle != handle)
            continue;
        *out = (struct cw_context_facts){.id = has_context_ids() ? context->id : 0,
                                         .device = context->device};
        return 0;
    }
    return -1;
}

static int device_facts(unsigned device, struct cw_device_facts *out)
{
    if (fake_begin(FAKE_DEVICE_FACTS) != 0)
        return -1;
    *out = (struct cw_device_facts){.total = fake_driver.total_bytes};
    snprintf(out->name, sizeof(out->name), "Fake %u", device);
    out->uuid[0] = (uint8_t)(0xf0 + device);
    return 0;
}

static int device_count(unsigned *out_count)
{
    if (fake_begin(FAKE_DEVICE_COUNT) != 0)
        return -1;
    *out_count = fake_driver.devices;
    return 0;
}

static int memory_info(struct cw_context_name name, uint64_t *out_free, uint64_t *out_total)
{
    if (name.handle == 0 && current == 0)
        fake_broken("asked for memory without a context");
    if (fake_begin(FAKE_MEMORY_INFO) != 0 || (name.handle != 0 && named(name) == NULL))
        return -1;
    *out_free = fake_free_bytes();
    *out_total = fake_driver.capacity != 0 ? fake_driver.capacity : fake_driver.total_bytes;
    return 0;
}

/* ---- work ---- */

struct fake_context *fake_context_of(uint64_t handle)
{
    struct fake_context *context = find_context(handle);

    if (context == NULL)
        fake_broken("no such context");
    return context;
}

uint64_t fake_submit(uint64_t handle)
{
    return atomic_fetch_add(&fake_context_of(handle)->submitted, 1) + 1;
}

static void finish_until(struct fake_context *context, uint64_t work)
{
    uint64_t done = atomic_load(&context->finished);

    while (done < work && !atomic_compare_exchange_weak(&context->finished, &done, work))
        ;
}

void fake_finish(uint64_t handle)
{
    struct fake_context *context = fake_context_of(handle);

    finish_until(context, atomic_load(&context->submitted));
}

int fake_is_finished(unsigned slot, uint32_t generation, uint64_t work)
{
    const struct fake_context *context = &fake_driver.context[slot];

    return context->generation != generation || atomic_load(&context->finished) >= work;
}

static int context_wait(struct cw_context_name name)
{
    struct fake_context *context;
    uint64_t work;

    if (fake_begin(FAKE_CONTEXT_WAIT) != 0 || fake_driver.wait_code != 0)
        return fake_driver.wait_code ? fake_driver.wait_code : -1;
    if (current == 0)
        return FAKE_CONTEXT_IS_DESTROYED;
    /* The gate cannot keep the context alive for a call that waits. */
    context = named(name);
    if (context == NULL)
        return FAKE_CONTEXT_IS_DESTROYED;
    atomic_store(&fake_driver.waited, name.handle);
    work = atomic_load(&context->submitted);
    if (atomic_load(&context->finished) < work)
        sched_yield();
    finish_until(context, work);
    return 0;
}

static int has_context_events(void)
{
    return !fake_driver.has_no_context_events;
}

static struct fake_event *event_at(uint64_t event)
{
    struct fake_event *at = &events[event];

    if (event == 0 || event >= FAKE_EVENTS || event > atomic_load(&next_event))
        fake_broken("no such event");
    if (fake_driver.context[at->slot].generation != at->generation)
        fake_broken("the event went with its context");
    return at;
}

static int event_create(struct cw_context_name name, uint64_t *out_event)
{
    const struct fake_context *context = named(name);
    unsigned event;

    if (fake_begin(FAKE_EVENT_CREATE) != 0 || context == NULL)
        return -1;
    event = atomic_fetch_add(&next_event, 1) + 1;
    if (event >= FAKE_EVENTS)
        fake_broken("too many events");
    events[event].slot = (unsigned)(context - fake_driver.context);
    events[event].generation = context->generation;
    atomic_store(&events[event].stands_for, 0);
    *out_event = event;
    return 0;
}

static int event_record(struct cw_context_name name, uint64_t event)
{
    struct fake_context *context = named(name);
    struct fake_event *at;

    if (context == NULL)
        return -1;
    at = event_at(event);
    if (context != &fake_driver.context[at->slot])
        fake_broken("recorded an event of another context");
    if (fake_begin(FAKE_EVENT_RECORD) != 0)
        return -1;
    atomic_store(&at->stands_for, atomic_load(&context->submitted));
    return 0;
}

static int event_query(struct cw_context_name name, uint64_t event)
{
    const struct fake_event *at;

    if (named(name) == NULL)
        return 1;
    at = event_at(event);
    if (fake_begin(FAKE_EVENT_QUERY) != 0)
        return -1;
    return atomic_load(&fake_driver.context[at->slot].finished) >= atomic_load(&at->stands_for);
}

static int event_wait(struct cw_context_name name, uint64_t event)
{
    const struct fake_event *at;

    if (named(name) == NULL)
        return 1;
    at = event_at(event);
    if (fake_begin(FAKE_EVENT_WAIT) != 0)
        return -1;
    finish_until(&fake_driver.context[at->slot], atomic_load(&at->stands_for));
    return 1;
}

void fake_context_end(uint64_t handle)
{
    struct fake_context *context = fake_context_of(handle);

    fake_forget_blocks(handle);
    context->handle = 0;
    context->generation++;
}

const struct cw_driver_ops fake_driver_ops = {
    .now_ns = now_ns,
    .exact_ns = cw_clock_ns,
    .work_ns = work_ns,
    .context_current = context_current,
    .has_context_ids = has_context_ids,
    .context_identity = context_identity,
    .context_facts = context_facts,
    .device_facts = device_facts,
    .device_count = device_count,
    .memory_info = memory_info,
    .context_wait = context_wait,
    .has_context_events = has_context_events,
    .event_create = event_create,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .block_alloc = fake_block_alloc,
    .block_free = fake_block_free,
    .fallback_alloc = fake_fallback_alloc,
    .driver_pools = fake_driver_pools,
    .driver_pool_use = fake_driver_pool_use,
    .driver_pool_trim = fake_driver_pool_trim,
};

void fake_driver_init(void)
{
    int has_no_context_events = fake_driver.has_no_context_events;
    int has_no_context_ids = fake_driver.has_no_context_ids;

    memset(&fake_driver, 0, sizeof(fake_driver));
    fake_driver.has_no_context_events = has_no_context_events;
    fake_driver.has_no_context_ids = has_no_context_ids;
    fake_driver.now_ns = FAKE_START_NS;
    fake_driver.free_bytes = UINT64_C(60) << 30;
    fake_driver.total_bytes = UINT64_C(80) << 30;
    fake_driver.devices = 2;
    fake_memory_init();
    current = 0;
}

void fake_context(unsigned slot, uint64_t handle, uint64_t id, unsigned device)
{
    static _Atomic uint64_t next_id = 1000;
    struct fake_context *context = &fake_driver.context[slot];

    context->handle = handle;
    context->id = id != 0 ? id : next_id++;
    context->device = device;
    context->generation++;
    /* They go on counting: somebody may still ask about work of the context before. */
    atomic_store(&context->finished, atomic_load(&context->submitted));
}

uint64_t fake_current(void)
{
    return current;
}

void fake_set_current(uint64_t handle)
{
    current = handle;
}

unsigned fake_gated_calls(void)
{
    unsigned calls = 0;

    for (int i = FAKE_CURRENT + 1; i < FAKE_CALLS; i++)
        calls += fake_driver.calls[i];
    return calls;
}

/* ---- the core ---- */

static struct cw_options options;
static int has_options;
static struct cw_arena *started;

static void arm(enum cw_mode mode)
{
    fake_driver_init();
    options.mode = mode;
    options.stacks = CW_STACKS_OFF;
    cw_session_arm(&fake_driver_ops, &options, NULL, 12040);
    if (!cw_session_is_armed())
        fake_broken("the session is not armed");
    started = &cw_session.arena;
}

struct cw_options *core_options(void)
{
    if (!has_options) {
        cw_options_parse(NULL, 1, &options, NULL);
        strcpy(options.live, "off");
    }
    has_options = 1;
    return &options;
}

void core_arm(void)
{
    core_options();
    arm(CW_MODE_TRACK);
}

void core_arm_pool(void)
{
    core_options();
    arm(CW_MODE_POOL);
}

void core_start(struct cw_arena *out_arena, size_t reserve)
{
    fake_driver_init();
    if (cw_arena_create(out_arena, reserve) != 0)
        fake_broken("no arena");
    out_arena->header->pid = (uint32_t)getpid();
    out_arena->header->start_ns = FAKE_START_NS;
    cw_module_init(out_arena);
    cw_context_init(out_arena, &fake_driver_ops);
    cw_device_init(out_arena);
    cw_event_init(out_arena);
    cw_tally_init(out_arena);
    cw_tracker_init(out_arena);
    if (cw_site_init(out_arena, CW_STACKS_OFF, 32) != 0)
        fake_broken("no sites");
    started = out_arena;
}

uint32_t core_site(const char *api, enum cw_kind kind, uint8_t device)
{
    return cw_site_here(cw_site_text(api), kind, device);
}

struct cw_request core_request(enum cw_kind kind, uint8_t device, uint64_t key, uint64_t bytes)
{
    return (struct cw_request){.space = CW_SPACE_ADDRESS,
                               .kind = kind,
                               .device = device,
                               .key = key,
                               .bytes = bytes,
                               .held = bytes};
}

struct cw_site_sums core_sums(uint32_t site)
{
    struct cw_site_sums sums;

    cw_view_site_sums(cw_arena_at(started, CW_TABLE_SITE, site), &sums);
    return sums;
}

uint64_t core_live(uint8_t device)
{
    return cw_tally_device(device).live;
}

uint64_t core_held(uint8_t device)
{
    return cw_tally_device(device).held;
}

uint64_t core_live_total(void)
{
    return cw_tally_total();
}

uint32_t core_put(uint32_t site, uint64_t key, uint64_t bytes)
{
    const struct cw_live_site *at = cw_site_at(site);
    struct cw_request request = core_request(at->kind, at->device, key, bytes);

    return cw_tracker_insert(&request, site, 10);
}

/* ---- help ---- */

struct worker {
    void (*body)(unsigned id);
    pthread_barrier_t *start;
    unsigned id;
};

static void *work(void *arg)
{
    const struct worker *worker = arg;

    pthread_barrier_wait(worker->start);
    worker->body(worker->id);
    return NULL;
}

/* What hook/entry.c does: a thread's end is learnt by a pthread key. */
static pthread_key_t thread_key;

static void thread_ends(void *value)
{
    (void)value;
    cw_thread_ends();
}

static int watch_thread(void)
{
    return pthread_setspecific(thread_key, &thread_key);
}

static void __attribute__((constructor)) watch_threads(void)
{
    if (pthread_key_create(&thread_key, thread_ends) == 0)
        cw_thread_set_watch(watch_thread);
}

void run_threads(unsigned count, void (*body)(unsigned id))
{
    pthread_t threads[MAX_THREADS];
    struct worker workers[MAX_THREADS];
    pthread_barrier_t start;

    if (count > MAX_THREADS)
        fake_broken("too many threads");
    pthread_barrier_init(&start, NULL, count);
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){.body = body, .start = &start, .id = i};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            fake_broken("no thread");
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
}

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull; /* splitmix64 */

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
