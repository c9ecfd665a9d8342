/* SPDX-License-Identifier: MIT */
/* Two threads copy over one bridge, one waits, one asks how it stands; also under ThreadSanitizer
 * (tests/check/tsan.test), to which a half that two copies fill at once is a race. Both ends are of
 * one device, which copies at once, and says so only when it was asked a few times. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "api/bridges.h"
#include "api/stats.h"
#include "fake_driver.h"

#define WORDS  2048 /* two chunks */
#define COPIES 1000 /* of each thread */

static uint32_t halves[2 * 4096 / sizeof(uint32_t)];
static uint32_t source[2][WORDS], target[2][WORDS];
static _Atomic unsigned events[256]; /* queries until it has passed */
static _Atomic unsigned created;
static char stream;

static int place(struct cw_buffer_place *out)
{
    *out = (struct cw_buffer_place){.context = {0xc0, 1}, .total = 1 << 30};
    return 0;
}

static int enter(struct cw_context_name context, int *out_pushed)
{
    *out_pushed = context.handle == 0xc0;
    return 0;
}

static void leave(struct cw_context_name context, int pushed)
{
    cr_expect(pushed && context.handle == 0xc0);
}

static int host_alloc(uint64_t bytes, void **out)
{
    cr_assert_eq(bytes, sizeof(halves));
    *out = halves;
    return 0;
}

static int gone(void *thing)
{
    cr_expect_not_null(thing);
    return 0;
}

static int stream_create(void **out)
{
    *out = &stream;
    return 0;
}

static int event_create(int is_timed, void **out)
{
    (void)is_timed;
    *out = (void *)&events[atomic_fetch_add(&created, 1)];
    return 0;
}

static int event_record(void *event, void *its_stream)
{
    static _Atomic unsigned count;

    (void)its_stream;
    atomic_store((_Atomic unsigned *)event, atomic_fetch_add(&count, 1) % 5);
    return 0;
}

static int event_order(void *event, void *its_stream)
{
    cr_expect(event != NULL && its_stream == &stream);
    return 0;
}

static int event_query(void *event)
{
    unsigned left = atomic_load((_Atomic unsigned *)event);

    while (left != 0 && !atomic_compare_exchange_weak((_Atomic unsigned *)event, &left, left - 1))
        ;
    return left != 0 ? CW_TRANSFER_NOT_READY : 0;
}

static int event_wait(void *event)
{
    while (event_query(event) != 0)
        ;
    return 0;
}

static int event_elapsed(void *begin, void *end, uint64_t *out_ns)
{
    cr_expect_neq(begin, end);
    *out_ns = 1;
    return 0;
}

static int download(void *to, uint64_t from, uint64_t bytes, void *its_stream)
{
    cr_expect_eq(its_stream, &stream);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

static int upload(uint64_t to, const void *from, uint64_t bytes, void *its_stream)
{
    cr_expect_eq(its_stream, &stream);
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

static int look(uint64_t address, struct cw_bridge_memory *out)
{
    *out = (struct cw_bridge_memory){
        .context = 0xc0, .base = address, .bytes = sizeof(source[0]), .device = 0};
    return 0;
}

static int stream_context(void *its_stream, uint64_t *out_context)
{
    (void)its_stream;
    *out_context = 0xc0;
    return 0;
}

static const struct cw_buffer_ops places = {.place = place, .enter = enter, .leave = leave};
static const struct cw_transfer_ops ops = {.host_alloc = host_alloc,
                                           .host_free = gone,
                                           .stream_create = stream_create,
                                           .stream_destroy = gone,
                                           .stream_wait = gone,
                                           .event_create = event_create,
                                           .event_destroy = gone,
                                           .event_record = event_record,
                                           .event_order = event_order,
                                           .event_query = event_query,
                                           .event_wait = event_wait,
                                           .event_elapsed = event_elapsed,
                                           .download = download};
static const struct cw_bridge_ops bridge_ops = {
    .look = look, .stream_context = stream_context, .upload = upload};

static uint64_t bridge;
static _Atomic int at_work = 2;

static void *start(void *own)
{
    unsigned which = (unsigned)((uint32_t(*)[WORDS])own - source);

    for (uint32_t i = 1; i <= COPIES; i++) {
        for (unsigned word = 0; word < WORDS; word++)
            source[which][word] = 2 * i + which;
        while (cw_api_bridge_copy(bridge, target[which], source[which], sizeof(source[0]), &stream,
                                  NULL, NULL) == CUWARDEN_BUSY)
            ;
        for (unsigned word = 0; word < WORDS; word++)
            cr_assert_eq(target[which][word], 2 * i + which);
    }
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

static void *wait_for_all(void *unused)
{
    while (atomic_load(&at_work) != 0)
        cr_assert_eq(cw_api_bridge_wait(bridge, 0), CUWARDEN_OK);
    return unused;
}

static void *ask(void *unused)
{
    struct cuwarden_bridge now;
    uint64_t last = 0;

    while (atomic_load(&at_work) != 0) {
        cr_assert_eq(cw_api_bridge_now(bridge, &now, sizeof(now)), CUWARDEN_OK);
        cr_assert(now.staged_copies <= now.started && now.staged_copies >= last);
        cr_assert(now.bytes == now.staged_copies * sizeof(source[0]) && now.overlap <= 1);
        last = now.staged_copies;
    }
    return unused;
}

Test(bridges_race, no_copy_is_lost_or_counted_twice)
{
    void *(*const work[])(void *) = {start, start, wait_for_all, ask};
    struct cuwarden_bridge now;
    struct cuwarden_stats stats;
    pthread_t thread[4];

    core_arm();
    cw_api_bridges_init(&places, &ops, &bridge_ops);
    cw_api_init(core_options());
    cr_assert_eq(cw_api_bridge_make("halo", 0, 0, 4096, CUWARDEN_STAGED, &bridge), CUWARDEN_OK);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, work[i], i < 2 ? source[i] : NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    cr_assert_eq(cw_api_bridge_wait(bridge, 0), CUWARDEN_OK);
    cr_assert_eq(cw_api_bridge_now(bridge, &now, sizeof(now)), CUWARDEN_OK);
    cr_expect(now.started == UINT64_C(2) * COPIES && now.staged_copies == now.started);
    cr_expect_eq(now.transfer_ns, now.started);
    cr_assert_eq(cw_api_stats(0, NULL, &stats, sizeof(stats)), CUWARDEN_OK);
    cr_expect(stats.staged_transfers == now.started && stats.staged_bytes == now.bytes);
    cr_expect_eq(cw_api_bridge_end(bridge), CUWARDEN_OK);
}
