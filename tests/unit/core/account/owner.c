/* SPDX-License-Identifier: MIT */
/* Ids are never given twice and lie on the right side of a mark; names are stored once, and there
 * is an end to them; what is written into the live file changes neither. */
#include "core/account/owner.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "core/account/tracker.h"
#include "core/control/lifecycle.h"
#include "core_file.h"
#include "fake_driver.h"

#define BLOCKS 1000

static void setup(void)
{
    fake_driver_init();
    core_arm();
}

TestSuite(owner, .init = setup);

static uint32_t put(uint64_t key)
{
    uint32_t block = core_put(core_site("cuMemAlloc", CW_KIND_DEVICE, 0), key << 12, 1000);

    cr_assert_neq(block, 0u);
    return block;
}

static void drop(uint64_t key)
{
    cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, key << 12), CW_FREE_DONE);
}

Test(owner, a_record_used_again_has_another_id)
{
    uint32_t first = put(1), second;
    uint64_t id = cw_owner_id(first);

    cr_expect_eq(id, 1u);
    drop(1);
    second = put(1);
    cr_expect_eq(second, first, "the test is about one record");
    cr_expect_gt(cw_owner_id(second), id);
}

Test(owner, a_new_owner_has_no_name)
{
    uint32_t block = put(1);

    cw_owner_at(block)->name = cw_owner_text("positions") | CW_OWNER_KEPT;
    drop(1);
    cr_expect_eq(cw_owner_at(put(1))->name, 0u);
}

Test(owner, a_mark_divides_what_came_before_from_what_comes_after)
{
    uint64_t before = cw_owner_id(put(1)), mark = cw_owner_mark(), after = cw_owner_id(put(2));

    cr_expect_lt(before, mark);
    cr_expect_geq(after, mark);
    cr_expect_gt(cw_owner_mark(), after);
}

static void *take_many(void *out_ids)
{
    uint64_t *ids = out_ids;

    for (uint64_t i = 0; i < BLOCKS; i++)
        ids[i] = cw_owner_id(put((uint64_t)(uintptr_t)out_ids + i));
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

Test(owner, no_two_threads_have_the_same_id)
{
    static uint64_t ids[4][BLOCKS];
    pthread_t thread[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, take_many, ids[i]);
    for (int i = 0; i < 100; i++)
        cw_owner_mark();
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    qsort(ids, sizeof(ids) / sizeof(ids[0][0]), sizeof(ids[0][0]), compare);
    for (int i = 1; i < 4 * BLOCKS; i++)
        cr_assert_neq((&ids[0][0])[i], (&ids[0][0])[i - 1]);
}

Test(owner, equal_names_are_one_text)
{
    char name[] = "positions";
    uint32_t text = cw_owner_text(name);

    cr_expect_str_eq(core_text(text), "positions");
    name[0] = 'P';
    cr_expect_neq(cw_owner_text(name), text);
    cr_expect_eq(cw_owner_text("positions"), text);
}

#define ROUNDS 5000

static uint32_t shared;
static _Atomic unsigned named;
static _Atomic int is_done, lost;

static int is_kept_and_stays(void)
{
    unsigned spins = 0, turns = 0, before = atomic_load(&named);

    atomic_fetch_and(&cw_owner_at(shared)->name, ~CW_OWNER_KEPT);
    cw_owner_keep(shared);
    while (atomic_load(&named) < before + 2)
        if (++spins > 1000) /* both at work at once is what the test is about */
            cw_lock_relax(&turns);
    return cw_owner_is_kept(shared);
}

static void keep_or_name(unsigned id)
{
    uint32_t text = cw_owner_text("positions");

    if (id == 0) {
        for (int i = 0; i < ROUNDS; i++)
            lost += !is_kept_and_stays();
        atomic_store(&is_done, 1);
    }
    while (!atomic_load(&is_done)) {
        cw_owner_call(shared, text);
        atomic_fetch_add(&named, 1);
    }
}

Test(owner, what_one_thread_keeps_another_may_name)
{
    shared = put(1);
    run_threads(2, keep_or_name);
    cr_expect_eq(lost, 0, "%d of %d", lost, ROUNDS);
    cr_expect_str_eq(cw_owner_name(shared), "positions");
}

Test(owner, a_long_name_is_cut_between_characters)
{
    char name[CW_OWNER_NAME_MAX + 10];

    memset(name, 'x', sizeof(name));
    memcpy(name + CW_OWNER_NAME_MAX - 2, "\xc3\xbc", 2);
    name[sizeof(name) - 1] = '\0';
    cr_expect_eq(strlen(core_text(cw_owner_text(name))), CW_OWNER_NAME_MAX - 2);
}

Test(owner, there_is_an_end_to_names)
{
    char name[16];

    for (unsigned i = 0; i < CW_OWNER_NAMES; i++) {
        snprintf(name, sizeof(name), "block %u", i);
        cr_assert_neq(cw_owner_text(name), 0u);
    }
    cr_expect_eq(cw_owner_text("one more"), 0u);
    cr_expect_neq(cw_owner_text("block 17"), 0u, "known ones go on");
}

static void setup_file(void)
{
    core_on_file();
    setup();
}

TestSuite(owner_in_file, .init = setup_file, .fini = core_remove_file);

static const struct cw_live_owner *shown(uint32_t block)
{
    struct cw_view view;

    /* As another process sees it: `own` of a view of this one is what it shows. */
    cw_view_open(&view, core_header(), core_arena->committed);
    return cw_view_owner(&view, block);
}

Test(owner_in_file, readers_see_each_change)
{
    uint32_t block = put(1), text = cw_owner_text("positions");

    cr_expect(shown(block)->id == cw_owner_id(block) && shown(block)->name == 0);
    cw_owner_call(block, text);
    cr_expect_eq(shown(block)->name, text);
    cw_owner_keep(block);
    cr_expect_eq(shown(block)->name, text | CW_OWNER_KEPT);
    cw_owner_call(block, 0);
    cr_expect_eq(shown(block)->name, CW_OWNER_KEPT);
    drop(1);
    cr_expect_eq(put(1), block, "the test is about one record");
    cr_expect(shown(block)->id == cw_owner_id(block) && shown(block)->name == 0);
}

Test(owner_in_file, an_owner_stays_who_it_is_when_its_record_is_written_over)
{
    uint32_t block = put(1);
    uint64_t id = cw_owner_id(block);

    cw_owner_call(block, cw_owner_text("positions"));
    for (int byte = 0; byte < 256; byte += 255) {
        core_scribble(CW_TABLE_OWNER, byte);
        core_scribble(CW_TABLE_TEXT, byte);
        cr_expect_eq(cw_owner_id(block), id);
        cr_expect_str_eq(cw_owner_name(block), "positions");
        cr_expect_eq(cw_owner_is_kept(block), 0);
    }
}

Test(owner_in_file, names_are_found_again_when_their_texts_are_written_over)
{
    uint32_t text = cw_owner_text("positions");

    for (unsigned i = 0; i <= CW_OWNER_NAMES; i++) {
        core_scribble(CW_TABLE_TEXT, 'x');
        cr_assert_eq(cw_owner_text("positions"), text);
    }
    cr_expect_neq(cw_owner_text("one more"), 0u);
}
