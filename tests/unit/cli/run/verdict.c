/* SPDX-License-Identifier: MIT */
/* The verdict on a run. Places are lines of Python, which need no files. */
#include "cli/run/verdict.h"

#include <criterion/criterion.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_fixture.h"

static struct cw_run_verdict verdict;
static char *text;
static unsigned columns = 80;

static void setup(void)
{
    verdict = (struct cw_run_verdict){.processes = 0};
    fixture_create();
}

static void teardown(void)
{
    cw_verdict_free(&verdict);
    fixture_destroy();
    free(text);
}

TestSuite(verdict, .init = setup, .fini = teardown);

/* A site at f, which main has called from this line. */
static uint32_t site_at(const char *function, uint32_t caller_line, const char *api)
{
    uint32_t stack = fixture_line(0, "/home/me/train.py", "main", caller_line);

    stack = fixture_line(stack, "/home/me/train.py", function, 7);
    return fixture_site(stack, api, CW_KIND_DEVICE, 0);
}

/* It has reached no exit. */
static void add_ended(enum cw_report_process process)
{
    struct cw_view view;
    struct cw_report_request request = {.process = process};
    struct cw_report_job *job;

    fixture.arena.header->exit_kind = CW_EXIT_RUNNING;
    view = fixture_view();
    job = cw_report_open(&view, &request);
    cr_assert(job);
    cw_report_read_listed(job, cw_verdict_want);
    cw_verdict_add(&verdict, cw_report_of(job));
    cw_report_close(job);
}

static void add(void)
{
    add_ended(CW_REPORT_PROCESS_DEAD);
}

/* Returns the number of lines. */
static unsigned print(uint64_t peak_bytes)
{
    struct cw_verdict_ending ending = {
        .peak_bytes = peak_bytes, .next = "see you", .prefix = "", .columns = columns};
    size_t len = 0;
    FILE *out;
    unsigned lines = 0;

    free(text);
    out = open_memstream(&text, &len);
    cw_verdict_print(&verdict, &ending, out);
    fclose(out);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines;
}

static void add_and_print(uint64_t peak_bytes)
{
    add();
    print(peak_bytes);
}

static void has_line(const char *line)
{
    char whole[512];

    snprintf(whole, sizeof(whole), "\n%s\n", line);
    cr_expect(strncmp(text, whole + 1, strlen(whole + 1)) == 0 || strstr(text, whole),
              "no line \"%s\" in\n%s", line, text);
}

Test(verdict, no_process_has_none)
{
    cr_expect_eq(print(0), 0u);
}

Test(verdict, a_program_that_did_nothing_wrong_gets_its_peak_and_who_held_it)
{
    uint32_t site = site_at("step", 3, "cuMemAlloc");

    fixture_alloc(site, MIB, 2, FIXTURE_MS);
    fixture_free(site, MIB, 2);
    add();
    cr_expect_not(cw_verdict_is_bad(&verdict));
    cr_expect_eq(print(2 * MIB), 3u);
    has_line("peak 2.0 MiB on device 0, in track mode");
    has_line("  2.0 MiB step train.py:7");
}

Test(verdict, a_program_that_allocated_nothing_has_no_peak)
{
    add();
    cr_expect_eq(print(0), 2u);
    has_line("no CUDA memory was allocated");
}

/* A node has a site; what its graph takes and frees itself is no block. */
Test(verdict, memory_inside_of_graphs_is_not_denied)
{
    fixture_site(fixture_line(0, "/home/me/train.py", "capture", 3), "cuMemAllocAsync",
                 CW_KIND_GRAPH, 0);
    add_and_print(0);
    has_line("no CUDA memory was allocated outside graphs; memory that a graph allocates and "
             "frees itself is not counted");
}

Test(verdict, sites_in_one_place_are_told_apart_by_their_callers)
{
    fixture_alloc(site_at("Tensor.__init__", 30, "cuMemAlloc"), 2 * MIB, 1, FIXTURE_MS);
    fixture_alloc(site_at("Tensor.__init__", 40, "cuMemAlloc"), MIB, 1, FIXTURE_MS);
    add_and_print(3 * MIB);
    has_line("leaked 3.0 MiB in 2 blocks from 2 call sites:");
    has_line("  2.0 MiB in 1 block  Tensor.__init__ train.py:7 < main train.py:30");
    has_line("  1.0 MiB in 1 block  Tensor.__init__ train.py:7 < main train.py:40");
}

