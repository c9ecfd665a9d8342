/* SPDX-License-Identifier: MIT */
/* What is done at intervals, and the alarm that ends them. */
#include "core/control/tick.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <unistd.h>

#include "ask_fixture.h"
#include "base/alarm.h"
#include "base/log.h"
#include "core/control/adjust.h"
#include "core/process/due.h"
#include "core/process/session.h"
#include "core/reclaim/sweep.h"
#include "core/cache/retention.h"

static void setup(void)
{
    struct cw_options *options = core_options();

    ask_keep_stderr();
    cw_log_set_level(CW_LOG_INFO);
    options->log = CW_LOG_INFO;
    options->dump_interval = 1000 * FAKE_MS;
}

TestSuite(tick, .init = setup);

PoolTest(tick, comes_when_the_first_that_is_asked_for_is_due)
{
    struct cw_options options = *core_options();

    ask_start("", "", 4 * GIB);
    core_options()->pool_idle = 2000 * FAKE_MS;
    options.log = CW_LOG_WARN; /* no line, but a report */
    cw_tick_init(&options);
    cr_expect_eq(cw_tick_is_asked(&options), 1);
    cr_expect_eq(cw_tick_left(0), 1000 * FAKE_MS);
    cr_expect_eq(cw_tick_left(1), 200 * FAKE_MS); /* as often as a sweep is due */
    fake_driver.now_ns += 900 * FAKE_MS;
    cr_expect_eq(cw_tick_left(1) / FAKE_MS, 100);
    fake_driver.now_ns += 1900 * FAKE_MS;
    cr_expect_eq(cw_tick_left(0), 20 * FAKE_MS);
    options.dump_interval = 0;
    cr_expect_eq(cw_tick_is_asked(&options), 0);
    cr_expect_eq(cw_tick_left(0), UINT64_MAX);
    cr_expect_eq(cw_tick_left(1), 200 * FAKE_MS);
    core_options()->pool_idle = 0;
    cr_expect_eq(cw_tick_left(1), 20 * FAKE_MS);
}

PoolTest(tick, lines_alone_come_at_an_interval_of_their_own)
{
    ask_start("", "", 4 * GIB);
    core_options()->log = CW_LOG_WARN;
    cw_log_set_level(CW_LOG_WARN);
    core_options()->dump_interval = 2500 * FAKE_MS;
    core_options()->log_interval = 1000 * FAKE_MS;
    cw_tick_init(core_options());
    ask_get(MIB);
    cr_expect_eq(cw_tick(), 0, "nothing is due at first");
    cr_expect_eq(ask_said("device 0: live "), 0);
    for (unsigned i = 1; i <= 4; i++) { /* after 1, 2, 2.5 and 3 seconds */
        fake_driver.now_ns += cw_tick_left(0);
        cr_expect_eq(cw_tick(), i == 3, "tick %u", i);
        cr_expect_eq(ask_said("device 0: live "), i < 3 ? i : i - 1);
    }
}

static void tick_after(uint64_t ms)
{
    fake_driver.now_ns += ms * FAKE_MS;
    cw_tick();
}

PoolTest(tick, says_how_memory_is_used)
{
    uint64_t key;

    ask_start("3G", "", 4 * GIB);
    cw_tick_init(core_options());
    key = ask_get(512 * MIB);
    ask_get(256 * MIB);
    pool_put(key);
    tick_after(1000);
    cr_expect_eq(ask_said("\n"), 2); /* and what the device is, at its first use */
    cr_expect_eq(ask_said("device 0: live 256.0 MiB, idle 512.0 MiB, held 768.0 MiB of 3.0 GiB; "
                          "device 18.7% used (768.0 MiB of 4.0 GiB), pressure low\n"),
                 1);
}

/* The clock is only exact to some ms. */
PoolTest(tick, says_so_at_each_tick_though_the_clock_is_coarse)
{
    ask_start("", "", 4 * GIB);
    cw_tick_init(core_options());
    ask_get(MIB);
    tick_after(1000);
    tick_after(996);
    tick_after(1004);
    cr_expect_eq(ask_said("device 0: live "), 3);
    tick_after(500);
    cr_expect_eq(ask_said("device 0: live "), 3);
}

