/* SPDX-License-Identifier: MIT */
/* The shared buckets: which block serves which request, and what the records say. */
#include "core/bucket.h"

#include <criterion/criterion.h>

#include "core/realm.h"
#include "core/session.h"
#include "core/tracker.h"
#include "pool_fixture.h"

static struct cw_pool *pool, *pitched;

static void setup(void)
{
    struct cw_realm *realm;

    pool_start(CW_FREE_STRICT);
    realm = cw_realm_of(pool_index(FIRST_CONTEXT));
    pool = cw_realm_pool(realm, CW_POOL_DEVICE);
    pitched = cw_realm_pool(realm, CW_POOL_PITCHED);
}

TestSuite(bucket, .init = setup);

/* An idle block of this size, in no list. */
static uint32_t block_of(struct cw_pool *in, uint64_t held)
{
    struct cw_request request = {.kind = in->kind,
                                 .device = 0,
                                 .flags = CW_BLOCK_POOLED,
                                 .class = in->class,
                                 .context = in->realm->context,
                                 .held = held};
    uint32_t block;

    request.key = fake_take(FIRST_CONTEXT, in->kind, held);
    block = cw_tracker_insert_idle(&request, core_site("a", in->kind, 0), 100);
    cw_bucket_added(in, block);
    return block;
}

static uint32_t put(struct cw_pool *in, uint64_t held)
{
    uint32_t block = block_of(in, held);

    cr_assert_eq(cw_bucket_put(in, block, 0), 1);
    return block;
}

static unsigned length(uint32_t list)
{
    unsigned count = 0;

    for (; list != 0; list = cw_tracker_at(list)->link)
        count++;
    return count;
}

Test(bucket, the_newest_block_serves_first)
{
    uint32_t old = put(pool, 4 * KIB), new = put(pool, 4 * KIB);

    cr_expect_eq(cw_bucket_take(pool, 4000), new);
    cr_expect_eq(cw_bucket_take(pool, 4096), old);
    cr_expect_eq(cw_bucket_take(pool, 4096), 0u);
}

Test(bucket, a_request_takes_its_own_size_before_an_odd_one)
{
    uint32_t odd = put(pool, 4 * KIB + 100), own = put(pool, 4 * KIB + 512);

    cr_expect_eq(cw_bucket_take(pool, 4 * KIB + 80), own);
    cr_expect_eq(cw_bucket_take(pool, 4 * KIB + 80), odd);
}

Test(bucket, an_odd_block_serves_only_what_fits)
{
    put(pool, 4 * KIB + 100);
    cr_expect_eq(cw_bucket_take(pool, 4 * KIB + 101), 0u);
    cr_expect_neq(cw_bucket_take(pool, 4 * KIB + 100), 0u);
}

Test(bucket, a_rounded_request_may_take_the_next_size_within_an_eighth)
{
    put(pool, 72 * KIB);
    cr_expect_eq(cw_bucket_take(pool, 63 * KIB), 0u); /* 72 is more than 63 and an eighth */
    cr_expect_neq(cw_bucket_take(pool, 64 * KIB), 0u);
}

Test(bucket, above_64_mib_the_smallest_that_fits_serves)
{
    uint32_t large = put(pool, 90 * MIB), small = put(pool, 82 * MIB), medium = put(pool, 86 * MIB);

    cr_expect_eq(cw_bucket_take(pool, 100 * MIB), 0u);
    cr_expect_eq(cw_bucket_take(pool, 66 * MIB), 0u);
    cr_expect_eq(cw_bucket_take(pool, 81 * MIB), small);
    cr_expect_eq(cw_bucket_take(pool, 81 * MIB), medium);
    cr_expect_eq(cw_bucket_take(pool, 81 * MIB), large);
    cr_expect_eq(cw_bucket_take(pool, 81 * MIB), 0u);
}

Test(bucket, pitched_blocks_are_of_any_size)
{
    uint32_t block = put(pitched, 51300);

    cr_expect_eq(cw_bucket_take(pitched, 51301), 0u);
    cr_expect_eq(cw_bucket_take(pitched, 45000), 0u);
    cr_expect_eq(cw_bucket_take(pool, 51300), 0u);
    cr_expect_eq(cw_bucket_take(pitched, 51300), block);
}

/* Whatever is taken is of the request's class, or fits. */
Test(bucket, random_requests_get_what_is_legal)
{
    uint64_t state = 7;

    for (int i = 0; i < 20000; i++) {
        uint64_t bytes = (next_random(&state) >> (36 + i % 27)) + 1, held;
        uint32_t block;

        if (i % 2 != 0) {
            put(pool, bytes < CW_SIZE_LEAST ? CW_SIZE_LEAST : bytes);
            continue;
        }
        block = cw_bucket_take(pool, bytes);
        if (block == 0)
            continue;
        held = cw_tracker_at(block)->held;
        cr_assert(held >= bytes);
        cr_assert(
            cw_size_fits(held, bytes) ||
            (bytes <= CW_SIZE_ROUNDED && cw_size_class_down(held) == cw_size_class_up(bytes)));
    }
}

