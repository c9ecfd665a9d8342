/* SPDX-License-Identifier: MIT */
/*
 * Reading the live file while threads write it: no record that mixes two owners of a block is taken
 * for true, neither by another process nor by a thread of this one. What a block is follows from
 * its key, so a mixture is seen as one. CHECK_LONG=N in the environment looks N times as often.
 */
#include "live/live_copy.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "fake_driver.h"

#define WRITERS  4
#define KEPT     64 /* blocks that each of them has at most */
#define LOOKS    300
#define APIS     4
#define NOT_OPEN 200

static char scratch[64];
static _Atomic int is_over;

static unsigned looks(void)
{
    const char *factor = getenv("CHECK_LONG");

    return LOOKS * (factor != NULL && atoi(factor) > 0 ? (unsigned)atoi(factor) : 1);
}

/* ---- what a block is ---- */

static uint64_t bytes_of(uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> 52;
}

static const char *const apis[APIS] = {"zero", "one", "two", "three"};
static uint32_t texts[APIS];

static const char *api_of(uint64_t key)
{
    return apis[bytes_of(key) % APIS];
}

static uint8_t device_of(uint64_t key)
{
    return bytes_of(key) / APIS % 2;
}

static void take(uint64_t key)
{
    uint32_t site = cw_site_here(texts[bytes_of(key) % APIS], CW_KIND_DEVICE, device_of(key));

    cr_assert_neq(core_put(site, key, bytes_of(key)), 0u);
}

static void give(uint64_t key)
{
    uint32_t block = cw_tracker_take(CW_SPACE_ADDRESS, key);

    cr_assert_neq(block, 0u);
    cw_tracker_finish(block, CW_FREE_DONE);
}

static void setup(void)
{
    strcpy(scratch, "/tmp/cuwarden-unit-XXXXXX");
    cr_assert_not_null(mkdtemp(scratch));
    strcpy(core_options()->live, scratch);
    core_arm();
    for (unsigned i = 0; i < APIS; i++)
        texts[i] = cw_site_text(apis[i]);
}

static void teardown(void)
{
    cw_session.arena.backing.stays = 0;
    cw_session_reported();
    cr_expect_eq(rmdir(scratch), 0);
}

TestSuite(torn, .init = setup, .fini = teardown);

/* Until it is over. A record that is given back is the next one that is taken. */
static void write_blocks(unsigned id)
{
    uint64_t first = (uint64_t)(id + 1) << 40, next = first, state = id;

    while (!atomic_load(&is_over)) {
        if (next - first < KEPT || next_random(&state) % 2) {
            if (next - first == KEPT)
                give(first++);
            take(next++);
        } else {
            give(first++);
        }
    }
}

/* ---- reading ---- */

/* 1 if the block is none, or what its key says. */
static int is_whole(const struct cw_view *view, const struct cw_live_block *block)
{
    uint64_t key = block->key;
    const struct cw_live_site *site = cw_view_site(view, block->site);

    if (block->state != CW_BLOCK_LIVE || site == NULL)
        return 1; /* a site that came after the header was read is left out of a report */
    return block->bytes == bytes_of(key) && block->held == bytes_of(key) &&
           site->device == device_of(key) &&
           strcmp(cw_view_text(view, site->api), api_of(key)) == 0;
}

static unsigned count_torn(const struct cw_view *view, uint64_t *seen)
{
    uint32_t count = cw_view_count(view, CW_TABLE_BLOCK);
    unsigned torn = 0;

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_block *block = cw_view_block(view, i);

        torn += block == NULL || !is_whole(view, block);
        *seen += block != NULL && block->state == CW_BLOCK_LIVE;
    }
    return torn;
}

/* Torn records in one copy of the file, at most 100; NOT_OPEN: it cannot be read. */
static unsigned look(const char *path, uint64_t *seen)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct cw_live_copy image;
    char why[256];
    unsigned torn = NOT_OPEN;

    if (fd >= 0 && cw_live_copy_read(fd, &image, why, sizeof(why)) == 0) {
        torn = count_torn(&image.view, seen);
        torn = torn > 100 ? 100 : torn;
        torn = image.is_locked == 1 ? torn : NOT_OPEN;
        cw_live_copy_free(&image);
    }
    if (fd >= 0)
        close(fd);
    return torn;
}

/* The number of torn records, or NOT_OPEN, as a process' exit status. */
static unsigned look_often(void)
{
    uint64_t seen = 0;
    unsigned sum = 0;

    for (unsigned i = 0; (i < looks() || seen == 0) && sum < 100; i++)
        sum += look(cw_session.arena.backing.path, &seen);
    return sum;
}

static unsigned found;

static void write_or_look(unsigned id)
{
    if (id < WRITERS) {
        write_blocks(id);
        return;
    }
    found = look_often();
    atomic_store(&is_over, 1);
}

Test(torn, a_thread_that_reads_the_file_sees_whole_records)
{
    run_threads(WRITERS + 1, write_or_look);
    cr_expect_eq(found, 0u, "%u", found);
}

static pid_t other;

static void write_or_wait(unsigned id)
{
    int status;

    if (id < WRITERS) {
        write_blocks(id);
        return;
    }
    found = waitpid(other, &status, 0) == other ? (unsigned)status : NOT_OPEN;
    atomic_store(&is_over, 1);
}

Test(torn, a_process_that_reads_the_file_sees_whole_records)
{
    other = fork();
    if (other == 0)
        _exit((int)look_often());
    run_threads(WRITERS + 1, write_or_wait);
    cr_expect_eq(found, 0u, "%u", found >> 8);
}
