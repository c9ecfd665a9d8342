/* SPDX-License-Identifier: MIT */
/* The numbers by which the contexts of a device are told apart, and where sites get them. */
#include "core/device/context.h"

#include <criterion/criterion.h>

#include "core/account/site.h"
#include "core/account/tracker.h"
#include "fake_driver.h"

#define HANDLE 0xc0ffee00u

TestSuite(context_number, .init = core_start);

static struct cw_live_context *record(uint32_t context)
{
    return core_at(CW_TABLE_CONTEXT, context);
}

static uint32_t current(void)
{
    uint8_t device;

    return cw_context_current(&device);
}

static uint32_t of(uint64_t handle)
{
    uint8_t device;

    return cw_context_of(handle, &device);
}

static uint32_t create(uint64_t id, unsigned device)
{
    fake_context(0, HANDLE, id, device);
    cw_context_created(HANDLE, device);
    fake_set_current(HANDLE);
    return current();
}

static void end(uint32_t context, enum cw_context_outcome outcome)
{
    struct cw_context_ending ending;

    cw_context_end_begin(context, &ending);
    cw_context_end_finish(&ending, outcome);
}

CoreTest(context_number, those_of_a_device_at_one_time_have_different_numbers)
{
    uint32_t first = create(1, 2), second, other, third;

    fake_context(1, HANDLE + 1, 2, 2);
    cw_context_created(HANDLE + 1, 2);
    second = of(HANDLE + 1);
    fake_context(2, HANDLE + 2, 3, 3);
    cw_context_created(HANDLE + 2, 3);
    other = of(HANDLE + 2);
    cr_expect_eq(record(first)->number, 0);
    cr_expect_eq(record(second)->number, 1);
    cr_expect_eq(record(other)->number, 0);
    end(first, CW_CONTEXT_KEPT);
    cr_expect_eq(record(create(4, 2))->number, 0, "the handle was given out again");
    end(second, CW_CONTEXT_DESTROYED);
    fake_context(3, HANDLE + 3, 5, 2);
    cw_context_created(HANDLE + 3, 2);
    third = of(HANDLE + 3);
    cr_expect_eq(record(third)->number, 1);
}

CoreTest(context_number, too_many_share_the_last_number)
{
    uint32_t context = 0;

    for (unsigned i = 0; i < CW_CONTEXT_NUMBERS + 2; i++) {
        fake_context(i % 4, HANDLE + i, i + 1, 0);
        cw_context_created(HANDLE + i, 0);
        context = of(HANDLE + i);
        cr_expect_eq(record(context)->number, i < CW_CONTEXT_NUMBERS ? i : CW_CONTEXT_NUMBERS - 1u);
    }
    end(context, CW_CONTEXT_DESTROYED);
    fake_context(0, HANDLE, 100, 0);
    cw_context_created(HANDLE + 99, 0);
    cr_expect_eq(record(cw_arena_count(core_arena, CW_TABLE_CONTEXT) - 1)->number,
                 CW_CONTEXT_NUMBERS - 1, "others still have it");
}

CoreTest(context_number, a_site_has_the_number_of_the_current_one)
{
    uint32_t api = cw_site_text("cuMemAlloc");

    create(1, 0);
    cr_expect_eq(cw_site_at(cw_site_here(api, CW_KIND_DEVICE, 0))->context, 0);
    fake_context(1, HANDLE + 1, 2, 0);
    cw_context_created(HANDLE + 1, 0);
    fake_set_current(HANDLE + 1);
    current();
    cr_expect_eq(cw_site_at(cw_site_here(api, CW_KIND_DEVICE, 0))->context, 1);
    fake_set_current(HANDLE);
    current();
    cr_expect_eq(cw_site_at(cw_site_here(api, CW_KIND_DEVICE, 0))->context, 0);
}
