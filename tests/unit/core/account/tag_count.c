/* SPDX-License-Identifier: MIT */
/* What a tag's allocations needed: what counts for which tag. Fallbacks: request/fallback.c. */
#include "core/account/tag_count.h"

#include <criterion/criterion.h>

#include "core/account/regrowth.h"
#include "core/tags/tag.h"
#include "core/tags/tag_name.h"
#include "pool_fixture.h"

TestSuite(tag_count, .init = pool_setup);

static struct cw_tag_sums sums_of(uint16_t tag)
{
    struct cw_tag_sums sums = {0};

    cw_tag_count_add(tag, 0, &sums);
    return sums;
}

static uint64_t resize(uint64_t key, uint64_t bytes)
{
    uint64_t larger = pool_get(2 * bytes);

    cw_regrowth_copied(larger, key, bytes);
    cr_assert_eq(pool_put(key), CW_POOL_KEPT);
    return larger;
}

Test(tag_count, a_resize_is_of_the_larger_block)
{
    uint16_t tag = cw_tag_name(0, "grow");
    uint64_t key = resize(pool_get(MIB), MIB);

    cw_tag_enter(tag);
    key = resize(key, 2 * MIB);
    resize(key, 4 * MIB);
    cr_expect_eq(sums_of(tag).resizes, 2u);
    cr_expect_eq(sums_of(tag).resized_bytes, 6 * MIB);
    cr_expect_eq(sums_of(0).resizes, 1u);
    cr_expect_eq(sums_of(0).resized_bytes, MIB);
}

Test(tag_count, what_the_driver_serves_is_no_hit)
{
    uint16_t tag = cw_tag_name(0, "cache");
    uint64_t key;

    cw_tag_enter(tag);
    cr_assert_eq(pool_put(pool_get(MIB)), CW_POOL_KEPT);
    cr_expect(pool_hits(CW_POOL_DEVICE, MIB, &key));
    cr_expect_eq(sums_of(tag).granted, 1u);
    cr_expect_eq(sums_of(tag).misses, 1u);
    cr_expect_eq(sums_of(0).granted, 0u);
}

Test(tag_count, begins_anew)
{
    cw_tag_enter(cw_tag_name(0, "cache"));
    pool_get(MIB);
    cw_tag_count_reset();
    cr_expect_eq(sums_of(cw_tag_here()).granted, 0u);
    cr_expect_eq(sums_of(cw_tag_here()).misses, 0u);
}

Test(tag_count, of_nobody_there_is_nothing)
{
    struct cw_tag_sums sums = {.granted = 7};

    cw_tag_count_add(CW_TAGS_MAX + 1, 0, &sums);
    cw_tag_count_add(0, CW_DEVICES, &sums);
    cr_expect_eq(sums.granted, 7u);
}
