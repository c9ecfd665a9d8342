/* SPDX-License-Identifier: MIT */
/* Growable buffers: how large they become, what is asked of the driver, in which order; who is
 * who, and what goes back. */
#include <criterion/criterion.h>

#include <math.h>
#include <signal.h>

#include "api/buffer_table.h"
#include "buffer_fixture.h"
#include "core/account/regrowth.h"
#include "fake_driver.h"
#include "pool_fixture.h"

TestSuite(buffers, .init = buffer_setup);

/* ---- how large ---- */

Test(buffers, by_default_begin_with_4_kib_and_grow_by_half)
{
    uint64_t buffer = make("a", CUWARDEN_COPYING);

    cr_expect_eq(now(buffer).capacity_bytes, 4096);
    cr_expect_eq(now(buffer).most_bytes, 1024 * MIB);
    cr_expect_eq(ensure(buffer, 1024), CUWARDEN_OK);
    cr_expect_eq(now(buffer).resizes, 0);
    ensure(buffer, 1025);
    cr_expect_eq(now(buffer).capacity_bytes, 6144);
    ensure(buffer, 100000);
    cr_expect_eq(now(buffer).capacity_bytes, 400000);
}

Test(buffers, grow_by_their_own_factor_up_to_their_maximum)
{
    struct cuwarden_buffer_spec spec = spec_of("a", CUWARDEN_COPYING);
    uint64_t buffer;

    spec.growth = 4;
    spec.least_bytes = 100;
    spec.most_bytes = 1001;
    spec.count = 30;
    make_of(spec, &buffer);
    cr_expect_eq(now(buffer).capacity_bytes, 120);
    ensure(buffer, 31);
    cr_expect_eq(now(buffer).capacity_bytes, 480);
    ensure(buffer, 121);
    cr_expect_eq(now(buffer).capacity_bytes, 1001);
    cr_expect_eq(now(buffer).capacity, 250);
    cr_expect_eq(ensure(buffer, 250), CUWARDEN_OK);
    cr_expect_eq(ensure(buffer, 251), CUWARDEN_TOO_LARGE);
    EXPECT_TEXT(CUWARDEN_TOO_LARGE, "room for 251 elements of 4 bytes: its maximum is 1001 bytes");
}

Test(buffers, take_only_what_is_needed_when_memory_is_short)
{
    uint64_t buffer = make("a", CUWARDEN_COPYING);

    device.room = 6143;
    ensure(buffer, 1025);
    cr_expect_eq(now(buffer).capacity_bytes, 4100);
    device.room = 0; /* not known */
    ensure(buffer, 1026);
    cr_expect_eq(now(buffer).capacity_bytes, 6150);
}

Test(buffers, begin_with_the_least_or_not_at_all)
{
    struct cuwarden_buffer_spec spec = spec_of("a", CUWARDEN_COPYING);
    uint64_t buffer;

    spec.least_bytes = 1000001;
    device.room = 4096;
    cr_expect_eq(make_of(spec, &buffer), CUWARDEN_OK); /* what is free is only an estimate */
    cr_expect_eq(now(buffer).capacity_bytes, 1000000);
    cw_api_buffer_end(buffer);
    spec.least_bytes = UINT64_MAX;
    cr_expect_eq(make_of(spec, &buffer), CUWARDEN_TOO_LARGE);
}

Test(buffers, in_place_have_whole_granules_within_the_maximum)
{
    struct cuwarden_buffer_spec spec = spec_of("a", 0);
    uint64_t buffer;

    spec.most_bytes = 5 * MIB;
    make_of(spec, &buffer);
    cr_expect_eq(now(buffer).capacity_bytes, 2 * MIB);
    ensure(buffer, 5 * MIB / 4);
    cr_expect_eq(now(buffer).capacity_bytes, 6 * MIB);
    cr_expect_eq(now(buffer).capacity, 5 * MIB / 4);
    cr_expect_eq(ensure(buffer, 5 * MIB / 4 + 1), CUWARDEN_TOO_LARGE);
    EXPECT_CALLS("PRMM");
}

