/* SPDX-License-Identifier: MIT */
/* Sites and stacks: equal places are one, modes and depth hold, caches end with their epoch. */
#include "core/account/site.h"

#include <criterion/criterion.h>

#include <sched.h>
#include <stdlib.h>

#include "core/stacks/module.h"
#include "core/process/thread.h"
#include "fake_driver.h"

static void start(enum cw_stacks stacks, unsigned depth)
{
    core_start();
    cr_assert_eq(cw_site_init(core_arena, stacks, depth), 0);
}

static void start_without_stacks(void)
{
    start(CW_STACKS_OFF, 32);
}

TestSuite(site, .init = start_without_stacks);

static const struct cw_live_frame *frame_at(uint32_t frame)
{
    return core_at(CW_TABLE_FRAME, frame);
}

static unsigned count(enum cw_table table)
{
    return core_header()->table[table].count - 1;
}

/* ---- interning ---- */

Test(site, equal_places_are_one_site)
{
    uint32_t api = cw_site_text("cudaMalloc"), site = cw_site_here(api, CW_KIND_DEVICE, 0);

    cr_assert_neq(site, 0u);
    cr_expect_eq(cw_site_here(api, CW_KIND_DEVICE, 0), site);
    cr_expect_neq(cw_site_here(api, CW_KIND_DEVICE, 1), site);
    cr_expect_neq(cw_site_here(api, CW_KIND_MANAGED, 0), site);
    cr_expect_neq(cw_site_here(cw_site_text("cuMemAlloc"), CW_KIND_DEVICE, 0), site);
    cr_expect_eq(cw_site_here(api, CW_KIND_DEVICE, 0), site);
    cr_expect_eq(count(CW_TABLE_SITE), 4u);
    cw_site_set_context(CW_CONTEXT_NUMBERS - 1);
    cr_expect_neq(cw_site_here(api, CW_KIND_DEVICE, 0), site);
    cr_expect_eq(cw_site_at(cw_site_here(api, CW_KIND_DEVICE, 0))->context, CW_CONTEXT_NUMBERS - 1);
    cr_expect_eq(cw_site_at(cw_site_here(api, CW_KIND_DEVICE, 0))->kind, CW_KIND_DEVICE);
    cw_site_set_context(0);
    cr_expect_eq(cw_site_here(api, CW_KIND_DEVICE, 0), site);
    cr_expect_eq(count(CW_TABLE_SITE), 5u);
    cr_expect_eq(cw_site_at(site)->stack, 0u);
    cr_expect_eq(cw_site_at(site)->api, api);
    cr_expect_eq(cw_site_at(site)->kind, CW_KIND_DEVICE);
    cr_expect_eq(cw_site_at(site)->device, 0);
}

Test(site, many_sites_stay_apart)
{
    uint32_t site[2000];

    for (uint32_t i = 0; i < 2000; i++)
        site[i] = cw_site_here(i + 1, CW_KIND_DEVICE, (uint8_t)(i % 64));
    for (uint32_t i = 0; i < 2000; i++) {
        cr_assert_eq(cw_site_here(i + 1, CW_KIND_DEVICE, (uint8_t)(i % 64)), site[i]);
        cr_assert_eq(cw_site_at(site[i])->api, i + 1);
    }
    cr_expect_eq(count(CW_TABLE_SITE), 2000u);
}

Test(site, without_room_there_is_none)
{
    struct cw_arena small;

    cr_assert_eq(cw_arena_create(&small, (size_t)16 << 20), 0);
    while (cw_arena_append(&small, CW_TABLE_SITE) != 0 &&
           cw_arena_append(&small, CW_TABLE_FRAME) != 0)
        ;
    while (cw_arena_append(&small, CW_TABLE_FRAME) != 0)
        ;
    while (cw_arena_append(&small, CW_TABLE_SITE) != 0)
        ;
    cr_assert_eq(cw_site_init(&small, CW_STACKS_FULL, 32), 0);
    cr_expect_eq(cw_site_here(1, CW_KIND_DEVICE, 0), 0u);
    cr_expect_eq(cw_stack_intern((const uint64_t[]){1}, 1), 0u);
    cr_expect_eq(cw_site_shared(0), 0u);
}

