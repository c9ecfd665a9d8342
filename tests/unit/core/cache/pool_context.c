/* SPDX-License-Identifier: MIT */
/* Contexts as the pool sees them: which are live, and what lies in limbo when one ends. */
#include "core/cache/pool_context.h"

#include <criterion/criterion.h>

#include "core/process/gate.h"
#include "core/process/slot.h"
#include "core/account/tracker.h"
#include "core/pending/release.h"
#include "core/pending/waiting.h"
#include "core/request/request.h"
#include "pool_fixture.h"

static struct cw_pool_context *pool_context;

static void setup(void)
{
    pool_start(CW_FREE_STRICT);
    pool_context = cw_pool_context_of(pool_index(FIRST_CONTEXT));
}

TestSuite(pool_context, .init = setup);

static uint32_t live(void)
{
    struct cw_pool_context *all[CW_POOL_CONTEXTS_LIVE];

    return cw_pool_context_list(all, CW_POOL_CONTEXTS_LIVE);
}

PoolTest(pool_context, is_made_with_its_context)
{
    struct cw_pool_context *all[CW_POOL_CONTEXTS_LIVE];

    cr_assert_not_null(pool_context);
    cr_expect_eq(pool_context->device, 0);
    cr_expect_eq(cw_pool_context_is_usable(pool_context), 1);
    pooled_context(1, 1);
    cr_expect_eq(cw_pool_context_list(all, CW_POOL_CONTEXTS_LIVE), 2u);
    cr_expect_eq(all[1], pool_context);
    cr_expect_eq(all[0]->device, 1);
    cr_expect_null(all[2]);
    cr_expect_eq(cw_pool_contexts_live, 2u);
}

PoolTest(pool_context, of_a_context_that_is_made_known_twice_is_one)
{
    cw_pool_context_make(pool_context->context, pool_context->record);
    cr_expect_eq(live(), 1u);
}

PoolTest(pool_context, is_live_until_its_context_has_ended)
{
    uint64_t handle = pooled_context(1, 0);

    pool_end_context(handle, CW_CONTEXT_KEPT);
    cr_expect_eq(live(), 2u);
    pool_end_context(handle, CW_CONTEXT_RENEWED);
    cr_expect_eq(live(), 2u);
    pool_end_context(handle, CW_CONTEXT_DESTROYED);
    cr_expect_eq(live(), 1u);
}

PoolTest(pool_context, a_renewed_context_has_a_new_one)
{
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_RENEWED);
    cr_expect_neq(cw_pool_context_of(pool_index(FIRST_CONTEXT)), pool_context);
    cr_expect_eq(pool_context->state, CW_POOL_CONTEXT_DEAD);
}

PoolTest(pool_context, is_of_no_use_when_its_context_has_failed_or_ends)
{
    cw_context_set_fatal(pool_context->context, 700);
    cr_expect_eq(cw_pool_context_is_usable(pool_context), 0);
    pool_context->record->fatal = 0;
    pool_context->state = CW_POOL_CONTEXT_CLOSING;
    cr_expect_eq(cw_pool_context_is_usable(pool_context), 0);
    pool_context->state = CW_POOL_CONTEXT_OPEN;
    cr_expect_eq(cw_pool_context_is_usable(pool_context), 1);
}

PoolTest(pool_context, without_a_handle_is_of_no_use)
{
    cw_context_folded(0xe0, 1);
    cr_expect_eq(cw_pool_context_is_usable(cw_pool_context_of(cw_context_primary(1))), 0);
}

PoolTest(pool_context, more_than_sixteen_are_counted_and_come_back_into_the_list)
{
    for (unsigned i = 1; i <= 18; i++)
        pooled_context(i, 0);
    cr_expect_eq(live(), 19u);
    for (unsigned i = 1; i <= 3; i++)
        pool_end_context(FIRST_CONTEXT + i, CW_CONTEXT_DESTROYED);
    cr_expect_eq(live(), 16u);
    for (unsigned i = 0; i < 16; i++) {
        struct cw_pool_context *all[CW_POOL_CONTEXTS_LIVE];

        cw_pool_context_list(all, CW_POOL_CONTEXTS_LIVE);
        cr_assert_not_null(all[i]);
        cr_expect_neq(all[i]->state, CW_POOL_CONTEXT_DEAD);
    }
}

PoolTest(pool_context, any_number_of_contexts_may_come_and_go)
{
    uint64_t key = pool_get(4 * KIB);

    for (unsigned i = 0; i < CW_POOL_CONTEXT_CHUNK + 10; i++) {
        struct cw_context_ending end;

        cw_context_created(0x10000 + i, 0);
        cw_context_end_begin(pool_index(0x10000 + i), &end);
        cw_context_end_finish(&end, CW_CONTEXT_DESTROYED);
    }
    cr_expect_eq(live(), 1u);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(pool_get(4 * KIB), key);
}

