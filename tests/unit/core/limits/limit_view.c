/* SPDX-License-Identifier: MIT */
/* What the program is told, devices that are not there, the driver's own pools, accounts of out of
 * memory. */
#include "core/limits/limit.h"

#include <criterion/criterion.h>

#include "ask_fixture.h"
#include "core/device/driver_pool.h"
#include "core/account/event.h"
#include "core/process/gate.h"
#include "core/request/oom.h"
#include "core/request/request.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/usage.h"

TestSuite(limit_view);

static struct cw_memory_view view(uint64_t driver_free, uint64_t driver_total)
{
    struct cw_memory_view out;

    cw_limit_view(0, driver_free, driver_total, &out);
    cr_expect_leq(out.free_bytes, out.total_bytes);
    cr_expect_leq(out.total_bytes, driver_total);
    return out;
}

static void expect_view(struct cw_memory_view is, uint64_t free_bytes, uint64_t total_bytes)
{
    cr_expect_eq(is.free_bytes, free_bytes, "free %ju", (uintmax_t)is.free_bytes);
    cr_expect_eq(is.total_bytes, total_bytes, "total %ju", (uintmax_t)is.total_bytes);
}

Test(limit_view, without_a_limit_idle_memory_is_free)
{
    ask_start("", "", 4 * GIB);
    expect_view(view(3 * GIB, 4 * GIB), 3 * GIB, 4 * GIB);
    pool_put(ask_get(512 * MIB));
    expect_view(view(3 * GIB, 4 * GIB), 3 * GIB + 512 * MIB, 4 * GIB);
    expect_view(view(4 * GIB, 4 * GIB), 4 * GIB, 4 * GIB);
    expect_view(view(0, 0), 0, 0);
}

Test(limit_view, the_limit_is_all_there_is)
{
    uint64_t key;

    ask_start("2G", "", 8 * GIB);
    expect_view(view(7 * GIB, 8 * GIB), 2 * GIB, 2 * GIB);
    key = ask_get(512 * MIB);
    ask_get(256 * MIB);
    expect_view(view(7 * GIB, 8 * GIB), 1280 * MIB, 2 * GIB);
    pool_put(key);
    expect_view(view(7 * GIB, 8 * GIB), 1792 * MIB, 2 * GIB);
    expect_view(view(1 * GIB, 8 * GIB), 1536 * MIB, 2 * GIB); /* others have taken the device */
    cr_expect_eq(cw_limit_total(0, 8 * GIB), 2 * GIB);
    cr_expect_eq(cw_limit_total(0, GIB), GIB);
}

Test(limit_view, spare_of_the_driver_pools_is_not_free_within_a_limit)
{
    ask_start("2G", "", 8 * GIB);
    cw_driver_pool_used(0);
    fake_driver.pool_spare = 512 * MIB;
    cw_driver_pool_refresh(0);
    expect_view(view(7 * GIB, 8 * GIB), 1536 * MIB, 2 * GIB);
    fake_driver.pool_spare = 4 * GIB;
    cw_driver_pool_refresh(0);
    expect_view(view(7 * GIB, 8 * GIB), 0, 2 * GIB);
}

Test(limit_view, min_free_is_not_there_for_the_taking)
{
    ask_start("", "1G", 4 * GIB);
    expect_view(view(3 * GIB, 4 * GIB), 2 * GIB, 4 * GIB);
    expect_view(view(512 * MIB, 4 * GIB), 0, 4 * GIB);
    pool_put(ask_get(512 * MIB));
    expect_view(view(3 * GIB, 4 * GIB), 2560 * MIB, 4 * GIB);
}

/* The largest block that a program which believes the figures asks for. */
static void expect_nine_tenths(const char *limit, const char *min_free, uint64_t others)
{
    struct cw_memory_view told;
    uint64_t keep;

    ask_start(limit, min_free, 4 * GIB);
    fake_driver.others = others;
    keep = ask_get(100 * MIB);
    ask_churn(6, 33 * MIB, 33 * MIB);
    told = view(fake_driver.capacity - fake_driver.others - fake_driver.taken_bytes, 4 * GIB);
    cr_expect_gt(told.free_bytes, 512 * MIB);
    cr_expect_neq(ask_get(told.free_bytes / 10 * 9), 0);
    cr_expect_eq(cw_usage_in_flight(0), 0);
    pool_put(keep);
    cr_expect_eq(pool_check(), 0);
}

Test(limit_view, nine_tenths_of_what_is_free_can_be_had)
{
    expect_nine_tenths("", "", 0);
}

