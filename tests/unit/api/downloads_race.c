/* SPDX-License-Identifier: MIT */
/* One thread starts frames, one takes them, one asks how all stands, or captures; also under
 * ThreadSanitizer (tests/check/tsan.test), to which a copy into a half that somebody reads is a
 * race. The device copies at once, and says so only when it was asked a few times. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "api/downloads.h"
#include "api/stats.h"
#include "core/process/gate.h"
#include "fake_driver.h"
#include "transfer_fixture.h"

#define WORDS  64
#define FRAMES 4000

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

static void *capture(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over)) {
        cw_gate_close(CW_GATE_CAPTURE);
        atomic_store(&transfer_is_captured, 1);
        sched_yield();
        atomic_store(&transfer_is_captured, 0);
        cw_gate_open(CW_GATE_CAPTURE);
        sched_yield();
    }
    return NULL;
}

static void carry_beside(void *(*work)(void *))
{
    static uint32_t source[WORDS];
    pthread_t taker, other;
    struct cuwarden_frame last;
    struct cuwarden_download now;

    core_arm();
    cw_api_downloads_init(&transfer_places, &transfer_ops);
    cw_api_init(core_options());
    cr_assert_eq(cw_api_download_make("frames", sizeof(source), &download), CUWARDEN_OK);
    pthread_create(&taker, NULL, take, NULL);
    pthread_create(&other, NULL, work, NULL);
    for (uint32_t i = 1; i <= FRAMES; i++) {
        for (unsigned word = 0; word < WORDS; word++)
            source[word] = i;
        while (cw_api_download_start(download, source, sizeof(source), NULL, NULL) != CUWARDEN_OK)
            ;
    }
    pthread_join(taker, NULL);
    pthread_join(other, NULL);
    cr_assert_eq(cw_api_download_wait(download, 0, &last, sizeof(last)), CUWARDEN_OK);
    cr_assert_eq(cw_api_download_now(download, &now, sizeof(now)), CUWARDEN_OK);
    /* The last frame may have overtaken the one before, which then is neither. */
    cr_expect(now.started == FRAMES && now.taken + now.skipped >= FRAMES - 1);
    cr_expect_eq(now.bytes, FRAMES * sizeof(source));
    cr_expect_eq(cw_api_download_end(download), CUWARDEN_OK);
}

Test(downloads_race, a_frame_that_is_taken_is_whole_and_stays_so)
{
    carry_beside(ask);
}

Test(downloads_race, no_capture_is_spoilt_by_a_question)
{
    carry_beside(capture);
}
