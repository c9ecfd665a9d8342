/* SPDX-License-Identifier: MIT */
/* Requests of other processes: what is done, what is refused, and what is left alone. */
#include "core/control/control.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ask_fixture.h"
#include "core/process/due.h"
#include "core/process/gate.h"
#include "core/process/host.h"
#include "core/cache/retention.h"
#include "core/limits/limit.h"
#include "core/pending/ready.h"
#include "core/reclaim/reclaim.h"
#include "core/process/thread.h"

#define ASKER 4712

static void start(void)
{
    core_options()->free_sync = CW_FREE_DEFERRED;
    ask_start("", "", ASK_TOTAL);
}

TestSuite(control, .init = start);

static void start_strict(void)
{
    ask_start("", "", ASK_TOTAL);
}

TestSuite(control_strict, .init = start_strict);

static struct cw_live_control *control(void)
{
    return &core_header()->control;
}

/* As `cuwarden ctl` writes it; answered by cw_control_serve. */
static void put(uint32_t what, uint32_t device, uint32_t is_share, uint64_t argument)
{
    control()->asker = ASKER;
    control()->device = device;
    control()->is_share = is_share;
    control()->argument = argument;
    control()->asked++;
    control()->what = what;
}

/* The result; -1: no answer. */
static int ask(uint32_t what, uint32_t device, uint32_t is_share, uint64_t argument)
{
    put(what, device, is_share, argument);
    cw_control_serve();
    return control()->answered == control()->asked ? control()->result : -1;
}

static const char *answer(void)
{
    return control()->answer;
}

/* ---- trim ---- */

PoolTest(control, a_trim_gives_back_what_is_ready)
{
    pool_churn(3, 10 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_TRIM, CW_CONTROL_ALL_DEVICES, 0, 0), 0);
    cr_expect_eq(pool_sums().idle_blocks, 0);
    cr_expect_eq(control()->result_bytes, 30 * MIB);
    cr_expect_eq(control()->result_blocks, 3);
    cr_expect_str_eq(answer(), "gave back 3 blocks, 30.0 MiB");
}

PoolTest(control, a_trim_leaves_alone_what_is_busy)
{
    fake_submit(FIRST_CONTEXT);
    pool_churn(1, 10 * MIB);
    cr_expect_eq(ask(CW_CONTROL_TRIM, 0, 0, 0), 0);
    cr_expect_eq(pool_sums().idle_blocks, 1);
    cr_expect_str_eq(answer(),
                     "gave back 0 blocks, 0 B; 10.0 MiB more once the device is done with it");
}

PoolTest(control, a_trim_of_all_waits_for_what_is_busy)
{
    fake_submit(FIRST_CONTEXT);
    pool_churn(1, 10 * MIB);
    cr_expect_eq(ask(CW_CONTROL_TRIM, 0, 0, 1), 0);
    cr_expect_eq(pool_sums().idle_blocks, 0);
    cr_expect_str_eq(answer(), "gave back 1 block, 10.0 MiB");
}

/* What nobody uses goes also where other work of its context is under way: the call that asked
 * waits for the driver's free. */
PoolTest(control, a_trim_takes_what_is_ready_in_a_busy_context)
{
    pool_churn(1, 10 * MIB);
    pool_sync(FIRST_CONTEXT);
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_TRIM, 0, 0, 0), 0);
    cr_expect_eq(pool_sums().idle_blocks, 0);
}

PoolTest(control, the_helper_waits_for_nothing)
{
    unsigned waits = fake_driver.calls[FAKE_CONTEXT_POLL];

    fake_submit(FIRST_CONTEXT);
    pool_churn(1, 10 * MIB);
    cw_thread.is_helper = 1;
    cr_expect_eq(ask(CW_CONTROL_TRIM, 0, 0, 1), 0);
    cr_expect_eq(fake_driver.calls[FAKE_CONTEXT_POLL], waits);
    cr_expect_eq(pool_sums().idle_blocks, 1);
    fake_finish(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_TRIM, 0, 0, 1), 0);
    cr_expect_eq(pool_sums().idle_blocks, 0);
}

/* ---- for a neighbour ---- */

static uint64_t lent(void)
{
    return pool_counters(0)->released[CW_RELEASE_NEIGHBOUR].bytes;
}

