/* SPDX-License-Identifier: MIT */
/* The pool as a whole: what is served, what is kept, and what goes back. */
#include "core/pool/pool.h"

#include <criterion/criterion.h>

#include <sched.h>
#include <stdatomic.h>

#include "core/control/lifecycle.h"
#include "core/process/gate.h"
#include "core/cache/pool_context.h"
#include "core/request/request.h"
#include "core/process/session.h"
#include "core/account/usage.h"
#include "core/account/tracker.h"
#include "core/tags/tag.h"
#include "core_file.h"
#include "pool_fixture.h"

/* Of each of two threads: they meet often. */
#define FREES 1000000u

TestSuite(pool, .init = pool_setup);
/* ---- serving ---- */

PoolTest(pool, a_freed_block_serves_again)
{
    uint64_t key = pool_get(1000), again = 0;

    cr_expect_eq(core_live(0), 1000u);
    cr_expect_eq(core_held(0), 1024u);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(core_live(0), 0u);
    cr_expect_eq(core_held(0), 1024u);
    cr_expect_eq(pool_hits(CW_POOL_DEVICE, 900, &again), 1);
    cr_expect_eq(again, key);
    cr_expect_eq(core_live(0), 900u);
    cr_expect_eq(pool_sums().hits, 1u);
    cr_expect_eq(pool_sums().misses, 1u);
    cr_expect_eq(pool_sums().kept, 1u);
    cr_expect_eq(pool_sums().asked, 1900u);
    cr_expect_eq(pool_sums().given, 2048u);
}

PoolTest(pool, nothing_and_too_much_are_not_for_it)
{
    cr_expect_eq(pool_serves(0), 0);
    cr_expect_eq(pool_serves(CW_SIZE_MOST + 1), 0);
    cr_expect_eq(pool_serves(UINT64_MAX), 0);
}

PoolTest(pool, classes_do_not_mix)
{
    static const enum cw_pool_class classes[] = {CW_POOL_DEVICE,         CW_POOL_PITCHED,
                                                 CW_POOL_HOST,           CW_POOL_HOST_FLAGS,
                                                 CW_POOL_HOST_FLAGS + 1, CW_POOL_HOST_FLAGS + 7};

    for (unsigned i = 0; i < 6; i++) {
        uint64_t key = pool_alloc(classes[i], 8 * KIB, NULL), again = 0;

        cr_assert_eq(pool_free(classes[i], key, NULL), CW_POOL_KEPT);
        for (unsigned k = 0; k < 6; k++)
            if (k != i)
                cr_expect_eq(pool_hits(classes[k], 8 * KIB, NULL), 0, "%u serves %u", i, k);
        cr_expect_eq(pool_hits(classes[i], 8 * KIB, &again), 1, "%u serves not", i);
        cr_expect_eq(again, key);
    }
    cr_expect_eq(core_live(CW_DEVICE_HOST), 4 * 8 * KIB);
}

PoolTest(pool, contexts_do_not_mix)
{
    uint64_t key = pool_get(4 * KIB);

    pooled_context(1, 0);
    cr_assert_eq(pool_put(key), CW_POOL_KEPT);
    fake_set_current(SECOND_CONTEXT);
    cr_expect_eq(pool_serves(4 * KIB), 0);
    fake_set_current(FIRST_CONTEXT);
    cr_expect_eq(pool_serves(4 * KIB), 1);
}

PoolTest(pool, pitched_blocks_serve_again_whatever_their_size)
{
    for (uint64_t bytes = 512; bytes < 3 * MIB; bytes = bytes * 3 + 7) {
        uint64_t key = pool_alloc(CW_POOL_PITCHED, bytes, NULL), again = 0;

        cr_assert_eq(pool_free(CW_POOL_PITCHED, key, NULL), CW_POOL_KEPT);
        cr_expect_eq(cw_tracker_at(cw_tracker_find(CW_SPACE_ADDRESS, key))->held, bytes);
        cr_expect_eq(pool_hits(CW_POOL_PITCHED, bytes, &again), 1, "%ju", (uintmax_t)bytes);
        cr_expect_eq(again, key);
    }
}

