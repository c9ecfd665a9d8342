/* SPDX-License-Identifier: MIT */
/* The last frees by address. */
#include "core/account/freed.h"

#include <criterion/criterion.h>

Test(freed, knows_the_last_free_of_an_address)
{
    cw_freed_remember(0x7000, 3);
    cr_expect_eq(cw_freed_find(0x7000), 3u);
    cw_freed_remember(0x7000, 4);
    cr_expect_eq(cw_freed_find(0x7000), 4u);
}

Test(freed, knows_nothing_of_other_addresses)
{
    cw_freed_remember(0x7000, 3);
    for (uint64_t key = 0x200; key < 0x200000; key += 0x200)
        if (key != 0x7000)
            cr_assert_eq(cw_freed_find(key), 0u);
}

Test(freed, remembers_most_of_the_last_thousand)
{
    unsigned found = 0;

    for (uint64_t i = 1; i <= 1000; i++)
        cw_freed_remember(i << 21, (uint32_t)i);
    for (uint64_t i = 1; i <= 1000; i++) {
        uint32_t site = cw_freed_find(i << 21);

        cr_assert(site == 0 || site == i);
        found += site != 0;
    }
    cr_expect_gt(found, 800u);
}

Test(freed, a_reset_forgets)
{
    cw_freed_remember(0x7000, 3);
    cw_freed_reset();
    cr_expect_eq(cw_freed_find(0x7000), 0u);
}
