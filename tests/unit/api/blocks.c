/* SPDX-License-Identifier: MIT */
/* Blocks, one by one and all: what is told of them, which are visited, and what is refused; leak
 * checks, which visit the same. */
#include <criterion/criterion.h>

#include <string.h>

#include "api/blocks.h"
#include "api/leaks.h"
#include "api/tags.h"
#include "api_fixture.h"
#include "core_file.h"
#include "core/account/owner.h"
#include "core/process/thread.h"

TestSuite(blocks, .init = api_setup);

static const void *at(uint64_t key)
{
    return (const void *)(uintptr_t)key;
}

static uint64_t take(const char *tag, uint64_t bytes)
{
    uint64_t key;

    API_WORKS(cw_api_tag_push(tag));
    key = pool_get(bytes);
    API_WORKS(cw_api_tag_pop());
    return key;
}

struct seen {
    unsigned count, until, depth;
    uint64_t bytes;
};

static int see(const struct cuwarden_block *block, void *arg)
{
    struct seen *seen = arg;

    seen->count++;
    seen->bytes += block->bytes;
    seen->depth = cw_thread.depth;
    return seen->count == seen->until;
}

Test(blocks, are_found_by_where_they_begin_and_have_the_name_that_they_were_given)
{
    uint64_t key = take("cache", 3000);
    struct cuwarden_block block;

    API_WORKS(cw_api_block_find(at(key), &block, sizeof(block)));
    cr_expect(block.address == key && block.bytes == 3000 && block.held_bytes >= 3000);
    cr_expect(block.device == 0 && block.thread == cw_thread_tid());
    cr_expect_str_eq(block.tag, "cache");
    cr_expect_str_eq(block.name, "");
    API_WORKS(cw_api_block_name(at(key), "keys"));
    API_WORKS(cw_api_block_find(at(key), &block, sizeof(block)));
    cr_expect_str_eq(block.name, "keys");
    API_WORKS(cw_api_block_name(at(key), ""));
    API_WORKS(cw_api_block_find(at(key), &block, sizeof(block)));
    cr_expect_str_eq(block.name, "");
    block.bytes = 7;
    API_WORKS(cw_api_block_find(at(key), &block, sizeof(block.id) + sizeof(block.address)));
    cr_expect_eq(block.bytes, 7);
}

Test(blocks, that_are_not_live_are_not_found)
{
    uint64_t key = pool_get(3000), freed = pool_get(5000);
    struct cuwarden_block block = {.bytes = 7};
    uint64_t rows[] = {0, key + 1, freed, UINT64_MAX};

    pool_put(freed);
    for (unsigned i = 0; i < 4; i++) {
        API_FAILS(CUWARDEN_NOT_FOUND, "no live block begins at 0x",
                  cw_api_block_find(at(rows[i]), &block, sizeof(block)));
        API_FAILS(CUWARDEN_NOT_FOUND, "no live block begins at 0x",
                  cw_api_block_name(at(rows[i]), "name"));
    }
    core_put(core_site("cuIpcOpenMemHandle", CW_KIND_IPC, 0), 0x7000, 512); /* another process's */
    API_FAILS(CUWARDEN_NOT_FOUND, "", cw_api_block_find(at(0x7000), &block, sizeof(block)));
    cr_expect_eq(block.bytes, 7);
    API_FAILS(CUWARDEN_INVALID, "is NULL", cw_api_block_name(at(key), NULL));
}

Test(blocks, have_4096_different_names_at_most)
{
    uint64_t key = pool_get(3000);
    char name[16];
    int error = CUWARDEN_OK;

    for (unsigned i = 0; i <= CW_OWNER_NAMES && error == CUWARDEN_OK; i++) {
        cw_format(name, sizeof(name), "name %u", i);
        error = cw_api_block_name(at(key), name);
    }
    API_FAILS(CUWARDEN_OUT_OF_HOST, "there are 4096 already", error);
    API_WORKS(cw_api_block_name(at(key), "name 0"));
}

Test(blocks, are_visited_by_device_tag_age_and_mark)
{
    uint64_t mark = 0;
    struct cuwarden_filter filter = {.device = CUWARDEN_ALL_DEVICES};
    struct {
        struct cuwarden_filter filter;
        uint64_t bytes;
    } rows[] = {{{.device = CUWARDEN_ALL_DEVICES}, 7000},
                {{.device = 0, .tag = "cache"}, 1000},
                {{.device = 0, .tag = ""}, 6000},
                {{.device = 1}, 0},
                {{.device = CUWARDEN_HOST}, 0},
                {{.device = 0, .since = 1}, 4000}, /* 1: of the mark */
                {{.device = 0, .since = UINT64_MAX}, 0},
                {{.device = 0, .older_than_ns = FAKE_MS}, 3000},
                {{.device = 0, .older_than_ns = UINT64_MAX}, 0}};
    struct seen seen = {0};

    take("cache", 1000);
    pool_get(2000);
    fake_driver.now_ns += 2 * FAKE_MS;
    API_WORKS(cw_api_mark(&mark));
    pool_get(4000);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        seen = (struct seen){.depth = 7};
        if (rows[i].filter.since == 1)
            rows[i].filter.since = mark;
        API_WORKS(cw_api_visit(&rows[i].filter, sizeof(filter), see, &seen));
        cr_expect_eq(seen.bytes, rows[i].bytes, "row %u: %ju", i, (uintmax_t)seen.bytes);
        cr_expect(seen.count == 0 || seen.depth == 0);
    }
    seen = (struct seen){.until = 2};
    API_WORKS(cw_api_visit(NULL, 0, see, &seen));
    cr_expect_eq(seen.count, 2);
}