PoolTest(pool, large_blocks_serve_requests_that_are_a_little_smaller)
{
    uint64_t key = pool_get(80 * MIB);

    pool_get(800 * MIB); /* and what is idle is little beside it */
    pool_settle(0);
    cr_assert_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(pool_serves(81 * MIB), 0);
    cr_expect_eq(pool_serves(40 * MIB), 0);
    cr_expect_eq(pool_serves(72 * MIB), 1);
    cr_expect_eq(cw_usage_excess(0), 8 * MIB);
}

/* The record of a site that is new cannot be had. */
PoolTest(pool, without_memory_for_a_site_the_block_stays_idle_and_exceeds_nothing)
{
    struct cw_live_table *sites = &core_arena->table[CW_TABLE_SITE];
    uint32_t count;

    pool_get(10 * GIB); /* what is idle is little beside it */
    pool_settle(0);
    pool_put(pool_get(36 * MIB));
    cw_tag_enter(cw_tag_name(0, "new"));
    count = atomic_exchange(&sites->count, UINT32_MAX);
    cr_expect_not(pool_serves(34 * MIB));
    atomic_store(&sites->count, count);
    cr_expect_eq(cw_usage_excess(0), 0u);
    cr_expect(pool_serves(34 * MIB));
}

PoolTest(pool, a_block_of_less_than_the_least_size_goes_to_the_driver)
{
    /* After out of memory at 512 bytes the driver was asked for 100. */
    struct cw_pool_request pool = {.class = CW_POOL_DEVICE, .bytes = 100};
    struct cw_request request = {.kind = CW_KIND_DEVICE, .bytes = 100};

    cr_assert_eq(cw_pool_alloc(&pool, 0), 0u);
    cr_expect_eq(pool.ask, 512u);
    request.key = fake_take(FIRST_CONTEXT, CW_KIND_DEVICE, 100);
    cw_pool_granted(&pool, 100, 1, &request);
    request.context = pool_index(FIRST_CONTEXT);
    cw_request_granted(&request, 0);
    cr_expect_eq(pool_counters(0)->exact_retries, 1u);
    cr_expect_eq(request.flags & CW_BLOCK_POOLED, 0);
    cr_expect_eq(pool_put(request.key), CW_POOL_DRIVER);
}

PoolTest(pool, without_a_context_nothing_is_served_or_kept)
{
    uint64_t key = pool_get(4 * KIB), other = pool_get(4 * KIB);

    pool_put(other);
    fake_set_current(0);
    cr_expect_eq(pool_serves(4 * KIB), 0);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_eq(pool_bypassed(CW_BYPASS_NO_CONTEXT), 2u);
}

PoolTest(pool, in_a_capture_nothing_is_served_or_kept_or_asked)
{
    uint64_t key = pool_get(4 * KIB), other = pool_get(4 * KIB);
    unsigned before;

    pool_put(other);
    cw_gate_close(CW_GATE_CAPTURE);
    before = fake_gated_calls();
    cr_expect_eq(pool_serves(4 * KIB), 0);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_eq(fake_gated_calls(), before);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(pool_bypassed(CW_BYPASS_CAPTURE), 2u);
    cr_expect_eq(pool_serves(4 * KIB), 1);
}

PoolTest(pool, in_a_failed_context_nothing_is_served_or_kept)
{
    uint64_t key = pool_get(4 * KIB), other = pool_get(4 * KIB);

    pool_put(other);
    cw_context_set_fatal(pool_index(FIRST_CONTEXT), 700);
    cr_expect_eq(pool_serves(4 * KIB), 0);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_eq(pool_bypassed(CW_BYPASS_BROKEN), 2u);
}

PoolTest(pool, an_exported_block_is_never_kept)
{
    uint64_t key = pool_get(4 * KIB);

    atomic_fetch_or(&cw_tracker_at(cw_tracker_find(CW_SPACE_ADDRESS, key))->flags,
                    CW_BLOCK_EXPORTED);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_eq(pool_bypassed(CW_BYPASS_EXPORTED), 1u);
}

