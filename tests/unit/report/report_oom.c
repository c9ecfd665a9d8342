/* SPDX-License-Identifier: MIT */
/* Accounts of out of memory: in the report, and at the moment it happens. */
#include "report/report_oom.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/leaks/holders.h"
#include "report_fixture.h"

TestSuite(report_oom, .init = fixture_create, .fini = report_teardown);

NAMED_FUNCTION(grow_cache, "grow_cache")
NAMED_FUNCTION(serve_one, "serve_one")
/* A site in grow_cache, called by serve_one. */
static uint32_t named_site(const char *api)
{
    uint32_t own = fixture_own_module();
    uint32_t stack = named_frame(named_frame(0, own, serve_one), own, grow_cache);

    return fixture_site(stack, api, CW_KIND_DEVICE, 0);
}

static struct cw_live_oom *oom_at(uint32_t index)
{
    return cw_arena_at(&fixture.arena, CW_TABLE_OOM, index);
}

/* The dump becomes `report`; it must come in one piece. */
static int write_dump(uint32_t index)
{
    struct cw_view view = fixture_view();
    int pipe_fd[2], result;
    unsigned writes = 0;
    ssize_t len;

    cr_assert_eq(pipe2(pipe_fd, O_DIRECT | O_NONBLOCK), 0); /* keeps writes apart */
    errno = 4242;
    result =
        cw_report_oom(&view, index, &(struct cw_report_request){.fd = pipe_fd[1], .version = ""});
    cr_expect_eq(errno, 4242);
    free(report);
    report = calloc(1, 65536);
    for (size_t at = 0; (len = read(pipe_fd[0], report + at, 4096)) > 0; writes++)
        at += (size_t)len;
    cr_expect_eq(writes, result == 0 ? 1 : 0);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    return result;
}

static unsigned lines(void)
{
    return count_of("\n");
}

/* The account of fixture_scarce: 141 GiB = 60 held + 2 spare + 61 free + 18 others. */
static void expect_account(void)
{
    expect_line("  largest that fits: 3.0 GiB");
    expect_line("  the memory limit is 64.0 GiB; 62.0 GiB counted as held");
    expect_line("  fragmented: the driver had 61.0 GiB free in total, but no 8.0 GiB in one piece");
    expect_line("  memory use of device 0, 141.0 GiB in total");
    expect_line("      40.0 GiB   28.4%  in use by this process");
    expect_line("       5.0 GiB    3.5%  rounding overhead");
    expect_line("      15.0 GiB   10.6%  idle in the pool");
    expect_line("       2.0 GiB    1.4%  unused in the driver's stream-ordered pools");
    expect_line("      18.0 GiB   12.8%  other processes, contexts and modules");
    expect_line("      61.0 GiB   43.3%  free");
    expect_line("  memory in use, by call site");
    expect_text("==4711==       30.0 GiB   75.0%  in 212 blocks  cudaMalloc");
    expect_text("==4711==             grow_cache (report_oom.ut) <- serve_one\n");
    expect_line("      10.0 GiB   25.0%  in 33 blocks at all other sites");
}

Test(report_oom, report_has_the_account_beside_its_event)
{
    fixture_scarce(0, named_site("cudaMalloc"));
    write_report(CW_REPORT_TEXT);
    expect_line("0.100s  cudaMalloc, device 0: 8.0 GiB refused");
    expect_text("==4711==     #0 grow_cache  report_oom.ut+0x");
    expect_line("  why: the driver had none");
    expect_account();
    expect_text("  cudaMalloc  site ");
    expect_no_text("at the last look");
}

Test(report_oom, dump_tells_the_same_at_once)
{
    fixture_scarce(0, named_site("cudaMalloc"));
    cr_assert_eq(write_dump(1), 0);
    cr_expect_eq(strncmp(report,
                         "==4711== cuwarden: out of memory: cudaMalloc, device 0: 8.0 GiB "
                         "refused\n"
                         "==4711==     #0 grow_cache  report_oom.ut+0x",
                         115),
                 0, "%s", report);
    expect_line("  why: the driver had none");
    expect_account();
    expect_no_text("site ");
    cr_expect_eq(write_dump(2), -1); /* there is none */
    cr_expect_str_eq(report, "");
}

static void fill_holders(struct cw_live_oom *oom)
{
    struct cw_report_holder holder[CW_OOM_HOLDERS];
    struct cw_view view = fixture_view();

    oom->holders = cw_report_holders(&view, 0, holder, &oom->rest_bytes, &oom->rest_blocks);
    cr_assert_eq(oom->holders, CW_OOM_HOLDERS);
    for (unsigned i = 0; i < CW_OOM_HOLDERS; i++) {
        oom->holder[i].site = holder[i].site;
        oom->holder[i].bytes = holder[i].bytes;
        oom->holder[i].blocks = holder[i].blocks;
    }
}