Test(blocks, are_not_visited_by_what_is_not_there)
{
    struct cuwarden_filter device = {.device = 2}, tag = {.tag = "nobody"};
    struct seen seen = {0};

    API_FAILS(CUWARDEN_INVALID, "this one is NULL", cw_api_visit(NULL, 0, NULL, NULL));
    API_FAILS(CUWARDEN_NO_DEVICE, "no device 2: devices are 0 to 1",
              cw_api_visit(&device, sizeof(device), see, &seen));
    API_FAILS(CUWARDEN_NOT_FOUND, "nobody has used a tag 'nobody'",
              cw_api_visit(&tag, sizeof(tag), see, &seen));
    cr_expect_eq(seen.count, 0);
}

Test(blocks, that_were_never_freed_are_leaks_from_a_mark_on)
{
    struct cuwarden_leaks found = {0};
    struct seen seen = {.until = 1};
    uint64_t mark = 0;

    pool_get(1000);
    API_WORKS(cw_api_mark(&mark));
    pool_put(pool_get(2000));
    API_WORKS(cw_api_leaks(mark, see, &seen, &found, sizeof(found)));
    cr_expect(found.blocks == 0 && seen.count == 0);
    pool_get(4000);
    API_WORKS(cw_api_leaks(mark, NULL, NULL, &found, sizeof(found)));
    cr_expect(found.blocks == 1 && found.bytes == 4000 && found.excused_blocks == 0);
    API_WORKS(cw_api_leaks(0, see, &seen, &found, sizeof(found)));
    cr_expect_eq(seen.count, 1);
    cr_expect_eq(cw_thread.depth, 0);
}

/* A thread is about to take a block: its record is there, in a chunk of its own, the owner's is not
 * yet, or for lack of memory never will be. */
Test(blocks, a_record_without_an_owner_is_passed_over)
{
    struct cw_api_block read;
    struct seen seen = {0};
    uint32_t index;

    do
        index = cw_arena_append(&cw_session.arena, CW_TABLE_BLOCK);
    while (index < 2 * CW_BLOCKS_FIRST);
    cr_expect_eq(cw_api_block_read(index, &read), -1);
    API_WORKS(cw_api_visit(NULL, 0, see, &seen));
    cr_expect_eq(seen.count, 0);
}

static void setup_file(void)
{
    core_on_file();
    api_setup();
}

TestSuite(blocks_in_file, .init = setup_file, .fini = core_remove_file);

static void expect_same(const struct cuwarden_block *block, const struct cuwarden_block *before)
{
    cr_expect(block->id == before->id && block->device == before->device);
    cr_expect_str_eq(block->kind, "device");
    cr_expect_str_eq(block->function, "cuMemAlloc");
    cr_expect_str_eq(block->name, "keys");
    cr_expect_str_eq(block->tag, "cache");
}

Test(blocks_in_file, are_told_of_as_they_are_when_the_file_is_written_over)
{
    static const enum cw_table tables[] = {CW_TABLE_TEXT, CW_TABLE_SITE, CW_TABLE_TAG,
                                           CW_TABLE_OWNER};
    uint64_t key = take("cache", 3000);
    struct cuwarden_block before, block;

    API_WORKS(cw_api_block_name(at(key), "keys"));
    API_WORKS(cw_api_block_find(at(key), &before, sizeof(before)));
    expect_same(&before, &before);
    for (unsigned i = 0; i < 2 * sizeof(tables) / sizeof(tables[0]); i++) {
        core_scribble(tables[i / 2], i % 2 ? 'x' : 0);
        expect_same(&before, &before); /* what was told stays, too */
        API_WORKS(cw_api_block_find(at(key), &block, sizeof(block)));
        expect_same(&block, &before);
    }
}

TestSuite(early_blocks, .init = api_setup_early);

Test(early_blocks, are_none_before_the_first_call_of_cuda)
{
    struct cuwarden_leaks found = {.blocks = 7};
    struct cuwarden_block block;
    struct seen seen = {0};
    uint64_t mark = 0;

    API_FAILS(CUWARDEN_NOT_STARTED, "", cw_api_block_find(&found, &block, sizeof(block)));
    API_FAILS(CUWARDEN_NOT_STARTED, "", cw_api_block_name(&found, "name"));
    API_WORKS(cw_api_mark(&mark));
    API_WORKS(cw_api_visit(NULL, 0, see, &seen));
    API_WORKS(cw_api_leaks(0, see, &seen, &found, sizeof(found)));
    cr_expect(mark == 1 && seen.count == 0 && found.blocks == 0);
    core_options()->mode = CW_MODE_OFF;
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_mark(&mark));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_visit(NULL, 0, see, &seen));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_leaks(0, see, &seen, &found, sizeof(found)));
}