PoolTest(tick, a_device_of_no_size_to_speak_of_does_no_harm)
{
    ask_start("", "", 0);
    cw_tick_init(core_options());
    ask_get(MIB);
    fake_driver.total_bytes = 7;
    fake_driver.free_bytes = 3;
    tick_after(1000);
    cr_expect_eq(ask_said("device 57.1% used"), 1);
}

/* ---- while the program makes no calls ---- */

static void start_idle(unsigned blocks)
{
    core_options()->dump_interval = 0;
    ask_start("", "", 4 * GIB);
    cw_tick_init(core_options());
    ask_churn(blocks, 16 * MIB, 0);
}

/* As the background thread does, until the watch is over: how many ticks. */
static unsigned sleep_until_over(void)
{
    unsigned ticks = 0;

    do
        tick_after(cw_sweep_interval() / FAKE_MS);
    while (!cw_retention_end_watch() && ticks++ < 100);
    return ticks;
}

PoolTest(tick, gives_idle_memory_back_while_the_program_sleeps)
{
    start_idle(20);
    cr_expect(cw_due_take(CW_DUE_WATCH));
    tick_after(100);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 20);
    cr_expect_leq(sleep_until_over(), 2 * 10);
    cr_expect_leq(pool_sums().idle_bytes, 32 * MIB);
}

PoolTest(tick, what_is_beyond_a_lowered_pool_max_goes_once_the_device_is_done_with_it)
{
    core_options()->free_sync = CW_FREE_DEFERRED;
    start_idle(0);
    ask_get(2 * GIB); /* a program that needs much may keep much */
    fake_driver.is_persistent = 1;
    fake_submit(FIRST_CONTEXT);
    ask_churn(20, 16 * MIB, 0);
    cr_expect_eq(cw_adjust_pool_max(0, 100 * MIB), 0);
    tick_after(cw_sweep_interval() / FAKE_MS * 2);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 20);
    fake_finish(FIRST_CONTEXT);
    tick_after(cw_sweep_interval() / FAKE_MS * 2);
    /* Or one less: a seventh found no room. */
    cr_expect_leq(pool_count(CW_BLOCK_IDLE), 6);
    cr_expect_geq(pool_count(CW_BLOCK_IDLE), 5);
}

PoolTest(tick, blocks_that_nobody_looked_after_go_too)
{
    core_options()->free_sync = CW_FREE_DEFERRED;
    start_idle(20); /* all pending: only the end of the work makes them ready */
    fake_finish(FIRST_CONTEXT);
    sleep_until_over();
    cr_expect_leq(pool_sums().idle_bytes, 32 * MIB);
}

PoolTest(tick, a_little_is_not_worth_a_thread)
{
    start_idle(2);
    cr_expect_not(cw_due_take(CW_DUE_WATCH));
    cr_expect(cw_retention_end_watch());
}

PoolTest(tick, without_a_thread_nothing_is_done_between_calls)
{
    core_options()->idle_thread = CW_THREAD_OFF;
    start_idle(20);
    cr_expect_not(cw_due_take(CW_DUE_WATCH));
    for (int i = 0; i < 30; i++)
        tick_after(1000);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 20);
}

/* ---- the alarm ---- */

static struct cw_alarm alarm_clock;
static _Atomic int rung_seen;

static void wait_or_ring(unsigned id)
{
    errno = 77;
    if (id == 0)
        cw_alarm_ring(&alarm_clock);
    else
        rung_seen += cw_alarm_wait(&alarm_clock, id == 1 ? UINT64_MAX : UINT64_C(1) << 62);
    cr_expect_eq(errno, 77);
}

Test(alarm, ends_each_wait_however_long)
{
    run_threads(4, wait_or_ring);
    cr_expect_eq(rung_seen, 3);
    cr_expect_eq(cw_alarm_wait(&alarm_clock, UINT64_MAX), 1);
    cr_expect_eq(cw_alarm_wait(&alarm_clock, 0), 1);
    cw_alarm_reset(&alarm_clock);
    cr_expect_eq(cw_alarm_wait(&alarm_clock, 1000000), 0);
}

static void wait_forever(unsigned id)
{
    if (id != 0) {
        rung_seen += cw_alarm_wait(&alarm_clock, UINT64_MAX);
        return;
    }
    usleep(20000);
    cw_alarm_ring(&alarm_clock);
}

Test(alarm, a_wait_without_end_ends_when_it_is_rung)
{
    run_threads(2, wait_forever);
    cr_expect_eq(rung_seen, 1);
}
