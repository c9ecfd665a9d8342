/* SPDX-License-Identifier: MIT */
/* Budgets at the program's request: what they say of themselves, and what is refused. What counts
 * for one is in unit/core/account/budget.c. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "api/budgets.h"
#include "api/tags.h"
#include "api_fixture.h"
#include "core/account/budget.h"

TestSuite(budgets, .init = api_setup);

static struct cuwarden_budget now(const char *tag)
{
    struct cuwarden_budget out = {0};

    API_WORKS(cw_api_budget_now(tag, &out, sizeof(out)));
    return out;
}

Test(budgets, are_set_changed_and_cleared)
{
    struct cuwarden_budget out;

    API_FAILS(CUWARDEN_NOT_FOUND, "no budget counts 'cache'",
              cw_api_budget_now("cache", &out, sizeof(out)));
    API_WORKS(cw_api_budget_set("cache", UINT64_MAX, CUWARDEN_WARN));
    cr_expect(now("cache").bytes == UINT64_MAX && now("cache").how == CUWARDEN_WARN);
    API_WORKS(cw_api_budget_set("cache", 0, CUWARDEN_REFUSE));
    cr_expect(now("cache").bytes == 0 && now("cache").how == CUWARDEN_REFUSE);
    API_FAILS(CUWARDEN_NOT_FOUND, "no budget counts",
              cw_api_budget_now("caches", &out, sizeof(out)));
    API_WORKS(cw_api_budget_now("cache", &out, 0));
    API_WORKS(cw_api_budget_clear("cache"));
    API_FAILS(CUWARDEN_NOT_FOUND, "has no budget of its own", cw_api_budget_clear("cache"));
}

Test(budgets, below_what_is_live_are_set_and_say_so_once)
{
    ask_keep_stderr();
    API_WORKS(cw_api_tag_push("cache"));
    pool_get(2 * MIB);
    API_WORKS(cw_api_budget_set("cache", MIB, CUWARDEN_REFUSE));
    cr_expect_eq(now("cache").used_bytes, 2 * MIB);
    cr_expect_eq(ask_said("is less than the 2.0 MiB that are live already"), 1);
    cr_expect_eq(ask_said("\n"), 1);
    API_WORKS(cw_api_budget_set("cache", 2 * MIB, CUWARDEN_REFUSE));
    cr_expect_eq(ask_said("\n"), 1);
}

Test(budgets, need_a_tag_and_something_to_do)
{
    static const struct {
        const char *tag, *text;
    } rows[] = {{NULL, "this one is NULL"}, {"", "this one is empty"}};
    struct cuwarden_budget out;

    for (unsigned i = 0; i < 2; i++) {
        API_FAILS(CUWARDEN_INVALID, rows[i].text, cw_api_budget_set(rows[i].tag, 1, CUWARDEN_WARN));
        API_FAILS(CUWARDEN_INVALID, rows[i].text, cw_api_budget_clear(rows[i].tag));
        API_FAILS(CUWARDEN_INVALID, rows[i].text,
                  cw_api_budget_now(rows[i].tag, &out, sizeof(out)));
    }
    API_FAILS(CUWARDEN_INVALID, "cannot do 7", cw_api_budget_set("x", 1, 7));
    API_FAILS(CUWARDEN_INVALID, "cannot do -1", cw_api_budget_set("x", 1, -1));
    API_FAILS(CUWARDEN_NOT_FOUND, "", cw_api_budget_now("x", &out, sizeof(out)));
}

Test(budgets, are_of_so_many_tags_at_most)
{
    char name[] = "tag00";
    int error = CUWARDEN_OK, count = 0;

    for (; error == CUWARDEN_OK && count < 100; count++) {
        name[3] = (char)('0' + count / 10);
        name[4] = (char)('0' + count % 10);
        error = cw_api_budget_set(name, 1, CUWARDEN_WARN);
    }
    API_FAILS(CUWARDEN_OUT_OF_HOST, "of others already", error);
    cr_expect_eq(count, CW_BUDGETS_MAX + 1);
    API_WORKS(cw_api_budget_set("tag00", 2, CUWARDEN_WARN));
    API_WORKS(cw_api_budget_clear("tag01"));
    API_FAILS(CUWARDEN_OUT_OF_HOST, "", cw_api_budget_set(name, 1, CUWARDEN_WARN));
    API_WORKS(cw_api_budget_set("tag01", 1, CUWARDEN_WARN)); /* its place is its own */
}

Test(budgets, of_names_that_look_like_patterns_are_those_of_the_names)
{
    struct cuwarden_budget out;

    API_WORKS(cw_api_budget_set("a*", 5, CUWARDEN_WARN));
    cr_expect_eq(now("a*").bytes, 5);
    API_FAILS(CUWARDEN_NOT_FOUND, "", cw_api_budget_now("ab", &out, sizeof(out)));
    API_WORKS(cw_api_budget_clear("a*"));
}

/* Of names that differ in digits only, those from the 17th on share a tag. */
Test(budgets, of_one_name_among_many_are_its_own)
{
    char name[32];

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "step %d", i);
        API_WORKS(cw_api_tag_push(name));
        API_WORKS(cw_api_tag_pop());
    }
    API_WORKS(cw_api_budget_set("step 30", MIB, CUWARDEN_REFUSE));
    API_WORKS(cw_api_tag_push("step 30"));
    pool_get(1000);
    API_WORKS(cw_api_tag_pop());
    API_WORKS(cw_api_tag_push("step 31"));
    pool_get(5000);
    API_WORKS(cw_api_tag_pop());
    cr_expect_eq(now("step 30").used_bytes, 1000);
}
