/* SPDX-License-Identifier: MIT */
/* Budgets: what counts for which, and that no interleaving claims one byte too many. */
#include "core/account/budget.h"

#include <criterion/criterion.h>

#include <stdatomic.h>
#include <string.h>

#include "ask_fixture.h"
#include "core/control/lifecycle.h"
#include "core/tags/tag.h"

#define THREADS 8

static void setup(void)
{
    ask_start("", "", ASK_TOTAL);
}

TestSuite(budget, .init = setup);

static void set(const char *pattern, uint64_t bytes, int refuses)
{
    struct cw_budget_rule rule = {.bytes = bytes, .refuses = (uint8_t)refuses};

    strcpy(rule.pattern, pattern);
    cr_assert_eq(cw_budget_set(&rule), 0);
}

static void enter(const char *tag)
{
    cw_tag_enter(cw_tag_name(0, tag));
}

static struct cw_budget_view view_of(const char *tag)
{
    struct cw_budget_view view = {.used_bytes = UINT64_MAX};

    cr_expect_eq(cw_budget_read(cw_budget_of_name(tag), &view), 0, "%s", tag);
    return view;
}

/* As the hooks do it: claimed first, then served by the pool or by the driver. */
static uint64_t take(uint64_t bytes)
{
    struct cw_budget_claim claim;
    uint64_t key = 0;

    if (cw_budget_claim(bytes, &claim) != 0)
        return 0;
    if (pool_hits(CW_POOL_DEVICE, bytes, &key)) {
        cw_budget_count(cw_thread.served, claim.budget);
        return key;
    }
    cw_thread.budget = claim.budget;
    key = pool_get(bytes);
    if (cw_thread.budget != 0) /* there is no budget any more */
        cw_budget_give_back(&claim);
    cw_thread.budget = 0;
    return key;
}

static int claim(uint64_t bytes)
{
    struct cw_budget_claim got;

    return cw_budget_claim(bytes, &got);
}

Test(budget, is_exact_to_one_byte)
{
    struct cw_budget_claim most, one;

    set("^cache$", 1000000, 1);
    enter("cache");
    cr_expect_eq(cw_budget_claim(999999, &most), 0);
    cr_expect_eq(claim(2), -1);
    cr_expect_eq(cw_budget_claim(1, &one), 0);
    cr_expect_eq(claim(1), -1);
    cr_expect_eq(claim(UINT64_MAX), -1);
    cr_expect_eq(view_of("cache").used_bytes, 1000000);
    cw_budget_give_back(&one);
    cr_expect_eq(claim(2), -1);
    cw_budget_give_back(&most);
    cr_expect_eq(view_of("cache").used_bytes, 0);
    cr_expect_eq(view_of("cache").peak_bytes, 0, "a claim that no block took over is no peak");
    cr_expect_eq(cw_budget_claim(1000000, &most), 0);
}

Test(budget, counts_the_innermost_tag_and_no_other)
{
    set("^outer$", 1000, 1);
    enter("outer");
    enter("inner");
    cr_expect_eq(claim(1 << 20), 0);
    cw_tag_leave();
    cr_expect_eq(claim(1001), -1);
    cw_tag_leave();
    cr_expect_eq(claim(1 << 20), 0, "without a tag there is no budget");
}

Test(budget, a_name_in_full_goes_before_patterns_and_then_the_first)
{
    set("cache", 1000, 1);
    set("*", 2000, 1);
    set("^kv cache$", 3000, 1);
    cr_expect_str_eq(view_of("kv cache").rule.pattern, "^kv cache$");
    cr_expect_str_eq(view_of("old cache").rule.pattern, "cache");
    cr_expect_str_eq(view_of("weights").rule.pattern, "*");
    cr_expect_eq(cw_budget_unset("^kv cache$", 0), 0);
    cr_expect_eq(cw_budget_unset("^kv cache$", 0), -1);
    cr_expect_str_eq(view_of("kv cache").rule.pattern, "cache");
}