Test(buffers, in_place_do_not_grow_beyond_the_device_by_their_factor)
{
    struct cuwarden_buffer_spec spec = spec_of("a", 0);
    uint64_t buffer;

    spec.most_bytes = 4096 * MIB;
    spec.count = 800 * MIB / 4;
    make_of(spec, &buffer);
    device.room = 0; /* not known */
    cr_expect_eq(ensure(buffer, 800 * MIB / 4 + 1), CUWARDEN_OK);
    cr_expect_eq(now(buffer).capacity_bytes, 1024 * MIB);
}

/* ---- what others see ---- */

#ifdef __x86_64__

static struct {
    const struct cw_buffer_row *row;
    uint64_t room, address; /* of before; of after */
    volatile sig_atomic_t steps, faults;
} seen;

static void look(int signal)
{
    (void)signal;
    seen.steps++;
    seen.faults += cw_buffer_load(&seen.row->room) > seen.room &&
                   cw_buffer_load(&seen.row->address) != seen.address;
}

/* On the flags: 0x100 has the processor trap after each instruction. */
#define CHANGE_FLAGS(operation)                                                                    \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" operation                              \
                     ", (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::                              \
                         : "memory", "cc")

/* As a reader in another thread would, between any two instructions. */
Test(buffers, show_more_room_when_the_address_is_there)
{
    struct cw_buffer_row *row = cw_buffer_row_of(make("a", CUWARDEN_COPYING));

    seen.row = row;
    seen.room = cw_buffer_load(&row->room);
    row->memory.bytes *= 2;
    seen.address = row->memory.address += 4096;
    signal(SIGTRAP, look);
    CHANGE_FLAGS("orq $0x100");
    cw_buffer_show(row);
    CHANGE_FLAGS("andq $-0x101");
    cr_expect_gt(cw_buffer_load(&row->room), seen.room);
    cr_expect_gt(seen.steps, 8);
    cr_expect_eq(seen.faults, 0);
}

#endif

/* ---- what is asked of the driver ---- */

Test(buffers, with_room_ask_nobody)
{
    uint64_t buffer = make("a", 0);

    forget_calls();
    for (unsigned i = 0; i <= 1024; i++)
        ensure(buffer, i);
    cr_expect_eq(now(buffer).used, 1024);
    ensure(buffer, 5);
    cr_expect_eq(now(buffer).used, 1024);
    EXPECT_CALLS("");
}

Test(buffers, in_place_grow_in_pieces_and_copy_nothing)
{
    uint64_t buffer = make("a", 0);
    uint64_t address = now(buffer).address;

    forget_calls();
    ensure(buffer, 140 * MIB / 4); /* 138 more */
    cr_expect(now(buffer).address == address && now(buffer).is_in_place);
    cr_expect(now(buffer).resizes == 1 && now(buffer).copies == 0);
    EXPECT_CALLS("MMM");
    cr_expect_eq(cw_api_buffer_end(buffer), CUWARDEN_OK);
    cr_expect_eq(device.mapped, 0);
    EXPECT_CALLS("XWWWWU");
}

Test(buffers, copies_are_done_before_the_old_block_is_freed)
{
    uint64_t buffer = make("a", CUWARDEN_COPYING);
    char stream;

    forget_calls();
    ensure(buffer, 100);
    cw_api_buffer_ensure(buffer, 5000, &stream, NULL);
    cr_expect_eq(device.copied, 400);
    cr_expect_eq(device.stream, &stream);
    EXPECT_CALLS("ACSF");
    cr_expect(now(buffer).copies == 1 && now(buffer).copied_bytes == 400);
    cw_api_buffer_use(buffer, 0);
    ensure(buffer, 20000);
    EXPECT_CALLS("AF");
}

Test(buffers, asynchronous_ones_wait_only_without_the_pool)
{
    uint64_t buffer = make("a", CUWARDEN_COPYING | CUWARDEN_ASYNCHRONOUS);

    ensure(buffer, 100);
    forget_calls();
    ensure(buffer, 5000);
    EXPECT_CALLS("ACSF");
}

