/* SPDX-License-Identifier: MIT */
/* Virtual memory: a block lives until its last handle reference and its last mapping are gone. */
#include "core/device/vmm.h"

#include <criterion/criterion.h>

#include "core/account/tracker.h"
#include "fake_driver.h"

#define MIB ((uint64_t)1 << 20)
#define VA  ((uint64_t)0x7f0000000000)

static struct cw_arena arena;
static uint32_t site;

static void setup(void)
{
    core_start(&arena, (size_t)1 << 30);
    site = core_site("cuMemCreate", CW_KIND_VMM, 0);
}

TestSuite(vmm, .init = setup);

static uint32_t make(uint64_t handle, uint64_t bytes)
{
    struct cw_request request = core_request(CW_KIND_VMM, 0, handle, bytes);
    uint32_t block;

    request.space = CW_SPACE_HANDLE;
    block = cw_tracker_insert(&request, site, 1);
    cr_assert_neq(block, 0u);
    cw_vmm_insert(handle, block);
    return block;
}

/* 1 if the handle was known. */
static int release(uint64_t handle, int released)
{
    struct cw_vmm_release call;

    cw_vmm_release_begin(handle, &call);
    return cw_vmm_release_finish(&call, released);
}

/* How many mappings it found. */
static uint32_t unmap(uint64_t addr, uint64_t size, int unmapped)
{
    struct cw_vmm_unmap call;
    uint32_t count;

    cw_vmm_unmap_begin(addr, size, &call);
    count = call.count;
    cw_vmm_unmap_finish(&call, unmapped);
    return count;
}

static void expect_live(uint64_t blocks, uint64_t mib)
{
    struct cw_site_sums sums = core_sums(site);

    cr_expect_eq(sums.live_blocks, blocks, "%llu blocks", (unsigned long long)sums.live_blocks);
    cr_expect_eq(sums.live_bytes, mib * MIB, "%llu bytes", (unsigned long long)sums.live_bytes);
    cr_expect_eq(core_live(0), mib * MIB);
}

Test(vmm, memory_that_was_never_mapped_goes_with_its_handle)
{
    make(1, 2 * MIB);
    expect_live(1, 2);
    cr_expect_eq(release(1, 1), 1);
    expect_live(0, 0);
    cr_expect_eq(release(1, 1), 0);
    cr_expect_eq(cw_tracker_check(), 0);
}

Test(vmm, released_before_unmapped_it_goes_with_the_mapping)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    release(1, 1);
    expect_live(1, 2);
    cr_expect_eq(unmap(VA, 2 * MIB, 1), 1u);
    expect_live(0, 0);
    cr_expect_eq(core_sums(site).frees, 1u);
}

Test(vmm, unmapped_before_released_it_goes_with_the_handle)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    unmap(VA, 2 * MIB, 1);
    expect_live(1, 2);
    release(1, 1);
    expect_live(0, 0);
}

Test(vmm, two_mappings_of_one_handle_both_hold_it)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    cw_vmm_map(VA + 64 * MIB, 2 * MIB, 0, 1);
    release(1, 1);
    unmap(VA, 2 * MIB, 1);
    expect_live(1, 2);
    unmap(VA + 64 * MIB, 2 * MIB, 1);
    expect_live(0, 0);
}

Test(vmm, a_retain_under_the_same_handle_needs_a_second_release)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    cw_vmm_retain(1, VA + MIB);
    unmap(VA, 2 * MIB, 1);
    release(1, 1);
    expect_live(1, 2);
    release(1, 1);
    expect_live(0, 0);
}

Test(vmm, a_retain_under_another_handle_needs_a_release_of_each)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    cw_vmm_retain(9, VA);
    unmap(VA, 2 * MIB, 1);
    release(1, 1);
    expect_live(1, 2);
    cr_expect_eq(release(9, 1), 1);
    expect_live(0, 0);
    cr_expect_eq(release(9, 1), 0);
}

Test(vmm, a_retain_after_the_release_holds_what_is_mapped)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    release(1, 1);
    cw_vmm_retain(1, VA);
    unmap(VA, 2 * MIB, 1);
    expect_live(1, 2);
    release(1, 1);
    expect_live(0, 0);
}

Test(vmm, a_retain_where_nothing_is_mapped_is_nothing)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    cw_vmm_retain(9, VA + 2 * MIB);
    cw_vmm_retain(9, VA - 1);
    cr_expect_eq(release(9, 1), 0);
    unmap(VA, 2 * MIB, 1);
    release(1, 1);
    expect_live(0, 0);
}

Test(vmm, a_number_reused_while_its_old_memory_is_mapped_is_new_memory)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    release(1, 1);
    make(1, 4 * MIB);
    expect_live(2, 6);
    cw_vmm_map(VA + 64 * MIB, 4 * MIB, 0, 1);
    unmap(VA, 2 * MIB, 1);
    expect_live(1, 4);
    release(1, 1);
    unmap(VA + 64 * MIB, 4 * MIB, 1);
    expect_live(0, 0);
    cr_expect_eq(cw_tracker_check(), 0);
}

Test(vmm, a_number_reused_after_an_unseen_release_closes_its_old_memory)
{
    make(1, 2 * MIB);
    make(1, 4 * MIB);
    expect_live(1, 4);
    release(1, 1);
    expect_live(0, 0);
    cr_expect_eq(cw_tracker_check(), 0);
}

