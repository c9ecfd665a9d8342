/* SPDX-License-Identifier: MIT */
/* The contexts that have not ended: walks cost what lives, not what ever was. */
#include "core/device/living.h"

#include <criterion/criterion.h>

#include "core/device/context.h"
#include "fake_driver.h"

static void add(uint32_t context)
{
    cr_assert_eq(cw_living_reserve(), 0);
    cw_living_add(context);
}

static unsigned count(void)
{
    unsigned count = 0;

    for (uint32_t i = 0; (i = cw_living_next(i)) != 0;)
        count++;
    return count;
}

Test(living, are_visited_in_the_order_in_which_they_were_made)
{
    cr_expect_eq(cw_living_next(0), 0u);
    for (uint32_t i = 1; i <= 100; i++)
        add(i * 3);
    for (uint32_t i = 1; i <= 100; i++)
        cr_expect_eq(cw_living_next(i * 3 - 1), i * 3);
    cr_expect_eq(cw_living_next(300), 0u);
}

Test(living, one_that_has_ended_is_passed_over)
{
    for (uint32_t i = 1; i <= 5; i++)
        add(i);
    cw_living_remove(3);
    cw_living_remove(3);
    cr_expect_eq(cw_living_next(2), 4u);
    cw_living_remove(1);
    cw_living_remove(5);
    cr_expect_eq(cw_living_next(0), 2u);
    cr_expect_eq(cw_living_next(4), 0u);
    cr_expect_eq(count(), 2u);
}

Test(living, one_may_end_while_it_is_visited)
{
    for (uint32_t i = 1; i <= 5; i++)
        add(i);
    for (uint32_t i = 0; (i = cw_living_next(i)) != 0;)
        cw_living_remove(i);
    cr_expect_eq(count(), 0u);
}

Test(living, contexts_are_among_them_until_they_end, .init = core_start)
{
    struct cw_context_ending ending;
    uint8_t device;

    for (uint64_t i = 0; i < 1000; i++) {
        fake_context(1, 0xc0, 0, 0);
        cw_context_created(0xc0, 0);
        cr_expect_eq(count(), 1u);
        cw_context_end_begin(cw_context_of(0xc0, &device), &ending);
        cr_expect_eq(count(), 1u);
        fake_context_end(0xc0);
        cw_context_end_finish(&ending, i % 2 == 0 ? CW_CONTEXT_DESTROYED : CW_CONTEXT_RENEWED);
        cr_expect_eq(count(), i % 2);
    }
}