PoolTest(control, a_neighbour_gets_no_more_than_it_lacks)
{
    pool_churn(8, 10 * MIB);
    pool_sync(FIRST_CONTEXT);
    cw_thread.is_helper = 1;
    cr_expect_eq(ask(CW_CONTROL_LEND, 0, 0, 25 * MIB), 0);
    cr_expect_eq(control()->result_bytes, 30 * MIB);
    cr_expect_eq(lent(), 30 * MIB);
    cr_expect_eq(pool_sums().idle_blocks, 5);
    cr_expect_eq(ask_memory()->neighbours.served, 1);
}

/* 10 MiB are idle, and the device is at work. Returns another block, in use. */
static uint64_t lend_when_busy(void)
{
    uint64_t idle = ask_get(10 * MIB), in_use = ask_get(MIB);

    pool_put(idle);
    pool_sync(FIRST_CONTEXT);
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_LEND, 0, 0, 10 * MIB), EINPROGRESS);
    cr_expect_eq(lent(), 0);
    return in_use;
}

/* The driver's free would wait for the work, in a call that may not wait; the program's own frees
 * wait as they always did. */
PoolTest(control_strict, a_neighbour_of_a_busy_program_gets_it_in_the_programs_frees)
{
    pool_put(lend_when_busy());
    cw_reclaim_look();
    cr_expect_eq(lent(), 10 * MIB);
    cr_expect(!cw_reclaim_is_due());
}

/* Deferred frees never wait. */
PoolTest(control, a_neighbour_of_a_busy_program_gets_it_when_that_has_synchronised)
{
    pool_put(lend_when_busy());
    cw_reclaim_look();
    cr_expect_eq(lent(), 0);
    pool_sync(FIRST_CONTEXT);
    fake_driver.now_ns += 2 * FAKE_MS; /* when it is looked at again */
    cw_reclaim_look();
    cr_expect_eq(lent(), 10 * MIB);
    cr_expect(!cw_reclaim_is_due());
}

PoolTest(control, a_neighbour_that_waits_no_longer_gets_nothing)
{
    pool_churn(1, 10 * MIB);
    pool_sync(FIRST_CONTEXT);
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_LEND, 0, 0, 10 * MIB), EINPROGRESS);
    fake_finish(FIRST_CONTEXT);
    fake_driver.now_ns += UINT64_C(60000000);
    cw_reclaim_look();
    cr_expect_eq(lent(), 0);
    cr_expect_eq(pool_sums().idle_blocks, 1);
}

/* Two that both lack some, and whose idle memory is not enough for themselves, are not both
 * refused. */
PoolTest(control, who_has_found_no_memory_either_lends)
{
    pool_churn(1, 10 * MIB);
    pool_sync(FIRST_CONTEXT);
    cw_retention_want(0);
    cr_expect_eq(ask(CW_CONTROL_LEND, 0, 0, MIB), 0);
    cw_retention_unwant(0);
    cr_expect_eq(lent(), 10 * MIB);
}

PoolTest(control, who_takes_no_part_lends_none)
{
    pool_churn(1, 10 * MIB);
    pool_sync(FIRST_CONTEXT);
    core_options()->neighbours = CW_NEIGHBOURS_OFF;
    cr_expect_eq(ask(CW_CONTROL_LEND, 0, 0, MIB), EPERM);
    cr_expect_eq(lent(), 0);
    cr_expect_eq(ask_memory()->neighbours.served, 0);
}

PoolTest(control, one_device_is_trimmed_alone)
{
    pool_churn(2, 10 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_TRIM, 1, 0, 0), 0);
    cr_expect_eq(pool_sums().idle_blocks, 2);
    cr_expect_eq(ask(CW_CONTROL_TRIM, 0, 0, 0), 0);
    cr_expect_eq(pool_sums().idle_blocks, 0);
}

/* ---- limit ---- */

PoolTest(control, a_limit_holds_from_then_on_and_is_an_event)
{
    const struct cw_live_event *event;

    cr_expect_eq(ask(CW_CONTROL_LIMIT, 0, 0, 100 * MIB), 0);
    cr_expect_str_eq(answer(), "device 0: limit 100.0 MiB, gave back 0 blocks, 0 B");
    cr_expect_eq(cw_limit_of(0), 100 * MIB);
    cr_expect_eq(cw_limit_of(1), 0);
    cr_expect_eq(ask_events(CW_EVENT_LIMIT, &event), 1);
    cr_expect_eq(event->bytes, 100 * MIB);
    cr_expect_neq(ask_get(60 * MIB), 0);
    cr_expect_eq(ask_get(60 * MIB), 0);
    cr_expect_eq(ask(CW_CONTROL_LIMIT, 0, 0, 0), 0);
    cr_expect_str_eq(answer(), "device 0: no limit");
    cr_expect_neq(ask_get(60 * MIB), 0);
}

