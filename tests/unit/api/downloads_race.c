/* SPDX-License-Identifier: MIT */
/* One thread starts frames, one takes them, one asks how all stands; also under ThreadSanitizer
 * (tests/check/tsan.test), to which a copy into a half that somebody reads is a race. The device
 * copies at once, and says so only when it was asked a few times. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "api/downloads.h"
#include "api/stats.h"
#include "fake_driver.h"

#define WORDS  64
#define FRAMES 4000

static uint32_t memory[2 * 4096 / sizeof(uint32_t)];
static _Atomic unsigned events[8]; /* queries until it has passed */
static _Atomic unsigned created;
static char stream;

static int place(struct cw_buffer_place *out)
{
    *out = (struct cw_buffer_place){.context = {0xc0, 1}, .total = 1 << 30, .granule = 1 << 21};
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
    cr_assert_eq(bytes, sizeof(memory));
    *out = memory;
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

static int copy(void *to, uint64_t from, uint64_t bytes, void *its_stream)
{
    cr_expect_eq(its_stream, &stream);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
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
                                           .download = copy};

static uint64_t download;
static _Atomic int is_over;

static void *take(void *unused)
{
    struct cuwarden_frame frame;
    uint64_t last = 0;

    (void)unused;
    while (last != FRAMES) {
        const uint32_t *word;

        if (cw_api_download_wait(download, 0, &frame, sizeof(frame)) != CUWARDEN_OK)
            continue; /* none is on its way */
        cr_assert(frame.number >= last);
        last = frame.number;
        word = frame.data;
        for (unsigned i = 0; i < WORDS; i++)
            cr_assert_eq(word[i], frame.number);
        if (last % 3 == 0)
            cw_api_download_release(download);
    }
    atomic_store(&is_over, 1);
    return NULL;
}

static void *ask(void *unused)
{
    struct cuwarden_download now;
    struct cuwarden_stats stats;

    (void)unused;
    while (!atomic_load(&is_over)) {
        cr_assert_eq(cw_api_download_now(download, &now, sizeof(now)), CUWARDEN_OK);
        cr_assert(now.taken + now.skipped <= now.started && now.overlap <= 1);
        cr_assert_eq(cw_api_stats(0, NULL, &stats, sizeof(stats)), CUWARDEN_OK);
    }
    return NULL;
}

Test(downloads_race, a_frame_that_is_taken_is_whole_and_stays_so)
{
    static uint32_t source[WORDS];
    pthread_t taker, asker;
    struct cuwarden_download now;

    core_arm();
    cw_api_downloads_init(&places, &ops);
    cw_api_init(core_options());
    cr_assert_eq(cw_api_download_make("frames", sizeof(source), &download), CUWARDEN_OK);
    pthread_create(&taker, NULL, take, NULL);
    pthread_create(&asker, NULL, ask, NULL);
    for (uint32_t i = 1; i <= FRAMES; i++) {
        for (unsigned word = 0; word < WORDS; word++)
            source[word] = i;
        while (cw_api_download_start(download, source, sizeof(source), NULL, NULL) != CUWARDEN_OK)
            ;
    }
    pthread_join(taker, NULL);
    pthread_join(asker, NULL);
    cr_assert_eq(cw_api_download_now(download, &now, sizeof(now)), CUWARDEN_OK);
    cr_expect(now.started == FRAMES && now.taken + now.skipped == FRAMES);
    cr_expect_eq(now.bytes, FRAMES * sizeof(source));
    cr_expect_eq(cw_api_download_end(download), CUWARDEN_OK);
}
