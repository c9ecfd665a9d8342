/* SPDX-License-Identifier: MIT */
/* Reading a live layout that nobody vouches for: whatever does not fit reads as absent. */
#include "live/view.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_driver.h"
#include "base/compiler.h"
#include "live_fixture.h"

/* A layout of everything, copied to the end of a mapping: one byte too far is a crash. */
static char *bytes;
static size_t size;
static uint32_t last_text;

static void fill(void)
{
    uint32_t module = fixture_own_module(), stack = 0, site;

    for (int i = 0; i < 20; i++) {
        stack = fixture_frame(stack, module, (uint64_t)i * 16);
        site = fixture_site(stack, "cudaMalloc", (enum cw_kind)(i % CW_KIND_COUNT),
                            i % 3 ? (unsigned)(i % 3) : CW_DEVICE_HOST);
        fixture_alloc(site, 4096, 100, FIXTURE_MS);
        fixture_free(site, 4096, 10);
        fixture_event(CW_EVENT_OOM, site, 2);
    }
    cw_arena_append(&fixture.arena, CW_TABLE_CONTEXT);
    fixture_device(0, "Fake 0");
    last_text = fixture_text("last");
}

static void copy_to_the_end_of_a_mapping(const void *from, size_t len)
{
    size_t pages = (len + 4095) & ~(size_t)4095;
    char *base =
        mmap(NULL, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(base, MAP_FAILED);
    cr_assert_eq(mprotect(base + pages, 4096, PROT_NONE), 0);
    size = len;
    bytes = base + pages - len;
    memcpy(bytes, from, len);
}

static void setup(void)
{

    fixture_create();
    fill();
    copy_to_the_end_of_a_mapping(fixture.arena.header,
                                 ((size_t)fixture.arena.header->size + 15) & ~(size_t)15);
    fixture_destroy();
}

TestSuite(view, .init = setup);

static struct cw_live_header *header(void)
{
    return (struct cw_live_header *)bytes;
}

static struct cw_view open_view(void)
{
    struct cw_view view;

    cr_assert_eq(cw_view_open(&view, bytes, size), 0);
    return view;
}

Test(view, reads_a_sound_layout)
{
    struct cw_view view = open_view();

    cr_expect_eq(cw_view_count(&view, CW_TABLE_SITE), 21u);
    cr_expect_eq(cw_view_site(&view, 20)->stack, 20u);
    cr_expect_eq(cw_view_frame(&view, 20)->parent, 19u);
    cr_expect_str_eq(cw_view_text(&view, cw_view_site(&view, 1)->api), "cudaMalloc");
    cr_expect_str_eq(cw_view_text(&view, header()->host), "node7");
    cr_expect_str_eq(cw_view_text(&view, last_text), "last");
}

Test(view, does_not_open_what_is_no_layout)
{
    struct cw_view view;

    cr_expect_eq(cw_view_open(&view, NULL, size), -1);
    cr_expect_eq(cw_view_open(&view, bytes, 0), -1);
    cr_expect_eq(cw_view_open(&view, bytes, sizeof(struct cw_live_header) - 1), -1);
    header()->magic ^= 1;
    cr_expect_eq(cw_view_open(&view, bytes, size), -1);
    header()->magic ^= 1;
    header()->version++;
    cr_expect_eq(cw_view_open(&view, bytes, size), -1);
    header()->version--;
    header()->header_size--;
    cr_expect_eq(cw_view_open(&view, bytes, size), -1);
    header()->header_size = 0;
    cr_expect_eq(cw_view_open(&view, bytes, size), -1);
}

Test(view, opens_a_later_header_that_only_grew)
{
    struct cw_view view;

    header()->header_size += 64;
    cr_expect_eq(cw_view_open(&view, bytes, size), 0);
}

Test(view, has_nothing_behind_bad_indices)
{
    static const uint32_t bad[] = {0, 21, 22, 4096, 1u << 31, UINT32_MAX - 1, UINT32_MAX};
    struct cw_view view = open_view();

    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++)
        cr_expect_null(cw_view_site(&view, bad[i]), "%u", bad[i]);
    cr_expect_str_eq(cw_view_text(&view, 0), "");
    cr_expect_str_eq(cw_view_text(&view, UINT32_MAX), "");
    cr_expect_str_eq(cw_view_text(&view, header()->table[CW_TABLE_TEXT].count), "");
}

