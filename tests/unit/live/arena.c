/* SPDX-License-Identifier: MIT */
/* The arena: growth over chunks, texts, refusal when full, and creation where space is scarce. */
#include "live/arena.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fake_driver.h"

#define MIB ((size_t)1 << 20)

static struct cw_arena arena;

static void create(size_t reserve)
{
    cr_assert_eq(cw_arena_create(&arena, reserve), 0);
}

static struct cw_live_table *table_at(enum cw_table which)
{
    return &arena.header->table[which];
}

/* Appends a record full of `byte` and returns where it lies; NULL when the arena is full. */
static unsigned char *append_filled(enum cw_table which, int byte, uint32_t *out_index)
{
    unsigned char *record;

    *out_index = cw_arena_append(&arena, which);
    if (*out_index == 0)
        return NULL;
    record = cw_arena_at(&arena, which, *out_index);
    memset(record, byte, table_at(which)->elem_size);
    return record;
}

static int is_filled(const void *record, int byte, size_t size)
{
    const unsigned char *bytes = record;

    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (unsigned char)byte)
            return 0;
    return 1;
}

Test(arena, a_new_one_is_an_empty_layout)
{
    struct cw_view view;

    create(64 * MIB);
    cr_expect_eq(arena.header->magic, CW_LIVE_MAGIC);
    cr_expect_eq(arena.header->version, (uint32_t)CW_LIVE_VERSION);
    cr_expect_eq(arena.header->header_size, sizeof(struct cw_live_header));
    cr_expect_eq(arena.header->size, sizeof(struct cw_live_header));
    cw_arena_view(&arena, &view);
    cr_assert_eq(cw_view_open(&view, view.base, view.size), 0);
    for (int i = 0; i < CW_TABLE_COUNT; i++)
        cr_expect_eq(cw_view_count(&view, i), 1u);
}

Test(arena, the_first_index_of_every_table_is_one)
{
    create(64 * MIB);
    for (int i = 0; i < CW_TABLE_COUNT; i++)
        cr_expect_eq(cw_arena_append(&arena, i), 1u);
    for (int i = 0; i < CW_TABLE_COUNT; i++)
        cr_expect_eq(cw_arena_append(&arena, i), 2u);
}

Test(arena, records_start_zeroed_and_never_move)
{
    enum { COUNT = 20000 };
    static unsigned char *where[CW_TABLE_COUNT][COUNT];

    create((size_t)1 << 30);
    for (uint32_t i = 1; i < COUNT; i++)
        for (int which = CW_TABLE_MODULE; which < CW_TABLE_COUNT; which++) {
            uint32_t index = cw_arena_append(&arena, which);

            cr_assert_eq(index, i);
            where[which][i] = cw_arena_at(&arena, which, index);
            cr_assert(is_filled(where[which][i], 0, table_at(which)->elem_size));
            memset(where[which][i], (int)(i * 7 + (unsigned)which), table_at(which)->elem_size);
        }
    for (int which = CW_TABLE_MODULE; which < CW_TABLE_COUNT; which++) {
        cr_expect_gt(table_at(which)->chunks, 2u);
        for (uint32_t i = 1; i < COUNT; i++) {
            cr_assert_eq(where[which][i], cw_arena_at(&arena, which, i));
            cr_assert(is_filled(where[which][i], (int)(i * 7 + (unsigned)which),
                                table_at(which)->elem_size));
        }
    }
}

Test(arena, a_view_sees_the_same_records)
{
    struct cw_view view;
    uint32_t index;

    create(256 * MIB);
    for (int i = 0; i < 20000; i++)
        append_filled(CW_TABLE_BLOCK, i, &index);
    cw_arena_view(&arena, &view);
    cr_assert_eq(cw_view_count(&view, CW_TABLE_BLOCK), 20001u);
    for (uint32_t i = 1; i <= 20000; i++)
        cr_assert_eq((const void *)cw_view_block(&view, i), cw_arena_at(&arena, CW_TABLE_BLOCK, i));
    cr_expect_null(cw_view_block(&view, 20001));
}

