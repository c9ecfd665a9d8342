/* SPDX-License-Identifier: MIT */
/* The fallback: what becomes of its memory when the program frees it in stream order. That it
 * serves at all is in ladder.c. */
#include "core/request/fallback.h"

#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core_file.h"
#include "core/pending/batch.h"
#include "core/process/gate.h"
#include "core/request/request.h"
#include "core/account/site.h"
#include "core/account/tag_count.h"
#include "base/host_memory.h"
#include "core/account/tracker.h"
#include "core/tags/tag.h"
#include "core/tags/tag_name.h"

#define BYTES (200 * MIB)

TestSuite(fallback);

static void start(void)
{
    core_options()->fallback = CW_FALLBACK_MANAGED;
    core_options()->free_sync = CW_FREE_STRICT;
    ask_start("", "", 1000 * MIB);
    ask_get(900 * MIB);
}

static unsigned frees(void)
{
    return fake_driver.calls[FAKE_BLOCK_FREE];
}

/* Without a pool. */
static void start_tracking(void)
{
    core_options()->fallback = CW_FALLBACK_MANAGED;
    core_arm();
    fake_driver.capacity = 1000 * MIB;
    fake_set_current(pooled_context(0, 0));
    ask_get(900 * MIB);
}

/* As hook/bodies/hooks_alloc.c does it. */
static int free_in_order(uint64_t key)
{
    struct cw_request_free freed;
    int rc;

    cw_request_free_begin(CW_SPACE_ADDRESS, key, &freed);
    cr_assert_neq(freed.block, 0);
    rc = cw_fallback_leave(freed.block);
    cw_request_free_end(&freed, 0, rc == 0 ? CW_FREE_DONE : CW_FREE_FAILED, 0);
    return rc;
}

/* A block that the program has freed in stream order. */
static uint64_t left_one(void)
{
    uint64_t key = ask_get(BYTES);

    cr_assert_eq(free_in_order(key), 0);
    return key;
}

/* The program's cuCtxSynchronize, as hook/bodies/hooks_observe.c has it. */
static void sync_context(uint64_t handle)
{
    uint64_t ticket = cw_batch_sync_begin();

    fake_finish(handle);
    cw_fallback_synced(pool_index(handle), ticket);
}

Test(fallback, waits_until_somebody_waits)
{
    uint64_t key;

    start();
    key = ask_get(BYTES);
    cr_expect(!cw_fallback_has_left());
    cr_expect(!cw_fallback_is_left(key));
    cr_assert_eq(free_in_order(key), 0);
    cr_expect(cw_fallback_has_left());
    cr_expect(cw_fallback_is_left(key));
    cr_expect(!cw_fallback_is_left(key + 1));
    cr_expect_eq(cw_tracker_find(CW_SPACE_ADDRESS, key), 0);
    cr_expect_eq(frees(), 0);
    sync_context(FIRST_CONTEXT);
    cr_expect_eq(frees(), 1);
    cr_expect(!cw_fallback_has_left());
    cr_expect(!cw_fallback_is_left(key));
    cw_fallback_release_idle(0);
    cr_expect_eq(frees(), 1);
}

Test(fallback, counts_for_its_tag)
{
    uint16_t tag = cw_tag_name(0, "spilt");
    struct cw_tag_sums sums = {0}, others = {0};

    start();
    cw_tag_enter(tag);
    cr_assert_neq(ask_get(BYTES), 0);
    cw_tag_count_add(tag, 0, &sums);
    cw_tag_count_add(0, 0, &others);
    cr_expect_eq(sums.fallbacks, 1u);
    cr_expect_eq(sums.fallback_bytes, BYTES);
    cr_expect_eq(others.fallbacks, 0u);
}

Test(fallback, goes_before_the_next_request_is_served)
{
    uint64_t key[3];

    start();
    for (int i = 0; i < 3; i++)
        key[i] = ask_get(BYTES);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(free_in_order(key[i]), 0);
    cr_expect_eq(cw_fallback_left, 3 * BYTES);
    cr_expect_neq(ask_get(BYTES), 0);
    cr_expect_eq(frees(), 3);
    cr_expect_eq(cw_fallback_left, 0);
}