Test(buffers_with_pool, asynchronous_ones_do_not_wait, .init = core_arm_pool)
{
    uint64_t buffer;

    buffer_start();
    buffer = make("a", CUWARDEN_COPYING | CUWARDEN_ASYNCHRONOUS);
    ensure(buffer, 100);
    forget_calls();
    ensure(buffer, 5000);
    EXPECT_CALLS("ACF");
    cw_api_buffer_end(buffer);
    buffer = make("a", CUWARDEN_COPYING);
    ensure(buffer, 100);
    forget_calls();
    ensure(buffer, 5000);
    EXPECT_CALLS("ACSF");
}

Test(buffers, without_mapping_or_addresses_are_copied)
{
    device.granule = 0;
    cr_expect_not(now(make("cannot map", 0)).is_in_place);
    EXPECT_CALLS("PA");
    device.granule = 2 * MIB;
    device.fails_at['R'] = 801;
    cr_expect_not(now(make("no addresses", 0)).is_in_place);
    EXPECT_CALLS("PRA");
}

Test(buffers, resizes_by_copies_are_in_the_statistics)
{
    uint64_t buffer = make("a", CUWARDEN_COPYING), key;
    uint32_t site = core_site("cuMemAlloc", CW_KIND_DEVICE, 0);
    const struct cw_live_regrowth *resized;

    cw_regrowth_init(&cw_session.arena, 1);
    for (uint64_t count = 2000; count <= 8000; count *= 2) {
        key = device.next + MIB; /* what the next allocation gives */
        core_put(site, key, count * 4);
        ensure(buffer, count);
    }
    cr_assert_eq(core_count(CW_TABLE_REGROWTH), 1);
    resized = core_at(CW_TABLE_REGROWTH, 1);
    cr_expect_eq(resized->resizes, 3);
    cr_expect_eq(resized->chains, 1);
    cr_expect_eq(resized->copied_bytes, (2000 + 4000) * 4);
    cr_expect_eq(now(buffer).copied_bytes, (2000 + 4000) * 4);
}

/* A driver that numbers no contexts: the next one can be entered by the name of the one before, and
 * may have a block of the program at the address. */
Test(buffers, of_a_context_that_was_reset_free_nothing)
{
    uint64_t buffer;

    fake_context(0, 0xc0, 0, 0);
    fake_set_current(0xc0);
    buffer = make("a", CUWARDEN_COPYING);
    ensure(buffer, 1000);
    pool_end_context(0xc0, CW_CONTEXT_RENEWED);
    forget_calls();
    cr_expect_eq(ensure(buffer, 100000), CUWARDEN_DRIVER);
    cr_expect_eq(cw_api_buffer_end(buffer), CUWARDEN_OK);
    EXPECT_CALLS("");
}

/* ---- who is who ---- */

Test(buffers, have_names_of_their_own)
{
    uint64_t a = make("a", 0), b = make("b", 0), found = 0;

    cr_expect_eq(make_of(spec_of("a", 0), &found), CUWARDEN_EXISTS);
    cr_expect(cw_api_buffer_find("b", 4, &found) == CUWARDEN_OK && found == b);
    cr_expect(cw_api_buffer_find("a", 0, &found) == CUWARDEN_OK && found == a);
    cr_expect_eq(cw_api_buffer_find("a", 12, &found), CUWARDEN_WRONG_SIZE);
    EXPECT_TEXT(CUWARDEN_WRONG_SIZE, "buffer 'a' has elements of 4 bytes, not of 12");
    cr_expect_eq(cw_api_buffer_find("c", 4, &found), CUWARDEN_NOT_FOUND);
    cw_api_buffer_end(a);
    cr_expect_eq(cw_api_buffer_find("a", 4, &found), CUWARDEN_NOT_FOUND);
    cr_expect_neq(make("a", 0), a);
    cr_expect_eq(ensure(a, 1), CUWARDEN_NOT_FOUND);
    cr_expect_eq(cw_api_buffer_use(a, 1), CUWARDEN_NOT_FOUND);
}