Test(view, a_table_of_a_strange_shape_is_absent)
{
    struct cw_view view = open_view();
    struct cw_live_table *table = &header()->table[CW_TABLE_SITE];
    static const uint32_t first[] = {0, 3, 255, UINT32_MAX};
    static const uint32_t elem_size[] = {0, 1, sizeof(struct cw_live_site) - 8, 4097, UINT32_MAX};
    uint32_t good_first = table->first, good_size = table->elem_size;

    for (size_t i = 0; i < CW_ARRAY_LEN(first); i++) {
        table->first = first[i];
        cr_expect_null(cw_view_site(&view, 1));
        cr_expect_eq(cw_view_count(&view, CW_TABLE_SITE), 1u);
    }
    table->first = good_first;
    for (size_t i = 0; i < CW_ARRAY_LEN(elem_size); i++) {
        table->elem_size = elem_size[i];
        cr_expect_null(cw_view_site(&view, 1));
        cr_expect_eq(cw_view_count(&view, CW_TABLE_SITE), 1u);
    }
    table->elem_size = good_size;
    cr_expect_not_null(cw_view_site(&view, 1));
}

Test(view, a_chunk_that_does_not_lie_inside_is_absent)
{
    struct cw_view view = open_view();
    struct cw_live_table *table = &header()->table[CW_TABLE_SITE];
    uint64_t len = (uint64_t)table->first * table->elem_size, good = table->chunk[0];
    const uint64_t bad[] = {0,
                            64,
                            sizeof(struct cw_live_header) - 8,
                            size - len + 8,
                            size,
                            size + 4096,
                            UINT64_MAX & ~(uint64_t)7,
                            UINT64_MAX - 7,
                            good + 4,
                            good + 1,
                            (uint64_t)1 << 63};

    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++) {
        table->chunk[0] = bad[i];
        cr_expect_null(cw_view_site(&view, 1), "offset %#llx", (unsigned long long)bad[i]);
    }
    table->chunk[0] = (size - len) & ~(uint64_t)7;
    cr_expect_not_null(cw_view_site(&view, 1));
}

Test(view, a_count_beyond_the_bytes_is_none)
{
    struct cw_view view = open_view();

    header()->table[CW_TABLE_BLOCK].count = UINT32_MAX;
    cr_expect_eq(cw_view_count(&view, CW_TABLE_BLOCK), 1u);
    header()->table[CW_TABLE_BLOCK].count = 0;
    cr_expect_eq(cw_view_count(&view, CW_TABLE_BLOCK), 1u);
}

Test(view, a_text_without_an_end_is_empty)
{
    struct cw_view view = open_view();
    struct cw_live_table *table = &header()->table[CW_TABLE_TEXT];

    memset(bytes + table->chunk[0], 'x', table->first);
    cr_expect_str_eq(cw_view_text(&view, 1), "");
    cr_expect_str_eq(cw_view_text(&view, last_text), "");
    bytes[table->chunk[0] + table->first - 1] = '\0';
    cr_expect_eq(cw_view_text(&view, 1)[0], 'x');
}

/* ---- damage ---- */

static volatile uint64_t sink;

static void touch(const void *record, size_t len)
{
    const unsigned char *at = record;
    uint64_t sum = 0;

    for (size_t i = 0; record != NULL && i < len; i++)
        sum += at[i];
    sink += sum;
}

/* What a reader does: every record of every table, every text that one names, every sum. */
static void walk(const struct cw_view *view)
{
    static const size_t record_size[CW_TABLE_COUNT] = {
        1,
        sizeof(struct cw_live_module),
        sizeof(struct cw_live_frame),
        sizeof(struct cw_live_site),
        sizeof(struct cw_live_block),
        sizeof(struct cw_live_context),
        sizeof(struct cw_live_event),
    };

    for (int which = 0; which < CW_TABLE_COUNT; which++) {
        uint32_t count = cw_view_count(view, which);

        for (uint32_t i = 1; i < count && i < 4000; i++)
            touch(cw_view_at(view, which, i), record_size[which]);
        touch(cw_view_at(view, which, count - 1), record_size[which]);
    }
    for (uint32_t i = 0; i < cw_view_count(view, CW_TABLE_SITE) && i < 300; i++) {
        const struct cw_live_site *site = cw_view_site(view, i);
        struct cw_site_sums sums;
        uint64_t blocks, held;

        if (site == NULL)
            continue;
        cw_view_site_sums(site, &sums);
        cw_view_site_at_peak(view, site, &blocks, &held);
        sink += strlen(cw_view_text(view, site->api)) + strlen(cw_kind_name(site->kind)) +
                strlen(cw_kind_label(site->kind)) + (unsigned)cw_kind_counted(site->kind) + blocks;
    }
    for (uint32_t i = 0; i < 300; i++)
        sink += strlen(cw_view_text(view, i * 7));
    sink += strlen(cw_view_text(view, cw_view_header(view)->command));
}

