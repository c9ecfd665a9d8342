/* SPDX-License-Identifier: MIT */
/* The last frees by address. */
#include "core/account/freed.h"

#include <criterion/criterion.h>

static void remember(uint64_t key, uint32_t site)
{
    cw_freed_remember(key, (struct cw_freed){.site = site, .alloc_site = site + 100});
}

static void expect_free(uint64_t key, uint32_t site)
{
    struct cw_freed freed = cw_freed_find(key);

    cr_assert_eq(freed.site, site, "%#jx was freed at %u", (uintmax_t)key, freed.site);
    cr_assert_eq(freed.alloc_site, site != 0 ? site + 100 : 0);
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

Test(freed, a_reset_forgets)
{
    remember(0x7000, 3);
    cw_freed_reset();
    expect_free(0x7000, 0);
}