PoolTest(pool_context, events_are_used_again)
{
    uint64_t first, second;

    cr_assert_eq(cw_gate_enter(), 1);
    first = cw_pool_context_acquire_event(pool_context);
    second = cw_pool_context_acquire_event(pool_context);
    cr_expect_neq(first, second);
    for (uint64_t i = 0; i < 3; i++) {
        cw_pool_context_release_event(pool_context, first);
        cr_expect_eq(cw_pool_context_acquire_event(pool_context), first);
    }
    cr_expect_eq(fake_driver.calls[FAKE_EVENT_CREATE], 2u);
    fake_driver.fails[FAKE_EVENT_CREATE] = 1;
    cr_expect_eq(cw_pool_context_acquire_event(pool_context), 0u);
    cw_gate_leave();
}

PoolTest(pool_context, a_hundred_events_are_kept)
{
    uint64_t event[100];

    cr_assert_eq(cw_gate_enter(), 1);
    for (int i = 0; i < 100; i++)
        event[i] = cw_pool_context_acquire_event(pool_context);
    for (int i = 0; i < 100; i++)
        cw_pool_context_release_event(pool_context, event[i]);
    for (int i = 0; i < 100; i++)
        cr_expect_neq(cw_pool_context_acquire_event(pool_context), 0u);
    cr_expect_eq(fake_driver.calls[FAKE_EVENT_CREATE], 100u);
    cw_gate_leave();
}

/* ---- the end of a context ---- */

/* One block in a cache of a thread, one in a bucket, one in an open batch of another thread if
 * there is one. */
static uint64_t small, large;

static void keep_some(void)
{
    small = pool_get(4 * KIB);
    large = pool_get(8 * MIB);
    cr_assert_eq(pool_put(small), CW_POOL_KEPT);
    cr_assert_eq(pool_put(large), CW_POOL_KEPT);
}

static void keep_in_a_thread(unsigned id)
{
    (void)id;
    fake_set_current(FIRST_CONTEXT);
    cr_assert_eq(pool_put(pool_get(16 * KIB)), CW_POOL_KEPT);
    cw_slot_stop((uint64_t)1 << cw_thread_slot()); /* so that its end finds nothing */
}

PoolTest(pool_context, nothing_is_left_of_a_destroyed_context)
{
    keep_some();
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
    cr_expect_eq(core_held(0), 0u);
    cr_expect_eq(pool_sums().released, 0u);
    cr_expect_eq(fake_driver.calls[FAKE_BLOCK_FREE], 0u);
}

PoolTest(pool_context, nothing_is_left_of_a_renewed_context)
{
    keep_some();
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_RENEWED);
    cr_expect_eq(pool_serves(4 * KIB), 0);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
}

PoolTest(pool_context, all_of_a_kept_context_is_ready_again_after_one_more_look)
{
    keep_some();
    fake_submit(FIRST_CONTEXT);
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_KEPT);
    cr_expect_eq(pool_serves(4 * KIB), 0); /* it waits for the work */
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(pool_serves(4 * KIB), 1);
    cr_expect_eq(pool_serves(8 * MIB), 1);
}

PoolTest(pool_context, other_contexts_keep_theirs)
{
    uint64_t handle = pooled_context(1, 0), key;

    keep_some();
    fake_set_current(handle);
    cr_assert_eq(pool_put(pool_get(4 * KIB)), CW_POOL_KEPT);
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1u);
    cr_expect_eq(pool_hits(CW_POOL_DEVICE, 4 * KIB, &key), 1);
}

/* The free waits in the driver, as one does without events, and meanwhile another thread ends the
 * context. That wait is the place where a test can do that. */
static enum cw_context_outcome outcome;
static struct cw_context_ending ending;

static void end_meanwhile(enum fake_call call)
{
    if (call != FAKE_CONTEXT_WAIT)
        return;
    fake_driver.inside = NULL;
    cw_context_end_begin(pool_context->context, &ending);
    if (outcome == CW_CONTEXT_DESTROYED)
        fake_context_end(FIRST_CONTEXT);
    cw_context_end_finish(&ending, outcome);
}

PoolTest(pool_context, a_free_that_waits_while_its_context_is_destroyed_closes_the_block_once)
{
    uint64_t key = pool_get(2 * MIB);
    uint32_t first, second;
    int wait;

    outcome = CW_CONTEXT_DESTROYED;
    fake_driver.refuses_events = 1;
    fake_driver.inside = end_meanwhile;
    cr_expect_eq(pool_free(CW_POOL_DEVICE, key, &wait), CW_POOL_DRIVER);
    cr_expect_eq(wait, FAKE_CONTEXT_IS_DESTROYED);
    cr_expect_eq(pool_count(CW_BLOCK_LIVE) + pool_count(CW_BLOCK_LEAVING), 0u);
    cr_expect_eq(pool_check(), 0);
    /* A record that was given back twice would now be given out twice. */
    fake_set_current(pooled_context(1, 0));
    first = cw_tracker_find(CW_SPACE_ADDRESS, pool_get(4 * KIB));
    second = cw_tracker_find(CW_SPACE_ADDRESS, pool_get(4 * KIB));
    cr_expect_neq(first, second);
}