/* A site that train.py:7 reaches through a line of its own in a framework. */
static uint32_t site_through(const char *function, uint32_t line)
{
    uint32_t stack = fixture_line(0, "/home/me/train.py", "main", 3);

    stack = fixture_line(stack, "/home/me/train.py", function, 7);
    return fixture_line(stack, "/usr/lib/python3/dist-packages/cupy/core.py", "zeros", line);
}

/* A site of one place, as one of many by tag and by path. */
static uint32_t one_of_many(uint32_t i, const char *function, enum cw_kind kind)
{
    uint32_t site = fixture_site(site_through(function, i / 2), "cuMemAlloc", kind, 0);
    char name[16];

    snprintf(name, sizeof(name), "layer %u", i % 2);
    fixture_site_at(site)->tag = (uint16_t)fixture_tag(name, NULL);
    return site;
}

Test(verdict, the_sites_of_a_place_are_added_up_before_the_largest_places_are_chosen)
{
    for (uint32_t i = 0; i < 60; i++)
        fixture_alloc(one_of_many(i, "keep", CW_KIND_DEVICE), MIB, 1, FIXTURE_MS);
    fixture_alloc(site_at("load", 3, "cuMemAlloc"), 12 * MIB, 1, FIXTURE_MS);
    add_and_print(72 * MIB);
    has_line("  60.0 MiB in 60 blocks  keep train.py:7");
    has_line("  12.0 MiB in 1 block  load train.py:7");
    has_line("  60.0 MiB keep train.py:7, 12.0 MiB load train.py:7");
}

Test(verdict, what_grows_at_many_sites_of_a_place_grows_together)
{
    columns = 160;
    fixture_moments(500 * FIXTURE_MS);
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t site = fixture_growing(site_through("keep", i), "cuMemAlloc", MIB);

        cr_assert_neq(site, 0u);
    }
    (void)fixture_growing(fixture_line(0, "/home/me/train.py", "other", 9), "cuMemAlloc", 3 * MIB);
    add_and_print(GIB);
    has_line("growing: +40.0 MiB/s at keep train.py:7, +6.0 MiB/s at other train.py:9");
}

/* The place that is the third in the end was the fourth of the first process. */
Test(verdict, a_place_that_only_several_processes_make_large_has_its_name)
{
    static const char *const name[] = {"a", "b", "c", "d"};

    for (unsigned process = 0; process < 4; process++) {
        for (unsigned i = process == 0 ? 0 : 3; i < 4; i++)
            fixture_alloc(site_at(name[i], 3, "cuMemAlloc"), (10 - i) * MIB, 1, FIXTURE_MS);
        add();
        fixture_destroy();
        fixture_create();
    }
    print(34 * MIB);
    has_line("leaked 55.0 MiB in 7 blocks from 4 call sites, the largest:");
    has_line("  28.0 MiB in 4 blocks  d train.py:7");
    has_line("  10.0 MiB in 1 block  a train.py:7");
}

/* Memory of an earlier peak is not added to that of a later one. */
Test(verdict, holders_are_those_of_one_process)
{
    for (unsigned i = 1; i <= 2; i++) {
        fixture_alloc(site_at(i == 1 ? "first" : "second", 3, "cuMemAlloc"), i * MIB, 1,
                      FIXTURE_MS);
        add();
        fixture_destroy();
        fixture_create();
    }
    print(2 * MIB);
    has_line("peak 2.0 MiB in 2 processes, the largest 2.0 MiB on device 0, in track mode");
    has_line("  2.0 MiB second train.py:7");
}

static void add_host(const char *function, uint64_t bytes)
{
    uint32_t stack = fixture_line(0, "/home/me/train.py", function, 9);

    fixture_alloc(fixture_site(stack, "cuMemAllocHost", CW_KIND_PINNED, CW_DEVICE_HOST), bytes, 1,
                  FIXTURE_MS);
}

