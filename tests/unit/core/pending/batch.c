/* SPDX-License-Identifier: MIT */
/* Freed blocks that become ready together: what one event is for, and when. */
#include "core/pending/batch.h"

#include <criterion/criterion.h>

#include "core/process/gate.h"
#include "core/cache/retention.h"
#include "core/pending/pending.h"
#include "core/account/tracker.h"
#include "pool_fixture.h"

#define PROBE (4 * KIB)

static struct cw_pool_context *pool_context;

static void setup(void)
{
    pool_start(CW_FREE_DEFERRED);
    pool_context = cw_pool_context_of(pool_index(FIRST_CONTEXT));
}

TestSuite(batch, .init = setup);

/* A live block of the pool, for a batch of the test's own. */
static uint32_t block_of(uint64_t bytes)
{
    return cw_tracker_find(CW_SPACE_ADDRESS, pool_get(bytes));
}

/* As the core does, inside the gate. */
static int record(struct cw_batch *batch)
{
    int rc;

    cr_assert(cw_gate_enter());
    rc = cw_batch_record(batch);
    cw_gate_leave();
    return rc;
}

static int query(struct cw_batch *batch)
{
    int passed;

    cr_assert(cw_gate_enter());
    passed = cw_batch_query(batch);
    cw_gate_leave();
    return passed;
}

/* ---- what is in it ---- */

PoolTest(batch, is_full_after_64_blocks)
{
    struct cw_batch *batch = cw_batch_make(pool_context);

    for (unsigned i = 0; i < CW_BATCH_MOST_BLOCKS; i++) {
        cr_expect_not(cw_batch_is_full(batch));
        cw_batch_append(batch, block_of(512), 0);
    }
    cr_expect(cw_batch_is_full(batch));
}

PoolTest(batch, is_full_after_64_mib_of_either_kind)
{
    struct cw_batch *batch = cw_batch_make(pool_context);
    uint64_t pinned = pool_alloc(CW_POOL_HOST, 40 * MIB, NULL);

    cw_batch_append(batch, block_of(40 * MIB), 0);
    cr_expect_not(cw_batch_is_full(batch));
    cw_batch_append(batch, cw_tracker_find(CW_SPACE_ADDRESS, pinned), 0);
    cr_expect(cw_batch_is_full(batch));
    cr_expect_eq(batch->bytes, 40 * MIB);
    cr_expect_eq(batch->host_bytes, 40 * MIB);
}

PoolTest(batch, has_the_stamp_of_its_youngest_block)
{
    struct cw_batch *batch = cw_batch_make(pool_context);

    cw_batch_append(batch, block_of(512), 5);
    cw_batch_append(batch, block_of(512), 3);
    cr_expect_eq(batch->stamp, 5u);
    pool_context->synced = 5; /* may have begun before the free */
    cr_expect_not(cw_batch_is_passed(batch));
    pool_context->synced = 6;
    cr_expect(cw_batch_is_passed(batch));
}

PoolTest(batch, gives_its_blocks_and_its_events_back)
{
    struct cw_batch *batch = cw_batch_make(pool_context);
    uint32_t first = block_of(512), second = block_of(512), list;

    cw_batch_append(batch, first, 0);
    cw_batch_append(batch, second, 0);
    cr_assert_eq(record(batch), 0);
    cr_expect(cw_batch_is_any());
    list = cw_batch_dissolve(batch);
    cr_expect_eq(list, second);
    cr_expect_eq(cw_tracker_next(list), first);
    cr_expect_eq(cw_tracker_next(first), 0u);
    cr_expect_not(cw_batch_is_any());
    cr_expect_neq(cw_pool_context_acquire_event(pool_context), 0u);
    cr_expect_eq(fake_calls(FAKE_EVENT_CREATE), 1u);
}

/* ---- events ---- */

PoolTest(batch, passes_when_every_context_has)
{
    struct cw_batch *batch = cw_batch_make(pool_context);

    pooled_context(1, 1);
    fake_submit(FIRST_CONTEXT);
    fake_submit(SECOND_CONTEXT);
    cr_assert_eq(record(batch), 0);
    cr_expect_eq(batch->marks, 2u);
    cr_expect_eq(query(batch), 0);
    fake_finish(SECOND_CONTEXT);
    cr_expect_eq(query(batch), 0);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(query(batch), 1);
}

PoolTest(batch, asks_no_context_that_was_waited_for_since)
{
    struct cw_batch *batch = cw_batch_make(pool_context);
    uint64_t ticket;

    pooled_context(1, 1);
    fake_submit(SECOND_CONTEXT);
    ticket = cw_batch_sync_begin();
    cw_batch_sync_end(pool_context, ticket);
    cr_assert_eq(record(batch), 0);
    cr_expect_eq(batch->marks, 1u);
    cr_expect_eq(query(batch), 0);
    cw_batch_sync_end(cw_pool_context_of(pool_index(SECOND_CONTEXT)), ticket);
    cr_expect_eq(query(batch), 1);
    cr_expect_eq(fake_calls(FAKE_EVENT_QUERY), 1u);
}

