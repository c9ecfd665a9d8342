/* SPDX-License-Identifier: MIT */
/* Slots: the owner comes and goes freely, until somebody stops it. */
#include "core/process/slot.h"

#include <criterion/criterion.h>

#include <sched.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "core/process/host.h"
#include "fake_driver.h"

static void setup(void)
{
    cw_slot_init();
}

TestSuite(slot, .init = setup);

Test(slot, is_entered_and_left_by_its_owner)
{
    struct cw_slot *slot = cw_slot_enter();

    cr_assert_not_null(slot);
    cr_expect_eq(slot, &cw_slots[cw_thread_slot()]);
    cr_expect_eq(slot->busy, 1u);
    cw_slot_leave(slot);
    cr_expect_eq(slot->busy, 0u);
    cr_expect_eq(cw_slot_used(), (uint64_t)1 << cw_thread_slot());
}

Test(slot, keeps_its_owner_outside_while_it_is_stopped)
{
    uint64_t mask = (uint64_t)1 << cw_thread_slot();

    cw_slot_stop(mask);
    cr_expect_null(cw_slot_enter());
    cr_expect_null(cw_slot_enter());
    cw_slot_resume(mask);
    cr_assert_not_null(cw_slot_enter());
}

Test(slot, others_are_not_stopped)
{
    uint64_t others = ~((uint64_t)1 << cw_thread_slot()) & ~(uint64_t)1;

    cw_slot_stop(others);
    cr_expect_not_null(cw_slot_enter());
    cw_slot_resume(others);
}

Test(slot, zero_has_no_inside)
{
    cw_host_set(NULL);
    cr_expect_eq(cw_thread_slot(), 0);
    cr_expect_null(cw_slot_enter());
}

Test(slot, a_reset_forgets_who_is_inside_and_who_stops)
{
    uint64_t mask = (uint64_t)1 << cw_thread_slot();

    cw_slot_stop(~(uint64_t)1);
    cw_lock_reset_thread();
    cw_slot_reset();
    cr_assert_not_null(cw_slot_enter());
    cw_slot_reset();
    cw_slot_stop(mask); /* would wait for ever for the owner */
    cw_slot_resume(mask);
}

/* What only its owner writes, and those who have stopped it may read: plain, so that a sanitizer
 * sees it. */
static volatile uint64_t inside[CW_SLOTS];
static _Atomic uint64_t entered, moved;
static _Atomic int done;
static unsigned stoppers, stops;

/* Some hundred cycles: longer than a store may stay unseen. */
static void linger(void)
{
    for (int i = 0; i < 200; i++)
        atomic_signal_fence(memory_order_seq_cst);
}

static void watch_stopped(uint64_t mask)
{
    uint64_t before[CW_SLOTS];

    for (int k = 1; k < CW_SLOTS; k++)
        before[k] = mask >> k & 1 ? inside[k] : 0;
    linger();
    for (int k = 1; k < CW_SLOTS; k++)
        moved += (mask >> k & 1) && (inside[k] != before[k] || inside[k] % 2 != 0);
}

static void own_or_stop(unsigned id)
{
    if (id < stoppers) {
        while (entered == 0) /* the owners may not have run yet */
            sched_yield();
        for (unsigned i = 0; i < stops; i++) {
            uint64_t mask = cw_slot_used();

            cw_slot_stop(mask);
            watch_stopped(mask);
            cw_slot_resume(mask);
        }
        done++;
        return;
    }
    while (done < (int)stoppers) {
        struct cw_slot *slot = cw_slot_enter();

        if (slot == NULL)
            continue;
        inside[slot - cw_slots]++;
        linger();
        inside[slot - cw_slots]++;
        cw_slot_leave(slot);
        entered++;
    }
}

static void race(unsigned stopping, unsigned owning, unsigned times)
{
    stoppers = stopping;
    stops = times;
    entered = 0;
    run_threads(stopping + owning, own_or_stop);
    cr_expect_eq(moved, 0u);
}

Test(slot, one_owner_and_one_stopper_are_never_inside_together)
{
    race(1, 1, 100000);
}

Test(slot, several_owners_and_stoppers_are_never_inside_together)
{
    race(2, 3, 50);
}

Test(slot, nor_are_they_without_membarrier)
{
    cw_slot_is_asymmetric = 0;
    race(1, 1, 20000);
}
