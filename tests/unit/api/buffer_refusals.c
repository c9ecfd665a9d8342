/* SPDX-License-Identifier: MIT */
/* Growable buffers: what is refused or fails leaves everything as it was. */
#include <criterion/criterion.h>

#include <math.h>

#include "api/buffer_ops.h"
#include "buffer_fixture.h"
#include "core/limits/limit.h"
#include "core/process/gate.h"

TestSuite(buffer_refusals, .init = buffer_setup);

/* ---- refusals and failures ---- */

Test(buffer_refusals, what_can_never_be_had_reaches_no_driver)
{
    uint64_t buffer = make("a", 0);

    forget_calls();
    cr_expect_eq(ensure(buffer, UINT64_MAX), CUWARDEN_TOO_LARGE);
    cr_expect_eq(ensure(buffer, UINT64_MAX / 4 + 2), CUWARDEN_TOO_LARGE);
    cr_expect_eq(ensure(buffer, 256 * MIB + 1), CUWARDEN_TOO_LARGE);
    cw_limit_set(0, 100 * MIB);
    cr_expect_eq(ensure(buffer, 25 * MIB + 1), CUWARDEN_OUT_OF_LIMIT);
    EXPECT_TEXT(CUWARDEN_OUT_OF_LIMIT,
                "cannot have 106954752 bytes: the limit is 104857600, and 0");
    cw_limit_set(0, 0);
    EXPECT_CALLS("");
    cr_expect_eq(now(buffer).used, 0);
}

Test(buffer_refusals, a_maximum_beyond_the_device_is_the_devices_to_refuse)
{
    struct cuwarden_buffer_spec spec = spec_of("a", 0);
    uint64_t buffer;

    spec.most_bytes = 4096 * MIB;
    make_of(spec, &buffer);
    forget_calls();
    cr_expect_eq(ensure(buffer, 256 * MIB + 1), CUWARDEN_OUT_OF_DEVICE);
    EXPECT_CALLS("");
}

Test(buffer_refusals, as_many_bytes_as_a_number_can_say_are_more_than_the_device_has)
{
    struct cuwarden_buffer_spec spec = spec_of("a", 0);
    uint64_t buffer;

    spec.element_bytes = 1;
    spec.most_bytes = UINT64_MAX;
    make_of(spec, &buffer);
    cr_expect_eq(ensure(buffer, UINT64_MAX), CUWARDEN_OUT_OF_DEVICE);
    cr_expect_eq(now(buffer).used, 0);
    spec.name = "b";
    spec.count = UINT64_MAX;
    cr_expect_eq(make_of(spec, &buffer), CUWARDEN_OUT_OF_DEVICE);
    cr_expect_eq(device.mapped, 2 * MIB);
}

Test(buffer_refusals, pieces_of_a_growth_that_fails_go_back)
{
    uint64_t buffer = make("a", 0);

    forget_calls();
    device.fails_at['M'] = CW_BUFFER_NO_MEMORY;
    device.spared = 2;
    cr_expect_eq(ensure(buffer, 200 * MIB / 4), CUWARDEN_OUT_OF_DEVICE);
    EXPECT_TEXT(CUWARDEN_OUT_OF_DEVICE, "buffer 'a' of 2097152 bytes on device 0 cannot have");
    EXPECT_CALLS("MMMWW");
    cr_expect(device.mapped == 2 * MIB && now(buffer).capacity_bytes == 2 * MIB);
    cr_expect(now(buffer).resizes == 0 && now(buffer).used == 0);
    device.fails_at['M'] = 0;
    cr_expect_eq(ensure(buffer, 200 * MIB / 4), CUWARDEN_OK);
}

/* The room was there when it was asked about. */
Test(buffer_refusals, a_growth_that_finds_no_memory_for_its_factor_is_by_what_is_needed)
{
    static const uint32_t flags[] = {0, CUWARDEN_COPYING};
    static const char *const names[] = {"mapped", "copied"};

    for (int i = 0; i < 2; i++) {
        struct cuwarden_buffer_spec spec = spec_of(names[i], flags[i]);
        uint64_t buffer;

        spec.count = 128 * MIB / 4;
        spec.growth = 2;
        make_of(spec, &buffer);
        device.room = i == 0 ? 1024 * MIB : 0; /* not known */
        device.left = i == 0 ? 64 * MIB : 200 * MIB;
        cr_expect_eq(ensure(buffer, 128 * MIB / 4 + 1), CUWARDEN_OK);
        cr_expect_eq(now(buffer).capacity_bytes, i == 0 ? 130 * MIB : 128 * MIB + 4);
        device.left = MIB;
        cr_expect_eq(ensure(buffer, 150 * MIB / 4), CUWARDEN_OUT_OF_DEVICE);
        EXPECT_TEXT(CUWARDEN_OUT_OF_DEVICE, "cannot have 157286400 bytes");
        device.left = 1024 * MIB;
        cr_expect_eq(cw_api_buffer_end(buffer), CUWARDEN_OK);
    }
}