PoolTest(control, a_limit_for_all_is_for_each_device)
{
    cr_expect_eq(ask(CW_CONTROL_LIMIT, CW_CONTROL_ALL_DEVICES, 0, GIB), 0);
    cr_expect_eq(cw_limit_of(0), GIB);
    cr_expect_eq(cw_limit_of(1), GIB);
    cr_expect_str_eq(answer(), "devices 0 to 1: limit 1.0 GiB, gave back 0 blocks, 0 B");
}

PoolTest(control, a_limit_may_be_a_share)
{
    cr_expect_eq(ask(CW_CONTROL_LIMIT, 0, 1, 2550), 0);
    cr_expect_eq(cw_limit_of(0), ASK_TOTAL / 10000 * 2550);
    cr_expect_str_eq(answer(), "device 0: limit 25.50%, gave back 0 blocks, 0 B");
}

PoolTest(control, idle_memory_beyond_the_limit_goes_at_once)
{
    ask_get(100 * MIB); /* a program that has freed everything keeps little anyhow */
    pool_churn(6, 100 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_LIMIT, 0, 0, 350 * MIB), 0);
    cr_expect_leq(core_held(0), 350 * MIB);
    cr_expect_gt(pool_sums().idle_blocks, 0);
    cr_expect_eq(control()->result_bytes, 400 * MIB);
    cr_expect_eq(control()->result_blocks, 4);
}

/* ---- pool-max ---- */

PoolTest(control, pool_max_says_what_is_kept_from_then_on)
{
    ask_get(100 * MIB);
    pool_churn(6, 100 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 250 * MIB), 0);
    cr_expect_eq(pool_sums().idle_bytes, 200 * MIB);
    cr_expect_str_eq(answer(), "device 0: pool-max 250.0 MiB, gave back 4 blocks, 400.0 MiB");
    pool_churn(6, 100 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_leq(pool_sums().idle_bytes, 250 * MIB);
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 1, 1000), 0);
    pool_churn(6, 100 * MIB);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(pool_sums().idle_bytes, 600 * MIB);
}

PoolTest(control, with_pool_max_0_not_even_a_thread_keeps_anything)
{
    pool_churn(6, 1000);
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, CW_CONTROL_ALL_DEVICES, 0, 0), 0);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_TRIM, 0, 0, 1), 0);
    cr_expect_eq(pool_sums().idle_blocks, 0);
    pool_churn(6, 1000);
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(pool_sums().idle_blocks, 0);
}

/* Six blocks that work still uses, and one that is live. Returns that one. */
static uint64_t start_busy(void)
{
    uint64_t live = ask_get(100 * MIB);

    fake_driver.is_persistent = 1;
    fake_submit(FIRST_CONTEXT);
    pool_churn(6, 100 * MIB);
    cr_assert_eq(pool_sums().idle_bytes, 600 * MIB);
    return live;
}

static unsigned frees(void)
{
    return fake_calls(FAKE_BLOCK_FREE);
}

/* The device is done, and it is time to look again. */
static void finish(void)
{
    fake_finish(FIRST_CONTEXT);
    fake_driver.now_ns += 2 * FAKE_MS;
}

/* What the program frees meanwhile is beyond it, too, and goes to the driver's own free. */
PoolTest(control, what_is_beyond_a_lowered_pool_max_goes_once_the_device_is_done_with_it)
{
    uint64_t small[20];

    start_busy();
    for (int i = 0; i < 20; i++)
        small[i] = ask_get(MIB);
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 250 * MIB), 0);
    cr_expect_str_eq(answer(), "device 0: pool-max 250.0 MiB, gave back 0 blocks, 0 B; 350.0 MiB "
                               "more once the device is done with it");
    for (int i = 0; i < 19; i++) {
        pool_put(small[i]);
        fake_driver.now_ns += 2 * FAKE_MS;
    }
    cr_expect_eq(pool_sums().idle_bytes, 600 * MIB);
    finish();
    pool_put(small[19]);
    cr_expect_eq(pool_sums().idle_bytes, 200 * MIB);
    cw_reclaim_work();
    cr_expect_not(cw_reclaim_is_due());
}