Test(report_oom, dump_has_forty_lines_at_most_none_wider_than_100_columns)
{
    uint32_t lib = fixture_module("/opt/none/libtrain.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t stack = 0;
    struct cw_live_oom *oom;

    for (unsigned i = 0; i < 12; i++)
        stack = fixture_frame(stack, lib, UINT64_C(0x123456789a) + i);
    fixture_scarce(0, fixture_site(stack, "cuMemAllocFromPoolAsync", CW_KIND_ASYNC, 0));
    for (unsigned i = 0; i < 12; i++) {
        struct cw_live_site *site = fixture_site_at(
            fixture_site(i == 3 ? 0 : stack - i, "cuMemAllocFromPoolAsync", CW_KIND_ASYNC, 0));

        site->allocs = 1000000;
        site->total_bytes = GIB << i;
    }
    oom = oom_at(1);
    oom->min_free = GIB;
    oom->live = GIB << 12;
    fill_holders(oom);
    fixture.arena.header->pid = 4194304;
    cr_assert_eq(write_dump(1), 0);
    cr_expect_leq(lines(), 40, "%s", report);
    cr_expect_geq(lines(), 30);
    for (const char *at = report; strchr(at, '\n'); at = strchr(at, '\n') + 1) {
        cr_expect_leq(strcspn(at, "\n"), 100, "%.*s", (int)strcspn(at, "\n"), at);
        cr_expect_eq(strncmp(at, "==4194304== ", 12), 0);
    }
    cr_expect_leq(strlen(report), 4096); /* one write to a pipe */
    expect_text("             libtrain.so+0x12345678a1 <- libtrain.so+0x12345678a0 <- ...\n");
    expect_text("             libtrain.so+0x123456789b <- libtrain.so+0x123456789a\n");
}

Test(report_oom, unknown_numbers_are_left_out)
{
    uint32_t site = fixture_site(0, "cuModuleLoad", CW_KIND_MODULE, 0);

    fixture_oom(0, site);
    cr_assert_eq(write_dump(1), 0);
    cr_expect_str_eq(report, "==4711== cuwarden: out of memory: cuModuleLoad, device 0: refused\n"
                             "==4711==     (no stack)\n"
                             "==4711==   why: the driver had none\n");
    oom_at(1)->held = GIB;
    oom_at(1)->live = GIB;
    cr_assert_eq(write_dump(1), 0);
    expect_line("  memory use of device 0, this process only");
    expect_line("       1.0 GiB  in use by this process");
    oom_at(1)->limit = GIB;
    oom_at(1)->cause = CW_CAUSE_LIMIT;
    oom_at(1)->site = 0;
    cr_assert_eq(write_dump(1), 0);
    expect_text("out of memory: unknown call, device 0: refused\n");
    expect_line("  why: beyond the memory limit");
    expect_line("  nothing fits");
}

Test(report_oom, sums_that_do_not_add_up_are_never_negative)
{
    struct cw_live_oom *oom;

    fixture_scarce(0, named_site("cudaMalloc"));
    oom = oom_at(1);
    oom->free_bytes = 7 * GIB; /* less than was asked for: not fragmented */
    oom->held = 140 * GIB;
    oom->live = 139 * GIB;
    cr_assert_eq(write_dump(1), 0);
    expect_no_text("other processes");
    expect_no_text("rounding overhead");
    expect_no_text("fragmented");
    oom->free_bytes = 61 * GIB;
    oom->cause = CW_CAUSE_LIMIT;
    cr_assert_eq(write_dump(1), 0);
    expect_no_text("fragmented");
}

Test(report_oom, injected_failures_are_marked_and_counted_apart)
{
    uint32_t site = named_site("cudaMalloc");
    struct cw_live_event *event = fixture_event(CW_EVENT_OOM, site, 2);

    event->cause = CW_CAUSE_INJECTED;
    event->count = 3;
    event->bytes = GIB;
    fixture.arena.header->device[0].memory.refused[CW_CAUSE_INJECTED] = 3;
    fixture_site_at(site)->oom = 3;
    write_report(CW_REPORT_TEXT);
    expect_line("OUT OF MEMORY  none, and 3 calls injected by CUWARDEN_FAIL");
    expect_line("0.100s  cudaMalloc, device 0: 1.0 GiB refused (injected by "
                "CUWARDEN_FAIL), 3 times");
    expect_no_text("why:");
    fixture_event(CW_EVENT_OOM, site, 2)->cause = CW_CAUSE_MIN_FREE;
    fixture_site_at(site)->oom = 4;
    write_report(CW_REPORT_TEXT);
    expect_line("OUT OF MEMORY  1 call, and 3 calls injected by CUWARDEN_FAIL");
    expect_line("  why: less than CUWARDEN_MIN_FREE would have stayed free");
}

Test(report_oom, first_account_is_shown_even_if_its_event_is_old)
{
    uint32_t site = named_site("cudaMalloc");

    fixture_scarce(0, site);
    for (unsigned i = 0; i < 12; i++) {
        uint32_t event = fixture.arena.header->table[CW_TABLE_EVENT].count;

        fixture_event(CW_EVENT_OOM, site, 2)->bytes = GIB * (20 + i);
        if (i < 2)
            fixture_oom(event, site)->bytes = GIB * (20 + i);
    }
    write_report(CW_REPORT_TEXT);
    expect_text(", 13 of them recorded, the last 10 of those\n"
                "==4711== 0.100s  cudaMalloc, device 0: 8.0 GiB refused\n");
    expect_account();
    expect_line("... 2 more accounts of what was in use then: CUWARDEN_FORMAT=json");
    cr_expect_eq(count_of(" refused\n"), 11);
    cr_expect_lt(strstr(report, "... 2 more accounts"), strstr(report, ": 22.0 GiB refused"));
}

/* Not a test of a property: shows the sections to whoever runs this with SHOW=1. */
Test(report_oom, sample)
{
    struct cw_live_device *device = fixture_device(0, "NVIDIA H200");
    uint32_t site = named_site("cudaMalloc");

    device->driver_total = 141 * GIB;
    device->driver_used = 120 * GIB;
    device->sample_held = 60 * GIB;
    fixture_alloc(site, 30 * GIB, 2, 5);
    fixture_scarce(0, site);
    write_report(CW_REPORT_TEXT);
    if (getenv("SHOW"))
        fputs(report, stderr);
    cr_assert_eq(write_dump(1), 0);
    if (getenv("SHOW"))
        fputs(report, stderr);
    expect_text("out of memory");
}