Test(buffer_refusals, a_copy_that_fails_leaves_the_old_block)
{
    static const struct {
        char at;
        const char *calls;
    } rows[] = {{'A', "A"}, {'C', "ACF"}, {'S', "ACSF"}};
    uint64_t buffer = make("a", CUWARDEN_COPYING), address = now(buffer).address;

    ensure(buffer, 100);
    for (unsigned i = 0; i < 3; i++) {
        forget_calls();
        device.fails_at[(unsigned char)rows[i].at] = 719;
        cr_expect_eq(ensure(buffer, 5000), CUWARDEN_DRIVER);
        EXPECT_TEXT(CUWARDEN_DRIVER, "buffer 'a' cannot grow: the driver's code is 719");
        EXPECT_CALLS(rows[i].calls);
        cr_expect(now(buffer).address == address && now(buffer).capacity == 1024);
        cr_expect(now(buffer).copies == 0 && now(buffer).used == 100);
        device.fails_at[(unsigned char)rows[i].at] = 0;
    }
    cr_expect_eq(ensure(buffer, 5000), CUWARDEN_OK);
}

Test(buffer_refusals, one_that_cannot_begin_leaves_nothing)
{
    uint64_t none = 7;

    device.fails_at['M'] = CW_BUFFER_NO_MEMORY;
    cr_expect_eq(make_of(spec_of("a", 0), &none), CUWARDEN_OUT_OF_DEVICE);
    EXPECT_CALLS("PRMXU");
    device.fails_at['M'] = 0;
    device.fails_at['P'] = CW_BUFFER_NO_CONTEXT;
    cr_expect_eq(make_of(spec_of("a", 0), &none), CUWARDEN_NOT_STARTED);
    EXPECT_TEXT(CUWARDEN_NOT_STARTED, "cudaFree(0) is enough");
    device.fails_at['P'] = 0;
    cr_expect_eq(none, 7);
    make("a", 0);
}

Test(buffer_refusals, one_whose_memory_the_driver_does_not_take_back_is_gone_all_the_same)
{
    uint64_t buffer = make("a", CUWARDEN_COPYING);

    device.fails_at['F'] = 1;
    cr_expect_eq(cw_api_buffer_end(buffer), CUWARDEN_DRIVER);
    EXPECT_TEXT(CUWARDEN_DRIVER, "buffer 'a' cannot free its memory: the driver's code is 1");
    cr_expect_eq(cw_api_buffer_end(buffer), CUWARDEN_NOT_FOUND);
    buffer = make("a", 0);
    device.fails_at['W'] = 1;
    forget_calls();
    cr_expect_eq(cw_api_buffer_end(buffer), CUWARDEN_DRIVER);
    EXPECT_CALLS("XW");
}

Test(buffer_refusals, of_a_context_that_has_ended_can_only_end)
{
    uint64_t copied = make("copied", CUWARDEN_COPYING), mapped = make("mapped", 0);

    device.code_of_enter = CW_BUFFER_CONTEXT_ENDED;
    forget_calls();
    cr_expect_eq(ensure(copied, 1 << 20), CUWARDEN_DRIVER);
    EXPECT_TEXT(CUWARDEN_DRIVER, "its context has ended (709)");
    cr_expect_eq(ensure(mapped, 1 << 20), CUWARDEN_DRIVER);
    EXPECT_CALLS("");
    cr_expect_eq(cw_api_buffer_end(copied), CUWARDEN_OK);
    EXPECT_CALLS("");
    cr_expect_eq(cw_api_buffer_end(mapped), CUWARDEN_OK);
    EXPECT_CALLS("WU");
}

static uint64_t inside_buffer;

static int grow_inside(void)
{
    device.inside = NULL;
    return cw_api_buffer_ensure(inside_buffer, 1 << 20, NULL, NULL);
}

Test(buffer_refusals, in_change_are_busy)
{
    inside_buffer = make("a", CUWARDEN_COPYING);
    ensure(inside_buffer, 100);
    device.inside = grow_inside;
    cr_expect_eq(ensure(inside_buffer, 5000), CUWARDEN_OK);
    cr_expect_eq(device.inside_gave, CUWARDEN_BUSY);
}

Test(buffer_refusals, do_not_change_during_a_capture)
{
    uint64_t buffer = make("a", 0), bytes = 7;

    atomic_store(&cw_gate_captures, 1);
    forget_calls();
    cr_expect_eq(ensure(buffer, 100), CUWARDEN_OK);
    cr_expect_eq(ensure(buffer, 1 << 20), CUWARDEN_BUSY);
    cr_expect_eq(cw_api_buffer_shrink(buffer, &bytes), CUWARDEN_BUSY);
    cr_expect_eq(cw_api_buffer_clean(0, 1, &bytes), CUWARDEN_BUSY);
    cr_expect_eq(cw_api_buffer_end(buffer), CUWARDEN_BUSY);
    cr_expect_eq(make_of(spec_of("b", 0), &bytes), CUWARDEN_BUSY);
    EXPECT_CALLS("");
    cr_expect_eq(bytes, 7);
    atomic_store(&cw_gate_captures, 0);
}
