/* SPDX-License-Identifier: MIT */
/* What was transferred: sums by device and by tag. */
#include <criterion/criterion.h>

#include "api/transfers.h"
#include "core/tags/tag_name.h"
#include "live/layout.h"

static struct cw_transfers sum(uint8_t device, uint16_t tag)
{
    struct cw_transfers sums = {0};

    cw_transfers_sum(device, tag, &sums);
    return sums;
}

Test(transfers, are_summed_by_device_and_by_tag)
{
    struct cw_transfers own = {0}, all;
    struct cw_carried carried = {0};

    cw_transfers_add(0, 3, &own, 100, 10, 4);
    cw_transfers_add(0, 0, &own, 50, 10, 40); /* waited for longer than it took */
    cw_transfers_carried(0, 3, CW_WAY_PEER, 100);
    cw_transfers_carried(0, 0, CW_WAY_STAGED, 50);
    all = sum(0, CW_TRANSFERS_ANY);
    cr_expect(all.count == 2 && all.bytes == 150 && all.ns == 20 && all.waited_ns == 44);
    cr_expect_eq(all.overlapped_ns, 6);
    cr_expect_float_eq(cw_transfers_overlap(&all), 0.3, 1e-9);
    cr_expect(own.count == 2 && own.bytes == 150 && own.overlapped_ns == 6);
    cr_expect(sum(0, 3).bytes == 100 && sum(0, 0).bytes == 50);
    cr_expect(sum(0, 4).count == 0 && sum(1, CW_TRANSFERS_ANY).count == 0);
    cw_transfers_sum_carried(0, CW_TRANSFERS_ANY, &carried);
    cr_expect(carried.count[CW_WAY_PEER] == 1 && carried.bytes[CW_WAY_STAGED] == 50);
    cw_transfers_sum_carried(0, 3, &carried); /* adds */
    cr_expect(carried.bytes[CW_WAY_PEER] == 200 && carried.bytes[CW_WAY_LOCAL] == 0);
    cw_transfers_reset();
    cr_expect(sum(0, CW_TRANSFERS_ANY).count == 0 && sum(0, 3).waited_ns == 0);
}

Test(transfers, of_a_device_or_a_tag_that_cannot_be_count_for_the_owner_alone)
{
    struct cw_transfers own = {0};

    cw_transfers_add(CW_DEVICE_HOST, 3, &own, 100, 10, 0);
    cw_transfers_add(0, CW_TAGS_MAX + 1, &own, 100, 10, 0);
    cw_transfers_carried(CW_DEVICE_HOST, 3, CW_WAY_PEER, 100);
    cr_expect_eq(own.count, 2);
    cr_expect(sum(CW_DEVICE_HOST, 3).count == 0 && sum(0, CW_TAGS_MAX + 1).count == 0);
    cr_expect_eq(sum(0, CW_TRANSFERS_ANY).count, 1);
    cr_expect_eq(cw_transfers_overlap(&(struct cw_transfers){0}), 0);
}