/* They are ready, but the driver's free would wait for what the context does now. */
PoolTest(control, a_lowered_pool_max_does_not_wait_for_the_device)
{
    uint64_t small = ask_get(MIB);

    ask_get(100 * MIB);
    pool_churn(6, 100 * MIB);
    pool_sync(FIRST_CONTEXT);
    fake_driver.is_persistent = 1;
    fake_submit(FIRST_CONTEXT);
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 250 * MIB), 0);
    cr_expect_eq(frees(), 0);
    finish();
    pool_put(small);
    cr_expect_eq(pool_sums().idle_bytes, 200 * MIB);
}

PoolTest(control, a_lowered_pool_max_is_made_up_for_in_a_wait)
{
    start_busy();
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 250 * MIB), 0);
    finish();
    pool_sync(FIRST_CONTEXT);
    cr_expect_eq(frees(), 4);
    cr_expect_eq(pool_sums().idle_bytes, 200 * MIB);
}

/* A miss looks at two batches; a hit would leave them alone. */
PoolTest(control, a_lowered_pool_max_is_made_up_for_in_an_allocation)
{
    start_busy();
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 0), 0);
    ask_get(10 * MIB);
    cr_expect_eq(frees(), 0);
    finish();
    ask_get(20 * MIB);
    cr_expect_geq(frees(), 2);
    ask_get(30 * MIB);
    ask_get(40 * MIB);
    cr_expect_eq(frees(), 6);
    cr_expect_eq(pool_sums().idle_bytes, 0);
}

/* The blocks in rotation come back to threads that were granted what they kept. */
PoolTest(control, a_lowered_pool_max_leaves_no_grants)
{
    uint64_t key[4];

    for (int i = 0; i < 4; i++)
        key[i] = ask_get(64 * KIB);
    for (int i = 0; i < 4; i++)
        pool_put(key[i]);
    pool_sync(FIRST_CONTEXT);
    for (int i = 0; i < 4; i++)
        cr_assert(pool_hits(CW_POOL_DEVICE, 64 * KIB, &key[i]));
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 128 * KIB), 0);
    for (int i = 0; i < 4; i++)
        pool_put(key[i]);
    pool_sync(FIRST_CONTEXT);
    cr_expect_leq(pool_sums().idle_bytes, 128 * KIB);
}

/* It counts as kept nowhere until it is laid down. */
PoolTest(control, a_lowered_pool_max_counts_what_a_thread_has_in_hand)
{
    uint64_t small = ask_get(MIB);
    struct cw_pool *pool = cw_pool_here(CW_POOL_DEVICE);
    uint32_t block = pool_idle_block(pool, 10 * MIB);

    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 0), 0);
    cw_ready_share(pool->pool_context, block);
    pool_put(small);
    cr_expect_eq(pool_sums().idle_bytes, 0);
    cr_expect_not(cw_reclaim_is_due());
}

PoolTest(control, a_raised_pool_max_keeps_what_was_to_go)
{
    uint64_t small = ask_get(MIB);

    start_busy();
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 250 * MIB), 0);
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, 0, 0, 1000 * MIB), 0);
    finish();
    pool_put(small);
    cr_expect_eq(frees(), 0);
    cr_expect_not(cw_reclaim_is_due());
}

PoolTest(control, pool_max_of_all_devices_is_that_of_pinned_memory_too)
{
    uint64_t pinned = pool_alloc(CW_POOL_HOST, 10 * MIB, NULL);

    ask_get(MIB);
    pool_free(CW_POOL_HOST, pinned, NULL);
    pool_sync(FIRST_CONTEXT);
    cr_assert_eq(pool_sums().idle_bytes, 10 * MIB);
    cr_expect_eq(ask(CW_CONTROL_POOL_MAX, CW_CONTROL_ALL_DEVICES, 0, MIB), 0);
    cr_expect_eq(pool_sums().idle_bytes, 0);
}

/* ---- dump ---- */

static int dump_code;

static int fake_dump(uint32_t asker, char *text, size_t cap)
{
    snprintf(text, cap, "/r.dump-1 for %u", (unsigned)asker);
    return dump_code;
}

PoolTest(control, a_dump_is_somebody_elses_work)
{
    cr_expect_eq(ask(CW_CONTROL_DUMP, CW_CONTROL_ALL_DEVICES, 0, 0), ENOTSUP);
    cw_host_set(&(const struct cw_host_ops){.dump = fake_dump});
    cr_expect_eq(ask(CW_CONTROL_DUMP, CW_CONTROL_ALL_DEVICES, 0, 0), 0);
    cr_expect_str_eq(answer(), "/r.dump-1 for 4712");
    dump_code = EIO;
    cr_expect_eq(ask(CW_CONTROL_DUMP, CW_CONTROL_ALL_DEVICES, 0, 0), EIO);
}

