/* SPDX-License-Identifier: MIT */
/* How much may be pending before a request waits for the device instead of taking more from it. */
#include "core/pending/pending.h"

#include <criterion/criterion.h>

#include "core/process/gate.h"
#include "core/account/tracker.h"
#include "core/pending/patience.h"
#include "pool_fixture.h"

#define PROBE (4 * KIB)

static struct cw_pool_context *owner;

static void setup(void)
{
    pool_start(CW_FREE_DEFERRED);
    owner = cw_pool_context_of(pool_index(FIRST_CONTEXT));
}

TestSuite(backlog, .init = setup);

/* So many blocks of a size freed by this thread, and all of them ready. */
static void churn(unsigned count, uint64_t bytes)
{
    pool_churn(count, bytes);
    pool_sync(FIRST_CONTEXT);
}

PoolTest(backlog, while_little_is_pending_one_block_more_is_taken_instead_of_an_event)
{
    unsigned before;

    churn(1000, 512);
    before = fake_calls(FAKE_EVENT_RECORD);
    for (int i = 0; i < 30; i++) {
        uint64_t key = pool_get(PROBE);

        fake_submit(FIRST_CONTEXT);
        pool_put(key);
    }
    cr_expect_eq(fake_calls(FAKE_EVENT_RECORD), before);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 1030u);
}

static unsigned queries_left;

/* The device is done with the oldest block, and with no other, after some more questions. */
static void finish_oldest(enum fake_call call)
{
    if (call == FAKE_EVENT_QUERY && --queries_left == 0)
        fake_context_of(FIRST_CONTEXT)->finished = 3;
}

PoolTest(backlog, a_request_behind_much_of_its_size_waits_for_the_oldest)
{
    unsigned taken;

    pool_leave_pending(20);
    taken = fake_taken();
    queries_left = 10;
    fake_driver.inside = finish_oldest;
    fake_driver.clock_step = FAKE_MS / 10;
    cr_expect(pool_serves(16 * MIB));
    cr_expect_eq(fake_taken(), taken);
}

/* Of four sizes, more than what is never waited for, and than twice the 22 MiB live at most. */
static void leave_many_sizes_pending(void)
{
    for (unsigned i = 0; i < 4; i++)
        pool_free_with_work((16 + 2 * i) * MIB);
    cr_assert_eq(cw_pending_bytes(0), 76 * MIB);
    queries_left = 10;
    fake_driver.inside = finish_oldest;
    fake_driver.clock_step = FAKE_MS / 10;
}

PoolTest(backlog, a_request_behind_twice_what_the_program_ever_had_waits_for_the_oldest)
{
    leave_many_sizes_pending();
    cr_expect_not(pool_serves(PROBE));
    cr_expect_lt(cw_pending_bytes(0), 64 * MIB);
}

PoolTest(backlog, and_not_behind_as_much_as_it_has_had)
{
    churn(1, 40 * MIB);
    leave_many_sizes_pending();
    cr_expect_not(pool_serves(PROBE));
    cr_expect_geq(cw_pending_bytes(0), 76 * MIB);
}

PoolTest(backlog, it_does_not_wait_for_a_kernel_that_does_not_end)
{
    pool_leave_pending(20);
    fake_driver.clock_step = FAKE_MS;
    cr_expect_not(pool_serves(16 * MIB));
    cr_expect_lt(fake_driver.now_ns, FAKE_START_NS + 40 * FAKE_MS);
    cr_expect_not(pool_serves(16 * MIB)); /* and no other tries again */
    cr_expect_lt(fake_driver.now_ns, FAKE_START_NS + 50 * FAKE_MS);
    fake_finish(FIRST_CONTEXT);
    cr_expect(pool_serves(16 * MIB));
}

/* More than its patience is not to be had: what would be beyond the bound is the driver's. */
PoolTest(backlog, in_a_busy_context_as_little_is_pending)
{
    uint64_t most = 0;

    fake_driver.capacity = 200 * GIB;
    fake_driver.clock_step = FAKE_MS;
    fake_driver.is_persistent = 1;
    for (unsigned i = 0; i < 300; i++) {
        pool_free_with_work(MIB + i % 60 * (MIB / 2));
        most = most > cw_pending_bytes(0) ? most : cw_pending_bytes(0);
    }
    cr_expect(cw_patience_is_over(owner));
    cr_expect_leq(most, 128 * MIB, "%ju MiB", (uintmax_t)(most / MIB));
}

/* ---- several contexts ---- */

static struct cw_pool_context *add_second(uint8_t device)
{
    pooled_context(1, device);
    return cw_pool_context_of(pool_index(SECOND_CONTEXT));
}

PoolTest(backlog, what_another_context_has_pending_nobody_here_waits_for)
{
    struct cw_pool_context *second = add_second(0);

    fake_driver.clock_step = FAKE_MS / 10;
    fake_driver.is_persistent = 1;
    fake_set_current(SECOND_CONTEXT);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t key = pool_get((10 + i) * MIB);

        fake_submit(SECOND_CONTEXT);
        pool_put(key);
    }
    cw_pending_close(0);
    cr_expect(cw_pending_is_backlog(cw_pool_context_pool(second, CW_POOL_DEVICE)));
    cr_expect_not(cw_pending_is_backlog(cw_pool_context_pool(owner, CW_POOL_DEVICE)));
}

/* Blocks of `own`, which is idle, are pending for the work of another device's context, or for a
 * free that is under way there. Asking takes no time, and is no reason to call `own` busy. */
static void await_other(struct cw_pool_context *own, uint64_t other, int is_in_free)
{
    struct cw_pool_context *working = cw_pool_context_of(pool_index(other));
    uint64_t begun;

    fake_driver.clock_step = FAKE_MS;
    fake_driver.is_persistent = 1;
    fake_submit(other);
    if (is_in_free)
        cw_pool_context_enter_driver(working);
    for (unsigned i = 0; i < 3; i++)
        pool_put(pool_get((16 + 2 * i) * MIB));
    cw_pending_close(0);
    begun = fake_driver.now_ns;
    cw_pending_await(own);
    cr_expect_lt(fake_driver.now_ns - begun, CW_PATIENCE_NS / 2);
    cr_expect_not(cw_patience_is_over(own));
    if (is_in_free)
        cw_pool_context_leave_driver(working, 1);
}

PoolTest(backlog, nobody_waits_for_work_of_a_newer_context)
{
    add_second(1);
    await_other(owner, SECOND_CONTEXT, 0);
}

PoolTest(backlog, nor_of_an_older_one)
{
    struct cw_pool_context *second = add_second(1);

    fake_set_current(SECOND_CONTEXT);
    await_other(second, FIRST_CONTEXT, 0);
}

PoolTest(backlog, nor_for_a_free_there)
{
    add_second(1);
    await_other(owner, SECOND_CONTEXT, 1);
}

PoolTest(backlog, behind_eight_blocks_it_does_not_wait)
{
    pool_leave_pending(8);
    cr_expect_not(pool_serves(16 * MIB));
}

PoolTest(backlog, in_a_capture_nobody_waits)
{
    uint64_t now;

    pool_leave_pending(20);
    now = fake_driver.now_ns;
    cw_gate_close(CW_GATE_CAPTURE);
    cr_expect_eq(cw_pending_await(owner), 0u);
    cr_expect_eq(fake_driver.now_ns, now);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(cw_pending_bytes(0), 20 * 16 * MIB);
}
