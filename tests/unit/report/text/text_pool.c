/* SPDX-License-Identifier: MIT */
/* The section POOL of the text report, and what a pool changes in the other sections. */
#include "report/report.h"

#include <criterion/criterion.h>

#include <string.h>

#include "base/compiler.h"
#include "report_fixture.h"

TestSuite(text_pool, .init = fixture_create, .fini = report_teardown);

static struct cw_live_bucket *add_bucket(unsigned device, enum cw_kind kind, uint64_t size,
                                         uint64_t hits, uint64_t misses)
{
    struct cw_live_bucket *bucket = fixture_bucket(device, kind, size);

    bucket->hits = hits;
    bucket->misses = misses;
    bucket->asked_bytes = (hits + misses) * (size - size / 16);
    bucket->given_bytes = (hits + misses) * size;
    return bucket;
}

static void set_kept(struct cw_live_bucket *bucket, uint64_t kept, uint64_t released, uint64_t idle)
{
    bucket->kept = kept;
    bucket->released = released;
    bucket->released_bytes = released * bucket->size;
    bucket->idle_blocks = idle;
    bucket->idle_bytes = idle * bucket->size;
}

/* One device that peaked at 160 MiB in use and 256 MiB held, and pinned memory that is all idle. */
static void build_two(void)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t pinned = fixture_site(0, "cudaMallocHost", CW_KIND_PINNED, CW_DEVICE_HOST);

    fixture_pool_alloc(site, 60 * MIB, 64 * MIB, 1, 5);
    fixture_pool_alloc(site, 30 * MIB, 32 * MIB, 4, 5);
    fixture_keep(site, 30 * MIB, 4);
    fixture_alloc(fixture_site(0, "cudaMallocManaged", CW_KIND_MANAGED, 0), 64 * MIB, 1, 9);
    set_kept(add_bucket(0, CW_KIND_DEVICE, 64 * MIB, 120345, 2100), 120000, 8, 0);
    set_kept(add_bucket(0, CW_KIND_DEVICE, 32 * MIB, 10, 9), 19, 15, 4);
    fixture_pool_alloc(pinned, 15 * MIB, 16 * MIB, 1, 9);
    fixture_keep(pinned, 15 * MIB, 1);
    set_kept(add_bucket(CW_DEVICE_HOST, CW_KIND_PINNED, 16 * MIB, 1, 1), 2, 0, 1);
}

Test(text_pool, section_is_there_only_with_a_pool_that_was_used)
{
    fixture_bucket(0, CW_KIND_DEVICE, 512);
    write_section("== POOL");
    cr_expect_str_eq(report, "");
    add_bucket(0, CW_KIND_DEVICE, 512, 1, 0);
    write_section("== POOL");
    cr_expect_str_neq(report, "");
    write_report(CW_REPORT_TEXT);
    cr_expect_lt(strstr(report, "== DEVICES"), strstr(report, "== POOL"));
    cr_expect_lt(strstr(report, "== LEAKS"), strstr(report, "== DEVICES"));
    fixture.arena.header->pool_mode = 0;
    write_section("== POOL");
    cr_expect_str_eq(report, "");
}

Test(text_pool, tells_what_was_served_and_what_is_held)
{
    build_two();
    write_section("== POOL");
    expect_line("POOL  FREE_SYNC=strict: a free waits for the device");
    expect_line("  device    hits  misses  hit rate  calls saved               idle now");
    expect_line("  0       120355    2109     98.3%       240351  128.0 MiB in 4 blocks");
    expect_line("  host         1       1     50.0%            3    16.0 MiB in 1 block");
    expect_line("  device       held  peak held  rounding  efficiency  fragmentation now  of the "
                "peaks");
    expect_line("  0       256.0 MiB  256.0 MiB   4.0 MiB       93.8%              51.6%         "
                "29.7%");
    expect_line("  host     16.0 MiB   16.0 MiB       0 B      93.8%*             100.0%          "
                "6.3%");
    expect_no_text("  all ");
    expect_line("  efficiency: the requested share of blocks in use (*: of all "
                "served)");
    expect_line("  most used sizes, device 0");
    expect_line("    size from  kind      hits  misses    kept  released  idle");
    expect_line("     64.0 MiB  device  120345    2100  120000         8     0");
    expect_line("     32.0 MiB  device      10       9      19        15     4");
    expect_line("     16.0 MiB  pinned     1       1     2         0     1");
    expect_line("  warning: 256.0 MiB held on device 0, but only 124.0 MiB of it in use");
    expect_no_text("held on the host"); /* nothing of it is in use */
    expect_no_text("because");
    expect_no_text("given back");
    write_report(CW_REPORT_TEXT);
    expect_text(" pool_hits=120356 pool_misses=2110 ");
    fixture.arena.header->free_sync = 1;
    write_section("== POOL");
    expect_line("POOL  FREE_SYNC=deferred: a block is ready when the work with it is "
                "done");
}

