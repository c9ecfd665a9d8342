/* SPDX-License-Identifier: MIT */
/* Each stream of a set has a thread that marks work in it, and one more asks how all stands, in
 * whose way none of them is, nor it in theirs; also under ThreadSanitizer (tests/check/tsan.test).
 * An event passes when it was asked a few times. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "api/streams.h"
#include "fake_driver.h"
#include "transfer_fixture.h"

#define WORKS 2000

static struct event {
    _Atomic unsigned left; /* queries until it has passed */
    uint64_t at_ns;        /* no atomic: one thread at a time is at work on a set */
} events[CW_STREAM_LANES * (2 * CW_STREAM_WORKS + 1) + 1];
static unsigned made_events, made_streams;
static char streams[CW_STREAM_LANES];
static uint64_t clock_ns;

static int gone(void *thing)
{
    cr_expect_not_null(thing);
    return 0;
}

static int stream_create(void **out)
{
    *out = &streams[made_streams++];
    return 0;
}

static int event_create(int is_timed, void **out)
{
    (void)is_timed;
    *out = &events[made_events++];
    return 0;
}

static int event_record(void *event, void *stream)
{
    struct event *its = event;

    (void)stream;
    its->at_ns = ++clock_ns;
    atomic_store(&its->left, (unsigned)(clock_ns % 4));
    return 0;
}

static int event_query(void *event)
{
    struct event *its = event;

    sched_yield(); /* others find the set at work */
    if (atomic_load(&its->left) == 0)
        return 0;
    atomic_fetch_sub(&its->left, 1);
    return CW_TRANSFER_NOT_READY;
}

static int event_elapsed(void *begin, void *end, uint64_t *out_ns)
{
    const struct event *from = begin, *to = end;

    *out_ns = to->at_ns > from->at_ns ? to->at_ns - from->at_ns : 0;
    return 0;
}

static const struct cw_transfer_ops ops = {.stream_create = stream_create,
                                           .stream_destroy = gone,
                                           .stream_wait = gone,
                                           .event_create = event_create,
                                           .event_destroy = gone,
                                           .event_record = event_record,
                                           .event_query = event_query,
                                           .event_elapsed = event_elapsed};

static uint64_t set;
static _Atomic uint64_t refused;
static _Atomic int at_work = CW_STREAM_LANES;

static void *mark(void *lane)
{
    int which = (int)((char *)lane - streams);

    for (int i = 0; i < WORKS; i++) {
        while (cw_api_work_begin(set, which) == CUWARDEN_BUSY)
            atomic_fetch_add(&refused, 1); /* as many as can be are on their way */
        cr_assert_eq(cw_api_work_end(set, which), CUWARDEN_OK);
    }
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

static void *ask(void *unused)
{
    struct cuwarden_streams now;
    uint64_t last = 0;

    (void)unused;
    while (atomic_load(&at_work) != 0) {
        cr_assert_eq(cw_api_streams_now(set, &now, sizeof(now)), CUWARDEN_OK);
        cr_assert(now.works >= last && now.overlap >= 0 && now.overlap <= 0.67);
        cr_assert(now.busy_ns <= now.compute_ns + now.in_ns + now.out_ns);
        last = now.works;
    }
    return NULL;
}

Test(streams_race, no_work_is_lost_or_counted_twice)
{
    pthread_t threads[CW_STREAM_LANES + 1];
    struct cuwarden_streams now;

    core_arm();
    cw_api_streams_init(&transfer_places, &ops);
    cw_api_init(core_options());
    cr_assert_eq(cw_api_streams_make("stages", 0, &set), CUWARDEN_OK);
    for (int i = 0; i < CW_STREAM_LANES; i++)
        pthread_create(&threads[i], NULL, mark, &streams[i]);
    pthread_create(&threads[CW_STREAM_LANES], NULL, ask, NULL);
    for (int i = 0; i <= CW_STREAM_LANES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 200; i++) /* all have passed then */
        cr_assert_eq(cw_api_streams_now(set, &now, sizeof(now)), CUWARDEN_OK);
    cr_expect(now.works == CW_STREAM_LANES * WORKS && now.refused == refused);
    /* Of busy_ns nothing is promised here: a thread may rest in its work while others do many. */
    cr_expect_leq(now.compute_ns, clock_ns);
    cr_expect_leq(now.in_ns, clock_ns);
    cr_expect_leq(now.out_ns, clock_ns);
    cr_expect_eq(cw_api_streams_end(set), CUWARDEN_OK);
}