Test(verdict, a_larger_peak_of_the_host_does_not_hide_that_of_the_gpu)
{
    fixture_alloc(site_at("weights", 3, "cuMemAlloc"), 9 * MIB, 1, FIXTURE_MS);
    add_host("staging", 10 * MIB);
    add_and_print(19 * MIB);
    has_line("peak 9.0 MiB on device 0, 10.0 MiB on host, in track mode");
    has_line("  9.0 MiB weights train.py:7");
    has_line("  on host: 10.0 MiB staging train.py:9");
}

Test(verdict, a_smaller_peak_of_the_host_is_a_number)
{
    fixture_alloc(site_at("weights", 3, "cuMemAlloc"), 9 * MIB, 1, FIXTURE_MS);
    add_host("staging", MIB);
    add_and_print(10 * MIB);
    has_line("peak 9.0 MiB on device 0, 1.0 MiB on host, in track mode");
    cr_expect_null(strstr(text, "on host: "));
}

Test(verdict, a_few_bytes_of_the_host_beside_a_gpus_peak_are_no_news)
{
    fixture_alloc(site_at("weights", 3, "cuMemAlloc"), 9 * MIB, 1, FIXTURE_MS);
    add_host("flag", 4);
    add_and_print(9 * MIB + 4);
    has_line("peak 9.0 MiB on device 0, in track mode");
}

Test(verdict, memory_of_the_host_alone_is_its_peak)
{
    add_host("staging", 10 * MIB);
    add_and_print(10 * MIB);
    has_line("peak 10.0 MiB on host, in track mode");
    has_line("  10.0 MiB staging train.py:9");
}

Test(verdict, of_several_gpus_the_sum_and_the_largest)
{
    for (unsigned i = 0; i < 2; i++) {
        uint32_t stack = fixture_line(0, "/home/me/train.py", i == 0 ? "a" : "b", 9);

        fixture_alloc(fixture_site(stack, "cuMemAlloc", CW_KIND_DEVICE, i), (i + 1) * MIB, 1,
                      FIXTURE_MS);
    }
    add_host("staging", 4 * MIB);
    add_and_print(7 * MIB);
    has_line("peak 7.0 MiB, 2.0 MiB of it on device 1, 4.0 MiB on host, in track mode");
    has_line("  2.0 MiB b train.py:9");
}

Test(verdict, of_several_processes_the_largest_on_a_gpu_and_on_the_host)
{
    fixture_alloc(site_at("weights", 3, "cuMemAlloc"), 9 * MIB, 1, FIXTURE_MS);
    add();
    fixture_destroy();
    fixture_create();
    add_host("staging", 10 * MIB);
    add_and_print(19 * MIB);
    has_line("peak 19.0 MiB in 2 processes, the largest 9.0 MiB on device 0, 10.0 MiB on host, in "
             "track mode");
    has_line("  9.0 MiB weights train.py:7");
    has_line("  on host: 10.0 MiB staging train.py:9");
}

/* As of a context that the driver refused to make. */
Test(verdict, an_out_of_memory_without_a_size_is_named_without_one)
{
    uint32_t site = site_at("begin", 3, "cuCtxCreate");

    fixture_site_at(site)->oom = 1;
    fixture_event(CW_EVENT_OOM, site, 2);
    add_and_print(0);
    cr_expect(cw_verdict_is_bad(&verdict));
    has_line("out of memory: 1 call at begin train.py:7");
    fixture_site_at(site)->oom = 2;
    fixture_event(CW_EVENT_OOM, site, 2);
    add_and_print(0);
    has_line("out of memory: 3 calls, one at begin train.py:7");
}

Test(verdict, what_a_cache_kept_is_memory_of_devices)
{
    uint32_t stack = fixture_line(0, "/lib/python3/numba/cuda/cudadrv/driver.py", "memalloc", 9);

    fixture_alloc(fixture_site(stack, "a", CW_KIND_DEVICE, 0), MIB, 1, FIXTURE_MS);
    fixture_alloc(fixture_site(stack, "b", CW_KIND_PINNED, CW_DEVICE_HOST), MIB, 1, FIXTURE_MS);
    add_and_print(MIB);
    cr_expect(strstr(text, "numba's cache kept 1.0 MiB "), "%s", text);
}