Test(vmm, a_retain_that_gets_a_number_of_released_memory_moves_it)
{
    uint32_t first = make(1, 2 * MIB), second = make(2, 4 * MIB);

    cw_vmm_map(VA, 2 * MIB, 0, 1);
    /* 2 was released unseen, and is now what the driver calls the memory at VA. */
    cw_vmm_retain(2, VA);
    cr_expect_eq(cw_tracker_at(first)->refs, 2u);
    cr_expect_eq(cw_tracker_at(second)->state, (uint32_t)CW_BLOCK_FREE);
    expect_live(1, 2);
    unmap(VA, 2 * MIB, 1);
    release(2, 1);
    release(1, 1);
    expect_live(0, 0);
    cr_expect_eq(cw_tracker_check(), 0);
}

Test(vmm, an_import_is_as_large_as_its_mappings_say)
{
    uint32_t block = make(1, 0);

    cw_vmm_map(VA, 2 * MIB, 4 * MIB, 1);
    cr_expect_eq(cw_tracker_at(block)->bytes, 6 * MIB);
    cw_vmm_map(VA + 64 * MIB, 2 * MIB, 0, 1);
    cr_expect_eq(cw_tracker_at(block)->bytes, 6 * MIB);
    unmap(VA, 2 * MIB, 1);
    unmap(VA + 64 * MIB, 2 * MIB, 1);
    release(1, 1);
    cr_expect_eq(core_live(0), 0u);
    cr_expect_eq(core_sums(site).live_blocks, 0u);
}

Test(vmm, a_failed_release_changes_nothing)
{
    make(1, 2 * MIB);
    cr_expect_eq(release(1, 0), 1);
    expect_live(1, 2);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    cw_vmm_retain(1, VA);
    release(1, 0);
    unmap(VA, 2 * MIB, 1);
    release(1, 1);
    expect_live(1, 2);
    release(1, 1);
    expect_live(0, 0);
}

Test(vmm, a_failed_unmap_changes_nothing)
{
    make(1, 2 * MIB);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    cr_expect_eq(unmap(VA, 2 * MIB, 0), 1u);
    release(1, 1);
    expect_live(1, 2);
    cr_expect_eq(unmap(VA, 2 * MIB, 1), 1u);
    expect_live(0, 0);
}

Test(vmm, one_unmap_may_cover_several_mappings)
{
    make(1, 2 * MIB);
    make(2, 4 * MIB);
    make(3, 2 * MIB);
    cw_vmm_map(VA + 2 * MIB, 4 * MIB, 0, 2);
    cw_vmm_map(VA, 2 * MIB, 0, 1);
    cw_vmm_map(VA + 6 * MIB, 2 * MIB, 0, 3);
    for (uint64_t handle = 1; handle <= 3; handle++)
        release(handle, 1);
    cr_expect_eq(unmap(VA, 6 * MIB, 1), 2u);
    expect_live(1, 2);
    cr_expect_eq(unmap(VA, 6 * MIB, 1), 0u);
    cr_expect_eq(unmap(VA + 6 * MIB, 2 * MIB, 1), 1u);
    expect_live(0, 0);
}

Test(vmm, what_was_never_seen_is_let_be)
{
    cr_expect_eq(release(77, 1), 0);
    cr_expect_eq(unmap(VA, MIB, 1), 0u);
    cw_vmm_map(VA, MIB, 0, 77);
    cr_expect_eq(unmap(VA, MIB, 1), 0u);
    cw_vmm_export(77);
    cw_vmm_retain(77, VA);
    cw_vmm_insert(77, 0);
    cr_expect_eq(release(77, 1), 0);
}

Test(vmm, an_exported_handle_marks_its_memory)
{
    uint32_t block = make(1, MIB);

    cw_vmm_export(1);
    cr_expect_eq(cw_tracker_at(block)->flags & CW_BLOCK_EXPORTED, CW_BLOCK_EXPORTED);
}

Test(vmm, a_thousand_mappings_stay_sorted)
{
    uint64_t seed = 3;
    uint16_t order[1000];

    for (unsigned i = 0; i < 1000; i++) {
        make(i + 1, MIB);
        order[i] = (uint16_t)i;
    }
    for (unsigned i = 999; i > 0; i--) {
        unsigned j = next_random(&seed) % (i + 1);
        uint16_t swap = order[i];

        order[i] = order[j];
        order[j] = swap;
    }
    for (unsigned i = 0; i < 1000; i++)
        cw_vmm_map(VA + order[i] * MIB, MIB, 0, (uint64_t)order[i] + 1);
    for (unsigned i = 0; i < 1000; i++)
        release(i + 1, 1);
    expect_live(1000, 1000);
    for (unsigned i = 0; i < 1000; i += 10) {
        cr_assert_eq(unmap(VA + i * MIB, 10 * MIB, 1), 10u);
        expect_live(990 - i, 990 - i);
    }
    cr_expect_eq(cw_tracker_check(), 0);
}

static _Atomic unsigned wrong;

static void make_map_and_drop(unsigned id)
{
    uint64_t seed = id, base = VA + id * 4096 * MIB, handle = (id + 1) * 1000;

    for (unsigned i = 0; i < 3000; i++) {
        unsigned order = next_random(&seed) % 2;

        make(handle + i % 7, MIB);
        cw_vmm_map(base, MIB, 0, handle + i % 7);
        if (order)
            wrong += release(handle + i % 7, 1) != 1;
        wrong += unmap(base, MIB, 1) != 1;
        if (!order)
            wrong += release(handle + i % 7, 1) != 1;
    }
}

Test(vmm, eight_threads_make_map_and_drop)
{
    run_threads(8, make_map_and_drop);
    cr_expect_eq(wrong, 0u);
    expect_live(0, 0);
    cr_expect_eq(cw_tracker_check(), 0);
}