Test(buffers, are_so_many_at_most)
{
    char name[16];
    uint64_t none;

    for (unsigned i = 0; i < CW_BUFFERS; i++) {
        cw_format(name, sizeof(name), "buffer %u", i);
        make(name, CUWARDEN_COPYING);
        forget_calls();
    }
    cr_expect_eq(make_of(spec_of("one more", 0), &none), CUWARDEN_OUT_OF_HOST);
    EXPECT_TEXT(CUWARDEN_OUT_OF_HOST, "no room for buffer 'one more': there are 1024 already");
    cw_api_buffer_find("buffer 77", 4, &none);
    cw_api_buffer_end(none);
    make("one more", 0);
}

Test(buffers, of_the_parent_are_not_the_later)
{
    uint64_t parents = make("a", 0), later;

    cw_api_buffers_reset();
    cr_expect_eq(ensure(parents, 1), CUWARDEN_NOT_FOUND);
    later = make("a", 0);
    cr_expect_neq(later, parents);
}

Test(buffers, descriptions_that_cannot_be_are_refused)
{
    static const struct {
        struct cuwarden_buffer_spec spec;
        const char *text;
    } rows[] = {
        {{.name = NULL, .element_bytes = 4}, "needs a name; this one is NULL"},
        {{.name = "", .element_bytes = 4}, "needs a name; this one is empty"},
        {{.name = "a", .element_bytes = 0}, "an element of buffer 'a' has 0 bytes"},
        {{.name = "a", .element_bytes = 4, .growth = 0.99}, "99 % of what it is: 100 to 1600"},
        {{.name = "a", .element_bytes = 4, .growth = 16.1}, "1610 % of what it is"},
        {{.name = "a", .element_bytes = 4, .growth = -1}, "-100 % of what it is"},
        {{.name = "a", .element_bytes = 4, .growth = INFINITY}, "of what it is"},
        {{.name = "a", .element_bytes = 4, .growth = NAN}, "of what it is"},
        {{.name = "a", .element_bytes = 4, .flags = 4}, "has the flags 0x4; there are 0x3"},
        {{.name = "a", .element_bytes = 4, .least_bytes = 9, .most_bytes = 8}, "at least 9 bytes"},
        {{.name = "a", .element_bytes = 9, .most_bytes = 8}, "elements of 9, and at most 8"},
    };
    uint64_t none = 7;

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_eq(make_of(rows[i].spec, &none), CUWARDEN_INVALID, "row %u", i);
        EXPECT_TEXT(CUWARDEN_INVALID, rows[i].text);
    }
    EXPECT_CALLS("");
    cr_expect_eq(none, 7);
}

Test(buffers, an_older_program_has_a_shorter_description)
{
    struct cuwarden_buffer_spec spec = spec_of("a", 77);
    uint64_t buffer;

    spec.growth = NAN;
    cr_expect_eq(cw_api_buffer_make(&spec, offsetof(struct cuwarden_buffer_spec, growth), &buffer),
                 CUWARDEN_OK);
    cr_expect(now(buffer).is_in_place);
}

/* ---- giving back ---- */

Test(buffers, shrink_to_what_is_used)
{
    uint64_t mapped = make("mapped", 0), copied = make("copied", CUWARDEN_COPYING), bytes = 0;

    ensure(mapped, 140 * MIB / 4);
    cw_api_buffer_use(mapped, 3 * MIB / 4);
    forget_calls();
    cr_expect_eq(cw_api_buffer_shrink(mapped, &bytes), CUWARDEN_OK);
    EXPECT_CALLS("XWW"); /* 2 and 64 of 2, 64, 64 and 10 stay */
    cr_expect(bytes == 74 * MIB && now(mapped).capacity_bytes == 66 * MIB);
    cw_api_buffer_use(mapped, 0);
    cw_api_buffer_shrink(mapped, &bytes);
    cr_expect(bytes == 66 * MIB && now(mapped).capacity == 0 && now(mapped).address == 0);
    ensure(copied, 1000);
    cw_api_buffer_use(copied, 10);
    forget_calls();
    cr_expect_eq(cw_api_buffer_shrink(copied, &bytes), CUWARDEN_OK);
    cr_expect(bytes == 4096 - 40 && device.copied == 40 && now(copied).capacity == 10);
    EXPECT_CALLS("XACSF");
    cw_api_buffer_shrink(copied, &bytes);
    cr_expect_eq(bytes, 0);
    EXPECT_CALLS("");
    device.fails_at['X'] = 700;
    cw_api_buffer_use(copied, 1);
    cr_expect_eq(cw_api_buffer_shrink(copied, &bytes), CUWARDEN_DRIVER);
    cr_expect_eq(now(copied).capacity, 10);
}