Test(budget, a_name_may_have_what_patterns_take_for_something_else)
{
    struct cw_budget_rule rule = {.bytes = 7, .pattern = "^a*b$", .is_name = 1};

    cr_expect_eq(cw_budget_set(&rule), 0);
    cr_expect_eq(view_of("a*b").rule.bytes, 7);
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
        set(pattern, 1, 0);
    }
    cr_expect_eq(cw_budget_set(&more), -1);
    cr_expect_eq(cw_budget_unset("^c$", 0), 0);
    cr_expect_eq(cw_budget_of_name("c"), 0);
    cr_expect_eq(cw_budget_set(&more), -1);
    set("^c$", 2, 1);
    cr_expect_eq(view_of("c").rule.bytes, 2);
}

Test(budget, what_is_live_already_counts_and_goes_to_whose_it_is)
{
    uint64_t first, second;

    enter("cache");
    first = pool_get(300);
    second = pool_get(500);
    set("cache", 400, 1);
    cr_expect_eq(view_of("cache").used_bytes, 800);
    cr_expect_eq(view_of("cache").peak_bytes, 800);
    cr_expect_eq(claim(1), -1);
    pool_put(second);
    cr_expect_eq(claim(101), -1);
    cr_expect_eq(claim(100), 0);
    set("^cache$", 10000, 1); /* goes first from now on */
    cr_expect_eq(view_of("cache").used_bytes, 300);
    pool_put(first);
    cr_expect_eq(view_of("cache").used_bytes, 0);
}

Test(budget, a_block_gives_back_to_the_budget_that_counted_it)
{
    uint64_t block;

    set("cache", 1000, 1);
    enter("cache");
    block = pool_get(600);
    cw_tag_leave();
    enter("other");
    cr_expect_eq(view_of("cache").used_bytes, 600);
    set("^cache$", 1000, 1);
    cr_expect_eq(view_of("cache").used_bytes, 600, "of the new one");
    cr_expect_eq(cw_budget_unset("^cache$", 0), 0);
    cr_expect_eq(view_of("cache").used_bytes, 600);
    pool_put(block);
    cr_expect_eq(view_of("cache").used_bytes, 0);
}

Test(budget, a_block_that_moved_leaves_no_room_behind)
{
    uint64_t block;

    set("cache", 1000, 1);
    enter("cache");
    block = take(600);
    set("^cache$", 1000, 1); /* counts it from now on */
    pool_put(block);
    cr_expect_eq(view_of("cache").used_bytes, 0);
    enter("old cache");
    cr_expect_eq(claim(1001), -1);
    cr_expect_eq(view_of("old cache").used_bytes, 0);
    block = take(1000);
    set("*old*", 5, 1); /* does not: the first that matches does */
    cr_expect_eq(view_of("old cache").used_bytes, 1000);
    cr_expect_eq(cw_budget_unset("cache", 0), 0);
    cr_expect_eq(view_of("old cache").used_bytes, 1000);
    cr_expect_eq(view_of("old cache").rule.bytes, 5);
    pool_put(block);
    cr_expect_eq(claim(5), 0);
}

/* Between the claim and the block, the budgets change. */
Test(budget, a_claim_is_not_counted_beside_its_block)
{
    struct cw_budget_claim claimed;
    uint64_t block;

    set("cache", 1000, 1);
    enter("cache");
    pool_put(take(600));
    cr_assert_eq(cw_budget_claim(600, &claimed), 0);
    cr_assert(pool_hits(CW_POOL_DEVICE, 600, &block));
    set("^cache$", 1000, 1); /* finds the block */
    cw_budget_count(cw_thread.served, claimed.budget);
    cr_expect_eq(view_of("cache").used_bytes, 600);
    cr_expect_eq(view_of("old cache").used_bytes, 0);
    pool_put(block);
    cr_assert_eq(cw_budget_claim(600, &claimed), 0);
    cr_assert(pool_hits(CW_POOL_DEVICE, 600, &block));
    cr_expect_eq(cw_budget_unset("^cache$", 0), 0);
    cr_expect_eq(cw_budget_unset("cache", 0), 0);
    cw_budget_count(cw_thread.served, claimed.budget);
    set("cache", 1000, 1);
    cr_expect_eq(view_of("cache").used_bytes, 600);
    pool_put(block);
    cr_expect_eq(view_of("cache").used_bytes, 0);
}

