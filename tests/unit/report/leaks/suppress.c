/* SPDX-License-Identifier: MIT */
/* Files of suppressions: what a line may be, what each kind of rule matches, caps, and what is said
 * of what is wrong. */
#include "base/options/options.h"
#include "report/leaks/suppress.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "report_fixture.h"

static int captured = -1; /* what stderr writes to during a test */

static void setup(void)
{
    report_file_setup();
    captured = memfd_create("stderr", 0);
    dup2(captured, STDERR_FILENO);
}

TestSuite(suppress, .init = setup, .fini = report_file_teardown);

static const char *said(void)
{
    static char text[1 << 16];
    ssize_t len = pread(captured, text, sizeof(text) - 1, 0);

    text[len > 0 ? len : 0] = '\0';
    return text;
}

NAMED_FUNCTION(make_cache, "make_cache")
NAMED_FUNCTION(train_step, "train_step")
/* As a C++ program has it, and nothing that makes it readable. */
NAMED_FUNCTION(grow_pool, "_ZN3app4Pool4growEi")

/*
 * A leak of 4 MiB in 4 blocks: make_cache, in the test program, called by a function of
 * libtrain.so; one of 512 bytes, libplug.so called by train_step; one of 64, _ZN3app4Pool4growEi.
 */
static uint32_t cache_site, plug_site, pool_site;