Test(verdict, code_that_was_made_is_not_the_scripts_own)
{
    static const char *const made[] = {"<string>", "<eval_with_key>.1", "<frozen runpy>"};

    for (unsigned i = 0; i < 3; i++) {
        uint32_t stack = fixture_line(0, "/home/me/train.py", "main", 12);

        stack = fixture_line(stack, made[i], "__init__", 2);
        fixture_alloc(fixture_site(stack, "cuMemAlloc", CW_KIND_DEVICE, 0), MIB, 1, FIXTURE_MS);
    }
    add_and_print(3 * MIB);
    has_line("  3.0 MiB main train.py:12");
}

Test(verdict, python_c_is_a_script)
{
    uint32_t stack = fixture_line(0, "<string>", "<module>", 1);

    stack = fixture_line(stack, "/usr/lib/python3/dist-packages/cupy/core.py", "zeros", 7);
    fixture_alloc(fixture_site(stack, "cuMemAlloc", CW_KIND_DEVICE, 0), MIB, 1, FIXTURE_MS);
    add_and_print(MIB);
    has_line("leaked 1.0 MiB in 1 block at <module> <string>:1");
}

Test(verdict, equal_leaks_of_several_processes_are_one)
{
    for (unsigned i = 0; i < 2; i++) {
        fixture_alloc(site_at("load", 3, "cuMemAlloc"), MIB, 3, FIXTURE_MS);
        add();
        fixture_destroy();
        fixture_create();
    }
    print(5 * MIB);
    has_line("leaked 6.0 MiB in 6 blocks at load train.py:7");
    has_line("peak 5.0 MiB in 2 processes, the largest 3.0 MiB on device 0, in track mode");
}

/* Each process has load on a device of its own, and copy on two. */
Test(verdict, call_sites_of_several_processes_are_counted_once)
{
    for (uint8_t i = 0; i < 2; i++) {
        uint32_t stack = fixture_line(0, "/home/me/train.py", "load", 7);
        uint32_t other = fixture_line(0, "/home/me/train.py", "copy", 9);

        fixture_alloc(fixture_site(stack, "cuMemAlloc", CW_KIND_DEVICE, i), MIB, 2, FIXTURE_MS);
        for (uint8_t device = 0; device < 2; device++)
            fixture_alloc(fixture_site(other, "cuMemAlloc", CW_KIND_DEVICE, device), MIB, 1,
                          FIXTURE_MS);
        add();
        fixture_destroy();
        fixture_create();
    }
    print(8 * MIB);
    has_line("leaked 8.0 MiB in 8 blocks from 3 call sites:");
}

Test(verdict, what_a_killed_worker_had_is_not_leaked)
{
    fixture_alloc(site_at("load", 3, "cuMemAlloc"), MIB, 3, FIXTURE_MS);
    add_ended(CW_REPORT_PROCESS_KILLED);
    cr_expect_not(cw_verdict_is_bad(&verdict));
    cr_expect_eq(verdict.sum.leaked_blocks + verdict.sum.leaked_bytes + verdict.sum.leak_sites, 0u);
    cr_expect_eq(verdict.sum.allocs, 3u);
    print(3 * MIB);
    has_line("ended by a signal: 1 process with 3.0 MiB allocated, not counted as leaked");
    cr_expect_null(strstr(text, "\nleaked"));
}

Test(verdict, what_a_process_has_that_runs_is_not_leaked)
{
    fixture_alloc(site_at("load", 3, "cuMemAlloc"), MIB, 3, FIXTURE_MS);
    add_ended(CW_REPORT_PROCESS_ALIVE);
    cr_expect_not(cw_verdict_is_bad(&verdict));
    print(3 * MIB);
    has_line("still running, with 3.0 MiB allocated in 3 blocks at load train.py:7");
}

Test(verdict, a_process_that_runs_and_has_nothing_runs)
{
    add_ended(CW_REPORT_PROCESS_ALIVE);
    print(0);
    has_line("still running");
}

Test(verdict, an_error_of_a_killed_worker_counts)
{
    fixture_event(CW_EVENT_INVALID_FREE, site_at("release", 50, "cuMemFree"), 1);
    fixture.arena.header->invalid_frees = 1;
    add_ended(CW_REPORT_PROCESS_KILLED);
    cr_expect(cw_verdict_is_bad(&verdict));
}