Test(fallback, goes_with_its_context)
{
    static const enum cw_context_outcome outcomes[] = {CW_CONTEXT_DESTROYED, CW_CONTEXT_RENEWED};

    for (unsigned i = 0; i < 2; i++) {
        uint64_t key;

        start();
        key = ask_get(BYTES);
        cr_assert_eq(free_in_order(key), 0);
        pool_end_context(FIRST_CONTEXT, CW_CONTEXT_KEPT);
        cr_expect(cw_fallback_is_left(key));
        pool_end_context(FIRST_CONTEXT, outcomes[i]);
        /* The address may be anybody's. */
        cr_expect(!cw_fallback_is_left(key));
        cw_fallback_release_idle(0);
        cr_expect_eq(frees(), 0);
        cr_expect_eq(cw_fallback_left, 0);
    }
}

Test(fallback, is_of_its_context_alone)
{
    uint64_t key;

    start();
    pooled_context(1, 0);
    key = left_one();
    cw_fallback_release_idle(pool_index(SECOND_CONTEXT));
    cr_expect_eq(frees(), 0);
    cr_expect(cw_fallback_is_left(key));
    cw_fallback_release_idle(0);
    cr_expect_eq(frees(), 1);
}

/* ---- while there is work that may use it ---- */

static void by_synchronisation(void)
{
    sync_context(FIRST_CONTEXT);
}

static void by_free(void)
{
    cw_fallback_release_idle(pool_index(FIRST_CONTEXT));
}

static void by_request(void)
{
    cr_assert_neq(ask_get(BYTES), 0);
}

/* Each in a process of its own: contexts of an arming before would be there still. */
static void stays_while_a_context_has_work(void (*begin)(void), void (*look)(void))
{
    uint64_t key;

    begin();
    pooled_context(1, 1);
    key = left_one();
    fake_driver.is_persistent = 1;
    fake_submit(SECOND_CONTEXT);
    look();
    cr_expect_eq(frees(), 0);
    cr_expect(cw_fallback_is_left(key));
    fake_finish(SECOND_CONTEXT);
    look();
    cr_expect_eq(frees(), 1);
}

Test(fallback, stays_while_a_context_has_work_at_a_synchronisation)
{
    stays_while_a_context_has_work(start, by_synchronisation);
}

Test(fallback, stays_while_a_context_has_work_at_a_synchronisation_without_a_pool)
{
    stays_while_a_context_has_work(start_tracking, by_synchronisation);
}

Test(fallback, stays_while_a_context_has_work_at_a_free)
{
    stays_while_a_context_has_work(start, by_free);
}

Test(fallback, stays_while_a_context_has_work_at_a_free_without_a_pool)
{
    stays_while_a_context_has_work(start_tracking, by_free);
}

Test(fallback, stays_while_a_context_has_work_at_a_request)
{
    stays_while_a_context_has_work(start, by_request);
}

Test(fallback, stays_while_a_context_has_work_at_a_request_without_a_pool)
{
    stays_while_a_context_has_work(start_tracking, by_request);
}

/* Its thread goes on once another one, which has waited meanwhile, does. */
Test(fallback, is_not_covered_by_a_wait_that_began_before)
{
    uint64_t key, ticket;

    start();
    key = ask_get(BYTES);
    ticket = cw_batch_sync_begin();
    fake_driver.is_persistent = 1;
    fake_submit(FIRST_CONTEXT);
    cr_assert_eq(free_in_order(key), 0);
    cw_fallback_synced(pool_index(FIRST_CONTEXT), ticket);
    cr_expect_eq(frees(), 0);
    fake_finish(FIRST_CONTEXT);
    cw_fallback_release_idle(0);
    cr_expect_eq(frees(), 1);
}