Test(text_pool, efficiency_of_all_served_is_marked_only_where_it_is_shown)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_pool_alloc(site, 3 * MIB, 4 * MIB, 1, 5);
    add_bucket(0, CW_KIND_DEVICE, 4 * MIB, 0, 1);
    write_section("== POOL");
    expect_text("   1.0 MiB       75.0%              25.0%         25.0%\n");
    expect_no_text("*");
    expect_line("  efficiency: the requested share of blocks in use");
    fixture_keep(site, 3 * MIB, 1);
    write_section("== POOL");
    expect_text("       0 B      93.8%*             100.0%         25.0%\n");
}

Test(text_pool, columns_that_do_not_fit_follow_beside_the_first_one)
{
    build_two();
    write_report_as((struct cw_report_request){.form = CW_REPORT_TEXT, .columns = 80});
    expect_line("  device       held  peak held  rounding  efficiency");
    expect_line("  device  fragmentation now  of the peaks");
    expect_line("  host               100.0%          6.3%");
    write_report_as((struct cw_report_request){.form = CW_REPORT_TEXT, .columns = 20});
    expect_line("  device       held");
    expect_line("  device  of the peaks");
}

Test(text_pool, shows_the_eight_most_used_sizes)
{
    static const unsigned uses[] = {3, 90, 11, 4, 70, 12, 5, 60, 13, 6};

    for (unsigned i = 0; i < CW_ARRAY_LEN(uses); i++)
        add_bucket(1, CW_KIND_DEVICE, (i + 1) * MIB, uses[i], 1);
    add_bucket(1, CW_KIND_DEVICE, 5 * MIB, 7, 0); /* the same bucket, another thread's record */
    add_bucket(1, CW_KIND_DEVICE, 99 * MIB, 0, 0);
    write_section("== POOL");
    expect_line("  most used sizes, device 1 (8 of 10)");
    expect_line("      2.0 MiB  device    90       1     0         0     0");
    expect_line("      5.0 MiB  device    77       1     0         0     0");
    expect_line("      7.0 MiB  device     5       1     0         0     0");
    expect_no_text(" 1.0 MiB  device");
    expect_no_text(" 4.0 MiB  device");
    expect_no_text("99.0 MiB");
    cr_expect_lt(strstr(report, " 2.0 MiB  device"), strstr(report, " 5.0 MiB  device"));
    cr_expect_lt(strstr(report, " 8.0 MiB  device"), strstr(report, " 9.0 MiB  device"));
    cr_expect_lt(strstr(report, "10.0 MiB  device"), strstr(report, " 7.0 MiB  device"));
}

Test(text_pool, reasons_are_listed_when_there_were_any)
{
    struct cw_live_header *header = fixture.arena.header;

    header->pool_mode = 1;
    header->device[0].pool.bypassed[CW_BYPASS_CAPTURE] = 7;
    header->device[CW_DEVICE_HOST].pool.bypassed[CW_BYPASS_CAPTURE] = 5;
    header->device[0].pool.bypassed[CW_BYPASS_KIND] = 1234;
    write_section("== POOL");
    expect_line("  0          0       0         -            0         -");
    expect_line("  left to the driver, because");
    expect_line("      12  a stream capture was running");
    expect_line("    1234  flags or a size that the pool does not serve");
    expect_no_text("no context");
    expect_no_text("asked again");
    header->device[0].pool.exact_retries = 1;
    header->device[1].pool.oom_retries = 20;
    header->device[0].pool.released[CW_RELEASE_FULL].blocks = 3;
    header->device[0].pool.released[CW_RELEASE_IDLE].blocks = 4;
    header->device[0].pool.released[CW_RELEASE_OOM].blocks = 5;
    write_section("== POOL");
    expect_line("  driver calls retried when out of memory");
    expect_line("     1  for the exact size, without rounding");
    expect_line("    20  after releasing idle blocks");
    expect_line("  idle blocks released to the driver");
    expect_line("    3  above CUWARDEN_POOL_MAX or CUWARDEN_POOL_BUCKET_MAX");
    expect_line("    4  idle for longer than CUWARDEN_POOL_IDLE");
    expect_line("    5  to make room for a request that ran out of memory");
}