Test(bucket, some_are_taken_at_once_and_are_no_hits)
{
    uint32_t count, list;

    for (int i = 0; i < 6; i++)
        put(pool, 1 * KIB);
    list = cw_bucket_take_some(pool, cw_size_class_up(1 * KIB), 4, &count);
    cr_expect_eq(count, 4u);
    cr_expect_eq(length(list), 4u);
    list = cw_bucket_take_some(pool, cw_size_class_up(1 * KIB), 4, &count);
    cr_expect_eq(count, 2u);
    cr_expect_eq(length(list), 2u);
    cr_expect_eq(cw_bucket_take_some(pool, cw_size_class_up(1 * KIB), 4, &count), 0u);
    cr_expect_eq(count, 0u);
    cr_expect_eq(pool_sums().hits, 0u);
    cr_expect_eq(pool_sums().idle_blocks, 6u);
}

Test(bucket, all_are_taken_or_only_the_large_that_lie_long)
{
    uint32_t small = put(pool, 1 * MIB), old = put(pool, 70 * MIB), new = put(pool, 70 * MIB);

    cw_tracker_at(new)->born_ns = 200;
    cr_expect_eq(cw_bucket_take_old(pool, 150), old);
    cr_expect_eq(cw_tracker_at(old)->link, 0u);
    cr_expect_eq(length(cw_bucket_take_all(pool)), 2u);
    cr_expect_eq(cw_bucket_idle(0), 0u);
    cr_expect_eq(cw_bucket_take_all(pool), 0u);
    (void)small;
}

Test(bucket, those_that_are_not_old_stay_in_order)
{
    uint32_t block[5];

    for (int i = 0; i < 5; i++) {
        block[i] = put(pool, 70 * MIB);
        cw_tracker_at(block[i])->born_ns = i % 2 ? 10 : 300;
    }
    cr_expect_eq(length(cw_bucket_take_old(pool, 100)), 2u);
    cr_expect_eq(cw_bucket_take(pool, 70 * MIB), block[4]);
    cr_expect_eq(cw_bucket_take(pool, 70 * MIB), block[2]);
    cr_expect_eq(cw_bucket_take(pool, 70 * MIB), block[0]);
}

Test(bucket, room_is_by_count_or_by_bytes)
{
    for (int i = 0; i < 8; i++)
        put(pool, 1 * MIB);
    cr_expect_eq(cw_bucket_has_room(pool, 1 * MIB, 8, 0), 1); /* 9 MiB of 64 */
    cr_expect_eq(cw_bucket_has_room(pool, 1 * MIB, 0, 0), 0);
    for (int i = 0; i < 56; i++)
        put(pool, 1 * MIB);
    cr_expect_eq(cw_bucket_has_room(pool, 1 * MIB, 8, 0), 0);
    cr_expect_eq(cw_bucket_has_room(pool, 1 * MIB, 65, 0), 1);
    put(pool, 80 * MIB);
    cr_expect_eq(cw_bucket_has_room(pool, 80 * MIB, 2, 0), 1);
    cr_expect_eq(cw_bucket_has_room(pool, 80 * MIB, 1, 0), 0);
}

Test(bucket, a_realm_that_is_not_open_takes_nothing)
{
    uint32_t block = block_of(pool, 4 * KIB);

    pool->realm->state = CW_REALM_CLOSING;
    cr_expect_eq(cw_bucket_put(pool, block, 0), 0);
    pool->realm->state = CW_REALM_OPEN;
    cr_expect_eq(cw_bucket_put(pool, block, 0), 1);
}

Test(bucket, records_count_what_happened)
{
    uint32_t block = put(pool, 4 * KIB), other = put(pool, 8 * KIB);
    struct pool_sums sums;

    cw_bucket_kept(pool, other); /* counted twice, as if it were two blocks */
    cr_expect_eq(cw_bucket_take(pool, 4000), block);
    cw_bucket_miss(pool, 300, 512);
    cw_bucket_dropped(pool, other, 1);
    cw_bucket_dropped(pool, other, 0);
    sums = pool_sums();
    cr_expect_eq(sums.hits, 1u);
    cr_expect_eq(sums.misses, 1u);
    cr_expect_eq(sums.asked, 4300u);
    cr_expect_eq(sums.given, 4 * KIB + 512);
    cr_expect_eq(sums.kept, 1u);
    cr_expect_eq(sums.released, 1u);
    cr_expect_eq(sums.released_bytes, 8 * KIB);
    cr_expect_eq(sums.idle_blocks, 0u);
    cr_expect_eq(sums.idle_bytes, 0u);
}

Test(bucket, what_was_put_back_is_no_hit)
{
    uint32_t block = put(pool, 4 * KIB);

    cr_expect_eq(cw_bucket_take(pool, 4000), block);
    cw_bucket_put_back(pool, block, 4000);
    cr_expect_eq(pool_sums().hits, 0u);
    cr_expect_eq(pool_sums().asked, 0u);
    cr_expect_eq(pool_sums().given, 0u);
    cr_expect_eq(pool_sums().idle_blocks, 1u);
    cr_expect_eq(pool_sums().idle_bytes, 4 * KIB);
}

Test(bucket, idle_bytes_are_by_device)
{
    put(pool, 4 * KIB);
    put(pool, 70 * MIB);
    cr_expect_eq(cw_bucket_idle(0), 70 * MIB + 4 * KIB);
    cr_expect_eq(cw_bucket_idle(1), 0u);
    cw_bucket_take(pool, 4 * KIB);
    cr_expect_eq(cw_bucket_idle(0), 70 * MIB);
}