/* ---- freeing ---- */

PoolTest(pool, a_strict_free_waits_for_the_context_of_the_block)
{
    uint64_t key = pool_get(4 * KIB), work = fake_submit(FIRST_CONTEXT);

    pool_put(key);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_POLL), 1u);
    cr_expect_eq(fake_driver.waited, FIRST_CONTEXT);
    cr_expect_eq(fake_is_finished(0, fake_driver.context[0].generation, work), 1);
    cr_expect_eq(pool_serves(4 * KIB), 1);
}

PoolTest(pool, a_wait_that_fails_hands_the_free_to_the_driver_with_its_code)
{
    uint64_t key = pool_get(4 * KIB);
    int wait = 0;

    fake_driver.wait_code = 700;
    cr_expect_eq(pool_free(CW_POOL_DEVICE, key, &wait), CW_POOL_DRIVER);
    cr_expect_eq(wait, 700);
    cr_expect_eq(pool_bypassed(CW_BYPASS_BROKEN), 1u);
}

PoolTest(pool, with_several_contexts_a_strict_free_waits_for_its_own_and_polls_the_others)
{
    uint64_t key = pool_get(4 * KIB);

    fake_submit(pooled_context(1, 1));
    fake_submit(FIRST_CONTEXT);
    fake_set_current(SECOND_CONTEXT);
    pool_put(key);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_POLL), 1u);
    cr_expect_eq(fake_driver.waited, FIRST_CONTEXT);
    fake_set_current(FIRST_CONTEXT);
    cr_expect_eq(pool_serves(4 * KIB), 0);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_POLL), 1u);
    fake_finish(SECOND_CONTEXT);
    cr_expect_eq(pool_serves(4 * KIB), 1);
}

PoolTest(pool_with, with_several_contexts_and_no_context_events_the_driver_frees)
{
    fake_driver.has_no_context_events = 1;
    pool_start(CW_FREE_STRICT);
    pooled_context(1, 1);
    cr_expect_eq(pool_put(pool_get(4 * KIB)), CW_POOL_DRIVER);
    cr_expect_eq(pool_bypassed(CW_BYPASS_CONTEXTS), 1u);
    pool_end_context(SECOND_CONTEXT, CW_CONTEXT_DESTROYED);
    cr_expect_eq(pool_put(pool_get(2 * MIB)), CW_POOL_KEPT);
}

PoolTest(pool, with_more_contexts_than_it_can_poll_the_driver_frees)
{
    for (unsigned i = 1; i <= 16; i++)
        pooled_context(i, 0);
    cr_expect_eq(pool_put(pool_get(4 * KIB)), CW_POOL_DRIVER);
    pool_end_context(FIRST_CONTEXT + 16, CW_CONTEXT_DESTROYED);
    cr_expect_eq(pool_put(pool_get(4 * KIB)), CW_POOL_KEPT);
}

PoolTest(pool, a_second_free_is_refused)
{
    uint64_t key = pool_get(4 * KIB);
    struct cw_pool_view view;

    pool_put(key);
    cr_expect_eq(pool_put(key), CW_POOL_REFUSED);
    cr_expect_eq(pool_put(key), CW_POOL_REFUSED);
    cr_expect_eq(core_header()->invalid_frees, 2u);
    cr_assert_eq(cw_pool_look(key, &view), 1);
    cr_expect_eq(view.bytes, 0u);
    cr_expect_eq(pool_serves(4 * KIB), 1);
}

PoolTest(pool, a_block_that_was_just_served_is_freed_once)
{
    uint64_t key = pool_get(4 * KIB), again = 0;

    pool_put(key);
    cr_assert_eq(pool_hits(CW_POOL_DEVICE, 4 * KIB, &again), 1);
    cr_expect_eq(again, key);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(pool_put(key), CW_POOL_REFUSED);
    cr_expect_eq(core_header()->invalid_frees, 1u);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1u);
}

static uint64_t in_flight;
static enum cw_pool_free second_free;