Test(limit_view, nine_tenths_of_what_is_free_can_be_had_within_a_limit)
{
    expect_nine_tenths("2G", "", GIB);
}

Test(limit_view, nine_tenths_of_what_is_free_can_be_had_with_min_free)
{
    expect_nine_tenths("", "1G", GIB);
}

/* ---- devices that are not there ---- */

TestSuite(missing, .init = ask_keep_stderr);

Test(missing, each_is_named_once)
{
    cr_assert_eq(cw_sizes_parse("2:4G", 0, &core_options()->pool_max), 0);
    ask_start("0:4G,9:4G,GPU-deadbeef-0000-0000-0000-000000000000:8G", "1:1G,3:1G", 0);
    for (int i = 0; i < 5; i++)
        ask_get(MIB);
    cw_limit_of(1);
    cr_expect_eq(ask_said("\n"), 4);
    cr_expect_eq(ask_said("LIMIT: '9:4G' names a device"), 1);
    cr_expect_eq(ask_said("LIMIT: 'GPU-deadbeef-0000-0000-0000-000000000000:8G'"), 1);
    cr_expect_eq(ask_said("MIN_FREE: '3:1G'"), 1);
    cr_expect_eq(ask_said("POOL_MAX: '2:4G'"), 1);
    cr_expect_eq(ask_said("devices 0 to 1"), 4);
}

Test(missing, none_is_named_when_all_are_there)
{
    ask_start("0:4G,GPU-f1000000-0000-0000-0000-000000000000:8G", "1:1G", 0);
    ask_get(MIB);
    cr_expect_eq(ask_said("\n"), 0);
}

Test(missing, they_are_named_later_if_the_driver_does_not_count_at_first)
{
    ask_arm("9:4G", "", 0);
    fake_driver.fails[FAKE_DEVICE_COUNT] = 1;
    fake_set_current(pooled_context(0, 0));
    ask_get(MIB);
    cr_expect_eq(ask_said("\n"), 0);
    fake_driver.fails[FAKE_DEVICE_COUNT] = 0;
    cw_limit_of(1);
    cr_expect_eq(ask_said("'9:4G'"), 1);
}

/* ---- the driver's own pools ---- */

Test(driver_pool, is_not_asked_about_before_it_is_used)
{
    ask_start("", "", 0);
    fake_driver.pool_spare = MIB;
    cw_driver_pool_refresh(0);
    cr_expect_eq(cw_driver_pool_trim(0), 0);
    cr_expect_eq(fake_driver.calls[FAKE_DRIVER_POOLS], 0);
    cw_driver_pool_used(0);
    cw_driver_pool_used(CW_DEVICE_HOST);
    cw_driver_pool_refresh(0);
    cr_expect_eq(cw_driver_pool_spare(0), MIB);
    cr_expect_eq(cw_driver_pool_spare(1), 0);
}

Test(driver_pool, gives_back_what_it_does_not_use_and_says_how_much)
{
    ask_start("", "", 0);
    cw_driver_pool_used(0);
    fake_driver.pool_spare = 3 * MIB;
    cr_expect_eq(cw_driver_pool_trim(0), 3 * MIB);
    cr_expect_eq(cw_driver_pool_spare(0), 0);
    cr_expect_eq(cw_driver_pool_trim(0), 0);
    cr_expect_eq(fake_driver.calls[FAKE_POOL_TRIM], 1);
}

Test(driver_pool, the_programs_are_asked_once_each_until_they_go)
{
    unsigned calls;

    ask_start("", "", 0);
    fake_driver.pool_spare = MIB;
    cw_driver_pool_insert(0, 0x9001); /* has become the device's own */
    cw_driver_pool_insert(0, 0x77);
    cw_driver_pool_insert(1, 0x78);
    cw_driver_pool_refresh(0);
    cr_expect_eq(cw_driver_pool_spare(0), MIB);
    cr_expect_eq(fake_driver.calls[FAKE_POOL_SPARE], 2);
    cw_driver_pool_remove_begin(0x77);
    cw_driver_pool_remove_end();
    cw_driver_pool_remove_begin(0x99);
    cw_driver_pool_remove_end();
    calls = fake_driver.calls[FAKE_POOL_SPARE];
    cw_driver_pool_refresh(0);
    cr_expect_eq(fake_driver.calls[FAKE_POOL_SPARE], calls + 1);
}