Test(text_pool, warns_of_what_is_held_in_vain_now_and_says_what_to_do)
{
    struct cw_live_device *device = &fixture.arena.header->device[2];

    add_bucket(2, CW_KIND_DEVICE, MIB, 1, 1);
    device->peak_bytes = device->live_bytes = 7 * GIB;
    device->peak_held = device->held_bytes = 10 * GIB;
    write_section("== POOL");
    expect_text("              30.0%         30.0%\n");
    expect_no_text("warning");
    device->live_bytes = 6 * GIB;
    write_section("== POOL");
    expect_text("              40.0%         30.0%\n");
    expect_line("  warning: 10.0 GiB held on device 2, but only 6.0 GiB of it in use");
    expect_line("    CUWARDEN_POOL_MAX         total idle memory");
    expect_line("    CUWARDEN_POOL_BUCKET_MAX  idle blocks of each size");
    expect_line("    CUWARDEN_POOL_IDLE        how long unused idle memory is kept");
    device->live_bytes = device->held_bytes; /* that the peaks lay apart is told, no more */
    device->peak_bytes = 1;
    write_section("== POOL");
    expect_text("               0.0%        100.0%\n");
    expect_no_text("warning");
    device->live_bytes = 0; /* a program that has freed all has not that problem */
    write_section("== POOL");
    expect_text("             100.0%        100.0%\n");
    expect_no_text("warning");
    device->live_bytes = 1;
    device->held_bytes = MIB; /* too little to speak of */
    write_section("== POOL");
    expect_no_text("warning");
    device->held_bytes = MIB + 1;
    write_section("== POOL");
    expect_text("warning");
}

/* 839 of 840 MiB idle: the peaks know nothing of it. */
Test(text_pool, what_is_idle_at_the_end_shows_at_the_end)
{
    struct cw_live_device *device = &fixture.arena.header->device[0];

    set_kept(add_bucket(0, CW_KIND_DEVICE, MIB, 0, 840), 839, 0, 839);
    device->peak_bytes = 820 * MIB;
    device->peak_held = device->held_bytes = 840 * MIB;
    device->live_bytes = MIB;
    write_section("== POOL");
    expect_text("              99.9%          2.4%\n");
    expect_line("  warning: 840.0 MiB held on device 0, but only 1.0 MiB of it in use");
}

Test(text_pool, several_devices_have_a_row_of_all)
{
    struct cw_live_header *header = fixture.arena.header;

    for (unsigned i = 0; i < 3; i++) {
        struct cw_live_device *device = &header->device[i < 2 ? i : CW_DEVICE_HOST];

        add_bucket(i < 2 ? i : CW_DEVICE_HOST, i < 2 ? CW_KIND_DEVICE : CW_KIND_PINNED, MIB, 0, 1);
        device->peak_bytes = 8 * GIB;
        device->live_bytes = (4 - 4 * i % 8) * GIB;
        device->peak_held = 10 * GIB;
        device->held_bytes = 8 * GIB;
    }
    write_section("== POOL");
    expect_text("  0        8.0 GiB   10.0 GiB       0 B      93.8%*              50.0%         "
                "20.0%\n");
    expect_text("  1        8.0 GiB   10.0 GiB       0 B      93.8%*             100.0%         "
                "20.0%\n");
    expect_text("  all     16.0 GiB   20.0 GiB       0 B      93.8%*              75.0%         "
                "20.0%\n");
}