static void free_again(enum fake_call call)
{
    if (call != FAKE_CONTEXT_POLL)
        return;
    fake_driver.inside = NULL;
    second_free = pool_put(in_flight);
}

PoolTest(pool, a_second_free_while_the_first_waits_is_refused)
{
    in_flight = pool_get(4 * KIB);
    fake_driver.inside = free_again;
    cr_expect_eq(pool_put(in_flight), CW_POOL_KEPT);
    cr_expect_eq(second_free, CW_POOL_REFUSED);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1u);
}

PoolTest(pool, the_wrong_function_is_the_drivers_business)
{
    struct cw_request_free freed;
    uint64_t key = pool_get(4 * KIB);
    int wait;

    cr_expect_eq(cw_pool_free(CW_FREES_HOST, key, 0, &freed, &wait), CW_POOL_DRIVER);
    cw_request_free_end(&freed, 0, CW_FREE_REFUSED, 1);
    cr_expect_eq(pool_count(CW_BLOCK_LIVE), 1u);
    cr_expect_eq(cw_pool_free(CW_FREES_ORDERED, key, 0, &freed, &wait), CW_POOL_DRIVER);
    cw_request_free_end(&freed, 0, CW_FREE_REFUSED, 1);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
}

PoolTest(pool, an_unknown_address_is_the_drivers_business)
{
    cr_expect_eq(pool_put(0x1234), CW_POOL_DRIVER);
    cr_expect_eq(core_header()->invalid_frees, 1u);
}

PoolTest(pool, an_address_that_the_driver_gave_out_again_is_no_idle_block)
{
    uint64_t key = pool_get(4 * KIB), again;

    pool_put(key);
    fake_give(key); /* its memory went in a way that we did not see */
    fake_set_current(FIRST_CONTEXT);
    again = fake_take(FIRST_CONTEXT, CW_KIND_DEVICE, 1 * MIB);
    cr_assert_eq(again, key);
    core_put(core_site("other", CW_KIND_DEVICE, 0), key, 1 * MIB);
    cr_expect_eq(pool_serves(4 * KIB), 0);
    cr_expect_eq(core_held(0), 1 * MIB);
    cr_expect_eq(pool_sums().hits, 0u);
}

/* What a thread remembers of the block that it was served last is a record that may be another
 * block's by the time the address is freed. */
PoolTest(pool, an_address_that_was_served_last_may_be_anothers)
{
    uint64_t key = pool_get(4 * KIB), other;

    pool_put(key);
    cr_assert_eq(pool_serves(4 * KIB), 1);
    fake_give(key);
    fake_set_current(FIRST_CONTEXT);
    cr_assert_eq(fake_take(FIRST_CONTEXT, CW_KIND_DEVICE, 1 * MIB), key);
    core_put(core_site("other", CW_KIND_DEVICE, 0), key, 1 * MIB);
    other = pool_get(64 * KIB);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
    cr_expect_eq(pool_count(CW_BLOCK_LIVE), 1u);
    cr_expect_eq(core_live(0), 64 * KIB);
    cr_expect_eq(pool_put(other), CW_POOL_KEPT);
}

/* Although the thread keeps blocks of this size to itself. */
PoolTest(pool, a_block_that_another_context_may_use_is_not_ready)
{
    uint64_t key = pool_get(4 * KIB);

    pool_put(key);
    cr_assert_eq(pool_serves(4 * KIB), 1);
    pooled_context(1, 0);
    fake_submit(SECOND_CONTEXT);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(pool_serves(4 * KIB), 0);
    fake_finish(SECOND_CONTEXT);
    cr_expect_eq(pool_serves(4 * KIB), 1);
}

