/* SPDX-License-Identifier: MIT */
/* The text report: its lines, its order, its limits, and that nothing forges a line. */
#include "report/report.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "report/leaks/holders.h"
#include "report/report_oom.h"
#include "report_fixture.h"

TestSuite(report_text, .init = fixture_create, .fini = report_teardown);

NAMED_FUNCTION(make_cache, "make_cache")
NAMED_FUNCTION(train_step, "train_step")

static uint32_t device_site(const char *api, uint64_t bytes, unsigned blocks)
{
    uint32_t site = fixture_site(0, api, CW_KIND_DEVICE, 0);

    fixture_alloc(site, bytes, blocks, 20 * FIXTURE_MS);
    return site;
}

Test(report_text, without_a_leak_the_short_form_says_nothing)
{
    uint32_t site = device_site("cudaMalloc", 512, 2);

    fixture_free(site, 512, 2);
    cr_expect_str_eq(write_report(CW_REPORT_SHORT_IF_LEAKED), "");
    write_report(CW_REPORT_TEXT);
    expect_line("LEAKS  none");
    expect_line("SUMMARY: leaked_bytes=0 leaked_blocks=0 leak_sites=0 peak_bytes=1024 allocs=2 "
                "frees=2 failed=0 pool_hits=0 pool_misses=0 invalid_frees=0 fatal_errors=0 "
                "fallbacks=0 held_bytes=0");
}

Test(report_text, every_line_has_the_prefix_and_the_summary_is_last)
{
    const char *last;
    size_t len;

    fixture_device(0, "NVIDIA H200")->driver_total = GIB;
    device_site("cudaMalloc", 512, 2);
    fixture_event(CW_EVENT_OOM, 1, 2);
    write_report(CW_REPORT_TEXT);
    for (const char *at = report; *at; at = strchr(at, '\n') + 1) {
        cr_assert_eq(strncmp(at, "==4711== ", 9), 0, "%s", at);
        cr_assert_not_null(strchr(at, '\n'));
    }
    len = strlen(report);
    report[len - 1] = '\0';
    last = strrchr(report, '\n') + 1;
    cr_expect_str_eq(last, "==4711== SUMMARY: leaked_bytes=1024 leaked_blocks=2 leak_sites=1 "
                           "peak_bytes=1024 allocs=2 frees=0 failed=0 pool_hits=0 pool_misses=0 "
                           "invalid_frees=0 fatal_errors=0 fallbacks=0 held_bytes=0");
}

Test(report_text, head_tells_version_command_devices_time_and_end)
{
    device_site("cudaMalloc", 512, 1);
    write_report(CW_REPORT_TEXT);
    expect_line("cuwarden 0.1.0  ./victim --size 3  (1 device, 0.400s, exit 3)");
    fixture.arena.header->exit_kind = CW_EXIT_UNDERSCORE;
    write_report(CW_REPORT_TEXT);
    expect_text(", _exit 3)");
    fixture.arena.header->exit_kind = CW_EXIT_RUNNING;
    fixture.arena.header->end_ns = 0;
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .process = CW_REPORT_PROCESS_DEAD});
    expect_text("(1 device, 0.020s, terminated abnormally)");
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .process = CW_REPORT_PROCESS_ALIVE});
    expect_text("still running)");
}