/* ---- what is refused ---- */

static void expect_refused(int code, uint32_t what, uint32_t device, uint32_t is_share,
                           uint64_t argument)
{
    cr_expect_eq(ask(what, device, is_share, argument), code, "%u %u %u", what, device, is_share);
    cr_expect_gt(strlen(answer()), 0u);
    cr_expect_eq(control()->result_bytes, 0);
    cr_expect_eq(cw_limit_of(0), 0);
    cr_expect_eq(ask_events(CW_EVENT_LIMIT, NULL), 0);
}

PoolTest(control, what_makes_no_sense_is_refused_and_answered)
{
    expect_refused(EINVAL, CW_CONTROL_COUNT, 0, 0, 0);
    expect_refused(EINVAL, 0xffffffffu, 0, 0, 0);
    expect_refused(EINVAL, CW_CONTROL_TRIM, 0, 0, 2);
    expect_refused(EINVAL, CW_CONTROL_LIMIT, 0, 2, 100);
    expect_refused(EINVAL, CW_CONTROL_LIMIT, 0, 1, 10001);
    expect_refused(EINVAL, CW_CONTROL_POOL_MAX, 0, 1, UINT64_MAX);
    expect_refused(ENODEV, CW_CONTROL_LIMIT, 2, 0, MIB);
    expect_refused(ENODEV, CW_CONTROL_TRIM, 64, 0, 0);
    expect_refused(ENODEV, CW_CONTROL_TRIM, 0xfffffffeu, 0, 0);
    cr_expect_str_eq(answer(), "it has no device 4294967294; its devices are 0 to 1");
    cr_expect_eq(ask(CW_CONTROL_LIMIT, 0, 0, UINT64_MAX), 0); /* more than there is: harmless */
}

PoolTest(control, nothing_is_done_while_the_gate_is_closed)
{
    cw_gate_close(CW_GATE_CAPTURE);
    expect_refused(EBUSY, CW_CONTROL_TRIM, 0, 0, 1);
    expect_refused(EBUSY, CW_CONTROL_LIMIT, CW_CONTROL_ALL_DEVICES, 0, MIB);
    cw_gate_open(CW_GATE_CAPTURE);
    cr_expect_eq(ask(CW_CONTROL_TRIM, 0, 0, 1), 0);
}

PoolTest(control, a_driver_that_does_not_count_its_devices_is_asked_later)
{
    fake_driver.fails[FAKE_DEVICE_COUNT] = 1;
    expect_refused(EAGAIN, CW_CONTROL_LIMIT, CW_CONTROL_ALL_DEVICES, 0, MIB);
}

/* ---- the protocol ---- */

PoolTest(control, what_was_withdrawn_is_not_done)
{
    put(CW_CONTROL_LIMIT, 0, 0, MIB);
    control()->withdrawn = control()->asked;
    cw_control_serve();
    cr_expect_eq(control()->answered, control()->asked);
    cr_expect_eq(control()->result, ECANCELED);
    cr_expect_eq(cw_limit_of(0), 0);
    cr_expect_eq(ask(CW_CONTROL_LIMIT, 0, 0, MIB), 0);
}

PoolTest(control, a_request_is_done_once)
{
    cr_expect_eq(ask(CW_CONTROL_LIMIT, 0, 0, MIB), 0);
    cw_control_serve();
    cw_control_serve();
    cr_expect_eq(ask_events(CW_EVENT_LIMIT, NULL), 1);
}

PoolTest(control, without_a_request_nothing_is_answered)
{
    cw_due_set(CW_DUE_CONTROL);
    cw_control_serve();
    cr_expect_eq(control()->answered, 0);
    cr_expect_eq(answer()[0], '\0');
}

PoolTest(control, of_due_work_others_can_ask_for_an_answer_alone)
{
    cw_due_set(CW_DUE_GROWTH);
    memset(control(), 0, sizeof(*control()));
    cr_expect_eq(cw_due_seen(), CW_DUE_GROWTH);
    memset(control(), 0xff, sizeof(*control()));
    cr_expect_eq(cw_due_seen(), CW_DUE_GROWTH | CW_DUE_CONTROL);
    cr_expect_eq(cw_due_take(UINT32_MAX), CW_DUE_GROWTH | CW_DUE_CONTROL);
    cr_expect_not(cw_due_is_any());
}