Test(arena, chunks_are_aligned_lie_inside_and_do_not_overlap)
{
    uint64_t ends[CW_TABLE_COUNT * CW_CHUNKS], starts[CW_TABLE_COUNT * CW_CHUNKS];
    unsigned count = 0;
    uint32_t index;

    create((size_t)1 << 30);
    for (int i = 0; i < 30000; i++)
        for (int which = 0; which < CW_TABLE_COUNT; which++)
            append_filled(which, 1, &index);
    for (int which = 0; which < CW_TABLE_COUNT; which++) {
        const struct cw_live_table *table = table_at(which);

        for (unsigned k = 0; k < table->chunks; k++, count++) {
            starts[count] = table->chunk[k];
            ends[count] = starts[count] + ((uint64_t)table->first << k) * table->elem_size;
            cr_expect_eq(starts[count] % 64, 0u);
            cr_expect_geq(starts[count], sizeof(struct cw_live_header));
            cr_expect_leq(ends[count], (uint64_t)arena.header->size);
        }
    }
    cr_expect_leq((uint64_t)arena.header->size, (uint64_t)arena.committed);
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < i; j++)
            cr_expect(ends[i] <= starts[j] || ends[j] <= starts[i]);
}

/* ---- texts ---- */

static unsigned chunk_of_text(uint32_t index)
{
    const struct cw_live_table *table = table_at(CW_TABLE_TEXT);
    uint64_t at =
        (uint64_t)((char *)cw_arena_at(&arena, CW_TABLE_TEXT, index) - (char *)arena.header);

    for (unsigned k = 0; k < table->chunks; k++)
        if (at >= table->chunk[k] && at < table->chunk[k] + ((uint64_t)table->first << k))
            return k;
    cr_assert_fail("text %u lies in no chunk", index);
    return 0;
}

Test(arena, texts_read_back_and_never_cross_a_chunk)
{
    enum { COUNT = 400 };
    static char text[COUNT][6000];
    uint32_t index[COUNT];
    uint64_t seed = 4;
    struct cw_view view;

    create(256 * MIB);
    for (int i = 0; i < COUNT; i++) {
        size_t len = next_random(&seed) % (sizeof(text[i]) - 1);

        memset(text[i], 'a' + i % 26, len);
        index[i] = cw_arena_text(&arena, text[i], len);
        cr_assert_neq(index[i], 0u);
        cr_assert_eq(chunk_of_text(index[i]), chunk_of_text(index[i] + (uint32_t)len));
    }
    cr_expect_gt(table_at(CW_TABLE_TEXT)->chunks, 2u);
    cw_arena_view(&arena, &view);
    for (int i = 0; i < COUNT; i++)
        cr_assert_str_eq(cw_view_text(&view, index[i]), text[i]);
}

Test(arena, an_empty_text_is_a_text)
{
    struct cw_view view;
    uint32_t empty, next;

    create(64 * MIB);
    empty = cw_arena_text(&arena, "", 0);
    next = cw_arena_text(&arena, "x", 1);
    cr_expect_neq(empty, 0u);
    cr_expect_eq(next, empty + 1);
    cw_arena_view(&arena, &view);
    cr_expect_str_eq(cw_view_text(&view, empty), "");
    cr_expect_str_eq(cw_view_text(&view, next), "x");
}

Test(arena, a_text_longer_than_the_first_chunk_finds_a_larger_one)
{
    enum { LEN = 300000 };
    char *text = calloc(1, LEN + 1);
    struct cw_view view;
    uint32_t before, index, after;

    cr_assert_not_null(text);
    memset(text, 'l', LEN);
    create(64 * MIB);
    before = cw_arena_text(&arena, "before", 6);
    index = cw_arena_text(&arena, text, LEN);
    after = cw_arena_text(&arena, "after", 5);
    cw_arena_view(&arena, &view);
    cr_expect_str_eq(cw_view_text(&view, before), "before");
    cr_expect_str_eq(cw_view_text(&view, index), text);
    cr_expect_str_eq(cw_view_text(&view, after), "after");
    free(text);
}

/* ---- the end of the space ---- */