Test(report_text, device_table_has_aligned_columns)
{
    uint32_t pinned = fixture_site(0, "cudaMallocHost", CW_KIND_PINNED, CW_DEVICE_HOST);
    struct cw_live_device *device = fixture_device(0, "NVIDIA H200");

    device->driver_total = 141 * GIB;
    device->driver_used = 2 * GIB;
    device->sample_held = GIB;
    fixture_site_at(device_site("cudaMalloc", GIB, 2))->failed = 1;
    fixture_alloc(pinned, MIB, 1, 70 * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    expect_line("DEVICES");
    expect_line("  device  name                   live     peak   @time  allocs  frees  failed  "
                "driver used  unattributed");
    expect_line("  0       NVIDIA H200         2.0 GiB  2.0 GiB  0.020s       2      0       1  "
                "    2.0 GiB       1.0 GiB");
    expect_line("  host    pinned, registered  1.0 MiB  1.0 MiB  0.070s       1      0       0  "
                "          -             -");
    expect_text("unattributed: in use on the whole device, but not tracked here:");
}

Test(report_text, leak_has_size_class_call_site_and_functions)
{
    uint32_t own = fixture_own_module();
    uint32_t lib = fixture_module("/opt/none/libtrain.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t outer = fixture_frame(0, lib, 0x1234);
    uint32_t inner = named_frame(named_frame(outer, own, train_step), own, make_cache);
    uint32_t site = fixture_site(inner, "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_alloc(site, 64 * MIB, 24, 131 * 1000 * FIXTURE_MS);
    fixture_site_at(site)->last_ns = 2458 * 1000 * FIXTURE_MS;
    write_report(CW_REPORT_TEXT);
    expect_line("LEAKS  1.5 GiB in 24 blocks from 1 call site");
    expect_line("1.5 GiB in 24 blocks  lost  cudaMalloc, device 0, device memory");
    expect_text("==4711==     site ");
    expect_text("  first 00:02:11  last 00:40:58  oldest 0us ago\n");
    expect_text("==4711==     #0 make_cache  report_text");
    expect_text("==4711==     #1 train_step  report_text");
    expect_line("    #2 libtrain.so+0x1234");
    fixture_site_at(site)->extra_bytes = GIB / 2;
    write_report(CW_REPORT_TEXT);
    expect_text("==4711== 1.5 GiB (held 2.0 GiB) in 24 blocks  lost  ");
}

Test(report_text, context_destroyed_blocks_are_a_class_of_their_own)
{
    uint32_t gone = device_site("cuMemAlloc", 4096, 2);
    uint32_t mixed = device_site("cudaMalloc", 512, 3);

    fixture_reclaim(gone, 4096, 2);
    fixture_reclaim(mixed, 512, 1);
    write_report(CW_REPORT_TEXT);
    expect_text("8.0 KiB in 2 blocks  context-destroyed  cuMemAlloc, device 0");
    expect_text("1.5 KiB in 3 blocks  lost (1 of them context-destroyed)  cudaMalloc, device 0");
    expect_text("leaked_bytes=9728 leaked_blocks=5 leak_sites=2 ");
}

Test(report_text, missing_stacks_say_why)
{
    device_site("cudaMalloc", 512, 1);
    fixture.arena.header->stacks_mode = 2;
    write_report(CW_REPORT_TEXT);
    expect_line("    (no stack: CUWARDEN_STACKS=off)");
    fixture.arena.header->stacks_mode = 0;
    write_report(CW_REPORT_TEXT);
    expect_line("    (no stack)");
}

Test(report_text, long_lists_end_with_what_is_left)
{
    char api[32];

    for (unsigned i = 0; i < 30; i++) {
        snprintf(api, sizeof(api), "alloc%02u", i);
        device_site(api, 1024 * (i + 1), 1);
    }
    write_report(CW_REPORT_TEXT);
    expect_text("in 1 block  lost  alloc29,");
    expect_text("in 1 block  lost  alloc10,");
    expect_no_text("lost  alloc09,");
    cr_expect_lt(strstr(report, "lost  alloc29"), strstr(report, "lost  alloc28"));
    expect_line("... 10 more sites, 55.0 KiB (all of them: CUWARDEN_FORMAT=json)");
    expect_line("  ... 20 more sites, 210.0 KiB"); /* of the peak */
    write_report(CW_REPORT_SHORT_IF_LEAKED);
    cr_expect_eq(count_of("  lost  "), 5);
    expect_line("... 25 more sites, 325.0 KiB");
}

Test(report_text, short_form_is_head_leaks_hint_and_summary)
{
    uint32_t module = fixture_module("/opt/none/libdeep.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t stack = 0;

    for (unsigned i = 0; i < 10; i++)
        stack = fixture_frame(stack, module, 0x100 + i);
    fixture_leak(stack, "cudaMalloc", 512, 1);
    write_report(CW_REPORT_SHORT_IF_LEAKED);
    expect_text("cuwarden 0.1.0  ./victim");
    expect_line("    #5 libdeep.so+0x104");
    expect_line("    ... 4 more frames");
    expect_line("For the full report set CUWARDEN_REPORT=FILE.");
    expect_no_text("DEVICES");
    expect_no_text("PEAK");
    expect_text("==4711== SUMMARY: leaked_bytes=512 ");
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_SHORT_IF_LEAKED, .has_live_file = 1});
    expect_line(
        "For the full report set CUWARDEN_REPORT=FILE; for source lines use 'cuwarden run'.");
}

Test(report_text, libraries_and_imports_are_apart)
{
    uint32_t blas = fixture_module("/opt/libcublas.so.13", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t app = fixture_module("/opt/none/app", 1 << 24, CW_MODULE_PROGRAM);
    uint32_t entry = fixture_frame(fixture_frame(0, app, 0x1), blas, 0x2);
    uint32_t owned = fixture_site(fixture_frame(entry, blas, 0x3), "cuMemAlloc", CW_KIND_DEVICE, 0);
    uint32_t import = fixture_site(0, "cudaIpcOpenMemHandle", CW_KIND_IPC, 0);

    fixture_alloc(owned, 33 * MIB, 2, 1);
    fixture_alloc(import, MIB, 1, 1);
    write_report(CW_REPORT_TEXT);
    expect_line("LEAKS  none");
    expect_line("LIBRARIES  66.0 MiB in 2 blocks, not counted as leaked: owned by libraries of "
                "NVIDIA");
    expect_text("  66.0 MiB in 2 blocks  cuBLAS  cuMemAlloc, device 0  site ");
    expect_line("      libcublas.so.13+0x2");
    expect_line("IMPORTS  1.0 MiB in 1 block, not counted as leaked: memory of another process or "
                "API");
    expect_text("  1.0 MiB in 1 block  ipc-imported  cudaIpcOpenMemHandle, device 0  site ");
    expect_text("leaked_bytes=0 leaked_blocks=0 leak_sites=0 ");
}

Test(report_text, events_are_listed_newest_last)
{
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 1);
    uint32_t bad = fixture_site(0, "cudaFree", CW_KIND_DEVICE, 0);
    struct cw_live_event *event;

    for (unsigned i = 0; i < 14; i++) {
        event = fixture_event(CW_EVENT_OOM, site, 2);
        event->bytes = (i + 1) * GIB;
        event->free_bytes = GIB;
        event->total_bytes = 16 * GIB;
    }
    fixture_site_at(site)->oom = 20;
    fixture_event(CW_EVENT_INVALID_FREE, bad, 1)->key = 0xdeadbeef;
    fixture_event(CW_EVENT_FATAL, bad, 700);
    write_report(CW_REPORT_TEXT);
    expect_line("OUT OF MEMORY  20 calls, 14 of them recorded, the last 10 of those");
    expect_no_text(" 4.0 GiB refused");
    expect_text("==4711== 0.100s  cudaMalloc, device 1: 14.0 GiB refused\n"
                "==4711==     (no stack)\n"
                "==4711==   why: the driver had none\n"
                "==4711==   when last sampled, 1.0 GiB of 16.0 GiB were free\n");
    cr_expect_lt(strstr(report, ": 5.0 GiB refused"), strstr(report, ": 14.0 GiB refused"));
    expect_line("INVALID FREES  1 call");
    expect_line("0.100s  invalid free: cudaFree, device 0: 0xdeadbeef refused, "
                "CUDA_ERROR_INVALID_VALUE (1)");
    expect_line("0.100s  CUDA_ERROR_ILLEGAL_ADDRESS (700) from cudaFree, device 0");
}

Test(report_text, peak_shows_shares_of_the_largest_sites)
{
    uint32_t big = device_site("cudaMalloc", 3 * MIB, 1);

    device_site("cuMemAlloc", MIB, 1);
    fixture_free(big, 3 * MIB, 1);
    write_report(CW_REPORT_TEXT);
    expect_line("PEAK  device 0: 4.0 MiB at 0.020s");
    expect_text("   75.0%     3.0 MiB in 1 block   site ");
    expect_text("   25.0%     1.0 MiB in 1 block   site ");
}

Test(report_text, incomplete_accounts_say_so)
{
    struct cw_live_header *header = fixture.arena.header;

    header->untracked_frees = 3;
    header->lost_blocks = 1;
    header->disarmed = fixture_text("the driver was unloaded");
    write_report(CW_REPORT_TEXT);
    expect_line("accounting is incomplete: it stopped early: the driver was unloaded");
    expect_line("accounting is incomplete: 1 allocation did not fit in the records");
    expect_line("accounting is incomplete: 3 frees of memory whose allocation was not seen");
}

Test(report_text, foreign_text_cannot_forge_a_line)
{
    uint32_t module = fixture_module("/opt/li\nb\x1b[1m.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t stack = fixture_frame(0, module, 0x10);

    fixture.arena.header->command = fixture_text("a\n==4711== SUMMARY: forged\r\x1b[2J");
    fixture_device(0, "x\ny");
    fixture_leak(stack, "cuda\nMalloc", 512, 1);
    write_report(CW_REPORT_TEXT);
    cr_expect_eq(count_of("\n==4711== SUMMARY"), 1);
    cr_expect_null(strchr(report, '\x1b'));
    expect_text("li?b?[1m.so+0x10");
    expect_text("cuda?Malloc");
}

static void add_sites(unsigned first, unsigned end)
{
    static uint32_t own, outer;

    if (first == 0) {
        own = fixture_own_module();
        outer = named_frame(0, own, train_step);
    }
    for (unsigned i = first; i < end; i++) {
        uint32_t stack = outer;

        for (unsigned k = 0; k < 10; k++)
            stack = fixture_frame(stack, own, 0x1000 + (i * 31 + k * 977) % 20000);
        fixture_alloc(fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, i % 4), 512 + i, 10, 5);
    }
}

/* The thread's own time, which other programs do not make longer. */
static double seconds_of_report(enum cw_report_form form)
{
    struct timespec begin, end;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    write_report(form);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

/* Who shares the caches and the memory makes it longer, at times. */
static int takes_at_most(double seconds, enum cw_report_form form)
{
    for (int i = 0; i < 3; i++)
        if (seconds_of_report(form) <= seconds)
            return 1;
    return 0;
}

/* With the square of ten times as many sites it would be a hundred times as long. */
Test(report_text, of_a_hundred_thousand_sites_and_a_million_blocks_takes_as_long_as_it_is)
{
    double text, json;

    add_sites(0, 10000);
    text = seconds_of_report(CW_REPORT_TEXT);
    json = seconds_of_report(CW_REPORT_JSON);
    add_sites(10000, 100000);
    cr_expect(takes_at_most(40 * text, CW_REPORT_TEXT));
    cr_expect(takes_at_most(40 * json, CW_REPORT_JSON));
    expect_text("leaked_blocks\":1000000");
}

/* The list of events is bounded; what happened is said all the same. */
Test(report_text, errors_without_a_record_are_said)
{
    fixture.arena.header->invalid_frees = 3;
    fixture_site_at(fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0))->oom = 2;
    write_report(CW_REPORT_TEXT);
    expect_line("INVALID FREES  3 calls, none of them recorded");
    expect_line("OUT OF MEMORY  2 calls, none of them recorded");
    fixture_event(CW_EVENT_INVALID_FREE, 0, 1);
    write_report(CW_REPORT_TEXT);
    expect_line("INVALID FREES  3 calls, 1 of them recorded");
}

/* Flips bits in the parts that are in use: the header and the tables' first records. */
static void flip_bits(unsigned seed)
{
    struct cw_live_header *header = fixture.arena.header;
    char *base = (char *)header;

    srand(seed);
    for (unsigned i = 0; i < 1 + seed % 24; i++) {
        const struct cw_live_table *table = &header->table[(unsigned)rand() % CW_TABLE_COUNT];
        size_t at = (size_t)rand() % sizeof(*header);

        if (rand() % 4 != 0 && table->chunk[0] != 0 &&
            table->chunk[0] < fixture.arena.committed / 2)
            at = table->chunk[0] + (size_t)rand() % 2048;
        if (at >= 16 && at < fixture.arena.committed) /* not the magic, version and size */
            base[at] ^= (char)(1 << rand() % 8);
    }
}

static void add_pool(uint32_t site, uint32_t freeing)
{
    struct cw_live_pool *pool = &fixture.arena.header->device[0].pool;

    fixture_pool_alloc(site, 5000, 5120, 6, 5);
    fixture_keep(site, 5000, 4);
    for (unsigned i = 0; i < 12; i++) {
        struct cw_live_bucket *bucket =
            fixture_bucket(i % 3 == 2 ? CW_DEVICE_HOST : i % 3,
                           i % 3 == 2 ? CW_KIND_PINNED : CW_KIND_DEVICE, 512 << i);

        bucket->hits = 1000 * i;
        bucket->misses = 3 + i;
        bucket->asked_bytes = (1003 * i + 3) * (500 << i);
        bucket->given_bytes = (1003 * i + 3) * (512 << i);
        bucket->kept = 990 * i;
        bucket->released = i;
        bucket->released_bytes = i * (512 << i);
        bucket->idle_blocks = i;
        bucket->idle_bytes = i * (512 << i);
    }
    for (unsigned i = 0; i < CW_BYPASS_COUNT; i++)
        pool->bypassed[i] = i * i * i;
    pool->exact_retries = 2;
    pool->oom_retries = 1;
    pool->released[CW_RELEASE_FULL].blocks = 3;
    pool->released[CW_RELEASE_IDLE].blocks = 12;
    fixture_event(CW_EVENT_INVALID_FREE, site, 1)->other_site = freeing;
}

static void build_rich_layout(void)
{
    uint32_t own = fixture_own_module();
    uint32_t blas = fixture_module("/opt/libcublas.so.13", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t outer = named_frame(0, own, train_step);
    uint32_t inner = named_frame(outer, own, make_cache);
    uint32_t deep = fixture_frame(inner, blas, 0x30);
    uint32_t sites[] = {
        fixture_site(inner, "cudaMalloc", CW_KIND_DEVICE, 0),
        fixture_site(deep, "cuMemAlloc", CW_KIND_PITCHED, 1),
        fixture_site(outer, "cudaIpcOpenMemHandle", CW_KIND_IPC, 0),
        fixture_site(outer, "cudaMallocHost", CW_KIND_PINNED, CW_DEVICE_HOST),
    };

    fixture_device(0, "NVIDIA H200")->driver_total = GIB;
    for (size_t i = 0; i < CW_ARRAY_LEN(sites); i++)
        fixture_alloc(sites[i], 4096, 10, 5);
    fixture_reclaim(sites[0], 4096, 3);
    fixture_event(CW_EVENT_OOM, sites[0], 2);
    fixture_event(CW_EVENT_INVALID_FREE, sites[1], 1);
    fixture_event(CW_EVENT_FATAL, sites[0], 700);
    add_pool(sites[0], sites[1]);
    fixture_scarce(0, sites[0]);
}

Test(report_text, corrupted_layouts_do_no_harm)
{
    struct cw_report_holder holder[CW_OOM_HOLDERS];
    unsigned written = 0;
    uint64_t rest;
    size_t used;
    char *good;

    build_rich_layout();
    used = fixture.arena.committed;
    good = malloc(used);
    memcpy(good, fixture.arena.header, used);
    for (unsigned seed = 0; seed < 2000; seed++) {
        int fd = memfd_create("report", 0);
        struct cw_report_request request = {.form = CW_REPORT_BOTH, .fd = fd};
        struct cw_view view;
        /* A mapping that ends with the bytes, as a truncated file's would. */
        size_t len = seed % 5 == 0 ? used / 4096 * (seed % 97 + 3) / 100 * 4096 : used;
        char *copy;

        flip_bits(seed);
        copy = malloc(len);
        memcpy(copy, fixture.arena.header, len);
        if (cw_view_open(&view, copy, len) == 0) {
            cr_assert_eq(cw_report_write(&view, &request), 0);
            cw_report_oom(&view, 1, &request);
            cr_expect_leq(cw_report_holders(&view, seed % 2, holder, &rest, &rest), CW_OOM_HOLDERS);
            written++;
        }
        free(copy);
        memcpy(fixture.arena.header, good, used);
        close(fd);
    }
    cr_expect_gt(written, 1000);
    free(good);
}

/* Not a test of a property: shows the report to whoever runs this with SHOW=1. */
Test(report_text, sample)
{
    uint32_t late;
    struct cw_live_device *device = fixture_device(0, "NVIDIA H200");

    device->driver_total = 141 * GIB;
    device->driver_used = 3 * GIB;
    device->sample_held = 2 * GIB;
    build_rich_layout();
    late = fixture_site(named_frame(0, 1, train_step), "cudaMallocAsync", CW_KIND_ASYNC, 0);
    fixture_alloc(late, 300 * MIB, 7, 200 * FIXTURE_MS);
    write_report(CW_REPORT_TEXT);
    if (getenv("SHOW"))
        fputs(report, stderr);
    expect_text("SUMMARY");
}
