/* SPDX-License-Identifier: MIT */
/* Size classes against a list of the classes, at every edge and for random sizes. */
#include "core/account/size_class.h"

#include <criterion/criterion.h>

#include "fake_driver.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static uint64_t class_bytes[CW_SIZE_CLASSES];

/* Multiples of 512 up to 4 KiB, then eight to each doubling. */
static void make_list(void)
{
    unsigned n = 0;

    while (n < 8) {
        class_bytes[n] = (n + 1) * 512;
        n++;
    }
    for (uint64_t from = 4 * KIB; n < CW_SIZE_CLASSES; from *= 2)
        for (unsigned eighth = 1; eighth <= 8; eighth++)
            class_bytes[n++] = from + from / 8 * eighth;
}

TestSuite(size_class, .init = make_list);

static unsigned naive_up(uint64_t bytes)
{
    unsigned n = 0;

    while (class_bytes[n] < bytes)
        n++;
    return n;
}

static unsigned naive_down(uint64_t bytes)
{
    unsigned n = 0;

    while (n + 1 < CW_SIZE_CLASSES && class_bytes[n + 1] <= bytes)
        n++;
    return n;
}

static void expect_as_listed(uint64_t bytes)
{
    if (bytes == 0 || bytes > CW_SIZE_MOST)
        return;
    cr_expect_eq(cw_size_class_up(bytes), naive_up(bytes), "%ju up", (uintmax_t)bytes);
    if (bytes >= CW_SIZE_LEAST)
        cr_expect_eq(cw_size_class_down(bytes), naive_down(bytes), "%ju down", (uintmax_t)bytes);
}

Test(size_class, the_list_ends_with_the_largest_size)
{
    cr_expect_eq(class_bytes[CW_SIZE_CLASSES - 1], CW_SIZE_MOST);
    for (unsigned i = 0; i < CW_SIZE_CLASSES; i++)
        cr_expect_eq(cw_size_class_bytes(i), class_bytes[i]);
}

Test(size_class, all_sizes_up_to_a_quarter_megabyte_are_as_listed)
{
    for (uint64_t bytes = 1; bytes <= 256 * KIB; bytes++)
        expect_as_listed(bytes);
}

Test(size_class, all_sizes_around_every_class_are_as_listed)
{
    for (unsigned i = 0; i < CW_SIZE_CLASSES; i++)
        for (uint64_t near = class_bytes[i] - 3; near <= class_bytes[i] + 3; near++)
            expect_as_listed(near);
}

Test(size_class, random_sizes_are_as_listed)
{
    uint64_t state = 1;

    for (int i = 0; i < 100000; i++)
        expect_as_listed(next_random(&state) >> (16 + i % 40));
}

Test(size_class, a_request_is_at_most_an_eighth_smaller_than_its_class)
{
    uint64_t state = 2;

    for (int i = 0; i < 100000; i++) {
        uint64_t bytes = (next_random(&state) >> (17 + i % 40)) + 1;
        uint64_t held = cw_size_class_bytes(cw_size_class_up(bytes));

        cr_assert(held >= bytes);
        cr_assert(held - bytes <= bytes / 8 + 511);
    }
}

Test(size_class, rounding_ends_at_64_mib_and_goes_on_by_pages)
{
    cr_expect_eq(cw_size_round(1), 512u);
    cr_expect_eq(cw_size_round(64 * MIB), 64 * MIB);
    cr_expect_eq(cw_size_round(64 * MIB - 1), 64 * MIB);
    cr_expect_eq(cw_size_round(64 * MIB + 1), 66 * MIB);
    cr_expect_eq(cw_size_round(71 * MIB), 72 * MIB);
    cr_expect_eq(cw_size_round(CW_SIZE_MOST), CW_SIZE_MOST);
    cr_expect_eq(cw_size_round(CW_SIZE_MOST + 1), CW_SIZE_MOST + 1);
    cr_expect_eq(cw_size_round(UINT64_MAX), UINT64_MAX);
}

Test(size_class, classes_from_16_mib_on_are_whole_pages)
{
    for (unsigned i = cw_size_class_up(16 * MIB); i < CW_SIZE_CLASSES; i++)
        cr_expect_eq(class_bytes[i] % CW_SIZE_PAGE, 0u);
}

Test(size_class, excess_is_what_the_request_alone_would_not_take)
{
    cr_expect_eq(cw_size_excess(512, 1), 0u); /* the driver gives 512 bytes at least */
    cr_expect_eq(cw_size_excess(1024, 513), 0u);
    cr_expect_eq(cw_size_excess(1536, 513), 512u);
    cr_expect_eq(cw_size_excess(1 * MIB, 900 * KIB), 124 * KIB);
    /* Of large ones whole pages are gone. */
    cr_expect_eq(cw_size_excess(4 * MIB + 512, 4 * MIB), 2 * MIB);
    cr_expect_eq(cw_size_excess(4 * MIB, 2 * MIB + 512), 2 * MIB - 512);
    cr_expect_eq(cw_size_excess(6 * MIB, 3 * MIB), 3 * MIB);
    cr_expect_eq(cw_size_excess(500, 1000), 0u);
}

Test(size_class, fits_means_large_enough_and_no_more_excess_than_said)
{
    cr_expect_eq(cw_size_fits(1000, (struct cw_size_fit){1001, UINT64_MAX}), 0);
    cr_expect_eq(cw_size_fits(1000, (struct cw_size_fit){1000, 0}), 1);
    cr_expect_eq(cw_size_fits(1024, (struct cw_size_fit){1000, 0}), 1);
    cr_expect_eq(cw_size_fits(1536, (struct cw_size_fit){1000, 511}), 0);
    cr_expect_eq(cw_size_fits(1536, (struct cw_size_fit){1000, 512}), 1);
}

Test(size_class, a_block_of_the_requests_own_class_is_within_tolerance)
{
    uint64_t state = 3;

    for (int i = 0; i < 100000; i++) {
        uint64_t bytes = (next_random(&state) >> (17 + i % 40)) + 1;
        uint64_t held = cw_size_class_bytes(cw_size_class_up(bytes));

        cr_assert_leq(cw_size_excess(held, bytes), cw_size_tolerance(bytes), "%ju",
                      (uintmax_t)bytes);
    }
}