Test(driver_pool, is_left_alone_while_one_is_destroyed)
{
    ask_start("", "", 0);
    cw_driver_pool_used(0);
    fake_driver.pool_spare = MIB;
    cw_gate_close(CW_GATE_POOL);
    cw_driver_pool_refresh(0);
    cr_expect_eq(cw_driver_pool_trim(0), 0);
    cw_gate_open(CW_GATE_POOL);
    cr_expect_eq(fake_driver.calls[FAKE_DRIVER_POOLS], 0);
}

/* ---- events and accounts ---- */

Test(event, the_list_is_bounded_and_what_is_left_out_is_counted)
{
    struct cw_live_event event = {.type = CW_EVENT_LIMIT, .bytes = 5};
    uint32_t last = 0, index;

    ask_start("", "", 0);
    for (int i = 0; i < 5000; i++)
        if ((index = cw_event_add(&event)) != 0)
            last = index;
    cr_expect_eq(last, 4096);
    cr_expect_eq(core_header()->events_dropped, 5000 - 4096);
    cr_expect_eq(cw_event_at(last)->bytes, 5);
    cr_expect_eq(cw_event_at(last)->count, 1);
    cr_expect_neq(cw_event_at(last)->t_ns, 0);
}

static uint32_t fail(uint64_t bytes)
{
    struct cw_request request = {.kind = CW_KIND_DEVICE, .bytes = bytes};

    return cw_request_failed(&request, cw_site_text("cuMemAlloc"), 2, CW_CAUSE_LIMIT);
}

Test(oom, the_first_has_an_account_and_later_ones_some_seconds_apart)
{
    unsigned accounts = 0;

    ask_start("1000M", "", 4 * GIB);
    fake_driver.now_ns += FAKE_MS;
    cr_expect_eq(fail(GIB), 1);
    cr_expect_eq(fail(GIB), 0);
    fake_driver.now_ns += 9999 * FAKE_MS;
    cr_expect_eq(fail(GIB), 0);
    fake_driver.now_ns += 1 * FAKE_MS;
    cr_expect_eq(fail(GIB), 2);
    for (int i = 0; i < 40; i++) {
        fake_driver.now_ns += 10000 * FAKE_MS;
        accounts += fail(GIB) != 0;
    }
    cr_expect_eq(accounts, 14);
    cr_expect_eq(ask_memory()->refused[CW_CAUSE_LIMIT], 44);
}

Test(oom, the_account_says_what_there_is_and_what_would_have_fitted)
{
    const struct cw_live_oom *oom;
    uint64_t idle;

    ask_start("1000M", "", 4 * GIB);
    idle = ask_get(200 * MIB);
    ask_get(300 * MIB);
    pool_put(idle);
    oom = core_at(CW_TABLE_OOM, fail(GIB));
    cr_expect_eq(oom->limit, 1000 * MIB);
    cr_expect_eq(oom->live, 300 * MIB);
    cr_expect_eq(oom->held, 500 * MIB);
    cr_expect_eq(oom->idle, 200 * MIB);
    cr_expect_eq(oom->free_bytes, 4 * GIB - 500 * MIB);
    cr_expect_eq(oom->total_bytes, 4 * GIB);
    cr_expect_eq(oom->fits, 700 * MIB);
    cr_expect_neq(ask_get(oom->fits), 0);
}

Test(oom, what_fits_is_bounded_by_the_device)
{
    const struct cw_live_oom *oom;

    ask_start("3G", "", 4 * GIB);
    pool_put(ask_get(200 * MIB));
    fake_driver.others = 3 * GIB;
    oom = core_at(CW_TABLE_OOM, fail(2 * GIB));
    cr_expect_eq(oom->fits, GIB);
    cr_expect_neq(ask_get(oom->fits), 0);
}

Test(oom, holders_are_cut_off_at_what_there_is_room_for)
{
    struct cw_oom_holder holder[CW_OOM_HOLDERS + 2];
    const struct cw_live_oom *oom;
    uint32_t index;

    ask_start("", "", 0);
    for (uint32_t i = 0; i < CW_OOM_HOLDERS + 2; i++)
        holder[i] = (struct cw_oom_holder){.site = i, .bytes = i, .blocks = 1};
    index = fail(GIB);
    cw_oom_set_holders(index, holder, CW_OOM_HOLDERS + 2, 7, 8);
    oom = core_at(CW_TABLE_OOM, index);
    cr_expect_eq(oom->holders, CW_OOM_HOLDERS);
    cr_expect_eq(oom->holder[CW_OOM_HOLDERS - 1].bytes, CW_OOM_HOLDERS - 1);
    cr_expect_eq(oom->rest_bytes, 7);
    cr_expect_eq(oom->rest_blocks, 8);
}