static uint64_t others;

static void end_and_give_out_again(enum fake_call call)
{
    if (call != FAKE_CONTEXT_WAIT)
        return;
    fake_driver.inside = NULL;
    cw_context_end_begin(pool_context->context, &ending);
    fake_context_end(FIRST_CONTEXT);
    others = fake_take(SECOND_CONTEXT, CW_KIND_DEVICE, 4 * KIB);
    core_put(core_site("other", CW_KIND_DEVICE, 1), others, 4 * KIB);
    cw_context_end_finish(&ending, CW_CONTEXT_DESTROYED);
}

Test(pool_context, a_free_that_waits_while_its_address_is_given_out_again_closes_the_block_once)
{
    uint64_t key = pool_get(2 * MIB);
    struct cw_request_free freed;
    int wait;

    pooled_context(1, 1);
    fake_driver.refuses_events = 1;
    fake_driver.inside = end_and_give_out_again;
    cr_expect_eq(cw_pool_free(CW_FREES_DEVICE, key, 0, &freed, &wait), CW_POOL_DRIVER);
    cr_assert_eq(others, key);
    cw_request_free_end(&freed, 0, CW_FREE_REFUSED, 1);
    cr_expect_eq(pool_count(CW_BLOCK_LIVE), 1u);
    cr_expect_eq(core_held(0), 0u);
    cr_expect_eq(core_held(1), 4 * KIB);
    cr_expect_eq(pool_check(), 0);
    cr_expect_neq(core_put(core_site("a", CW_KIND_DEVICE, 0), 0x1000, 1),
                  core_put(core_site("a", CW_KIND_DEVICE, 0), 0x2000, 1));
}

PoolTest(pool_context, a_free_that_waits_while_its_context_is_kept_keeps_the_block)
{
    uint64_t key = pool_get(4 * KIB), again = 0;

    outcome = CW_CONTEXT_KEPT;
    fake_driver.inside = end_meanwhile;
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(pool_hits(CW_POOL_DEVICE, 4 * KIB, &again), 1);
    cr_expect_eq(again, key);
}

/* What the program has freed and the pool keeps, on its way there. */
static void retire(uint32_t index)
{
    struct cw_live_block *block = cw_tracker_at(index);

    cw_tracker_gone(index, block, 1);
    cw_usage_give_excess(cw_site_device(cw_site_at(block->site)), cw_tracker_excess(block));
    cw_site_count_out(cw_site_at(block->site), block->bytes, block->held, 0);
    cw_tracker_rest(block, 0, 0);
}

PoolTest(pool_context, what_comes_in_while_it_closes_waits_in_limbo)
{
    uint64_t key = pool_get(4 * KIB);
    uint32_t block = cw_tracker_find(CW_SPACE_ADDRESS, key);

    cr_assert_eq(cw_tracker_claim(cw_tracker_at(block), block, CW_SPACE_ADDRESS, key), 1);
    cw_context_end_begin(pool_context->context, &ending);
    retire(block);
    cw_bucket_kept(cw_pool_context_pool(pool_context, CW_POOL_DEVICE), block);
    cw_waiting_defer(pool_context, block);
    cr_expect_eq(pool_context->limbo, block);
    cw_context_end_finish(&ending, CW_CONTEXT_KEPT);
    cr_expect_eq(pool_context->limbo, 0u);
    cr_expect_eq(pool_serves(4 * KIB), 1);
}

PoolTest(pool_context, what_comes_in_after_its_end_is_forgotten)
{
    uint64_t key = pool_get(4 * KIB);
    uint32_t block = cw_tracker_find(CW_SPACE_ADDRESS, key);

    cr_assert_eq(cw_tracker_claim(cw_tracker_at(block), block, CW_SPACE_ADDRESS, key), 1);
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    retire(block);
    cw_bucket_kept(cw_pool_context_pool(pool_context, CW_POOL_DEVICE), block);
    cw_waiting_defer(pool_context, block);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
}

PoolTest(pool_context, what_is_released_after_its_end_does_not_reach_the_driver)
{
    uint64_t key = pool_get(4 * KIB), others;
    uint32_t block = cw_tracker_find(CW_SPACE_ADDRESS, key);

    cr_assert_eq(cw_tracker_claim(cw_tracker_at(block), block, CW_SPACE_ADDRESS, key), 1);
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    /* The driver gives the address to another, who has not told us yet. */
    others = fake_take(pooled_context(1, 0), CW_KIND_DEVICE, 4 * KIB);
    cr_assert_eq(others, key);
    retire(block);
    cw_bucket_kept(cw_pool_context_pool(pool_context, CW_POOL_DEVICE), block);
    cw_release_list(pool_context, block, CW_RELEASE_FULL);
    cr_expect_eq(fake_driver.calls[FAKE_BLOCK_FREE], 0u);
    cr_expect_eq(fake_give(others), 0);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
}

