/* SPDX-License-Identifier: MIT */
/* The last frees by address. */
#include "core/account/freed.h"

#include <criterion/criterion.h>

static void remember(uint64_t key, uint32_t site)
{
    cw_freed_remember(key, site, site + 100);
}

static void expect_free(uint64_t key, uint32_t site)
{
    struct cw_freed freed = cw_freed_find(key);

    cr_assert_eq(freed.site, site, "%#jx was freed at %u", (uintmax_t)key, freed.site);
    cr_assert_eq(freed.alloc_site, site != 0 ? site + 100 : 0);
    cr_assert_eq(freed.how, site != 0 ? CW_FREED_BY_CALL : CW_FREED_NOT);
}

Test(freed, knows_the_last_free_of_an_address_and_its_allocation)
{
    remember(0x7000, 3);
    expect_free(0x7000, 3);
    remember(0x7000, 4);
    expect_free(0x7000, 4);
}

Test(freed, knows_nothing_of_other_addresses)
{
    remember(0x7000, 3);
    for (uint64_t key = 0x200; key < 0x200000; key += 0x200)
        if (key != 0x7000)
            expect_free(key, 0);
}

Test(freed, remembers_most_of_the_last_thousand)
{
    unsigned found = 0;

    for (uint32_t i = 1; i <= 1000; i++)
        remember((uint64_t)i << 21, i);
    for (uint32_t i = 1; i <= 1000; i++) {
        uint32_t site = cw_freed_find((uint64_t)i << 21).site;

        cr_assert(site == 0 || site == i);
        found += site != 0;
    }
    cr_expect_gt(found, 800u);
}

Test(freed, knows_a_free_whose_site_is_not_known)
{
    cw_freed_remember(0x7000, 0, 9);
    cr_expect_eq(cw_freed_find(0x7000).how, CW_FREED_BY_CALL);
    cr_expect_eq(cw_freed_find(0x7000).site, 0u);
    cr_expect_eq(cw_freed_find(0x7000).alloc_site, 9u);
}

Test(freed, tells_blocks_that_went_with_their_context_and_the_newest_counts)
{
    struct cw_freed freed;

    remember(0x7000, 3);
    cw_freed_remember_ended(0x7000, 5);
    freed = cw_freed_find(0x7000);
    cr_expect_eq(freed.how, CW_FREED_WITH_CONTEXT);
    cr_expect_eq(freed.site, 0u, "nobody freed it");
    cr_expect_eq(freed.alloc_site, 5u);
    remember(0x7000, 4);
    expect_free(0x7000, 4);
}

Test(freed, forgets_an_address_and_no_other)
{
    remember(0x7000, 3);
    remember(0x9000, 4);
    cw_freed_forget(0x7000);
    expect_free(0x7000, 0);
    expect_free(0x9000, 4);
    cw_freed_forget(0xb000);
    expect_free(0x9000, 4);
}

Test(freed, says_of_no_address_that_it_was_never_freed_once_its_entry_was_replaced)
{
    unsigned unknown = 0;

    for (uint32_t i = 1; i <= 10000; i++)
        remember((uint64_t)i << 21, i);
    for (uint32_t i = 1; i <= 10000; i++) {
        struct cw_freed freed = cw_freed_find((uint64_t)i << 21);

        cr_assert_neq(freed.how, CW_FREED_NOT, "%u", i);
        unknown += freed.how == CW_FREED_UNKNOWN;
    }
    cr_expect_gt(unknown, 5000u);
    cw_freed_reset();
    expect_free(1 << 21, 0);
}

Test(freed, knows_nothing_of_address_0)
{
    expect_free(0, 0);
}

Test(freed, a_reset_forgets)
{
    remember(0x7000, 3);
    cw_freed_reset();
    expect_free(0x7000, 0);
}