Test(budget, the_peak_is_what_was_live_at_a_time)
{
    uint64_t old, block;

    enter("cache");
    old = pool_get(800);
    set("cache", 10000, 1);
    pool_put(old);
    block = take(500);
    cr_expect_eq(view_of("cache").peak_bytes, 800);
    take(400);
    cr_expect_eq(view_of("cache").peak_bytes, 900);
    pool_put(block);
    cr_expect_eq(view_of("cache").used_bytes, 400);
}

Test(budget, without_any_nothing_stays_behind)
{
    uint64_t block;

    set("cache", 1000, 1);
    enter("cache");
    block = take(600);
    cr_expect_eq(cw_budget_unset("cache", 0), 0);
    cr_expect_not(cw_budget_is_on());
    pool_put(block);
    set("cache", 1000, 1);
    cr_expect_eq(view_of("cache").used_bytes, 0);
    block = take(900);
    cr_expect_eq(view_of("cache").used_bytes, 900);
    pool_put(block);
    cr_expect_eq(view_of("cache").used_bytes, 0);
}

Test(budget, memory_of_the_host_does_not_count)
{
    set("cache", 1000, 0);
    enter("cache");
    pool_alloc(CW_POOL_HOST, 5000, NULL);
    cr_expect_eq(view_of("cache").used_bytes, 0);
}

Test(budget, one_that_warns_refuses_nothing_and_counts_each_time)
{
    const struct cw_live_event *event;
    uint64_t block[3];

    ask_keep_stderr();
    set("cache", 1000, 0);
    enter("cache");
    block[0] = take(600);
    for (int i = 0; i < 2; i++) {
        block[1] = take(600);
        block[2] = take(600); /* it is beyond already */
        pool_put(block[1]);
        pool_put(block[2]);
    }
    cr_expect_eq(view_of("cache").exceeded, 2);
    cr_expect_eq(view_of("cache").peak_bytes, 1800);
    cr_expect_eq(view_of("cache").used_bytes, 600);
    cr_expect_eq(ask_events(CW_EVENT_BUDGET, &event), 2);
    cr_expect_eq(event->bytes, 1200);
    cr_expect_eq(ask_said("budget tag:cache=1000:warn is exceeded: "), 1);
}

/* ---- threads ---- */

#define BUDGET 30000

static _Atomic int64_t claimed, most;
static _Atomic unsigned refusals;

static void note(int64_t sum)
{
    int64_t seen = most;

    while (sum > seen && !atomic_compare_exchange_weak(&most, &seen, sum))
        ;
}

static void claim_and_give(unsigned id)
{
    struct cw_budget_claim held[6] = {{0}};
    uint64_t random = id + 1;

    enter("cache");
    for (int i = 0; i < 20000; i++) {
        uint64_t now = next_random(&random), bytes = (now >> 8) % 8000 + 1;
        struct cw_budget_claim *at = &held[now % 6];

        if (at->budget != 0) {
            atomic_fetch_sub(&claimed, (int64_t)at->bytes); /* before others may have it */
            cw_budget_give_back(at);
        } else if (cw_budget_claim(bytes, at) == 0) {
            note(atomic_fetch_add(&claimed, (int64_t)bytes) + (int64_t)bytes);
        } else {
            at->budget = 0;
            refusals++;
        }
    }
    for (int i = 0; i < 6; i++) {
        atomic_fetch_sub(&claimed, held[i].budget != 0 ? (int64_t)held[i].bytes : 0);
        cw_budget_give_back(&held[i]);
    }
}

Test(budget, no_interleaving_claims_one_byte_too_many)
{
    set("^cache$", BUDGET, 1);
    run_threads(THREADS, claim_and_give);
    cr_expect_leq(most, BUDGET);
    cr_expect_gt(most, BUDGET / 2);
    cr_expect_gt(refusals, 0);
    cr_expect_eq(view_of("cache").used_bytes, 0);
    enter("cache");
    cr_expect_eq(claim(BUDGET), 0, "no credit of a thread that has ended is lost");
}

