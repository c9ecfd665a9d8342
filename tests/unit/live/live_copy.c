/* SPDX-License-Identifier: MIT */
/* Copies of live files that nobody vouches for: what is wrong is said, and nothing crashes. */
#include "live/live_copy.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "fake_driver.h"
#include "live_fixture.h"
#include "report/report.h"

#define CASES 10000

static char *bytes; /* of a sound file */
static size_t size;
static int file, nowhere;
static char why[256];

static void fill(void)
{
    uint32_t module = fixture_own_module(), stack = 0, site = 0;

    for (int i = 0; i < 6; i++) {
        stack = fixture_frame(stack, module, (uint64_t)i * 16);
        site = fixture_site(stack, "cuMemAlloc", CW_KIND_DEVICE, (unsigned)(i % 2));
        fixture_alloc(site, 4096, 100, FIXTURE_MS);
        fixture_free(site, 4096, 10);
        fixture_event(CW_EVENT_INVALID_FREE, site, 1);
    }
    for (unsigned i = 0; i < 2; i++)
        fixture_device(i, "Fake");
    fixture_bucket(0, CW_KIND_DEVICE, 4096)->hits = 3;
    fixture_scarce(1, site);
}

static void setup(void)
{
    fixture_create();
    fill();
    size = fixture.arena.header->size;
    bytes = malloc(size);
    memcpy(bytes, fixture.arena.header, size);
    file = memfd_create("live", 0);
    nowhere = open("/dev/null", O_WRONLY);
}

TestSuite(image, .init = setup);

static void store(size_t len)
{
    cr_assert_eq(pwrite(file, bytes, len, 0), (ssize_t)len);
    cr_assert_eq(ftruncate(file, (off_t)len), 0);
}

static int read_bytes(struct cw_live_copy *image, size_t len)
{
    store(len);
    why[0] = '\0';
    return cw_live_copy_read(file, image, why, sizeof(why));
}

static struct cw_live_header *header(void)
{
    return (struct cw_live_header *)bytes;
}

static void expect_refused(size_t len, const char *words)
{
    struct cw_live_copy image;

    cr_expect_eq(read_bytes(&image, len), -1, "%s", words);
    cr_expect(strstr(why, words), "\"%s\" and not \"%s\"", why, words);
    cr_expect_null(image.memory);
}

static void write_report(const struct cw_live_copy *image, enum cw_report_form form)
{
    struct cw_report_request request = {
        .form = form, .process = CW_REPORT_PROCESS_DEAD, .fd = nowhere};

    cr_assert_eq(cw_report_write(&image->view, &request), 0);
}

Test(image, of_a_sound_file_has_what_is_in_it)
{
    struct cw_live_copy image;

    cr_assert_eq(read_bytes(&image, size), 0, "%s", why);
    cr_expect_eq(memcmp(image.memory, bytes, size), 0);
    cr_expect_eq(image.is_locked, 0);
    cr_expect_eq(cw_view_count(&image.view, CW_TABLE_SITE),
                 atomic_load(&fixture.arena.header->table[CW_TABLE_SITE].count));
    cw_live_copy_free(&image);
}

Test(image, says_what_is_wrong_with_a_file)
{
    expect_refused(0, "is empty");
    expect_refused(7, "is not a cuwarden live file");
    expect_refused(1000, "is cut off");
    header()->magic ^= 1;
    expect_refused(size, "is not a cuwarden live file");
    header()->magic ^= 1;
    header()->version++;
    expect_refused(size, "a newer cuwarden (layout");
    header()->version -= 2;
    expect_refused(size, "an older cuwarden (layout");
    header()->version++;
    header()->header_size = 8;
    expect_refused(size, "is damaged");
}

Test(image, of_a_file_without_its_end_is_refused)
{
    uint64_t site = header()->table[CW_TABLE_SITE].chunk[0];

    expect_refused(sizeof(struct cw_live_header), "is cut off");
    expect_refused(site + 200, "is cut off");
    header()->cut = 1; /* it never had an end */
    expect_refused(0, "is empty");
    cr_expect_eq(read_bytes(&(struct cw_live_copy){.memory = NULL}, site + 200), 0, "%s", why);
}

Test(image, of_what_is_no_file_is_refused)
{
    struct cw_live_copy image;

    cr_expect_eq(cw_live_copy_read(nowhere, &image, why, sizeof(why)), -1);
    cr_expect_str_eq(why, "is not a regular file");
}

Test(image, holes_read_as_zeros)
{
    struct cw_live_copy image;
    uint32_t far = (uint32_t)header()->table[CW_TABLE_TEXT].first;

    header()->size = size + (64 << 20);
    header()->table[CW_TABLE_TEXT].chunk[1] = size + (32 << 20);
    header()->table[CW_TABLE_TEXT].count = far + 2;
    header()->table[CW_TABLE_TEXT].chunks = 2;
    store(size);
    cr_assert_eq(ftruncate(file, (off_t)size + (33 << 20)), 0);
    cr_assert_eq(cw_live_copy_read(file, &image, why, sizeof(why)), 0, "%s", why);
    cr_expect_str_eq(cw_view_text(&image.view, far + 1), "");
    cr_expect_eq(memcmp((char *)image.memory + sizeof(struct cw_live_header),
                        bytes + sizeof(struct cw_live_header),
                        size - sizeof(struct cw_live_header)),
                 0);
    cw_live_copy_free(&image);
}