/* The driver's free of it might wait for that. */
Test(fallback, stays_when_new_work_has_begun_during_the_wait)
{
    uint64_t ticket;

    start();
    left_one();
    ticket = cw_batch_sync_begin();
    fake_driver.is_persistent = 1;
    fake_submit(FIRST_CONTEXT);
    cw_fallback_synced(pool_index(FIRST_CONTEXT), ticket);
    cr_expect_eq(frees(), 0);
    /* That of others it would not wait for. */
    pooled_context(1, 1);
    fake_finish(FIRST_CONTEXT);
    ticket = cw_batch_sync_begin();
    fake_submit(SECOND_CONTEXT);
    cw_fallback_synced(pool_index(SECOND_CONTEXT), ticket);
    cr_expect_eq(frees(), 1);
}

static uint64_t next_key;

static void leave_next(enum fake_call call)
{
    if (call != FAKE_BLOCK_FREE && call != FAKE_EVENT_QUERY)
        return;
    fake_driver.inside = NULL;
    fake_submit(FIRST_CONTEXT);
    cr_assert_eq(free_in_order(next_key), 0);
}

Test(fallback, what_is_left_after_the_contexts_were_asked_stays)
{
    start();
    next_key = ask_get(BYTES);
    left_one();
    fake_driver.is_persistent = 1;
    fake_driver.inside = leave_next;
    cw_fallback_release_idle(pool_index(FIRST_CONTEXT));
    cr_expect_eq(frees(), 1);
    cr_expect(cw_fallback_is_left(next_key));
}

static void without_events(void)
{
    fake_driver.has_no_context_events = 1;
    start();
}

static void with_refused_events(void)
{
    start();
    fake_driver.refuses_events = 1;
}

static void without_events_or_pool(void)
{
    fake_driver.has_no_context_events = 1;
    start_tracking();
}

static void only_a_request_waits(void (*begin)(void))
{
    unsigned waits;

    begin();
    pooled_context(1, 1);
    left_one();
    waits = fake_calls(FAKE_CONTEXT_WAIT);
    fake_submit(FIRST_CONTEXT);
    fake_submit(SECOND_CONTEXT);
    cw_fallback_release_idle(0);
    cw_fallback_synced(pool_index(FIRST_CONTEXT), cw_batch_sync_begin());
    cr_expect_eq(frees(), 0);
    cw_fallback_synced(pool_index(SECOND_CONTEXT), cw_batch_sync_begin());
    cr_expect_eq(frees(), 1);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_WAIT), waits);
    left_one();
    cr_expect_neq(ask_get(BYTES), 0);
    cr_expect_eq(fake_calls(FAKE_CONTEXT_WAIT), waits + 1, "for the thread's own context alone");
    cr_expect_eq(frees(), 1);
    cw_fallback_synced(pool_index(FIRST_CONTEXT), cw_batch_sync_begin());
    cw_fallback_synced(pool_index(SECOND_CONTEXT), cw_batch_sync_begin());
    cr_expect_eq(frees(), 2);
}

Test(fallback, without_events_only_a_request_waits)
{
    only_a_request_waits(without_events);
}

Test(fallback, where_events_are_refused_only_a_request_waits)
{
    only_a_request_waits(with_refused_events);
}

Test(fallback, without_events_or_a_pool_only_a_request_waits)
{
    only_a_request_waits(without_events_or_pool);
}

/* ---- and otherwise ---- */

Test(fallback, stays_while_the_gate_is_closed)
{
    uint64_t key;

    start();
    key = ask_get(BYTES);
    cr_assert_eq(free_in_order(key), 0);
    cw_gate_close(CW_GATE_CAPTURE);
    cw_fallback_release_idle(0);
    cr_expect_eq(frees(), 0);
    cr_expect(cw_fallback_is_left(key));
    cw_gate_open(CW_GATE_CAPTURE);
    cw_fallback_release_idle(0);
    cr_expect_eq(frees(), 1);
}

Test(fallback, goes_without_a_pool_too)
{
    start_tracking();
    left_one();
    sync_context(FIRST_CONTEXT);
    cr_expect_eq(frees(), 1);
    cr_expect(!cw_fallback_has_left());
}