static void change_meanwhile(unsigned id)
{
    if (id != 0) {
        claim_and_give(id);
        return;
    }
    for (int i = 0; i < 300; i++) {
        set("^cache$", (uint64_t)(i % 2 == 0 ? BUDGET / 2 : BUDGET), 1);
        set("*", BUDGET, i % 2);
        cw_budget_unset("*", 0);
        view_of("cache");
    }
}

Test(budget, changes_while_threads_are_at_work_lose_nothing)
{
    set("^cache$", BUDGET, 1);
    run_threads(THREADS, change_meanwhile);
    cr_expect_leq(most, BUDGET);
    cr_expect_eq(view_of("cache").used_bytes, 0);
}

/* Blocks, not claims alone: some of the pool, some of the driver. */
static void take_and_put(unsigned id)
{
    uint64_t random = id + 1, held[4] = {0};

    fake_set_current(FIRST_CONTEXT);
    enter(id % 2 == 0 ? "cache" : "old cache");
    for (int i = 0; i < 4000; i++) {
        uint64_t now = next_random(&random), *at = &held[now % 4];

        if (*at != 0)
            pool_put(*at);
        *at = *at != 0 ? 0 : take(((now >> 8) % 8 + 1) * 512);
    }
    for (int i = 0; i < 4; i++)
        if (held[i] != 0)
            pool_put(held[i]);
}

static void change_rules(unsigned id)
{
    if (id != 0) {
        take_and_put(id);
        return;
    }
    for (int i = 0; i < 200; i++) {
        set("^cache$", BUDGET, 1);
        view_of("cache");
        cw_budget_unset(i % 3 == 0 ? "cache" : "^cache$", 0);
        set("cache", BUDGET, i % 2);
        cw_budget_unset("^cache$", 0);
        cw_budget_unset(i % 5 == 0 ? "cache" : "none", 0);
    }
}

Test(budget, blocks_move_between_budgets_while_threads_are_at_work)
{
    set("cache", BUDGET, 1);
    run_threads(THREADS, change_rules);
    set("^cache$", BUDGET, 1);
    set("cache", BUDGET, 1);
    cr_expect_eq(view_of("cache").used_bytes, 0);
    cr_expect_eq(view_of("old cache").used_bytes, 0);
}

static void keep_credit(unsigned id)
{
    struct cw_budget_claim all;

    (void)id;
    enter("cache");
    cr_expect_eq(cw_budget_claim(BUDGET, &all), 0);
    cw_budget_give_back(&all);
}

Test(budget, credit_of_another_thread_refuses_nothing)
{
    set("^cache$", BUDGET, 1);
    run_threads(1, keep_credit);
    enter("cache");
    cr_expect_eq(claim(BUDGET), 0);
    cr_expect_eq(claim(1), -1);
}

Test(budget, a_forked_child_has_the_budgets_and_nothing_live)
{
    set("^cache$", 1000, 1);
    enter("cache");
    pool_get(800);
    cr_expect_eq(claim(300), -1);
    cw_lifecycle_reset();
    core_arm();
    fake_set_current(FIRST_CONTEXT);
    cr_expect_eq(view_of("cache").used_bytes, 0);
    cr_expect_eq(claim(1001), -1);
    cr_expect_eq(claim(1000), 0);
}

/* As in a child of fork before its first call, whose rules are those of its parent. */
Test(budget, a_new_process_has_used_none_of_it)
{
    struct cw_budget_claim claim;
    struct cw_budget_view view;

    set("^cache$", 1000, 1);
    enter("cache");
    cr_assert_neq(take(800), 0u);
    cr_expect_neq(cw_budget_claim(800, &claim), 0);
    cw_budget_refused(&claim);
    view = view_of("cache");
    cr_expect(view.used_bytes == 800 && view.peak_bytes == 800 && view.refused == 1);
    cw_budget_reset();
    cr_assert_eq(cw_budget_read(1, &view), 0);
    cr_expect(view.used_bytes == 0 && view.peak_bytes == 0 && view.refused == 0);
    cr_expect_eq(view.rule.bytes, 1000u);
}