Test(image, of_a_file_that_is_nothing_but_holes_is_refused)
{
    struct cw_live_copy image;

    store(size);
    cr_assert_eq(ftruncate(file, (off_t)15 << 30), 0);
    cr_expect_eq(cw_live_copy_read(file, &image, why, sizeof(why)), -1);
    cr_expect(strstr(why, "is damaged: it is 15360 MiB long, and has "), "%s", why);
}

static void read_all(const struct cw_view *view)
{
    volatile unsigned char sink;

    for (int table = 0; table < CW_TABLE_COUNT; table++)
        for (uint32_t i = 1; i < cw_view_count(view, table); i += table == CW_TABLE_TEXT ? 64 : 1) {
            const unsigned char *record = cw_view_at(view, table, i);

            if (record != NULL)
                sink = record[cw_view_header(view)->table[table].elem_size - 1];
            cr_assert_not_null(cw_view_text(view, i));
        }
    (void)sink;
}

/* ---- damage at random, the same in each run ---- */

/* Where it hurts: the header's tables, the used beginnings of chunks, anywhere. */
static size_t place_to_damage(uint64_t *seed)
{
    unsigned table = (unsigned)(next_random(seed) % CW_TABLE_COUNT);
    uint64_t start = fixture.arena.header->table[table].chunk[0];

    switch (next_random(seed) % 4) {
    case 0:
        return offsetof(struct cw_live_header, table) + next_random(seed) % sizeof(header()->table);
    case 1:
        return next_random(seed) % sizeof(struct cw_live_header);
    case 2:
        return start + next_random(seed) % 2048;
    default:
        return next_random(seed) % size;
    }
}

static void damage(uint64_t *seed)
{
    static const uint64_t values[] = {0, 1, 0xff, 0x7fffffff, 0x80000000, UINT32_MAX, UINT64_MAX};
    size_t at = place_to_damage(seed);
    uint64_t value = values[next_random(seed) % CW_ARRAY_LEN(values)];

    if (next_random(seed) % 2 == 0)
        bytes[at % size] ^= (char)(1 << next_random(seed) % 8);
    else if ((at & ~(size_t)7) + 8 <= size)
        memcpy(bytes + (at & ~(size_t)7), &value, next_random(seed) % 2 ? 8 : 4);
}

Test(image, damage_is_refused_or_read_past)
{
    unsigned reported = 0;
    uint64_t seed = 5;

    for (int i = 0; i < CASES; i++) {
        size_t len = next_random(&seed) % 8 ? size : next_random(&seed) % size;
        struct cw_live_copy image;

        memcpy(bytes, fixture.arena.header, size);
        for (uint64_t n = next_random(&seed) % 6; n > 0; n--)
            damage(&seed);
        if (read_bytes(&image, len) != 0) {
            cr_assert_neq(why[0], '\0');
            continue;
        }
        read_all(&image.view);
        if (i % 4 < 2) /* they take most of the time */
            write_report(&image, i % 4 ? CW_REPORT_TEXT : CW_REPORT_JSON);
        cw_live_copy_free(&image);
        reported++;
    }
    cr_expect_gt(reported, (unsigned)CASES / 4);
}

/* ---- a process that runs ---- */

static _Atomic int is_over;

static void *change_a_block(void *block)
{
    while (!atomic_load(&is_over))
        atomic_fetch_add(&((struct cw_live_block *)block)->bytes, 1);
    return NULL;
}

static uint32_t last; /* changes all the time; the one before it does not */

static struct cw_live_block *add_block(void)
{
    struct cw_live_block *block;

    last = cw_arena_append(&fixture.arena, CW_TABLE_BLOCK);
    block = cw_arena_at(&fixture.arena, CW_TABLE_BLOCK, last);
    block->state = CW_BLOCK_LIVE;
    return block;
}

static void look_at_two_blocks(uint32_t *changing, uint32_t *still)
{
    struct cw_live_copy image;

    cr_assert_eq(cw_live_copy_read(file, &image, why, sizeof(why)), 0, "%s", why);
    *still = cw_view_block(&image.view, last - 1)->state;
    *changing = cw_view_block(&image.view, last)->state;
    cw_live_copy_free(&image);
}

Test(image, a_block_that_changes_while_it_is_copied_is_nobodys)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    uint32_t changing = CW_BLOCK_LIVE, still;
    char path[64], *shared, *block;
    pthread_t thread;
    int owner;

    (void)add_block();
    block = (char *)add_block();
    size = fixture.arena.header->size;
    bytes = (char *)fixture.arena.header;
    store(size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    owner = open(path, O_RDWR);
    cr_assert_eq(fcntl(owner, F_OFD_SETLK, &lock), 0);
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, owner, 0);
    pthread_create(&thread, NULL, change_a_block, shared + (block - bytes));
    while (changing == CW_BLOCK_LIVE) {
        look_at_two_blocks(&changing, &still);
        cr_assert_eq(still, (uint32_t)CW_BLOCK_LIVE);
    }
    cr_expect_eq(changing, (uint32_t)CW_BLOCK_LEAVING);
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
}
