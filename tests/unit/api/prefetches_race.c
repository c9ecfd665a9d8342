/* SPDX-License-Identifier: MIT */
/* Two threads start files on one prefetch and wait for them, one frees the memory of a third, one
 * asks how all stands; also under ThreadSanitizer (tests/check/tsan.test), to which a half that is
 * filled while the device reads it is a race. The device copies when it is asked, and late. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/prefetches.h"
#include "core/process/guard.h"
#include "fake_driver.h"
#include "transfer_fixture.h"

#define CHUNK ((uint64_t)TRANSFER_HALF_BYTES)
#define BYTES ((uint64_t)13000)
#define FILES 600

static unsigned char content[BYTES], blocks[3][16384];
static _Atomic int is_freed, was_late; /* the third block; the driver was given more for it */

static int look(uint64_t address, struct cw_bridge_memory *out)
{
    uint64_t at = (address - (uint64_t)(uintptr_t)blocks) / sizeof(blocks[0]);

    *out = (struct cw_bridge_memory){.context = TRANSFER_CONTEXT,
                                     .base = (uint64_t)(uintptr_t)blocks[at],
                                     .bytes = sizeof(blocks[0])};
    return 0;
}

static int upload(uint64_t to, const void *from, uint64_t bytes, void *its_stream)
{
    int error = transfer_upload(to, from, bytes, its_stream);

    if (to < (uint64_t)(uintptr_t)blocks[2])
        return error;
    (void)usleep(20); /* the free comes meanwhile, and waits */
    if (atomic_load(&is_freed))
        atomic_store(&was_late, 1);
    return error;
}

static const struct cw_bridge_ops memory_ops = {.look = look, .upload = upload};

static void *run(void *work)
{
    cw_thread.depth = 1;
    (*(void (**)(void))work)();
    return NULL;
}

static int thread(void (*work)(void))
{
    static void (*its_work)(void);
    pthread_t its;

    its_work = work;
    return pthread_create(&its, NULL, run, (void *)&its_work) != 0 || pthread_detach(its) != 0;
}

static uint64_t prefetch;
static char path[64];
static _Atomic int at_work = 3;

static uint64_t start(unsigned char *to, uint64_t offset)
{
    uint64_t number = 0;
    int error;

    do
        error = cw_api_prefetch_start(prefetch, path, -1, offset, BYTES, to, (void *)-1, &number);
    while (error == CUWARDEN_BUSY);
    cr_assert_eq(error, CUWARDEN_OK);
    return number;
}

static void *bring(void *block)
{
    for (uint64_t i = 0; i < FILES; i++) {
        uint64_t bytes = BYTES - i, number = start(block, i);
        int error = cw_api_prefetch_wait(prefetch, number, &bytes);

        /* Not found: the others have started 16 meanwhile, so this one has arrived. */
        cr_assert(error == CUWARDEN_OK || error == CUWARDEN_NOT_FOUND, "it says: %s",
                  cw_api_error_text(error));
        cr_assert(bytes == BYTES - i && memcmp(block, content + i, bytes) == 0);
    }
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

static void *bring_and_free(void *block)
{
    for (uint64_t i = 0; i < FILES; i++) {
        uint64_t number = start(block, 0);
        int error;

        if (cw_guard_is_on(CW_GUARD_PREFETCH))
            cw_api_prefetch_leaving((uint64_t)(uintptr_t)block, 1);
        atomic_store(&is_freed, 1);
        error = cw_api_prefetch_wait(prefetch, number, NULL);
        cr_assert(error == CUWARDEN_OK || error == CUWARDEN_NOT_FOUND);
        atomic_store(&is_freed, 0);
    }
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

static void *ask(void *unused)
{
    struct cuwarden_prefetch now;
    int32_t stage;

    (void)unused;
    while (atomic_load(&at_work) != 0) {
        cr_assert_eq(cw_api_prefetch_now(prefetch, &now, sizeof(now)), CUWARDEN_OK);
        cr_assert(now.arrived + now.failed <= now.started);
        (void)cw_api_prefetch_stage(prefetch, 0, &stage);
    }
    return NULL;
}

static void setup(void)
{
    FILE *file;

    core_arm();
    cw_api_prefetches_init(&transfer_places, &transfer_ops, &memory_ops, thread);
    cw_api_init(core_options());
    for (uint64_t i = 0; i < BYTES; i++)
        content[i] = (unsigned char)(i * 7 + i / 256);
    snprintf(path, sizeof(path), "prefetches_race.%d", (int)getpid());
    file = fopen(path, "w");
    cr_assert(file != NULL && fwrite(content, 1, BYTES, file) == BYTES && fclose(file) == 0);
    cr_assert_eq(cw_api_prefetch_make("weights", CHUNK, &prefetch), CUWARDEN_OK);
}

static void teardown(void)
{
    unlink(path);
}

TestSuite(prefetches_race, .init = setup, .fini = teardown);

Test(prefetches_race, all_come_whole_and_none_to_what_is_freed)
{
    pthread_t threads[4];
    struct cuwarden_prefetch now;

    pthread_create(&threads[0], NULL, bring, blocks[0]);
    pthread_create(&threads[1], NULL, bring, blocks[1]);
    pthread_create(&threads[2], NULL, bring_and_free, blocks[2]);
    pthread_create(&threads[3], NULL, ask, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(atomic_load(&was_late), 0);
    cr_assert_eq(cw_api_prefetch_now(prefetch, &now, sizeof(now)), CUWARDEN_OK);
    cr_expect_eq(now.started, 3 * FILES);
    cr_expect_eq(now.arrived + now.failed, 3 * FILES);
    cr_expect_eq(cw_api_prefetch_end(prefetch), CUWARDEN_OK);
}

/* Each has a path of a megabyte, which it keeps until its place is used again. */
Test(prefetches_race, many_in_a_row_leave_nothing_behind)
{
    static char long_path[1 << 20];
    struct rusage before, after;

    memset(long_path, 'x', sizeof(long_path) - 1);
    for (uint64_t i = 1; i <= 64; i++) {
        getrusage(RUSAGE_SELF, i <= 16 ? &before : &after);
        cr_assert_eq(cw_api_prefetch_start(prefetch, long_path, -1, 0, 1, blocks[0],
                                           CUWARDEN_NO_STREAM, NULL),
                     CUWARDEN_OK);
        cr_assert_eq(cw_api_prefetch_wait(prefetch, i, NULL), CUWARDEN_SYSTEM);
    }
    cr_expect_lt(after.ru_maxrss, before.ru_maxrss + (24 << 10));
}
