/* SPDX-License-Identifier: MIT */
/* Blocks as the program sees them, while others work. */
#include "api/blocks.h"
#include "api/scopes.h"

#include <criterion/criterion.h>

#include "base/lock.h"
#include "core/account/tracker.h"
#include "fake_driver.h"

static struct cw_view view;

static void setup(void)
{
    fake_driver_init();
    core_arm();
    cw_arena_view(&cw_session.arena, &view);
}

TestSuite(blocks, .init = setup);

/* A thread is about to take a block: its record is there, in a chunk of its own, the owner's is not
 * yet. */
Test(blocks, a_record_without_an_owner_is_passed_over)
{
    struct cw_api_block read;
    uint32_t index;

    do
        index = cw_arena_append(&cw_session.arena, CW_TABLE_BLOCK);
    while (index < 2 * CW_BLOCKS_FIRST);
    cr_expect_eq(cw_api_block_read(&view, index, &read), -1);
}

#define ROUNDS 30000

static struct cw_live_owner *shared;
static _Atomic unsigned named;
static _Atomic int is_done, is_lost;

static void keep_and_look(void)
{
    const void *address = (const void *)(uintptr_t)0x10000;

    for (int i = 0; i < ROUNDS; i++) {
        unsigned spins = 0, turns = 0, before = atomic_load(&named);

        atomic_fetch_and(&shared->name, ~CW_OWNER_KEPT);
        if (cw_api_keep(address) != CUWARDEN_OK)
            atomic_store(&is_lost, 1);
        while (atomic_load(&named) < before + 2)
            if (++spins > 1000) /* both at work at once is what the test is about */
                cw_lock_relax(&turns);
        if ((atomic_load(&shared->name) & CW_OWNER_KEPT) == 0)
            atomic_store(&is_lost, 1);
    }
    atomic_store(&is_done, 1);
}

static void keep_or_name(unsigned id)
{
    if (id == 0)
        keep_and_look();
    while (!atomic_load(&is_done)) {
        cw_api_block_name((const void *)(uintptr_t)0x10000, "positions");
        atomic_fetch_add(&named, 1);
    }
}

Test(blocks, what_one_thread_keeps_another_may_name)
{
    shared = cw_owner_at(core_put(core_site("cuMemAlloc", CW_KIND_DEVICE, 0), 0x10000, 1000));
    run_threads(2, keep_or_name);
    cr_expect_eq(is_lost, 0);
}