PoolTest(pool_context, what_a_thread_kept_that_could_not_give_it_up_is_found)
{
    run_threads(1, keep_in_a_thread);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1u);
    cw_slot_reset(); /* lets go of the slot that the thread left stopped */
    cw_lock_reset_thread();
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
}

/* ---- an end that two threads find ---- */

static struct cw_context_ending first_end;
static unsigned asked;

/* The other thread is done with the end while this one, which has seen the context alive, asks what
 * became of it. */
static void first_finishes(enum fake_call call)
{
    if (call != FAKE_CURRENT || ++asked < 2) /* the first context is asked about first */
        return;
    fake_driver.inside = NULL;
    cw_context_end_finish(&first_end, CW_CONTEXT_DESTROYED);
}

static void end_twice(uint64_t handle)
{
    cw_context_end_begin(pool_index(handle), &first_end);
    fake_context_end(handle);
    asked = 0;
    fake_driver.inside = first_finishes;
    cw_context_check_all();
    cr_assert_eq((void *)fake_driver.inside, NULL);
}

PoolTest(pool_context, one_whose_end_is_found_twice_leaves_the_others_listed)
{
    uint64_t second = pooled_context(1, 1);

    pooled_context(2, 1);
    end_twice(second);
    cr_expect_eq(cw_pool_contexts_live, 2u);
    cr_expect_eq(cw_pool_context_is_alone(), 0);
}

/* ---- frees that come too late ---- */

static void expect_misuse(uint64_t key, enum cw_misuse misuse)
{
    const struct cw_live_event *event;

    pool_put(key);
    event = core_at(CW_TABLE_EVENT, core_count(CW_TABLE_EVENT));
    cr_expect_eq(event->key, key);
    cr_expect_eq(event->misuse, misuse, "%s", cw_misuse_name(event->misuse));
    cr_expect_neq(event->alloc_site, 0u);
}

/* Without stacks nobody knows where the first was; that there was one is known all the same. */
PoolTest(pool_context, a_second_free_is_one_also_when_the_context_has_ended)
{
    uint64_t key = pool_get(4 * KIB);

    pool_put(key);
    expect_misuse(key, CW_MISUSE_DOUBLE);
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    fake_set_current(pooled_context(1, 0));
    expect_misuse(key, CW_MISUSE_DOUBLE);
}

PoolTest(pool_context, a_free_after_the_end_of_the_context_is_no_second_one)
{
    uint64_t key = pool_get(4 * KIB);

    pool_put(key);
    cr_assert_eq(pool_get(4 * KIB), key, "an earlier owner freed it in time");
    pool_end_context(FIRST_CONTEXT, CW_CONTEXT_DESTROYED);
    fake_set_current(pooled_context(1, 0));
    expect_misuse(key, CW_MISUSE_CONTEXT);
}

TestSuite(pool_context_deferred);

Test(pool_context_deferred, after_such_an_end_blocks_still_wait_for_the_device)
{
    uint64_t second, key;

    pool_start(CW_FREE_DEFERRED);
    second = pooled_context(1, 1);
    end_twice(second);
    fake_driver.is_persistent = 1;
    for (int i = 0; i < 20; i++) {
        key = pool_get(MIB);
        fake_submit(FIRST_CONTEXT);
        pool_put(key);
    }
    cr_expect_eq(pool_serves(MIB), 0);
}

/* One thread is told that the context is kept, the other that it is gone. */
PoolTest(pool_context, one_that_is_kept_and_then_gone_leaves_nothing)
{
    struct cw_context_ending first, second;
    uint64_t handle = pooled_context(1, 0);

    fake_set_current(handle);
    pool_churn(4, 4 * MIB);
    pool_sync(FIRST_CONTEXT);
    pool_sync(handle);
    cr_expect_eq(pool_idle_bytes(), 16 * MIB);
    cw_context_end_begin(pool_index(handle), &first);
    cw_context_end_begin(pool_index(handle), &second);
    cw_context_end_finish(&first, CW_CONTEXT_KEPT);
    fake_context_end(handle);
    cw_context_end_finish(&second, CW_CONTEXT_DESTROYED);
    fake_set_current(FIRST_CONTEXT);
    cr_expect_eq(pool_idle_bytes(), 0u);
    cr_expect_eq(cw_bucket_listed(0), 0u);
    cr_expect_eq(cw_batches, 0u);
}