/* Another thread looks at what the thread keeps at this very moment. */
PoolTest(pool, a_stopped_thread_does_without_its_own_blocks)
{
    struct cw_slot *slot = &cw_slots[cw_thread_slot()];
    uint64_t key = pool_get(4 * KIB);

    pool_put(key);
    cr_assert_eq(pool_serves(4 * KIB), 1);
    cr_assert_neq(slot, &cw_slots[0]);
    atomic_store(&slot->stop, 1);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    cr_expect_eq(core_live(0), 0u);
    cr_expect_eq(pool_sums().idle_blocks, 1u);
    cr_expect_eq(pool_serves(4 * KIB), 1);
    cr_expect_eq(core_live(0), 4 * KIB);
    cr_expect_eq(pool_put(key), CW_POOL_KEPT);
    atomic_store(&slot->stop, 0);
    cr_expect_eq(pool_check(), 0);
    cr_expect_eq(pool_serves(4 * KIB), 1);
    cr_expect_eq(pool_sums().hits, 3u);
    cr_expect_eq(pool_sums().kept, 3u);
}

/* Its slack was taken back: for a while it leaves none, but it keeps its blocks. */
PoolTest(pool, a_thread_without_slack_frees_to_its_own_blocks)
{
    struct cw_slot *slot = &cw_slots[cw_thread_slot()];
    uint64_t key = pool_get(4 * KIB);

    pool_put(key);
    for (unsigned left = 3; left > 0; left--) {
        cr_assert_eq(pool_serves(4 * KIB), 1);
        cr_expect_eq(core_live(0), 4 * KIB);
        slot->no_slack = left;
        cr_expect_eq(pool_put(key), CW_POOL_KEPT);
        cr_expect_eq(slot->no_slack, left - 1);
        cr_expect_eq(core_live(0), 0u);
        cr_expect_eq(cw_usage_slack[cw_thread.slot].live, 0u);
        cr_expect_eq(pool_check(), 0);
    }
    cr_expect_eq(pool_sums().kept, 4u);
    cr_expect_eq(pool_sums().hits, 3u);
}

/* ---- threads, PREWARM, fork ---- */

static uint64_t wrong, right;
static _Atomic unsigned wrong_frees;
static _Atomic int is_over;

static void free_rightly(void)
{
    unsigned refused = 0;

    while (atomic_load(&wrong_frees) == 0)
        sched_yield();
    for (unsigned i = 0; i < FREES || atomic_load(&wrong_frees) < FREES; i++) {
        refused += pool_put(right) != CW_POOL_KEPT;
        refused += !pool_serves(64 * KIB);
    }
    atomic_store(&is_over, 1);
    cr_expect_eq(refused, 0u, "%u", refused);
}

static void free_wrongly(void)
{
    struct cw_request_free freed;
    unsigned kept = 0;
    int wait;

    cw_thread.served = cw_tracker_find(CW_SPACE_ADDRESS, right);
    cw_thread.served_key = wrong;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        kept += cw_pool_free(CW_FREES_DEVICE, wrong, 0, &freed, &wait) != CW_POOL_DRIVER;
        atomic_fetch_add_explicit(&wrong_frees, 1, memory_order_relaxed);
    }
    cr_expect_eq(kept, 0u);
}

static void free_one_or_the_other(unsigned id)
{
    fake_set_current(FIRST_CONTEXT);
    if (id == 0)
        free_wrongly();
    else
        free_rightly();
}

/* The record that a thread remembers is another block's by now: its owner does not notice. */
PoolTest(pool, what_a_thread_remembers_is_in_nobodys_way)
{
    wrong = 0x1234;
    right = pool_get(64 * KIB);
    run_threads(2, free_one_or_the_other);
    cr_expect_eq(pool_count(CW_BLOCK_LIVE), 1u);
    cr_expect_eq(core_header()->invalid_frees, 0u);
}

static void free_in_thread(unsigned id)
{
    fake_set_current(FIRST_CONTEXT);
    fake_submit(FIRST_CONTEXT);
    pool_put(pool_get((id + 1) * 4 * KIB));
}

PoolTest(pool, what_a_thread_kept_serves_others_after_its_end)
{
    run_threads(4, free_in_thread);
    for (unsigned i = 0; i < 4; i++)
        cr_expect_eq(pool_serves((i + 1) * 4 * KIB), 1);
}