/* All kinds of trouble of one process. */
static void add_trouble(void)
{
    uint32_t bad = site_at("release", 50, "cuMemFree");
    uint32_t greedy = site_at("grab", 60, "cuMemAlloc");
    struct cw_live_event *event;

    for (unsigned i = 0; i < 5; i++) {
        char name[] = {'l', 'e', 'a', 'k', (char)('0' + i), '\0'};

        fixture_alloc(site_at(name, 3, "cuMemAlloc"), (i + 1) * MIB, 1, FIXTURE_MS);
    }
    fixture_event(CW_EVENT_INVALID_FREE, bad, 1)->misuse = CW_MISUSE_FOREIGN;
    fixture_event(CW_EVENT_INVALID_FREE, bad, 1)->misuse = CW_MISUSE_DOUBLE;
    fixture.arena.header->invalid_frees = 7;
    fixture_event(CW_EVENT_OOM, greedy, 2)->bytes = GIB;
    event = fixture_event(CW_EVENT_OOM, greedy, 2);
    event->bytes = 9 * GIB;
    event->cause = CW_CAUSE_LIMIT;
    fixture_site_at(greedy)->oom = 2;
    fixture.arena.header->device[0].memory.fallbacks = 1;
    fixture.arena.header->device[0].memory.fallback_bytes = GIB;
    add();
}

Test(verdict, all_troubles_at_once_take_eight_lines_the_worst_first)
{
    static const char *const order[] = {
        "7 memory errors: double free at release train.py:7, and 6 others",
        "out of memory: 2 calls, largest 9.0 GiB at grab",
        "leaked 15.0 MiB in 5 blocks from 5 call sites, the largest:",
        "  5.0 MiB in 1 block  leak4 train.py:7",
        "peak 15.0 MiB",
        "  5.0 MiB leak4 train.py:7, 4.0 MiB leak3 train.py:7",
        "next: see you"};
    const char *at;

    add_trouble();
    cr_expect(cw_verdict_is_bad(&verdict));
    cr_expect_eq(print(15 * MIB), (unsigned)CW_RUN_VERDICT_LINES, "%s", text);
    at = text;
    for (unsigned i = 0; i < sizeof(order) / sizeof(*order); i++) {
        const char *found = strstr(at, order[i]);

        cr_expect(found, "no \"%s\" after \"%s\" in\n%s", order[i], i ? order[i - 1] : "", text);
        at = found ? found : at;
    }
    cr_expect(
        strstr(text, ", beyond the memory limit; served from host memory: 1.0 GiB in 1 request"),
        "%s", text);
}

static void add_errors(enum cw_misuse misuse, uint32_t site, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        fixture_event(CW_EVENT_INVALID_FREE, site, 1)->misuse = (uint8_t)misuse;
    fixture.arena.header->invalid_frees += count;
}

Test(verdict, each_kind_of_error_has_its_number)
{
    uint32_t site = site_at("f", 50, "cuMemFree");

    add_errors(CW_MISUSE_FOREIGN, site, 2);
    add_and_print(0);
    has_line("2 memory errors: free of a pointer that was never allocated at f train.py:7");
    cw_verdict_free(&verdict);
    add_errors(CW_MISUSE_DOUBLE, site, 1);
    add_and_print(0);
    has_line("3 memory errors: double free at f train.py:7, and 2 others");
    columns = 160;
    print(0);
    has_line("3 memory errors: double free at f train.py:7, free of a pointer that was never "
             "allocated (2 times) at f train.py:7");
}

Test(verdict, errors_without_a_record_have_no_place)
{
    fixture.arena.header->invalid_frees = 2;
    add_and_print(0);
    has_line("2 memory errors: places not known");
}

/* Its name in the header, as the library leaves it at the end. */
static void set_unseen(const char *object, int is_uncalled)
{
    struct cw_live_header *header = fixture.arena.header;

    snprintf(header->unseen, sizeof(header->unseen), "%s", object);
    header->is_uncalled = (uint8_t)is_uncalled;
}