Test(arena, refuses_when_the_reservation_is_full_and_keeps_what_it_has)
{
    unsigned blocks = 0, events = 0;
    uint32_t index, text;
    struct cw_view view;

    create(16 * MIB);
    text = cw_arena_text(&arena, "still here", 10);
    while (append_filled(CW_TABLE_BLOCK, (int)blocks, &index) != NULL)
        blocks++;
    cr_expect_gt(blocks, 50000u);
    cr_expect_eq(cw_arena_append(&arena, CW_TABLE_BLOCK), 0u);
    cr_expect_eq(cw_arena_append(&arena, CW_TABLE_BLOCK), 0u);
    while (append_filled(CW_TABLE_EVENT, (int)events, &index) != NULL)
        events++;
    cr_expect_gt(events, 64u);
    while (cw_arena_text(&arena, "0123456789", 10) != 0)
        ;
    cr_expect_leq((size_t)arena.committed, arena.reserved);
    cr_expect_leq((uint64_t)arena.header->size, (uint64_t)arena.committed);

    cw_arena_view(&arena, &view);
    cr_expect_eq(cw_view_count(&view, CW_TABLE_BLOCK), blocks + 1);
    for (uint32_t i = 1; i <= blocks; i++)
        cr_assert(is_filled(cw_view_block(&view, i), (int)i - 1, sizeof(struct cw_live_block)));
    for (uint32_t i = 1; i <= events; i++)
        cr_assert(is_filled(cw_view_event(&view, i), (int)i - 1, sizeof(struct cw_live_event)));
    cr_expect_str_eq(cw_view_text(&view, text), "still here");
}

Test(arena, a_text_that_does_not_fit_takes_nothing)
{
    static char huge[20 << 20];
    uint32_t before, index;

    create(16 * MIB);
    memset(huge, 'h', sizeof(huge) - 1);
    before = cw_arena_text(&arena, "a", 1);
    cr_expect_eq(cw_arena_text(&arena, huge, sizeof(huge) - 1), 0u);
    index = cw_arena_text(&arena, "b", 1);
    cr_expect_eq(index, before + 2);
}

Test(arena, a_text_in_a_file_is_read_from_private_memory)
{
    char directory[] = "/tmp/cuwarden-unit-XXXXXX", line[64];
    struct cw_live_dir place = {.directory = directory};
    struct cw_view view;
    uint32_t text;

    cr_assert_not_null(mkdtemp(directory));
    create(64 * MIB);
    cr_assert_eq(cw_arena_back(&arena, &place), 0);
    cr_expect_str_eq(cw_arena_text_at(&arena, 1), "");
    text = cw_arena_text(&arena, "private", 7);
    cw_arena_view(&arena, &view);
    cr_expect_str_eq(cw_view_text(&view, text), "private");
    memset((char *)(uintptr_t)cw_view_text(&view, text) - arena.own, 'x', 8); /* as in the file */
    cr_expect_str_eq(cw_view_text(&view, text), "private");
    cr_expect_str_eq(cw_arena_text_at(&arena, text), "private");
    cr_expect_str_eq(cw_arena_text_at(&arena, 0), "");
    cr_expect_str_eq(cw_arena_text_at(&arena, text + 8), "");
    cr_expect_str_eq(cw_arena_text_at(&arena, UINT32_MAX), "");
    cw_backing_remove(&arena.backing);
    snprintf(line, sizeof(line), "rm -rf %s", directory);
    cr_expect_eq(system(line), 0);
}

/* A sanitizer's own shadow needs more address space than any limit that means something here. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_LIMIT false
#else
#define CAN_LIMIT true
#endif

/* Leaves the process `spare` bytes of address space beyond what it has. */
static void limit_address_space(size_t spare)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    struct rlimit limit;

    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    limit.rlim_cur = limit.rlim_max = pages * (size_t)sysconf(_SC_PAGESIZE) + spare;
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
}

Test(arena, a_small_address_space_halves_the_reservation, .disabled = !CAN_LIMIT)
{
    uint32_t index;

    limit_address_space(100 * MIB);
    create((size_t)16 << 30);
    cr_expect_eq(arena.reserved, 64 * MIB);
    for (int i = 0; i < 100000; i++)
        cr_assert_not_null(append_filled(CW_TABLE_BLOCK, i, &index));
}

Test(arena, is_not_created_below_16_mib, .disabled = !CAN_LIMIT)
{
    limit_address_space(12 * MIB);
    errno = 0;
    cr_expect_eq(cw_arena_create(&arena, (size_t)16 << 30), -1);
    cr_expect_eq(errno, ENOMEM);
}

Test(arena, a_destroyed_one_shows_nothing)
{
    struct cw_view view;

    create(16 * MIB);
    cw_arena_destroy(&arena);
    cw_arena_destroy(&arena);
    cw_arena_view(&arena, &view);
    cr_expect_eq(view.size, 0u);
    cr_expect_eq(cw_view_open(&view, view.base, view.size), -1);
}