PoolTest(pool_with, a_forked_child_starts_with_nothing)
{
    pool_start(CW_FREE_DEFERRED);
    free_in_thread(0);
    free_in_thread(1);
    pool_sync(FIRST_CONTEXT);
    free_in_thread(2);
    cw_lifecycle_reset();
    cr_expect_eq(cw_pool_is_on(), 0);
    pool_start(CW_FREE_DEFERRED);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u);
    cr_expect_eq(cw_pool_contexts_live, 1u);
    for (unsigned i = 0; i < 3; i++)
        cr_expect_eq(pool_serves((i + 1) * 4 * KIB), 0);
    free_in_thread(0);
    cr_expect_eq(pool_serves(4 * KIB), 0);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(pool_serves(4 * KIB), 1);
}

PoolTest(pool_with, a_forked_child_does_not_know_what_its_parent_was_served)
{
    uint64_t key;

    pool_start(CW_FREE_STRICT);
    key = pool_get(4 * KIB);
    pool_put(key);
    cr_assert_eq(pool_serves(4 * KIB), 1);
    cw_lifecycle_reset();
    pool_start(CW_FREE_STRICT);
    cr_expect_eq(pool_put(key), CW_POOL_DRIVER);
}

PoolTest(pool_with, in_track_mode_everything_is_the_drivers)
{
    core_arm();
    fake_set_current(pooled_context(0, 0));
    cr_expect_eq(cw_pool_is_on(), 0);
    cr_expect_eq(pool_put(pool_get(1000)), CW_POOL_DRIVER);
    cr_expect_eq(core_held(0), 0u);
    cr_expect_eq(fake_gated_calls(), fake_calls(FAKE_DEVICE_FACTS) + fake_calls(FAKE_MEMORY_INFO));
}

/* ---- what the program sees ---- */

PoolTest(pool, a_look_tells_how_often_a_block_has_served)
{
    uint64_t key = pool_get(1000);
    struct cw_pool_view view;

    cr_assert_eq(cw_pool_look(key, &view), 1);
    cr_expect_eq(view.bytes, 1000u);
    cr_expect_eq(view.id, 0u);
    pool_put(key);
    cr_assert_eq(cw_pool_look(key, &view), 1);
    cr_expect_eq(view.bytes, 0u);
    cr_expect_eq(pool_serves(800), 1);
    cr_assert_eq(cw_pool_look(key, &view), 1);
    cr_expect_eq(view.bytes, 800u);
    cr_expect_neq(view.id, 0u);
    cr_expect_eq(cw_pool_look(key + 1, &view), 0);
}

static void setup_file(void)
{
    core_on_file();
    pool_setup();
}

TestSuite(pool_in_file, .init = setup_file, .fini = core_remove_file);

PoolTest(pool_in_file, a_look_tells_the_same_when_owners_are_written_over)
{
    uint64_t key = pool_get(1000);
    struct cw_pool_view before, after;

    pool_put(key);
    cr_expect_eq(pool_serves(800), 1);
    cr_assert_eq(cw_pool_look(key, &before), 1);
    core_scribble(CW_TABLE_OWNER, 0x41);
    cr_assert_eq(cw_pool_look(key, &after), 1);
    cr_expect_eq(after.id, before.id);
}

/* Not a PoolTest: the sums of sites, by which that checks the account, are written over too. */
Test(pool_in_file, a_free_counts_where_its_block_does_when_sites_are_written_over)
{
    uint64_t key = pool_get(1000), other = pool_get(2000);

    for (int byte = 1; byte < 256; byte += 63) {
        core_scribble(CW_TABLE_SITE, byte);
        pool_put(key);
        cr_expect_eq(core_live(0), 2000u);
        cr_expect_eq(core_live(1), 0u);
        cr_assert_eq(pool_hits(CW_POOL_DEVICE, 1000, &key), 1);
        cr_expect_eq(core_live(0), 3000u);
    }
    pool_put(other);
    cr_expect_eq(core_live(0), 1000u);
    cr_expect_eq(cw_usage_excess(0), 0u);
}