Test(buffers, use_says_what_is_kept)
{
    uint64_t buffer = make("a", CUWARDEN_COPYING);

    ensure(buffer, 1000);
    cr_expect_eq(cw_api_buffer_use(buffer, 1025), CUWARDEN_TOO_LARGE);
    EXPECT_TEXT(CUWARDEN_TOO_LARGE, "cannot use 1025 elements: it has room for 1024");
    cr_expect_eq(cw_api_buffer_use(buffer, 10), CUWARDEN_OK);
    ensure(buffer, 2000);
    cr_expect_eq(device.copied, 40);
    cr_expect_eq(now(buffer).used, 2000);
}

Test(buffers, clean_up_goes_by_age_and_utilisation)
{
    uint64_t idle = make("idle", CUWARDEN_COPYING), busy = make("busy", CUWARDEN_COPYING), bytes;
    uint64_t full = make("full", CUWARDEN_COPYING);

    ensure(idle, 100);
    ensure(full, 1000);
    atomic_fetch_add(&fake_driver.now_ns, 1001 * FAKE_MS);
    ensure(busy, 100);
    cr_expect_eq(now(idle).age_ns, now(busy).age_ns);
    cr_expect(now(idle).unused_ns >= 1000 * FAKE_MS && now(busy).unused_ns == 0);
    cr_expect_float_eq(now(full).utilisation, 1000 / 1024.0, 1e-9);
    cr_expect_eq(cw_api_buffer_clean(1000 * FAKE_MS, 0.5, &bytes), CUWARDEN_OK);
    cr_expect_eq(bytes, 4096 - 400);
    cr_expect(now(busy).capacity == 1024 && now(full).capacity == 1024);
    cr_expect_eq(cw_api_buffer_clean(0, 1, &bytes), CUWARDEN_OK);
    cr_expect_eq(bytes, 4096 - 400 + 4096 - 4000);
    cr_expect_eq(cw_api_buffer_clean(0, -0.1, &bytes), CUWARDEN_INVALID);
    cr_expect_eq(cw_api_buffer_clean(0, NAN, &bytes), CUWARDEN_INVALID);
}

Test(buffers, clean_up_goes_on_after_a_failure)
{
    uint64_t bytes = 0;

    make("a", CUWARDEN_COPYING);
    make("b", CUWARDEN_COPYING);
    device.fails_at['F'] = 0;
    device.fails_at['X'] = 700;
    cr_expect_eq(cw_api_buffer_clean(0, 1, &bytes), CUWARDEN_DRIVER);
    EXPECT_TEXT(CUWARDEN_DRIVER, "buffer 'b' cannot shrink: the driver's code is 700");
    EXPECT_CALLS("PAPAXX");
}

static int end_it(const struct cuwarden_buffer *buffer, void *arg)
{
    cr_expect_eq(cw_api_buffer_end(buffer->id), CUWARDEN_OK);
    return ++*(int *)arg == 2;
}

Test(buffers, a_visitor_may_end_them)
{
    int count = 0;

    make("a", 0);
    make("b", CUWARDEN_COPYING);
    make("c", CUWARDEN_COPYING);
    cr_expect_eq(cw_api_buffer_visit(end_it, &count), CUWARDEN_OK);
    cr_expect_eq(count, 2);
    cr_expect_eq(cw_api_buffer_visit(end_it, &count), CUWARDEN_OK);
    cr_expect_eq(count, 3);
}