Test(site, equal_stacks_are_one_and_share_their_outer_part)
{
    static const uint64_t one[] = {0x30, 0x20, 0x10}, two[] = {0x31, 0x20, 0x10};
    uint32_t stack = cw_stack_intern(one, 3), other = cw_stack_intern(two, 3);

    cr_assert_neq(stack, 0u);
    cr_expect_eq(cw_stack_intern(one, 3), stack);
    cr_expect_neq(other, stack);
    cr_expect_eq(count(CW_TABLE_FRAME), 4u);
    cr_expect_eq(frame_at(stack)->pc, 0x30u);
    cr_expect_eq(frame_at(stack)->depth, 3u);
    cr_expect_eq(frame_at(stack)->parent, frame_at(other)->parent);
    cr_expect_eq(cw_stack_intern(one + 1, 2), frame_at(stack)->parent);
    cr_expect_eq(frame_at(frame_at(frame_at(stack)->parent)->parent)->parent, 0u);
    cr_expect_eq(cw_stack_intern(one, 0), 0u);
}

Test(site, stacks_found_in_the_tables_are_those_of_the_cache)
{
    uint64_t pcs[4];
    uint32_t first[3000];

    for (int round = 0; round < 2; round++)
        for (uint64_t i = 0; i < 3000; i++) {
            for (uint64_t j = 0; j < 4; j++)
                pcs[j] = 0x1000 + (i >> (2 * j)) * 16 + j;
            if (round == 0)
                first[i] = cw_stack_intern(pcs, 4);
            else
                cr_assert_eq(cw_stack_intern(pcs, 4), first[i]);
        }
}

/* ---- capture ---- */

static uint64_t pcs[CW_DEPTH_MAX + 1];
static unsigned depth;

static int capture(const void *a, const void *b)
{
    (void)a;
    (void)b;
    depth = 0;
    for (uint32_t at = cw_stack_here(); at != 0; at = frame_at(at)->parent)
        pcs[depth++] = frame_at(at)->pc;
    return 0;
}

/* A foreign frame, one of libc's, between the capture and so many frames of the test. */
static CW_NOINLINE void capture_below_libc(volatile int levels)
{
    int two[2] = {1, 2};

    if (levels > 0)
        capture_below_libc(levels - 1);
    else
        qsort(two, 2, sizeof(*two), capture);
    levels = 0; /* something to come back for: no tail call */
}

Test(site, a_capture_begins_outside_of_our_own_frames, .init = NULL)
{
    start(CW_STACKS_FULL, 32);
    capture_below_libc(0);
    cr_assert_gt(depth, 2u);
    cr_expect_not(cw_module_is_self(pcs[0]));
    cr_expect(cw_module_is_self((uint64_t)(uintptr_t)&capture));
}

Test(site, the_depth_is_limited, .init = NULL)
{
    start(CW_STACKS_FULL, 7);
    capture_below_libc(0);
    cr_expect_leq(depth, 7u);
    capture_below_libc(40);
    cr_expect_eq(depth, 7u);
    start(CW_STACKS_FULL, 1);
    capture_below_libc(40);
    cr_expect_eq(depth, 1u);
    start(CW_STACKS_FULL, 100000);
    capture_below_libc(200);
    cr_expect_eq(depth, (unsigned)CW_DEPTH_MAX, "%u frames", depth);
}

static uint32_t found_site;

static int find_site_here(const void *a, const void *b)
{
    (void)a;
    (void)b;
    found_site = cw_site_here(1, CW_KIND_DEVICE, 0);
    return 0;
}

static CW_NOINLINE uint32_t site_below_libc(void)
{
    int two[2] = {1, 2};

    qsort(two, 2, sizeof(*two), find_site_here);
    return found_site;
}

