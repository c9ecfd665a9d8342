/* SPDX-License-Identifier: MIT */
/* A driver for tests, and the core on top of it. See fake_driver.h. */
#include "fake_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "core/thread.h"
#include "core/context.h"
#include "core/gate.h"
#include "core/module.h"
#include "core/session.h"
#include "core/site.h"
#include "core/tally.h"
#include "core/tracker.h"

struct fake_driver fake_driver;
static __thread uint64_t current;

static void broken(const char *what)
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

static int begin(enum fake_call call)
{
    check_no_lock();
    if (call != FAKE_CURRENT && !fake_driver.gate_may_close) {
        if (!cw_gate_enter())
            broken("called with the gate closed");
        cw_gate_leave();
    }
    atomic_fetch_add(&fake_driver.calls[call], 1);
    if (fake_driver.inside != NULL)
        fake_driver.inside(call);
    return fake_driver.fails[call] ? -1 : 0;
}

static uint64_t now_ns(void)
{
    check_no_lock();
    return atomic_load(&fake_driver.now_ns);
}

static int context_current(uint64_t *out_handle)
{
    if (begin(FAKE_CURRENT) != 0)
        return -1;
    *out_handle = current;
    return 0;
}

static int context_facts(uint64_t handle, struct cw_context_facts *out)
{
    if (handle != current)
        broken("asked for a context that is not current");
    if (begin(FAKE_CONTEXT_FACTS) != 0)
        return -1;
    for (int i = 0; i < FAKE_CONTEXTS; i++) {
        const struct fake_context *context = &fake_driver.context[i];

        if (context->handle != handle)
            continue;
        *out = (struct cw_context_facts){.id = context->id, .device = context->device};
        return 0;
    }
    return -1;
}

static int device_facts(unsigned device, struct cw_device_facts *out)
{
    if (begin(FAKE_DEVICE_FACTS) != 0)
        return -1;
    *out = (struct cw_device_facts){.total = fake_driver.total_bytes};
    snprintf(out->name, sizeof(out->name), "Fake %u", device);
    out->uuid[0] = (uint8_t)(0xf0 + device);
    return 0;
}

static int memory_info(uint64_t *out_free, uint64_t *out_total)
{
    if (current == 0)
        broken("asked for memory without a context");
    if (begin(FAKE_MEMORY_INFO) != 0)
        return -1;
    *out_free = fake_driver.free_bytes;
    *out_total = fake_driver.total_bytes;
    return 0;
}

const struct cw_driver_ops fake_driver_ops = {
    .now_ns = now_ns,
    .context_current = context_current,
    .context_facts = context_facts,
    .device_facts = device_facts,
    .memory_info = memory_info,
};

void fake_driver_init(void)
{
    memset(&fake_driver, 0, sizeof(fake_driver));
    fake_driver.now_ns = FAKE_START_NS;
    fake_driver.free_bytes = UINT64_C(60) << 30;
    fake_driver.total_bytes = UINT64_C(80) << 30;
    current = 0;
}

void fake_context(unsigned slot, uint64_t handle, uint64_t id, unsigned device)
{
    fake_driver.context[slot] = (struct fake_context){.handle = handle, .id = id, .device = device};
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
static struct cw_arena *started;

void core_arm(void)
{
    fake_driver_init();
    cw_options_parse(NULL, 1, &options, NULL, NULL);
    options.stacks = CW_STACKS_OFF;
    cw_session_arm(&fake_driver_ops, &options, 12040);
    if (!cw_session_is_armed())
        broken("the session is not armed");
    started = &cw_session.arena;
}

void core_start(struct cw_arena *out_arena, size_t reserve)
{
    fake_driver_init();
    if (cw_arena_create(out_arena, reserve) != 0)
        broken("no arena");
    out_arena->header->pid = (uint32_t)getpid();
    out_arena->header->start_ns = FAKE_START_NS;
    cw_module_init(out_arena);
    cw_context_init(out_arena, &fake_driver_ops);
    cw_tally_init(out_arena);
    cw_tracker_init(out_arena);
    if (cw_site_init(out_arena, CW_STACKS_OFF, 32) != 0)
        broken("no sites");
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
        broken("too many threads");
    pthread_barrier_init(&start, NULL, count);
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){.body = body, .start = &start, .id = i};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            broken("no thread");
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