PoolTest(batch, that_could_not_be_recorded_everywhere_is_not_recorded)
{
    struct cw_batch *batch = cw_batch_make(pool_context);

    fake_submit(FIRST_CONTEXT);
    fake_driver.fails[FAKE_EVENT_RECORD] = 1;
    cr_expect_eq(record(batch), -1);
    cr_expect_not(batch->recorded);
    fake_driver.fails[FAKE_EVENT_RECORD] = 0;
    cr_expect_eq(record(batch), 0);
    cr_expect(batch->recorded);
    cr_expect_eq(batch->marks, 1u);
    cr_expect_eq(query(batch), 0);
}

PoolTest(batch, is_ready_when_all_its_events_have_passed)
{
    struct cw_batch *batch = cw_batch_make(pool_context);

    pooled_context(1, 1);
    fake_submit(FIRST_CONTEXT);
    fake_submit(SECOND_CONTEXT);
    cr_assert_eq(record(batch), 0);
    fake_submit(SECOND_CONTEXT); /* after it */
    fake_context_of(FIRST_CONTEXT)->finished = 1;
    cr_expect_eq(query(batch), 0);
    fake_context_of(SECOND_CONTEXT)->finished = 1;
    cr_expect_eq(query(batch), 1);
}

/* ---- of the frees of a thread ---- */

static int serves(void)
{
    return pool_serves(PROBE);
}

/* As the program's waits do. */
static uint32_t harvest(unsigned queries)
{
    return cw_pending_harvest(pool_context, queries, UINT32_MAX, 1);
}

/* So many blocks of a size freed by this thread, and all of them ready. */
static void churn(unsigned count, uint64_t bytes)
{
    pool_churn(count, bytes);
    pool_sync(FIRST_CONTEXT);
}

/* A short program has the use of the pool at once, a long one few events. */
PoolTest(batch, batches_grow_with_the_frees_of_a_thread)
{
    uint64_t key[1000];
    unsigned first, before;

    for (int i = 0; i < 1000; i++)
        key[i] = pool_get(512);
    for (int i = 0; i < 17; i++)
        pool_put(key[i]);
    first = fake_calls(FAKE_EVENT_RECORD);
    cr_expect_geq(first, 12u);
    for (int i = 17; i < 600; i++)
        pool_put(key[i]);
    before = fake_calls(FAKE_EVENT_RECORD);
    cr_expect_leq(before, 60u);
    for (int i = 600; i < 1000; i++)
        pool_put(key[i]);
    cr_expect_leq(fake_calls(FAKE_EVENT_RECORD), before + 400 / 64 + 1);
    cr_expect_geq(fake_calls(FAKE_EVENT_RECORD), before + 400 / 64);
}

PoolTest(batch, frees_share_one_event)
{
    uint64_t key[20];

    churn(1000, 512);
    for (int i = 0; i < 20; i++)
        key[i] = pool_get(PROBE);
    for (int i = 0; i < 20; i++)
        pool_put(key[i]);
    fake_submit(FIRST_CONTEXT);
    cw_pending_close(1);
    cr_expect_eq(harvest(UINT32_MAX), 0u);
    fake_finish(FIRST_CONTEXT);
    for (int i = 0; i < 20; i++)
        cr_expect_eq(serves(), 1);
    cr_expect_eq(pool_counters(0)->harvested_by_event, 20u);
}

PoolTest(batch, a_batch_ends_after_64_mib)
{
    uint64_t key[4];
    unsigned before;

    churn(1000, 512);
    for (int i = 0; i < 4; i++)
        key[i] = pool_get(40 * MIB);
    before = fake_calls(FAKE_EVENT_RECORD);
    pool_put(key[0]);
    pool_put(key[1]);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), before);
    pool_put(key[2]);
    pool_put(key[3]);
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), before + 1);
}

static void free_three(unsigned id)
{
    (void)id;
    fake_set_current(FIRST_CONTEXT);
    for (int i = 0; i < 3; i++) {
        uint64_t key = pool_get(PROBE);

        fake_submit(FIRST_CONTEXT);
        pool_put(key);
    }
}

PoolTest(batch, the_end_of_a_thread_leaves_its_batches_to_all)
{
    run_threads(1, free_three);
    cr_expect_eq(cw_bucket_listed(0), 3 * PROBE);
    cr_expect_eq(cw_retention_counted(0), 3 * PROBE); /* and its grant to nobody */
}
