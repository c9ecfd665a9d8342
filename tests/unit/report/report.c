/* SPDX-License-Identifier: MIT */
/* A report that somebody acts upon: there is none unless all that decides a class is known. */
#include "report/report.h"

#include <criterion/criterion.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "report/leaks/cache.h"
#include "report_fixture.h"

NAMED_FUNCTION(grow_pool, "jitc_malloc") /* of caches.def */
NAMED_FUNCTION(work, "work")

static struct cw_view view;
static uint32_t pool_site, work_site;
static int captured = -1; /* what stderr writes to during a test */

/* A cache that only the name of its function tells, and a leak of the program. */
static void setup(void)
{
    uint32_t own;

    report_file_setup();
    own = fixture_own_module();
    pool_site = fixture_leak(named_frame(0, own, grow_pool), "cuMemAlloc", MIB, 1);
    work_site = fixture_leak(named_frame(0, own, work), "cuMemAlloc", 1000, 1);
    fixture.arena.header->exit_kind = CW_EXIT_RUNNING;
    captured = memfd_create("stderr", 0);
    dup2(captured, STDERR_FILENO);
}

TestSuite(report_to_act_upon, .init = setup, .fini = report_file_teardown);

static const char *said(void)
{
    static char text[1 << 12];
    ssize_t len = pread(captured, text, sizeof(text) - 1, 0);

    text[len > 0 ? len : 0] = '\0';
    return text;
}

static unsigned lines_said(void)
{
    unsigned lines = 0;

    for (const char *at = said(); (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines;
}

static struct cw_report_job *open_report(int is_to_act_upon, const char *rules)
{
    struct cw_report_request request = {.process = CW_REPORT_PROCESS_ALIVE,
                                        .suppressions = rules,
                                        .is_to_act_upon = is_to_act_upon};

    view = fixture_view();
    return cw_report_open(&view, &request);
}

static struct cw_snapshot_site class_of(struct cw_report_job *job, uint32_t site)
{
    const struct cw_snapshot_site *found;

    cr_assert_not_null(job);
    found = cw_snapshot_find(&cw_report_of(job)->snapshot, site);
    cr_assert_not_null(found);
    return *found;
}

static void expect_classes(struct cw_report_job *job)
{
    cr_expect_eq(class_of(job, pool_site).leak, CW_LEAK_CACHE);
    cr_expect_eq(class_of(job, pool_site).cache, CW_CACHE_DRJIT);
    cr_expect_eq(class_of(job, work_site).leak, CW_LEAK_LOST);
    cw_report_close(job);
}

static void limit_descriptors(rlim_t most)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = most;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

Test(report_to_act_upon, is_refused_while_names_cannot_be_read)
{
    struct cw_report_job *job;

    expect_classes(open_report(1, NULL));
    limit_descriptors(3);
    for (int i = 0; i < 3; i++)
        cr_expect_null(open_report(1, NULL));
    cr_expect_eq(lines_said(), 1);
    cr_expect(strstr(said(), ": the process has no descriptor left (errno 24); until they can be "
                             "read, leak checks fail and scopes leave the memory of new call "
                             "sites\n"),
              "%s", said());
    job = open_report(0, NULL); /* one that is only read is made of what there is */
    cr_expect_eq(class_of(job, pool_site).leak, CW_LEAK_LOST);
    cw_report_close(job);
    limit_descriptors(256);
    expect_classes(open_report(1, NULL));
    cr_expect_eq(lines_said(), 1);
}

Test(report_to_act_upon, is_refused_while_the_rules_cannot_be_read)
{
    for (int i = 0; i < 3; i++)
        cr_expect_null(open_report(1, "/no/such/file"));
    cr_expect_eq(lines_said(), 1);
    cr_expect(strstr(said(), "\"/no/such/file\": no such file or directory (errno 2); until "),
              "%s", said());
    report_file_write("no rule\n");
    for (int i = 0; i < 3; i++)
        expect_classes(open_report(1, report_file));
    report_file_write("leak:^work$\n");
    cw_report_close(open_report(1, report_file));
    cr_expect_eq(class_of(open_report(1, report_file), work_site).leak, CW_LEAK_SUPPRESSED);
}

/* A plugin whose file was deleted has no names, and nothing waits for them. */
Test(report_to_act_upon, does_without_names_that_there_are_not)
{
    uint32_t plugin = fixture_module("/no/such/plugin.so", 1 << 24, CW_MODULE_PROGRAM);
    uint32_t site = fixture_leak(fixture_frame(0, plugin, 0x40), "cuMemAlloc", 10, 1);

    cr_expect_eq(class_of(open_report(1, NULL), site).leak, CW_LEAK_LOST);
    expect_classes(open_report(1, NULL));
    cr_expect_str_eq(said(), "");
}

Test(report_to_act_upon, has_no_growth_which_counts_as_lost)
{
    uint32_t site = fixture_growing(named_frame(0, fixture_own_module(), work), "cudaMalloc", MIB);
    struct cw_report_job *job;

    fixture_moments(10 * FIXTURE_MS);
    cr_expect_eq(class_of(open_report(0, NULL), site).leak, CW_LEAK_GROWING);
    job = open_report(1, NULL);
    cr_expect_eq(class_of(job, site).leak, CW_LEAK_LOST);
    cr_expect_eq(class_of(job, site).live_blocks, MOMENTS);
    cr_expect_eq(cw_report_of(job)->snapshot.growth.moments, 0);
    cw_report_close(job);
}
