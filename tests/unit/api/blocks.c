/* SPDX-License-Identifier: MIT */
/* Blocks as the program sees them, while others work. */
#include "api/blocks.h"

#include <criterion/criterion.h>

#include "core/account/tracker.h"
#include "fake_driver.h"

static struct cw_view view;

static void setup(void)
{
    fake_driver_init();
    core_arm();
    cw_arena_view(&cw_session.arena, &view);
}

TestSuite(blocks, .init = setup);

/* A thread is about to take a block: its record is there, in a chunk of its own, the owner's is not
 * yet. */
Test(blocks, a_record_without_an_owner_is_passed_over)
{
    struct cw_api_block read;
    uint32_t index;

    do
        index = cw_arena_append(&cw_session.arena, CW_TABLE_BLOCK);
    while (index < 2 * CW_BLOCKS_FIRST);
    cr_expect_eq(cw_api_block_read(&view, index, &read), -1);
}
