/* SPDX-License-Identifier: MIT */
/* Virtual memory: a block lives until its last handle reference and its last mapping are gone. */
#include "core/device/vmm.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "core/account/tracker.h"
#include "fake_driver.h"

#define MIB ((uint64_t)1 << 20)
#define VA  ((uint64_t)0x7f0000000000)

static uint32_t site;

static void setup(void)
{
    core_start();
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

static const char *life = ""; /* that a test is at, of those below */

static void expect_live(uint64_t blocks, uint64_t mib)
{
    struct cw_site_sums sums = core_sums(site);

    cr_expect_eq(sums.live_blocks, blocks, "%s: %ju blocks", life, (uintmax_t)sums.live_blocks);
    cr_expect_eq(sums.live_bytes, mib * MIB, "%s: %ju bytes", life, (uintmax_t)sums.live_bytes);
    cr_expect_eq(core_live(0), mib * MIB, "%s", life);
}

/* make HANDLE MIB; map AT MIB HANDLE; retain HANDLE AT; unmap AT MIB, which finds so many mappings;
 * release HANDLE, which is known or not; refuse-*: the driver fails; live BLOCKS MIB. At is in MiB
 * from VA on. */
static const struct {
    const char *name, *steps;
} lives[] = {
    {"memory that was never mapped goes with its handle",
     "make 1 2; live 1 2; release 1 =1; live 0 0; release 1 =0"},
    {"released before unmapped, it goes with the mapping",
     "make 1 2; map 0 2 1; release 1; live 1 2; unmap 0 2 =1; live 0 0; frees 0 =1"},
    {"unmapped before released, it goes with the handle",
     "make 1 2; map 0 2 1; unmap 0 2; live 1 2; release 1; live 0 0"},
    {"two mappings of one handle both hold it",
     "make 1 2; map 0 2 1; map 64 2 1; release 1; unmap 0 2; live 1 2; unmap 64 2; live 0 0"},
    {"a retain under the same handle needs a second release",
     "make 1 2; map 0 2 1; retain 1 1; unmap 0 2; release 1; live 1 2; release 1; live 0 0"},
    {"a retain under another handle needs a release of each",
     "make 1 2; map 0 2 1; retain 9 0; unmap 0 2; release 1; live 1 2; release 9 =1; live 0 0; "
     "release 9 =0"},
    {"a retain after the release holds what is mapped",
     "make 1 2; map 0 2 1; release 1; retain 1 0; unmap 0 2; live 1 2; release 1; live 0 0"},
    {"a retain where nothing is mapped is nothing",
     "make 1 2; map 0 2 1; retain 9 2; retain-below 9; release 9 =0; unmap 0 2; release 1; live 0 "
     "0"},
    {"a number reused while its old memory is mapped is new memory",
     "make 1 2; map 0 2 1; release 1; make 1 4; live 2 6; map 64 4 1; unmap 0 2; live 1 4; "
     "release 1; unmap 64 4; live 0 0"},
    {"a number reused after an unseen release closes its old memory",
     "make 1 2; make 1 4; live 1 4; release 1; live 0 0"},
    {"a failed release changes nothing",
     "make 1 2; refuse-release 1 =1; live 1 2; map 0 2 1; retain 1 0; refuse-release 1; "
     "unmap 0 2; release 1; live 1 2; release 1; live 0 0"},
    {"a failed unmap changes nothing",
     "make 1 2; map 0 2 1; refuse-unmap 0 2 =1; release 1; live 1 2; unmap 0 2 =1; live 0 0"},
    {"one unmap may cover several mappings",
     "make 1 2; make 2 4; make 3 2; map 2 4 2; map 0 2 1; map 6 2 3; release 1; release 2; "
     "release 3; unmap 0 6 =2; live 1 2; unmap 0 6 =0; unmap 6 2 =1; live 0 0"},
};

/* What a step finds; 0 if it is not one to find anything. */
static uint64_t take(const char *verb, const uint64_t arg[3], uint64_t frees_before)
{
    int is_done = strncmp(verb, "refuse-", 7) != 0;

    if (strcmp(verb, "make") == 0)
        make(arg[0], arg[1] * MIB);
    else if (strcmp(verb, "map") == 0)
        cw_vmm_map(VA + arg[0] * MIB, arg[1] * MIB, 0, arg[2]);
    else if (strcmp(verb, "retain") == 0)
        cw_vmm_retain(arg[0], VA + arg[1] * MIB);
    else if (strcmp(verb, "retain-below") == 0)
        cw_vmm_retain(arg[0], VA - 1);
    else if (strcmp(verb, "live") == 0)
        expect_live(arg[0], arg[1]);
    else if (strcmp(verb, "frees") == 0)
        return core_sums(site).frees - frees_before;
    else if (strstr(verb, "release"))
        return (uint64_t)release(arg[0], is_done);
    else
        return unmap(VA + arg[0] * MIB, arg[1] * MIB, is_done);
    return 0;
}

static void live_through(const char *steps)
{
    uint64_t frees = core_sums(site).frees;

    for (const char *step = steps; step; step = strchr(step, ';') ? strchr(step, ';') + 2 : NULL) {
        const char *end = step + strcspn(step, ";"), *wanted = strchr(step, '=');
        uint64_t arg[3] = {0}, found;
        char verb[16];

        cr_assert_gt(sscanf(step, "%15[a-z-] %ju %ju %ju", verb, &arg[0], &arg[1], &arg[2]), 1);
        found = take(verb, arg, frees);
        if (wanted && wanted < end)
            cr_expect_eq(found, strtoull(wanted + 1, NULL, 10), "%s: %.*s", life, (int)(end - step),
                         step);
    }
}

CoreTest(vmm, memory_lives_until_its_last_handle_and_its_last_mapping_are_gone)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(lives); i++) {
        life = lives[i].name;
        live_through(lives[i].steps);
    }
}

CoreTest(vmm, a_retain_that_gets_a_number_of_released_memory_moves_it)
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
}

CoreTest(vmm, an_import_is_as_large_as_its_mappings_say)
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

CoreTest(vmm, what_was_never_seen_is_let_be)
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

CoreTest(vmm, an_exported_handle_marks_its_memory)
{
    uint32_t block = make(1, MIB);

    cw_vmm_export(1);
    cr_expect_eq(cw_tracker_at(block)->flags & CW_BLOCK_EXPORTED, CW_BLOCK_EXPORTED);
}

CoreTest(vmm, a_thousand_mappings_stay_sorted)
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

CoreTest(vmm, eight_threads_make_map_and_drop)
{
    run_threads(8, make_map_and_drop);
    cr_expect_eq(wrong, 0u);
    expect_live(0, 0);
}
