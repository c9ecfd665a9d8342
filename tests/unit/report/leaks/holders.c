/* SPDX-License-Identifier: MIT */
/* Which places hold a device's memory. */
#include "report/leaks/holders.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#include "live_fixture.h"

static struct cw_report_holder holder[CW_OOM_HOLDERS];
static uint64_t rest_bytes, rest_blocks;

TestSuite(holders, .init = fixture_create, .fini = fixture_destroy);

static unsigned find(unsigned device)
{
    struct cw_view view = fixture_view();

    return cw_report_holders(&view, device, holder, &rest_bytes, &rest_blocks);
}

static uint32_t add(uint32_t stack, const char *api, enum cw_kind kind, unsigned device,
                    uint64_t bytes, unsigned blocks)
{
    uint32_t site = fixture_site(stack, api, kind, device);

    fixture_alloc(site, bytes, blocks, 1);
    return site;
}

Test(holders, of_nothing_are_none)
{
    uint32_t site = add(1, "cudaMalloc", CW_KIND_DEVICE, 0, 100, 2);

    fixture_free(site, 100, 2);
    cr_expect_eq(find(0), 0);
    cr_expect_eq(rest_bytes, 0);
    cr_expect_eq(rest_blocks, 0);
    cr_expect_eq(find(CW_DEVICES), 0);
}

Test(holders, sites_of_equal_stack_api_kind_and_device_are_one)
{
    uint32_t first = add(7, "cudaMalloc", CW_KIND_DEVICE, 0, 100, 1);

    add(7, "cudaMalloc", CW_KIND_DEVICE, 0, 10, 2); /* another thread's record and text */
    add(8, "cudaMalloc", CW_KIND_DEVICE, 0, 50, 1);
    add(7, "cudaMallocPitch", CW_KIND_DEVICE, 0, 40, 1);
    add(7, "cudaMalloc", CW_KIND_MANAGED, 0, 30, 1);
    add(7, "cudaMalloc", CW_KIND_DEVICE, 1, 1000, 1);
    cr_assert_eq(find(0), 4);
    cr_expect(holder[0].bytes == 120 && holder[0].blocks == 3 && holder[0].site == first);
    cr_expect(holder[1].bytes == 50 && holder[2].bytes == 40 && holder[3].bytes == 30);
    cr_expect(rest_bytes == 0 && rest_blocks == 0);
    cr_assert_eq(find(1), 1);
    cr_expect_eq(holder[0].bytes, 1000);
}

Test(holders, what_is_counted_nowhere_or_elsewhere_is_left_out)
{
    add(1, "cudaIpcOpenMemHandle", CW_KIND_IPC, 0, 500, 1);
    add(1, "cudaMallocHost", CW_KIND_PINNED, CW_DEVICE_HOST, 400, 1);
    add(1, "cudaMalloc", CW_KIND_MANAGED, CW_DEVICE_HOST, 300, 1); /* in the place of a device's */
    add(1, "cudaMalloc", CW_KIND_DEVICE, 0, 200, 1);
    cr_assert_eq(find(0), 1);
    cr_expect_eq(holder[0].bytes, 200);
    cr_assert_eq(find(CW_DEVICE_HOST), 2);
    cr_expect(holder[0].bytes == 400 && holder[1].bytes == 300);
}

Test(holders, of_as_much_come_in_the_order_of_their_sites)
{
    for (uint32_t i = 0; i < 2 * CW_OOM_HOLDERS; i++)
        add(1 + i * 7919, "cudaMalloc", CW_KIND_DEVICE, 0, 100, 1);
    cr_assert_eq(find(0), CW_OOM_HOLDERS);
    for (unsigned i = 1; i < CW_OOM_HOLDERS; i++)
        cr_expect_eq(holder[i].site, holder[i - 1].site + 1);
}

static int is_larger(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return *left < *right ? 1 : *left > *right ? -1 : 0;
}

/* Against a plain model: many records of few places, in an order that is no order. */
Test(holders, largest_come_first_and_nothing_is_lost)
{
    uint64_t bytes[3000] = {0}, rest = 0, blocks = 0;

    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t place = i * 7919 % 3000;
        uint64_t size = 1 + (uint64_t)place * place % 10007 + i % 3;

        bytes[place] += size;
        add(1 + place, "cudaMalloc", CW_KIND_DEVICE, 0, size, 1);
    }
    cr_assert_eq(find(0), CW_OOM_HOLDERS);
    qsort(bytes, 3000, sizeof(bytes[0]), is_larger);
    for (unsigned i = 0; i < 3000; i++) {
        if (i < CW_OOM_HOLDERS)
            cr_expect_eq(holder[i].bytes, bytes[i], "%u", i);
        else
            rest += bytes[i];
    }
    for (unsigned i = 0; i < CW_OOM_HOLDERS; i++)
        blocks += holder[i].blocks;
    cr_expect_eq(rest_bytes, rest);
    cr_expect_eq(rest_blocks, 30000 - blocks);
}