Test(verdict, what_was_not_seen_comes_first_and_takes_the_place_of_the_next_command)
{
    add_trouble();
    set_unseen("plugin.so", 0);
    add();
    cr_expect_leq(print(0), (unsigned)CW_RUN_VERDICT_LINES, "%s", text);
    has_line("not seen: what plugin.so calls of CUDA: it was opened with RTLD_DEEPBIND; "
             "--deepbind=patch brings it here");
    cr_expect(strncmp(text, "not seen: ", 10) == 0);
    cr_expect_null(strstr(text, "see you"));
}

Test(verdict, nothing_but_what_was_not_seen_takes_two_lines)
{
    set_unseen("plugin.so", 1);
    add();
    add();
    cr_expect_eq(print(0), 2u);
    has_line("not seen: what plugin.so calls of CUDA: it was opened with RTLD_DEEPBIND in 2 "
             "processes");
    has_line("--deepbind=patch brings it here");
}

static struct cw_live_audit *end_audit(enum cw_audit_status status)
{
    fixture.arena.header->audit.status = status;
    return &fixture.arena.header->audit;
}

Test(verdict, an_audit_that_agrees_says_so)
{
    fixture_alloc(site_at("step", 3, "cuMemAlloc"), MIB, 1, FIXTURE_MS);
    end_audit(CW_AUDIT_DONE);
    add();
    cr_expect_eq(print(MIB), 5u, "%s", text);
    has_line("audit: CUPTI and cuwarden agree");
    end_audit(CW_AUDIT_DONE)->dropped = 7;
    add_and_print(MIB);
    has_line("audit: CUPTI and cuwarden agree, with 7 records missing");
}

Test(verdict, differences_of_all_processes_are_counted)
{
    end_audit(CW_AUDIT_DONE)->all_findings = 1;
    add_and_print(MIB);
    has_line("audit: CUPTI and cuwarden differ in 1 place; to see it, run with --report=-");
    end_audit(CW_AUDIT_DONE)->all_findings = 2;
    add_and_print(MIB);
    has_line("audit: CUPTI and cuwarden differ in 3 places; to see them, run with --report=-");
}

Test(verdict, an_audit_that_broke_off_says_why)
{
    end_audit(CW_AUDIT_CUT)->why = fixture_text("the device burnt down");
    add_and_print(MIB);
    has_line("audit: incomplete: the device burnt down");
    end_audit(CW_AUDIT_RUNNING);
    add_and_print(MIB);
    has_line("audit: incomplete: the process was killed (in 2 processes)");
    end_audit(CW_AUDIT_DONE);
    add_and_print(MIB);
    has_line(
        "audit: CUPTI and cuwarden agree; incomplete: the process was killed (in 2 processes)");
}

Test(verdict, a_refused_audit_had_its_warning_and_none_was_asked_for)
{
    end_audit(CW_AUDIT_REFUSED);
    add();
    end_audit(CW_AUDIT_OFF);
    add_and_print(MIB);
    cr_expect_null(strstr(text, "audit"));
}

Test(verdict, with_all_troubles_and_an_audit_there_are_eight_lines)
{
    end_audit(CW_AUDIT_DONE);
    add_trouble();
    cr_expect_eq(print(15 * MIB), (unsigned)CW_RUN_VERDICT_LINES, "%s", text);
    has_line("audit: CUPTI and cuwarden agree");
    has_line("next: see you");
}

Test(verdict, text_of_the_program_cannot_write_lines_of_its_own)
{
    uint32_t stack;

    stack = fixture_line(0, "/home/me/a\ncuwarden: SUMMARY: b.py", "f\x1b[1m\n", 1);
    fixture_alloc(fixture_site(stack, "cuMemAlloc", CW_KIND_DEVICE, 0), MIB, 1, FIXTURE_MS);
    add();
    cr_expect_eq(print(MIB), 4u, "%s", text);
    cr_expect_null(strchr(text, '\x1b'));
}

Test(verdict, names_are_utf8_whatever_the_locale)
{
    setlocale(LC_ALL, "C");
    fixture_alloc(site_at("größe", 3, "cuMemAlloc"), MIB, 1, FIXTURE_MS);
    add_and_print(MIB);
    has_line("leaked 1.0 MiB in 1 block at größe train.py:7");
}