static void leak_three(void)
{
    uint32_t own = fixture_own_module();
    uint32_t train = fixture_module("/opt/none/libtrain.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t plug = fixture_module("/opt/none/libplug.so", 1 << 24, CW_MODULE_PROGRAM);
    uint32_t driver = fixture_module("/usr/lib/libcuda.so.1", 1 << 28, CW_MODULE_DRIVER);
    uint32_t outer = fixture_frame(0, train, 0x1234);
    uint32_t cache = named_frame(outer, own, make_cache);
    uint32_t step = named_frame(0, own, train_step);

    cache_site = fixture_site(fixture_frame(cache, driver, 0x10), "cuMemAlloc", CW_KIND_DEVICE, 0);
    plug_site = fixture_site(fixture_frame(step, plug, 0x20), "cudaMalloc", CW_KIND_DEVICE, 0);
    pool_site = fixture_site(named_frame(0, own, grow_pool), "cudaMalloc", CW_KIND_DEVICE, 0);
    fixture_alloc(cache_site, MIB, 4, 1);
    fixture_alloc(plug_site, 512, 1, 1);
    fixture_alloc(pool_site, 64, 1, 1);
}

static void expect_leaked(uint64_t bytes)
{
    char text[64];

    snprintf(text, sizeof(text), "SUMMARY: leaked_bytes=%ju ", (uintmax_t)bytes);
    expect_text(text);
}

#define ALL  (4 * MIB + 512 + 64)
#define PLUG (4 * MIB + 64)

/* The id as the report prints it. */
static void id_of(const char *api, char *id)
{
    const char *line = strstr(report, api);

    cr_assert(line && strstr(line, "    site "));
    memcpy(id, strstr(line, "    site ") + 9, 8);
    id[8] = '\0';
}

Test(suppress, each_kind_of_rule_matches_what_it_says)
{
    static const struct {
        const char *rule;
        uint64_t leaked;
    } rules[] = {
        {"", ALL},
        {"leak:make_cache", 512 + 64},
        {"leak:^make_c*$", 512 + 64},
        {"leak:ake_cach", 512 + 64},
        {"leak:^ake_cache", ALL},
        {"leak:train_step", PLUG}, /* any frame of the stack */
        {"leak:libtrain.so", 512 + 64},
        {"leak:/libplug.so$", PLUG},
        {"leak:libcuda", ALL}, /* hidden frames match nothing */
        {"module:libplug", PLUG},
        {"module:libtrain", ALL}, /* it did not ask for the memory */
        {"module:^/opt/*plug.so$", PLUG},
        {"tag:*", ALL},                            /* they have none */
        {"leak:^app::Pool::grow(", 4 * MIB + 512}, /* no demangler is at hand */
        {"leak:_ZN3app4Pool4grow", 4 * MIB + 512},
        {"leak:app::Pool::growth", ALL},
        {"leak:*", 0},
        {"leak:no_such\nleak:make_cache\nmodule:libplug", 64},
    };

    leak_three();
    for (size_t i = 0; i < CW_ARRAY_LEN(rules); i++) {
        write_report_with(rules[i].rule);
        expect_leaked(rules[i].leaked);
    }
    cr_expect_str_eq(said(), "");
}

Test(suppress, a_site_is_named_by_its_id)
{
    char id[16], rule[64];

    leak_three();
    write_report_with("");
    id_of("4.0 MiB in 4 blocks  lost", id);
    snprintf(rule, sizeof(rule), "site:%s", id);
    write_report_with(rule);
    expect_leaked(512 + 64);
    for (char *at = id; *at; at++) /* in capitals too */
        *at = (char)(*at >= 'a' ? *at - 'a' + 'A' : *at);
    snprintf(rule, sizeof(rule), "site:%s count=3", id);
    write_report_with(rule);
    expect_leaked(ALL);
}

Test(suppress, comments_blanks_and_line_ends_are_as_in_other_files)
{
    leak_three();
    write_report_with("\n   \n# leak:libplug\n  leak:make_cache  \r\n\t# more\nleak:\tlibplug\t");
    expect_leaked(64);
    cr_expect_str_eq(said(), "");
}

Test(suppress, beyond_a_cap_the_whole_site_is_a_leak)
{
    static const struct {
        const char *rule;
        uint64_t leaked;
    } rules[] = {
        {"leak:make_cache max=4M", 512 + 64},
        {"leak:make_cache max=4194303", ALL},
        {"leak:make_cache max=4MiB", 512 + 64},
        {"leak:make_cache max=3.5M", ALL},
        {"leak:make_cache count=4", 512 + 64},
        {"leak:make_cache count=3", ALL},
        {"leak:make_cache max=4M count=3", ALL},
        {"leak:make_cache count=4 \t max=1G", 512 + 64},
        {"leak:make_cache max=0", ALL},
        {"leak:make_cache max=1M\nleak:make_cache", ALL}, /* the first decides */
    };

    leak_three();
    for (size_t i = 0; i < CW_ARRAY_LEN(rules); i++) {
        write_report_with(rules[i].rule);
        expect_leaked(rules[i].leaked);
    }
    cr_expect_str_eq(said(), "");
    write_report_with("# known\nleak:make_cache max=2M count=9");
    expect_line("    past the cap of leak:make_cache max=2M count=9 (line 2)");
    expect_text(" past cap  from    rule\n");
    expect_line("SUPPRESSED  nothing by the file's rules");
    expect_text("    0 B       0      0         1  line 2  leak:make_cache max=2M count=9\n");
    write_report_with("leak:make_cache max=4M");
    expect_no_text("past");
}

/* So does what would be apart by a built-in rule: a library that grows is found. */
Test(suppress, a_cap_counts_what_a_library_owns)
{
    uint32_t blas = fixture_module("/opt/libcublas.so.13", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t site = fixture_site(fixture_frame(0, blas, 0x2), "cuMemAlloc", CW_KIND_DEVICE, 0);

    fixture_alloc(site, MIB, 2, 1);
    write_report_with("");
    expect_leaked(0);
    expect_text("LIBRARIES  2.0 MiB in 2 blocks");
    write_report_with("module:libcublas max=2M");
    expect_leaked(0);
    expect_text("SUPPRESSED  2.0 MiB in 2 blocks, not counted as leaked\n");
    expect_no_text("LIBRARIES");
    write_report_with("module:libcublas max=1M");
    expect_leaked(2 * MIB);
    expect_text("2.0 MiB in 2 blocks  lost  cuMemAlloc");
    /* The short form, which is silent about libraries, speaks then. */
    write_report_as((struct cw_report_request){.suppressions = report_file});
    expect_leaked(2 * MIB);
    report_file_write("module:libcublas max=2M");
    cr_expect_str_eq(write_report_as((struct cw_report_request){.suppressions = report_file}), "");
}

Test(suppress, the_section_names_rules_that_matched_and_those_that_did_not)
{
    uint32_t blas = fixture_module("/opt/libcublas.so.13", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t site = fixture_site(fixture_frame(0, blas, 0x2), "cuMemAlloc", CW_KIND_DEVICE, 0);

    write_report(CW_REPORT_TEXT);
    expect_no_text("SUPPRESSED");
    leak_three();
    write_report(CW_REPORT_TEXT);
    expect_no_text("SUPPRESSED");
    fixture_alloc(site, 3 * MIB, 1, 1);
    write_report(CW_REPORT_TEXT);
    expect_line("SUPPRESSED  only by built-in rules");
    expect_line("    bytes  blocks  sites  from      rule");
    expect_line("  3.0 MiB       1      1  built-in  library cuBLAS (libcublas)");
    expect_no_text("matched nothing");
    write_report_with("leak:make_cache\n# libraries\n\nleak:nobody\ntag:x count=2\nmodule:libplug");
    expect_line("LEAKS  64 B in 1 block from 1 call site; suppressed: 4.0 MiB in 5 blocks");
    expect_line("SUPPRESSED  4.0 MiB in 5 blocks, not counted as leaked");
    expect_line("  4.0 MiB       4      1  line 1    leak:make_cache");
    expect_line("    512 B       1      1  line 6    module:libplug");
    expect_line("  3.0 MiB       1      1  built-in  library cuBLAS (libcublas)");
    expect_line(
        "  2 rules of the file matched nothing, or only sites that an earlier rule decides:");
    expect_line("    line 4  leak:nobody");
    expect_line("    line 5  tag:x count=2");
}

Test(suppress, nothing_left_is_nothing_said)
{
    leak_three();
    report_file_write("leak:*");
    cr_expect_str_eq(write_report_as((struct cw_report_request){.suppressions = report_file}), "");
    cr_expect_str_eq(said(), "");
}

Test(suppress, a_bad_line_gets_one_line_and_the_others_count)
{
    static const char *const bad[] = {
        "lek:make_cache",  "make_cache",
        "leak:",           "leak:   ",
        "leak: max=3M",    "leak:x max=3Q",
        "leak:x max=",     "leak:x max=1M max=2M",
        "leak:x count=-1", "leak:x count=1 count=1",
        "site:xyz",        "site:123456789",
        "race:x",          "FILE:libnccl",
    };
    char rules[128], want[64];

    leak_three();
    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++) {
        cr_assert_eq(ftruncate(captured, 0), 0);
        lseek(captured, 0, SEEK_SET);
        snprintf(rules, sizeof(rules), "# file\n%s\nleak:make_cache\n", bad[i]);
        write_report_with(rules);
        expect_leaked(512 + 64);
        snprintf(want, sizeof(want), "cuwarden: warning: %s:2: '", report_file);
        cr_expect_eq(strncmp(said(), want, strlen(want)), 0, "%s: %s", bad[i], said());
        cr_expect(strstr(said(),
                         "is not a suppression; expected leak:PATTERN, module:PATTERN, site:ID "
                         "or tag:PATTERN, optionally followed by max=SIZE and count=N\n"));
        cr_expect_eq(strchr(said(), '\n'), strrchr(said(), '\n'), "%s: %s", bad[i], said());
    }
}

Test(suppress, many_bad_lines_are_counted)
{
    leak_three();
    write_report_with("a\nb\nc\nd\ne\nf\ng\nleak:make_cache");
    expect_leaked(512 + 64);
    cr_expect(strstr(said(), ":5: 'e' is not"));
    cr_expect_null(strstr(said(), ":6: "));
    cr_expect(strstr(said(), ": 2 more lines are not suppressions\n"));
}

Test(suppress, a_file_that_cannot_be_read_is_done_without)
{
    const char *const words[] = {"/no/such/file\": no such file or directory (errno 2); ",
                                 "/tmp\": is a directory (errno 21); ",
                                 "/dev/null\": is not a regular file (errno 29); "};
    const char *const paths[] = {"/no/such/file", "/tmp", "/dev/null"};

    leak_three();
    for (size_t i = 0; i < CW_ARRAY_LEN(paths); i++) {
        write_report_as(
            (struct cw_report_request){.form = CW_REPORT_TEXT, .suppressions = paths[i]});
        expect_leaked(ALL);
        cr_expect(strstr(said(), words[i]), "%s", said());
    }
    cr_expect_eq(truncate(report_file, (1 << 20) + 1), 0);
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .suppressions = report_file});
    expect_leaked(ALL);
    cr_expect(strstr(said(), "\": the file is too large (errno 27); the report ignores "));
}

