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
#include "transfer_fixture.h"

#define WORDS  2048 /* two chunks */
#define COPIES 1000 /* of each thread */

static uint32_t source[2][WORDS], target[2][WORDS];

static int look(uint64_t address, struct cw_bridge_memory *out)
{
    *out = (struct cw_bridge_memory){
        .context = TRANSFER_CONTEXT, .base = address, .bytes = sizeof(source[0]), .device = 0};
    return 0;
}

static int stream_context(void *its_stream, uint64_t *out_context)
{
    (void)its_stream;
    *out_context = TRANSFER_CONTEXT;
    return 0;
}

static const struct cw_bridge_ops bridge_ops = {
    .look = look, .stream_context = stream_context, .upload = transfer_upload};

static uint64_t bridge;
static _Atomic int at_work = 2;

static void *start(void *own)
{
    unsigned which = (unsigned)((uint32_t(*)[WORDS])own - source);

    for (uint32_t i = 1; i <= COPIES; i++) {
        for (unsigned word = 0; word < WORDS; word++)
            source[which][word] = 2 * i + which;
        while (cw_api_bridge_copy(bridge, target[which], source[which], sizeof(source[0]),
                                  &transfer_stream, NULL, NULL) == CUWARDEN_BUSY)
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
    cw_api_bridges_init(&transfer_places, &transfer_ops, &bridge_ops);
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
