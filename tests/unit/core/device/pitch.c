/* SPDX-License-Identifier: MIT */
/* Pitches that the driver has given. */
#include "core/device/pitch.h"

#include <criterion/criterion.h>

Test(pitch, is_not_known_before_the_driver_was_asked)
{
    cr_expect_eq(cw_pitch_find(0, 1000, 4), 0u);
}

Test(pitch, is_that_of_device_width_and_element)
{
    cw_pitch_learn(0, 1000, 4, 1024);
    cr_expect_eq(cw_pitch_find(0, 1000, 4), 1024u);
    cr_expect_eq(cw_pitch_find(1, 1000, 4), 0u);
    cr_expect_eq(cw_pitch_find(0, 1001, 4), 0u);
    cr_expect_eq(cw_pitch_find(0, 1000, 8), 0u);
}

Test(pitch, the_last_answer_counts)
{
    cw_pitch_learn(0, 1000, 4, 1024);
    cw_pitch_learn(0, 1000, 4, 1536);
    cr_expect_eq(cw_pitch_find(0, 1000, 4), 1536u);
}

Test(pitch, of_rows_beyond_any_device_is_not_remembered)
{
    cw_pitch_learn(0, UINT64_C(1) << 48, 4, 7);
    cr_expect_eq(cw_pitch_find(0, UINT64_C(1) << 48, 4), 0u);
    cr_expect_eq(cw_pitch_find(0, 0, 4), 0u);
    cw_pitch_learn(0, 1000, 256, 7);
    cr_expect_eq(cw_pitch_find(0, 1000, 256), 0u);
    cr_expect_eq(cw_pitch_find(0, 1001, 0), 0u);
    cw_pitch_learn(0, (UINT64_C(1) << 48) - 1, 16, 9);
    cr_expect_eq(cw_pitch_find(0, (UINT64_C(1) << 48) - 1, 16), 9u);
}

Test(pitch, a_thousand_widths_are_told_apart)
{
    for (uint64_t i = 1; i <= 1000; i++)
        cw_pitch_learn((uint8_t)(i % 3), i, 4, i * 512);
    for (uint64_t i = 1; i <= 1000; i++)
        cr_assert_eq(cw_pitch_find((uint8_t)(i % 3), i, 4), i * 512);
    cw_pitch_reset();
    cr_expect_eq(cw_pitch_find(1, 1, 4), 0u);
}
