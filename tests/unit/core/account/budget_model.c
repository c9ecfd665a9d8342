/* SPDX-License-Identifier: MIT */
/* Budgets that change, and threads beside each other: the sums are exact, and a request is refused
 * if and only if it does not fit. */
#include "core/account/budget.h"

#include <criterion/criterion.h>

#include <stdatomic.h>

#include "budget_fixture.h"

#define THREADS 8

TestSuite(budget_model, .init = budget_start);

/* ---- changes between a claim and its block ---- */

static const char *const tags[] = {"even", "odd", "even more"};
static const char *const patterns[] = {"even", "*", "^odd$", "^even more$"};
enum { TAGS = CW_ARRAY_LEN(tags), PATTERNS = CW_ARRAY_LEN(patterns), REQUESTS = 8 };

/* A request from its claim to its block and the block's end. */
struct step {
    struct cw_budget_claim claim;
    uint64_t key;
    uint64_t bytes; /* 0: there is none */
    unsigned tag;
    int is_settled;
};

static void expect_sums(const struct step *steps, const uint64_t most[PATTERNS])
{
    uint64_t sum[PATTERNS + 1] = {0};

    for (unsigned i = 0; i < REQUESTS; i++)
        if (steps[i].key != 0 || steps[i].claim.budget != 0)
            sum[cw_budget_of_name(tags[steps[i].tag])] += steps[i].bytes;
    for (uint8_t number = 1; number <= PATTERNS; number++) {
        struct cw_budget_view view = {.used_bytes = 0};

        cr_assert_eq(cw_budget_read(number, &view), 0);
        cr_assert_eq(view.used_bytes, most[number - 1] != 0 ? sum[number] : 0, "%s has %ju",
                     patterns[number - 1], (uintmax_t)view.used_bytes);
    }
}

/* A new request is refused if it does not fit, and only then. */
static void make(struct step *step, uint64_t random)
{
    struct cw_budget_view view = {.used_bytes = 0};
    uint64_t bytes = (random >> 8) % 3000 + 1;
    int fits;

    step->tag = random % TAGS;
    fits = cw_budget_read(cw_budget_of_name(tags[step->tag]), &view) != 0 ||
           view.used_bytes + bytes <= view.rule.bytes;
    budget_enter(tags[step->tag]);
    cr_assert_eq(cw_budget_claim(bytes, &step->claim) == 0, fits);
    cw_tag_leave();
    step->bytes = fits ? bytes : 0;
}

/* Takes one request a step further: it is made, served or withdrawn, its block takes the claim
 * over, or is freed. */
static void go_on(struct step *step, uint64_t random)
{
    if (step->bytes == 0) {
        make(step, random);
    } else if (step->key != 0 && step->is_settled) {
        pool_put(step->key);
        step->bytes = step->key = 0;
        step->is_settled = 0;
    } else if (step->key != 0) {
        budget_settle(step->key, &step->claim);
        step->is_settled = 1;
    } else if (random % 4 != 0) {
        budget_enter(tags[step->tag]);
        step->key = budget_bring(step->bytes, &step->claim);
        cw_tag_leave();
        step->is_settled = step->claim.budget == 0;
        if (step->is_settled)
            budget_settle(step->key, &step->claim);
    } else {
        cw_budget_give_back(&step->claim);
        step->bytes = 0;
    }
}

Test(budget_model, the_sums_are_exact_whatever_changes_under_requests)
{
    struct step steps[REQUESTS] = {{.key = 0}};
    uint64_t most[PATTERNS] = {0}, random = 11;

    for (unsigned i = 0; i < PATTERNS; i++) {
        most[i] = 8000;
        budget_set(patterns[i], most[i], 1);
    }
    for (int i = 0; i < 20000; i++) {
        uint64_t now = next_random(&random);
        unsigned which = (now >> 8) % PATTERNS;

        if (now % 4 != 0) {
            go_on(&steps[(now >> 16) % REQUESTS], now >> 24);
        } else if (most[which] != 0 && now % 16 != 0) {
            most[which] = 0;
            cr_assert_eq(cw_budget_unset(patterns[which], 0), 0);
        } else {
            most[which] = (now >> 24) % 12000 + 1;
            budget_set(patterns[which], most[which], 1);
        }
        expect_sums(steps, most);
    }
}

/* ---- threads ---- */

#define BUDGET 30000

static _Atomic int64_t live, most_live; /* of "cache", at least */
static _Atomic unsigned refusals;

static void note(int64_t bytes)
{
    int64_t sum = atomic_fetch_add(&live, bytes) + bytes, seen = most_live;

    while (sum > seen && !atomic_compare_exchange_weak(&most_live, &seen, sum))
        ;
}

struct holding {
    uint64_t key, bytes;
};

static void drop(struct holding *held)
{
    atomic_fetch_sub(&live, (int64_t)held->bytes); /* before others may have it */
    pool_put(held->key);
    held->key = 0;
}

/* Some blocks come from the pool, some from the driver, and some claims are withdrawn. */
static void churn(unsigned id, const char *tag)
{
    struct holding held[6] = {{0}};
    uint64_t random = id + 1;

    fake_set_current(FIRST_CONTEXT);
    budget_enter(tag);
    for (int i = 0; i < 4000; i++) {
        uint64_t now = next_random(&random), bytes = ((now >> 8) % 12 + 1) * 512;
        struct holding *at = &held[now % 6];
        struct cw_budget_claim claim;

        if (at->key != 0) {
            drop(at);
        } else if ((now >> 16) % 5 == 0) {
            if (cw_budget_claim(bytes, &claim) == 0)
                cw_budget_give_back(&claim);
        } else if ((at->key = budget_take(bytes)) != 0) {
            at->bytes = bytes;
            note((int64_t)bytes);
        } else {
            refusals++;
        }
    }
    for (int i = 0; i < 6; i++)
        if (held[i].key != 0)
            drop(&held[i]);
}

