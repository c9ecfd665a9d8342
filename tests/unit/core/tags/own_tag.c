/* SPDX-License-Identifier: MIT */
/* Tags that the program pushes and pops itself: beside NVTX's ranges, too deep, and by texts that
 * change in their place. */
#include "core/tags/tag.h"

#include <criterion/criterion.h>

#include <string.h>

#include "core/control/lifecycle.h"
#include "core/process/session.h"
#include "fake_driver.h"

static void setup(void)
{
    fake_driver_init();
    core_arm();
}

TestSuite(own_tag, .init = setup);

static uint16_t named(const char *name)
{
    return cw_tag_name(0, name);
}

static void expect_steps(uint16_t tag, uint64_t steps)
{
    const struct cw_live_tag *record = core_at(CW_TABLE_TAG, tag);

    cr_expect_eq(record->begun, steps);
    cr_expect_eq(record->steps, steps);
}

Test(own_tag, own_tags_nest_with_ranges_and_are_no_steps)
{
    uint16_t range = named("range"), own = named("own");

    cw_tag_push(0, range);
    cw_tag_enter(own);
    cr_expect_eq(cw_tag_here(), own);
    cr_expect_eq(cw_tag_pop(0), 0, "a pop of NVTX ends NVTX's");
    cr_expect_eq(cw_tag_here(), own);
    cr_expect_eq(cw_tag_pop(0), -1);
    cr_expect_eq(cw_tag_leave(), 0);
    cr_expect_eq(cw_tag_here(), 0);
    cr_expect_eq(cw_tag_leave(), -1);
    expect_steps(own, 0);
    expect_steps(range, 1);
}

Test(own_tag, own_tags_that_lie_too_deep_find_their_ends)
{
    for (int i = 0; i < CW_TAG_DEPTH; i++)
        cw_tag_enter(named("outer"));
    cw_tag_enter(named("too deep"));
    cr_expect_eq(cw_tag_here(), named("outer"));
    for (int i = 0; i < CW_TAG_DEPTH + 1; i++)
        cr_expect_eq(cw_tag_leave(), 0);
    cr_expect_eq(cw_tag_leave(), -1);
}

Test(own_tag, a_text_that_was_asked_for_before_is_compared)
{
    char name[] = "first";
    uint16_t tag = cw_tag_name_again(name);

    cr_expect_eq(tag, named("first"));
    strcpy(name, "other");
    cr_expect_eq(cw_tag_name_again(name), named("other"));
    cr_expect_neq(cw_tag_name_again(name), tag);
    cr_expect_eq(cw_tag_name_find(0, "never used"), 0);
    cr_expect_eq(cw_tag_name_find(0, "first"), tag);
}
