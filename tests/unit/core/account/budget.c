/* SPDX-License-Identifier: MIT */
/* Budgets: what counts for which, from when on, and what a budget says of itself. */
#include "core/account/budget.h"

#include <criterion/criterion.h>

#include <string.h>

#include "budget_fixture.h"
#include "core/control/lifecycle.h"
#include "core/tags/tag.h"

TestSuite(budget, .init = budget_start);

static int claim(uint64_t bytes)
{
    struct cw_budget_claim got;

    return cw_budget_claim(bytes, &got);
}

Test(budget, is_exact_to_one_byte)
{
    struct cw_budget_claim most, one;

    budget_set("^cache$", 1000000, 1);
    budget_enter("cache");
    cr_expect_eq(cw_budget_claim(999999, &most), 0);
    cr_expect_eq(claim(2), -1);
    cr_expect_eq(cw_budget_claim(1, &one), 0);
    cr_expect_eq(claim(1), -1);
    cr_expect_eq(claim(UINT64_MAX), -1);
    cr_expect_eq(budget_view_of("cache").used_bytes, 1000000);
    cw_budget_give_back(&one);
    cr_expect_eq(claim(2), -1);
    cw_budget_give_back(&most);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
    cr_expect_eq(budget_view_of("cache").peak_bytes, 0,
                 "a claim that no block took over is no peak");
    cr_expect_eq(cw_budget_claim(1000000, &most), 0);
}

Test(budget, counts_the_innermost_tag_and_no_other)
{
    budget_set("^outer$", 1000, 1);
    budget_enter("outer");
    budget_enter("inner");
    cr_expect_eq(claim(1 << 20), 0);
    cw_tag_leave();
    cr_expect_eq(claim(1001), -1);
    cw_tag_leave();
    cr_expect_eq(claim(1 << 20), 0, "without a tag there is no budget");
}

Test(budget, a_name_in_full_goes_before_patterns_and_then_the_first)
{
    budget_set("cache", 1000, 1);
    budget_set("*", 2000, 1);
    budget_set("^kv cache$", 3000, 1);
    cr_expect_str_eq(budget_view_of("kv cache").rule.pattern, "^kv cache$");
    cr_expect_str_eq(budget_view_of("old cache").rule.pattern, "cache");
    cr_expect_str_eq(budget_view_of("weights").rule.pattern, "*");
    cr_expect_eq(cw_budget_unset("^kv cache$", 0), 0);
    cr_expect_eq(cw_budget_unset("^kv cache$", 0), -1);
    cr_expect_str_eq(budget_view_of("kv cache").rule.pattern, "cache");
}

Test(budget, a_name_may_have_what_patterns_take_for_something_else)
{
    struct cw_budget_rule rule = {.bytes = 7, .pattern = "^a*b$", .is_name = 1};

    cr_expect_eq(cw_budget_set(&rule), 0);
    cr_expect_eq(budget_view_of("a*b").rule.bytes, 7);
    cr_expect_eq(cw_budget_of_name("axb"), 0);
    cr_expect_eq(cw_budget_unset("^a*b$", 0), -1);
    cr_expect_eq(cw_budget_unset("^a*b$", 1), 0);
}

Test(budget, there_are_so_many_and_an_unset_one_keeps_its_place)
{
    struct cw_budget_rule more = {.pattern = "more"};
    char pattern[] = "^a$";

    for (int i = 0; i < CW_BUDGETS; i++) {
        pattern[1] = (char)('a' + i);
        budget_set(pattern, 1, 0);
    }
    cr_expect_eq(cw_budget_set(&more), -1);
    cr_expect_eq(cw_budget_unset("^c$", 0), 0);
    cr_expect_eq(cw_budget_of_name("c"), 0);
    cr_expect_eq(cw_budget_set(&more), -1);
    budget_set("^c$", 2, 1);
    cr_expect_eq(budget_view_of("c").rule.bytes, 2);
}

Test(budget, what_is_live_already_counts_and_goes_to_whose_it_is)
{
    struct cw_budget_claim rest;
    uint64_t first, second;

    budget_enter("cache");
    first = pool_get(300);
    second = pool_get(500);
    budget_set("cache", 400, 1);
    cr_expect_eq(budget_view_of("cache").used_bytes, 800);
    cr_expect_eq(budget_view_of("cache").peak_bytes, 800);
    cr_expect_eq(claim(1), -1);
    pool_put(second);
    cr_expect_eq(claim(101), -1);
    cr_expect_eq(cw_budget_claim(100, &rest), 0);
    budget_set("^cache$", 10000, 1); /* goes first from now on */
    cr_expect_eq(budget_view_of("cache").used_bytes, 400, "with what is claimed");
    pool_put(first);
    cw_budget_give_back(&rest);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
}

Test(budget, a_block_gives_back_to_the_budget_that_counted_it)
{
    uint64_t block;

    budget_set("cache", 1000, 1);
    budget_enter("cache");
    block = pool_get(600);
    cw_tag_leave();
    budget_enter("other");
    cr_expect_eq(budget_view_of("cache").used_bytes, 600);
    budget_set("^cache$", 1000, 1);
    cr_expect_eq(budget_view_of("cache").used_bytes, 600, "of the new one");
    cr_expect_eq(cw_budget_unset("^cache$", 0), 0);
    cr_expect_eq(budget_view_of("cache").used_bytes, 600);
    pool_put(block);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
}