/* Who acts upon the rules learns that there are some that nobody knows. */
Test(suppress, a_file_that_cannot_be_read_is_an_error)
{
    static const struct {
        const char *path;
        int error;
    } files[] = {
        {NULL, 0}, {"", 0}, {"/no/such/file", ENOENT}, {"/tmp", EISDIR}, {"/dev/null", ESPIPE}};
    struct cw_rules_fault fault;
    struct cw_rules rules;

    for (size_t i = 0; i < CW_ARRAY_LEN(files); i++) {
        cr_expect_eq(cw_rules_init(&rules, files[i].path, &fault), files[i].error);
        cr_expect_eq(fault.text[0] != '\0', files[i].error != 0);
        cw_rules_fini(&rules);
    }
    report_file_write("no rule\nleak:make_cache\n");
    cr_expect(cw_rules_init(&rules, report_file, &fault) == 0 && rules.count == 1);
    cr_expect(strstr(fault.text, "'no rule' is not a suppression"));
    cw_rules_fini(&rules);
    cr_expect_str_eq(said(), "");
}

Test(suppress, a_fifo_does_not_block)
{
    leak_three();
    unlink(report_file);
    cr_assert_eq(mkfifo(report_file, 0600), 0);
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .suppressions = report_file});
    expect_leaked(ALL);
}