Test(site, equal_stacks_give_equal_sites, .init = NULL)
{
    uint32_t same[3], other;
    volatile int i; /* keeps the loop one place of call */

    start(CW_STACKS_FULL, 32);
    for (i = 0; i < 3; i++)
        same[i] = site_below_libc();
    other = site_below_libc();
    cr_assert_neq(same[0], 0u);
    cr_expect_eq(same[1], same[0]);
    cr_expect_eq(same[2], same[0]);
    cr_expect_neq(other, same[0]);
    cr_expect_neq(cw_site_at(other)->stack, cw_site_at(same[0])->stack);
    cr_expect_neq(frame_at(cw_site_at(same[0])->stack)->module, 0u);
}

Test(site, caller_mode_keeps_the_hooks_caller_alone, .init = NULL)
{
    start(CW_STACKS_CALLER, 32);
    cr_expect_eq(cw_stack_here(), 0u);
    cw_thread.caller = (void *)0x1234;
    capture_below_libc(3);
    cr_expect_eq(depth, 1u);
    cr_expect_eq(pcs[0], 0x1234u);
}

Test(site, off_mode_keeps_nothing)
{
    cw_thread.caller = (void *)0x1234;
    capture_below_libc(3);
    cr_expect_eq(depth, 0u);
    cr_expect_eq(cw_site_at(site_below_libc())->stack, 0u);
}

/* ---- caches ---- */

Test(site, a_new_epoch_looks_again)
{
    static const uint64_t stack[] = {0x30, 0x20};
    uint32_t before = cw_stack_intern(stack, 2), site = cw_site_here(1, CW_KIND_DEVICE, 0);

    cw_epoch_advance();
    cr_expect_eq(cw_stack_intern(stack, 2), before);
    cr_expect_eq(cw_site_here(1, CW_KIND_DEVICE, 0), site);
    /* Other tables: what the caches still hold would be indices of the old ones. */
    start(CW_STACKS_OFF, 32);
    cw_arena_append(core_arena, CW_TABLE_FRAME);
    cw_arena_append(core_arena, CW_TABLE_SITE);
    cw_thread_reset();
    cr_expect_eq(cw_stack_intern(stack, 2), 3u);
    cr_expect_eq(cw_site_here(1, CW_KIND_DEVICE, 0), 2u);
}

/* ---- threads ---- */

static uint32_t own[8], shared[8];
static _Atomic unsigned expected_threads, arrived;

/* A thread that has ended gives its records to the next: all are there before one goes. */
static void find_own(unsigned id)
{
    for (int i = 0; i < 500; i++)
        own[id] = cw_site_here(1, CW_KIND_DEVICE, 0);
    shared[id] = cw_site_shared(own[id]);
    arrived++;
    while (arrived < expected_threads)
        sched_yield();
}

Test(site, each_thread_has_a_record_of_its_own_and_one_is_shared)
{
    expected_threads = 8;
    run_threads(8, find_own);
    for (unsigned i = 0; i < 8; i++) {
        cr_expect_neq(own[i], 0u);
        cr_expect_neq(cw_site_at(own[i])->owner, 0);
        cr_expect_eq(shared[i], shared[0]);
        for (unsigned j = 0; j < i; j++)
            cr_expect_neq(own[i], own[j]);
    }
    cr_expect_eq(cw_site_at(shared[0])->owner, 0);
    cr_expect_eq(cw_site_shared(shared[0]), shared[0]);
    cr_expect_eq(count(CW_TABLE_SITE), 9u);
}

Test(site, threads_one_after_the_other_use_one_record)
{
    for (unsigned i = 0; i < 100; i++) {
        run_threads(1, find_own);
        cr_assert_eq(own[0], 1u);
    }
}

static uint32_t stacks[8][1000];

static void intern_the_same(unsigned id)
{
    for (uint64_t i = 0; i < 1000; i++)
        stacks[id][i] = cw_stack_intern((const uint64_t[]){i % 250 + 1, i % 10 + 1, 1}, 3);
}

Test(site, eight_threads_agree_on_equal_stacks)
{
    run_threads(8, intern_the_same);
    for (unsigned id = 0; id < 8; id++)
        for (unsigned i = 0; i < 1000; i++)
            cr_assert_eq(stacks[id][i], stacks[0][i % 250]);
    cr_expect_eq(count(CW_TABLE_FRAME), 1u + 10 + 250);
}