static void churn_cache(unsigned id)
{
    churn(id, "cache");
}

Test(budget_model, no_interleaving_takes_one_byte_too_many)
{
    budget_set("^cache$", BUDGET, 1);
    run_threads(THREADS, churn_cache);
    cr_expect_leq(most_live, BUDGET);
    cr_expect_gt(most_live, BUDGET / 2);
    cr_expect_gt(refusals, 0);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
    budget_enter("cache");
    cr_expect_neq(budget_take(BUDGET), 0, "nothing of a thread that has ended is lost");
}

static void change_meanwhile(unsigned id)
{
    if (id != 0) {
        churn(id, "cache");
        return;
    }
    for (int i = 0; i < 300; i++) {
        budget_set("^cache$", (uint64_t)(i % 2 == 0 ? BUDGET / 2 : BUDGET), 1);
        budget_set("*", BUDGET, i % 2);
        cw_budget_unset("*", 0);
        budget_view_of("cache");
    }
}

Test(budget_model, changes_while_threads_are_at_work_lose_nothing)
{
    budget_set("^cache$", BUDGET, 1);
    run_threads(THREADS, change_meanwhile);
    cr_expect_leq(most_live, BUDGET);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
}

static void change_rules(unsigned id)
{
    if (id != 0) {
        churn(id, id % 2 == 0 ? "cache" : "old cache");
        return;
    }
    for (int i = 0; i < 200; i++) {
        budget_set("^cache$", BUDGET, 1);
        budget_view_of("cache");
        cw_budget_unset(i % 3 == 0 ? "cache" : "^cache$", 0);
        budget_set("cache", BUDGET, i % 2);
        cw_budget_unset("^cache$", 0);
        cw_budget_unset(i % 5 == 0 ? "cache" : "none", 0);
    }
}

Test(budget_model, blocks_move_between_budgets_while_threads_are_at_work)
{
    budget_set("cache", BUDGET, 1);
    run_threads(THREADS, change_rules);
    budget_set("^cache$", BUDGET, 1);
    budget_set("cache", BUDGET, 1);
    cr_expect_eq(budget_view_of("cache").used_bytes, 0);
    cr_expect_eq(budget_view_of("old cache").used_bytes, 0);
}

/* ---- changes, while requests are under way ---- */

/* What threads have live together fits at any moment, whichever budget counts it: a change makes
 * room first and takes it away last. So no request may be refused. */
#define SHARE ((uint64_t)16384) /* of each thread */
static const char *const own[] = {"^even$", "^odd$"};
static _Atomic int is_over;

static void fill_and_free(unsigned id)
{
    uint64_t random = id + 1, held[4] = {0};

    fake_set_current(FIRST_CONTEXT);
    budget_enter(id % 2 == 0 ? "even" : "odd");
    while (!is_over) {
        uint64_t now = next_random(&random), *at = &held[now % 4];

        if (*at != 0)
            pool_put(*at);
        *at = budget_take(SHARE / 4 - ((now >> 8) % 3 == 0 ? 512 : 0));
        refusals += *at == 0;
    }
    for (int i = 0; i < 4; i++)
        if (held[i] != 0)
            pool_put(held[i]);
}

/* One of the two names gets a budget of its own, or goes back to that of all. */
static void move(unsigned which, unsigned *with_own)
{
    unsigned left = 2;

    *with_own ^= 1u << which;
    left -= (unsigned)__builtin_popcount(*with_own);
    if ((*with_own & 1u << which) != 0) {
        budget_set(own[which], 2 * SHARE, 1);
        budget_set("*", left * 2 * SHARE, 1);
    } else {
        budget_set("*", left * 2 * SHARE, 1);
        cr_assert_eq(cw_budget_unset(own[which], 0), 0);
    }
    for (uint8_t number = 1; number <= 3; number++) {
        struct cw_budget_view view = {.used_bytes = 0};

        if (cw_budget_read(number, &view) == 0)
            cr_expect_leq(view.used_bytes, view.rule.bytes, "%s", view.rule.pattern);
    }
}

static void move_meanwhile(unsigned id)
{
    uint64_t random = 7;
    unsigned with_own = 0;

    if (id != 0) {
        fill_and_free(id);
        return;
    }
    for (int i = 0; i < 2000; i++) {
        uint64_t now = next_random(&random);

        if (now % 4 < 2)
            move(now % 4, &with_own);
        else
            budget_set("^unused$", now >> 32, (now >> 8) % 2);
        if (now % 4 == 3)
            cw_budget_unset("^unused$", 0);
    }
    is_over = 1;
}

Test(budget_model, no_change_refuses_a_request_that_fits)
{
    budget_set("*", 4 * SHARE, 1);
    run_threads(5, move_meanwhile);
    cr_expect_eq(refusals, 0);
    for (uint8_t number = 1; number <= 3; number++) {
        struct cw_budget_view view = {.used_bytes = 1};

        cr_assert_eq(cw_budget_read(number, &view), 0);
        cr_expect_eq(view.used_bytes, 0, "%s", view.rule.pattern);
    }
}