Test(fallback, leaves_a_broken_context_to_the_driver)
{
    uint64_t key;

    start();
    key = ask_get(BYTES);
    cw_context_set_fatal(pool_index(FIRST_CONTEXT), 700);
    cr_expect_neq(free_in_order(key), 0);
    cr_expect(!cw_fallback_has_left());
    cr_expect_neq(cw_tracker_find(CW_SPACE_ADDRESS, key), 0);
}

Test(fallback, says_why_it_does_not_serve)
{
    struct cw_request request = {0};

    start();
    cr_expect_eq(cw_fallback_alloc(0, (uint64_t)1 << 60, &request), -1);
    cr_expect_eq(request.unserved, CW_UNSERVED_HOST);
    fake_driver.fails[FAKE_FALLBACK_ALLOC] = 1;
    cr_expect_eq(cw_fallback_alloc(0, BYTES, &request), -1);
    cr_expect_eq(request.unserved, CW_UNSERVED_DEVICE);
}

static unsigned queries;

static void finish_late(enum fake_call call)
{
    if (call == FAKE_EVENT_QUERY && ++queries == 20) /* more than who does not wait asks */
        fake_finish(FIRST_CONTEXT);
}

/* A program that runs ahead of its device is at work whenever it asks. */
static void waits_before_the_host_refuses(void (*begin)(void))
{
    uint64_t most = cw_host_memory_available() / 8 * 5, key;
    struct cw_request request = {0};

    begin();
    key = ask_get(most);
    cr_assert_neq(key, 0);
    cw_fallback_committed(most);
    cr_assert_eq(free_in_order(key), 0);
    fake_driver.is_persistent = 1;
    fake_submit(FIRST_CONTEXT);
    fake_driver.inside = finish_late;
    cr_expect_eq(cw_fallback_alloc(0, most, &request), 0, "unserved %u, %u frees", request.unserved,
                 frees());
    cr_expect_geq(queries, 20u);
    cr_expect_eq(frees(), 1);
}

Test(fallback, waits_before_the_host_refuses)
{
    waits_before_the_host_refuses(start);
}

Test(fallback, waits_before_the_host_refuses_without_a_pool)
{
    waits_before_the_host_refuses(start_tracking);
}

/* While another context is at work. */
Test(fallback, what_is_left_of_a_context_that_has_ended_counts_no_more)
{
    struct cw_request_free freed;
    uint64_t second, key;

    start();
    second = pooled_context(1, 0);
    fake_set_current(second);
    key = ask_get(BYTES);
    cw_request_free_begin(CW_SPACE_ADDRESS, key, &freed);
    cr_assert_eq(cw_fallback_leave(freed.block), 0);
    cw_request_free_end(&freed, 0, CW_FREE_DONE, 0);
    pool_end_context(second, CW_CONTEXT_DESTROYED);
    fake_set_current(FIRST_CONTEXT);
    fake_driver.is_persistent = 1;
    fake_submit(FIRST_CONTEXT);
    cw_fallback_release_idle(0);
    cr_expect_not(cw_fallback_has_left());
}

Test(fallback, does_not_count_what_the_program_has_managed_itself)
{
    struct cw_request request = {.space = CW_SPACE_ADDRESS,
                                 .key = UINT64_C(1) << 50,
                                 .kind = CW_KIND_MANAGED,
                                 .bytes = UINT64_C(1) << 50,
                                 .held = UINT64_C(1) << 50};

    start();
    cr_assert_neq(cw_request_granted(&request, 0), 0);
    cr_expect_neq(ask_get(BYTES), 0);
}

Test(fallback, what_others_write_into_the_sites_refuses_nothing, .fini = core_remove_file)
{
    core_on_file();
    start();
    cr_assert_neq(ask_get(BYTES), 0);
    for (uint32_t i = 1; i < cw_arena_count(core_arena, CW_TABLE_SITE); i++)
        cw_site_at(i)->total_bytes = UINT64_C(1) << 60;
    cr_expect_neq(ask_get(BYTES), 0);
}