Test(text_pool, no_line_is_wider_than_100_columns)
{
    build_two();
    fixture.arena.header->pid = 4194304;
    for (unsigned i = 0; i < CW_BYPASS_COUNT; i++)
        fixture.arena.header->device[1].pool.bypassed[i] = UINT64_C(10000000000);
    fixture.arena.header->device[1].pool.put_off = UINT64_C(10000000000);
    fixture.arena.header->device[1].pool.events_refused = UINT64_C(10000000000);
    fixture.arena.header->device[0].peak_held = 1023 * GIB;
    fixture.arena.header->device[0].held_bytes = 1023 * GIB + 900 * MIB;
    set_kept(add_bucket(0, CW_KIND_DEVICE, MIB, UINT64_C(1000000000), UINT64_C(1000000000)),
             UINT64_C(1000000000), 5, 1023);
    for (int deferred = 0; deferred < 2; deferred++) {
        char *at;

        fixture.arena.header->free_sync = (uint8_t)deferred;
        write_report(CW_REPORT_TEXT);
        at = strstr(report, "== POOL");
        cr_assert_not_null(at);
        for (at = strchr(at, '\n') + 1; strncmp(at, "==4194304== SUMMARY", 19) != 0;
             at = strchr(at, '\n') + 1)
            cr_expect_leq(strcspn(at, "\n"), 100, "%.*s", (int)strcspn(at, "\n"), at);
        cr_expect_leq(strcspn(strstr(report, "POOL"), "\n"), 100 - 12);
    }
}

Test(text_pool, devices_tell_idle_from_live)
{
    struct cw_live_device *device = fixture_device(0, "NVIDIA H200");

    build_two();
    device->driver_total = 141 * GIB;
    device->driver_used = GIB;
    device->sample_held = 256 * MIB; /* 124 live, 4 of rounding, 128 idle */
    write_report(CW_REPORT_TEXT);
    expect_line("  device  name                     live       idle       peak  @time  allocs  "
                "frees  failed  driver used  unattributed");
    expect_line("  0       NVIDIA H200         124.0 MiB  128.0 MiB  180.0 MiB    1us       6  "
                "    4       0      1.0 GiB     768.0 MiB");
    expect_line("  host    pinned, registered        0 B   16.0 MiB   15.0 MiB    1us       1  "
                "    1       0            -             -");
    expect_line("  idle: freed by the program and kept by the pool, in use for the driver");
}

Test(text_pool, idle_blocks_are_no_leaks)
{
    build_two();
    write_report(CW_REPORT_TEXT);
    expect_line("LEAKS  124.0 MiB in 2 blocks from 2 call sites");
    expect_text("==4711== 60.0 MiB (held 64.0 MiB) in 1 block  lost  cudaMalloc, device 0,");
    expect_no_text("lost  cudaMallocHost");
    expect_text("leaked_bytes=130023424 leaked_blocks=2 leak_sites=2 ");
}

NAMED_FUNCTION(drop_once, "drop_once")

Test(text_pool, a_double_free_shows_both_frees)
{
    uint32_t own = fixture_own_module();
    uint32_t app = fixture_module("/opt/none/app", 1 << 24, CW_MODULE_PROGRAM);
    uint32_t first = fixture_site(named_frame(0, own, drop_once), "cuMemFree", CW_KIND_DEVICE, 0);
    uint32_t second = fixture_site(fixture_frame(0, app, 0x222), "cuMemFree", CW_KIND_DEVICE, 0);
    struct cw_live_event *event = fixture_event(CW_EVENT_INVALID_FREE, second, 1);

    event->key = 0xabc;
    write_report(CW_REPORT_TEXT);
    expect_no_text("first freed");
    event->other_site = first;
    write_report(CW_REPORT_TEXT);
    expect_text("==4711== 0.100s  invalid free: cuMemFree, device 0: 0xabc refused, "
                "CUDA_ERROR_INVALID_VALUE (1)\n"
                "==4711==     #0 app+0x222\n"
                "==4711==     first freed at\n"
                "==4711==     #0 drop_once  text_pool.ut+0x");
    event->other_site = 77;
    write_report(CW_REPORT_TEXT);
    expect_no_text("first freed");
}