/* ---- a file that others write over ---- */

Test(arena, what_stacks_sites_tags_and_the_process_are_is_read_from_private_memory)
{
    struct cw_live_dir place = {.directory = "/tmp"};
    struct cw_live_header *self;
    struct cw_live_site *shown, *site;
    struct cw_live_tag *tag;
    struct cw_live_frame *frame;
    struct cw_arena_copy copy;
    struct cw_view view;
    uint32_t text;

    create(64 * MIB);
    cr_assert_eq(cw_arena_back(&arena, &place), 0);
    cw_backing_remove(&arena.backing);
    self = cw_arena_own(&arena, arena.header);
    self->pid = 4;
    text = cw_arena_text(&arena, "name", 4);
    frame = cw_arena_at(&arena, CW_TABLE_FRAME, cw_arena_append(&arena, CW_TABLE_FRAME));
    frame->pc = 7;
    cw_arena_show(&arena, frame, sizeof(*frame));
    shown = cw_arena_at(&arena, CW_TABLE_SITE, cw_arena_append(&arena, CW_TABLE_SITE));
    site = cw_arena_own(&arena, shown);
    *site = (struct cw_live_site){.stack = 1, .api = text, .device = 3, .tag = 1};
    tag = cw_arena_at(&arena, CW_TABLE_TAG, cw_arena_append(&arena, CW_TABLE_TAG));
    ((struct cw_live_tag *)cw_arena_own(&arena, tag))->name = text;
    memset(arena.header, 0, arena.committed);
    shown->allocs = 5;

    cw_arena_view(&arena, &view);
    cr_expect_eq(view.self->pid, 4u);
    cr_expect_str_eq(cw_view_text(&view, text), "name");
    cr_expect_eq(cw_view_frame(&view, 1)->pc, 7u);
    cr_assert_eq(cw_arena_copy_begin(&arena, &copy), 0);
    memset(arena.header, 'A', arena.committed);
    cr_expect_eq(copy.view.self->pid, 4u);
    cr_expect_str_eq(cw_view_text(&copy.view, text), "name");
    cr_expect_eq(cw_view_frame(&copy.view, 1)->pc, 7u);
    cr_expect_eq(cw_view_tag(&copy.view, 1)->name, text);
    shown = (struct cw_live_site *)cw_view_site(&copy.view, 1);
    cr_expect(shown->stack == 1 && shown->api == text && shown->device == 3 && shown->tag == 1);
    cr_expect_eq(shown->allocs, 5u, "counters are in the file alone");
    cw_arena_copy_end(&copy);
}

/* ---- many threads ---- */

#define THREADS    8
#define PER_THREAD 20000

static _Atomic uint8_t seen[THREADS * PER_THREAD + 1];
static _Atomic unsigned wrong;

static void append_many(unsigned id)
{
    char name[32];

    for (unsigned i = 0; i < PER_THREAD; i++) {
        uint32_t index = cw_arena_append(&arena, CW_TABLE_FRAME);
        struct cw_live_frame *frame;

        if (index == 0 || index > THREADS * PER_THREAD || seen[index]++ != 0) {
            wrong++;
            continue;
        }
        frame = cw_arena_at(&arena, CW_TABLE_FRAME, index);
        wrong += frame->pc != 0;
        frame->pc = (uint64_t)id << 32 | i;
        if (i % 64 == 0) {
            snprintf(name, sizeof(name), "thread %u", id);
            frame->parent = cw_arena_text(&arena, name, strlen(name));
        }
    }
}

Test(arena, eight_threads_get_records_of_their_own)
{
    struct cw_view view;

    create(256 * MIB);
    run_threads(THREADS, append_many);
    cr_expect_eq(wrong, 0u);
    cw_arena_view(&arena, &view);
    cr_assert_eq(cw_view_count(&view, CW_TABLE_FRAME), (unsigned)THREADS * PER_THREAD + 1);
    for (uint32_t i = 1; i <= THREADS * PER_THREAD; i++) {
        const struct cw_live_frame *frame = cw_view_frame(&view, i);
        char name[32];

        if ((uint32_t)frame->pc % 64 != 0)
            continue;
        snprintf(name, sizeof(name), "thread %u", (unsigned)(frame->pc >> 32));
        cr_assert_str_eq(cw_view_text(&view, frame->parent), name);
    }
}