Test(budget, a_block_that_moved_leaves_no_room_behind)
{
    uint64_t block;

    budget_set("cache", 1000, 1);
    budget_enter("cache");
    block = budget_take(600);
    budget_set("^cache$", 1000, 1); /* counts it from now on */
    pool_put(block);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
    budget_enter("old cache");
    cr_expect_eq(claim(1001), -1);
    cr_expect_eq(budget_view_of("old cache").used_bytes, 0);
    block = budget_take(1000);
    budget_set("*old*", 5, 1); /* does not: the first that matches does */
    cr_expect_eq(budget_view_of("old cache").used_bytes, 1000);
    cr_expect_eq(cw_budget_unset("cache", 0), 0);
    cr_expect_eq(budget_view_of("old cache").used_bytes, 1000);
    cr_expect_eq(budget_view_of("old cache").rule.bytes, 5);
    pool_put(block);
    cr_expect_eq(claim(5), 0);
}

Test(budget, the_peak_is_what_was_live_at_a_time)
{
    uint64_t old, block;

    budget_enter("cache");
    old = pool_get(800);
    budget_set("cache", 10000, 1);
    pool_put(old);
    block = budget_take(500);
    cr_expect_eq(budget_view_of("cache").peak_bytes, 800);
    budget_take(400);
    cr_expect_eq(budget_view_of("cache").peak_bytes, 900);
    pool_put(block);
    cr_expect_eq(budget_view_of("cache").used_bytes, 400);
}

Test(budget, one_that_was_unset_starts_anew)
{
    struct cw_budget_claim refused;
    struct cw_budget_view view;

    budget_set("cache", 500, 0);
    budget_enter("cache");
    pool_put(budget_take(600));
    budget_set("cache", 500, 1); /* replaced: what was is kept */
    cr_expect_eq(cw_budget_claim(501, &refused), -1);
    cw_budget_refused(&refused);
    view = budget_view_of("cache");
    cr_expect(view.peak_bytes == 600 && view.exceeded == 1 && view.refused == 1);
    cr_expect_eq(cw_budget_unset("cache", 0), 0);
    budget_take(300);
    budget_set("cache", 500, 1);
    view = budget_view_of("cache");
    cr_expect(view.peak_bytes == 300 && view.exceeded == 0 && view.refused == 0);
    cr_expect_eq(core_header()->budget[0].peak_bytes, 300);
    cr_expect_eq(core_header()->budget[0].refused + core_header()->budget[0].exceeded, 0);
}

Test(budget, without_any_nothing_stays_behind)
{
    uint64_t block;

    budget_set("cache", 1000, 1);
    budget_enter("cache");
    block = budget_take(600);
    cr_expect_eq(cw_budget_unset("cache", 0), 0);
    cr_expect_not(cw_budget_is_on());
    pool_put(block);
    budget_set("cache", 1000, 1);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
    block = budget_take(900);
    cr_expect_eq(budget_view_of("cache").used_bytes, 900);
    pool_put(block);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
}

Test(budget, memory_of_the_host_does_not_count)
{
    budget_set("cache", 1000, 0);
    budget_enter("cache");
    pool_alloc(CW_POOL_HOST, 5000, NULL);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
}

Test(budget, one_that_warns_refuses_nothing_and_counts_each_time)
{
    const struct cw_live_event *event;
    uint64_t block[3];

    ask_keep_stderr();
    budget_set("cache", 1000, 0);
    budget_enter("cache");
    block[0] = budget_take(600);
    for (int i = 0; i < 2; i++) {
        block[1] = budget_take(600);
        block[2] = budget_take(600); /* it is beyond already */
        pool_put(block[1]);
        pool_put(block[2]);
    }
    cr_expect_eq(budget_view_of("cache").exceeded, 2);
    cr_expect_eq(budget_view_of("cache").peak_bytes, 1800);
    cr_expect_eq(budget_view_of("cache").used_bytes, 600);
    cr_expect_eq(ask_events(CW_EVENT_BUDGET, &event), 2);
    cr_expect_eq(event->bytes, 1200);
    cr_expect_eq(ask_said("budget tag:cache=1000:warn is exceeded: "), 1);
}

Test(budget, a_forked_child_has_the_budgets_and_nothing_live)
{
    budget_set("^cache$", 1000, 1);
    budget_enter("cache");
    pool_get(800);
    cr_expect_eq(claim(300), -1);
    cw_lifecycle_reset();
    core_arm();
    fake_set_current(FIRST_CONTEXT);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
    cr_expect_eq(claim(1001), -1);
    cr_expect_eq(claim(1000), 0);
}

/* As in a child of fork before its first call, whose rules are those of its parent. */
Test(budget, a_new_process_has_used_none_of_it)
{
    struct cw_budget_claim claim;
    struct cw_budget_view view;

    budget_set("^cache$", 1000, 1);
    budget_enter("cache");
    cr_assert_neq(budget_take(800), 0u);
    cr_expect_neq(cw_budget_claim(800, &claim), 0);
    cw_budget_refused(&claim);
    view = budget_view_of("cache");
    cr_expect(view.used_bytes == 800 && view.peak_bytes == 800 && view.refused == 1);
    cw_budget_reset();
    cr_assert_eq(cw_budget_read(1, &view), 0);
    cr_expect(view.used_bytes == 0 && view.peak_bytes == 0 && view.refused == 0);
    cr_expect_eq(view.rule.bytes, 1000u);
}