Test(suppress, a_thousand_rules_count)
{
    static char rules[1 << 16];
    size_t len = 0;

    leak_three();
    for (int i = 0; i < 1000; i++)
        len += (size_t)sprintf(rules + len, "leak:nobody_%d\n", i);
    write_report_with(rules);
    cr_expect_str_eq(said(), "");
    strcpy(rules + len, "leak:make_cache\n");
    write_report_with(rules);
    expect_leaked(ALL);
    cr_expect(strstr(said(), ":1001: only the first 1000 suppressions are used\n"));
    expect_line(
        "  1000 rules of the file matched nothing, or only sites that an earlier rule decides:");
    expect_line("    ... 990 more");
}

Test(suppress, a_file_of_bytes_does_no_harm)
{
    char bytes[4096];
    FILE *out = fopen(report_file, "w");

    srand(7);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(rand() % 7 ? rand() : '\n');
    memcpy(bytes + 1000, "\nleak:make\0_cache\nleak:make_ca*e max=4M\n", 40);
    fwrite(bytes, 1, sizeof(bytes), out);
    fclose(out);
    leak_three();
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .suppressions = report_file});
    expect_leaked(512 + 64);
    expect_text("  leak:make?_cache\n");
    for (const char *at = report; *at; at = strchr(at, '\n') + 1)
        cr_assert_eq(strncmp(at, "==4711== ", 9), 0, "%s", at);
}

Test(suppress, json_has_rules_sites_and_classes)
{
    leak_three();
    report_file_write("leak:make_cache max=1M\nmodule:libplug\nleak:\"nobody\\\n");
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_JSON, .suppressions = report_file});
    expect_text("{\"id\":0,\"pattern\":\"leak:make_cache max=1M\",\"source\":\"");
    expect_text("\"line\":1,\"class\":\"suppressed\",\"sites\":0,\"count\":0,\"bytes\":0,"
                "\"sites_past_cap\":1}");
    expect_text("\"line\":2,\"class\":\"suppressed\",\"sites\":1,\"count\":1,\"bytes\":512,"
                "\"sites_past_cap\":0}");
    expect_text("{\"id\":2,\"pattern\":\"leak:\\\"nobody\\\\\",");
    expect_text("\"class\":\"suppressed\",\"rule\":1,");
    expect_text("\"class\":\"lost\",\"rule\":0,\"past_cap\":true,");
    expect_text("\"leaked_bytes\":4194368,");
}

Test(suppress, its_options_are_read)
{
    char *env[] = {"CUWARDEN_SUPPRESSIONS=/tmp/%x.supp", "CUWARDEN_OLD=5m", NULL};
    static struct cw_options options;

    cw_options_parse(NULL, 1, &options, NULL);
    cr_expect_str_eq(options.suppressions, "");
    cr_expect_eq(options.old, UINT64_C(60000000000));
    cw_options_parse(env, 1, &options, NULL);
    cr_expect_str_eq(options.suppressions, "/tmp/%x.supp"); /* no template */
    cr_expect_eq(options.old, UINT64_C(300000000000));
}