static void walk_if_open(size_t len)
{
    struct cw_view view;

    if (cw_view_open(&view, bytes + (size - len), len) == 0)
        walk(&view);
}

/* Half of the damage goes where offsets, counts and shapes are. */
static size_t random_place(uint64_t *seed)
{
    uint64_t random = next_random(seed);
    size_t tables = offsetof(struct cw_live_header, table);

    if (random % 2)
        return tables + (random >> 8) % sizeof(header()->table);
    return (random >> 8) % size;
}

Test(view, random_damage_never_crashes_a_reader)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint64_t state = seed;
        size_t place[16];
        unsigned count = 1 + (unsigned)(next_random(&state) % 16);

        for (unsigned i = 0; i < count; i++) {
            place[i] = random_place(&state);
            bytes[place[i]] ^= (char)(1u << i % 8);
        }
        walk_if_open(size);
        while (count-- > 0)
            bytes[place[count]] ^= (char)(1u << count % 8);
    }
    walk_if_open(size);
    cr_expect_str_eq(
        cw_view_text(&(struct cw_view){.base = bytes, .size = size, .table = header()->table},
                     last_text),
        "last");
}

Test(view, a_layout_cut_short_anywhere_never_crashes_a_reader)
{
    char *whole = bytes;
    size_t whole_size = size;

    for (size_t len = 0; len < whole_size; len += whole_size / 150 & ~(size_t)63) { /* aligned */
        memmove(whole + whole_size - len, whole, len);
        walk_if_open(len);
        setup();
        whole = bytes;
    }
}

Test(view, counters_that_were_read_torn_do_not_wrap)
{
    struct cw_live_site site = {.allocs = 5,
                                .frees = 4,
                                .far_frees = 2,
                                .total_bytes = 10,
                                .freed_bytes = 9,
                                .far_bytes = 2};
    struct cw_site_sums sums;

    cw_view_site_sums(&site, &sums);
    cr_expect_eq(sums.live_blocks, 0u);
    cr_expect_eq(sums.live_bytes, 0u);
}

Test(view, sums_are_those_of_all_threads_on_the_device)
{
    struct cw_live_header *header = (struct cw_live_header *)bytes;
    struct cw_live_site site = {.allocs = 9, .frees = 3, .far_frees = 2};
    struct cw_site_sums sums;
    struct cw_view view;

    for (unsigned i = 0; i < 2; i++) {
        header->device[i].live_bytes = 1000 + i;
        header->slot[i + 1].device = i;
        header->slot[i + 1].slack_live = 100 * (i + 1);
    }
    header->live_bytes = 2001;
    cr_assert_eq(cw_view_open(&view, bytes, size), 0);
    cr_expect_eq(cw_view_device_live(&view, 0).live, 900u);
    cr_expect_eq(cw_view_device_live(&view, 1).live, 801u);
    cr_expect_eq(cw_view_live(&view), 1701u);
    cw_view_site_sums(&site, &sums);
    cr_expect(sums.frees == 5 && sums.live_blocks == 4);
}

Test(view, kinds_have_names_and_strangers_have_a_word)
{
    for (unsigned kind = 0; kind < CW_KIND_COUNT; kind++) {
        cr_expect_gt(strlen(cw_kind_name(kind)), 0u);
        cr_expect_gt(strlen(cw_kind_label(kind)), 0u);
    }
    cr_expect_eq(cw_kind_counted(CW_KIND_DEVICE), CW_COUNTED_DEVICE);
    cr_expect_eq(cw_kind_counted(CW_KIND_PINNED), CW_COUNTED_HOST);
    cr_expect_eq(cw_kind_counted(CW_KIND_IPC), CW_COUNTED_NONE);
    cr_expect_eq(cw_kind_counted(200), CW_COUNTED_NONE);
    cr_expect_str_eq(cw_kind_name(200), "unknown");
    cr_expect_str_eq(cw_kind_label(200), "unknown kind");
}
