/* SPDX-License-Identifier: MIT */
/* The options: every kind of value good and bad, unknown names, trust, the rows. */
#include "base/options/options.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cw_options options;
static struct cw_option_complaints complaints;

static void parse(const char *const env[])
{
    cw_options_parse((char *const *)env, 1, &options, &complaints);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void parse_one(const char *name, const char *value)
{
    char entry[CW_OPTION_VALUE_MAX + 32];

    snprintf(entry, sizeof(entry), "CUWARDEN_%s=%s", name, value);
    PARSE(entry);
}

static void expect_single_complaint(const char *wanted)
{
    cr_expect_eq(complaints.count, 1u, "%u complaints", complaints.count);
    cr_expect_str_eq(complaints.line[0], wanted);
}

/* What a device without a known uuid may keep. */
static void expect_pool_max(unsigned device, uint64_t total, uint64_t wanted)
{
    uint64_t bytes = 1;

    cr_expect_eq(cw_sizes_for(&options.pool_max, device, NULL, total, &bytes), 1);
    cr_expect_eq(bytes, wanted);
}

static void expect_scarcity_defaults(void)
{
    static const struct cw_fail_plan off;
    uint64_t bytes;

    cr_expect_eq(options.preset, CW_PRESET_DEFAULT);
    cr_expect_eq(cw_sizes_for(&options.limit, 0, NULL, 1000, &bytes), 0);
    cr_expect_eq(cw_sizes_for(&options.min_free, 0, NULL, 1000, &bytes), 0);
    cr_expect_arr_eq(options.pressure.percent, ((uint8_t[]){60, 80, 95}), 3);
    cr_expect_eq(options.fallback, CW_FALLBACK_OFF);
    cr_expect_eq(memcmp(&options.fail, &off, sizeof(off)), 0);
    cr_expect_eq(options.dump_oom, CW_DUMP_OOM_ON);
    cr_expect(options.dump_interval == 0 && options.log_interval == 0);
}

static void expect_defaults(void)
{
    cr_expect_eq(options.mode, CW_MODE_POOL);
    cr_expect_eq(options.free_sync, CW_FREE_STRICT);
    expect_pool_max(0, CW_SHARE_OF_WHOLE, CW_SHARE_OF_WHOLE / 4);
    cr_expect_eq(options.pool_max.count, 0u);
    cr_expect(options.pool_bucket_max == CW_COUNT_AUTO && options.idle_thread == CW_THREAD_AUTO);
    cr_expect_eq(options.pool_idle, UINT64_C(10000000000));
    cr_expect_eq(options.prewarm.count, 0u);
    expect_scarcity_defaults();
    cr_expect_str_eq(options.live, "auto");
    cr_expect(options.report[0] == '\0' && options.tmpdir[0] == '\0');
    cr_expect_eq(options.format, CW_FORMAT_AUTO);
    cr_expect_eq(options.stacks, CW_STACKS_FULL);
    cr_expect_eq(options.stack_depth, 32u);
    cr_expect(options.python == CW_PYTHON_AUTO && options.cupti == CW_CUPTI_OFF);
    cr_expect_eq(options.deepbind, CW_DEEPBIND_OFF);
    cr_expect_eq(options.log, CW_LOG_WARN);
    for (size_t i = 0; i < CW_OPTION_COUNT; i++)
        cr_expect_eq(options.origin[i], CW_ORIGIN_DEFAULT);
}

Test(options, defaults_stand_without_an_environment)
{
    parse(NULL);
    expect_defaults();
    cr_expect_eq(complaints.count, 0u);
    PARSE("HOME=/", "CUWARDENMODE=off", "XCUWARDEN_MODE=off", "CUWARDEN_MODE", "");
    expect_defaults();
    cr_expect_eq(complaints.count, 0u);
}

Test(options, takes_a_good_value_of_every_option)
{
    PARSE("CUWARDEN_MODE=off", "CUWARDEN_REPORT=/tmp/r.%p", "CUWARDEN_FORMAT=both",
          "CUWARDEN_STACKS=caller", "CUWARDEN_STACK_DEPTH=128", "CUWARDEN_LOG=debug",
          "CUWARDEN_FREE_SYNC=deferred", "CUWARDEN_POOL_MAX=8G", "CUWARDEN_POOL_BUCKET_MAX=0",
          "CUWARDEN_POOL_IDLE=500ms", "CUWARDEN_PREWARM=64M:8,2m:1", "CUWARDEN_PRESET=inference",
          "CUWARDEN_LIMIT=0:8GB,50%", "CUWARDEN_SOFT_LIMIT=2G", "CUWARDEN_MIN_FREE=0",
          "CUWARDEN_PRESSURE=50%,70%,100%", "CUWARDEN_FALLBACK=managed",
          "CUWARDEN_FAIL=every=5,above=512B", "CUWARDEN_DUMP_OOM=off",
          "CUWARDEN_DUMP_INTERVAL=100ms", "CUWARDEN_LOG_INTERVAL=2s", "CUWARDEN_DUMP_SIGNAL=12",
          "CUWARDEN_PYTHON=off", "CUWARDEN_LIVE=/l", "CUWARDEN_SUPPRESSIONS=/s", "CUWARDEN_OLD=5",
          "CUWARDEN_GROWTH=off", "CUWARDEN_CUPTI=audit", "CUWARDEN_TRACE=/t.%p",
          "CUWARDEN_DEEPBIND=patch", "CUWARDEN_PROBES=otel", "CUWARDEN_FRAMES=all",
          "CUWARDEN_THREAD=off", "CUWARDEN_NEIGHBOURS=off", "CUWARDEN_ARGV=off",
          "CUWARDEN_BUDGET=tag:^a=b$=2G:refuse,tag:c,d=1K", "TMPDIR=/", "TMPDIR=b");
    cr_expect_eq(complaints.count, 0u);
    cr_expect_str_eq(options.live, "/l");
    cr_expect(strcmp(options.tmpdir, "/") == 0 && strcmp(options.trace, "/t.%p") == 0);
    cr_expect(options.mode == CW_MODE_OFF && options.free_sync == CW_FREE_DEFERRED);
    cr_expect(options.growth == CW_GROWTH_OFF && options.neighbours == CW_NEIGHBOURS_OFF &&
              options.argv == CW_ARGV_OFF);
    expect_pool_max(3, 1, UINT64_C(8) << 30);
    cr_expect(options.pool_bucket_max == 0 && options.idle_thread == CW_THREAD_OFF);
    cr_expect_eq(options.pool_idle, 500000000u);
    cr_expect_eq(options.prewarm.count, 2u);
    cr_expect(options.prewarm.item[1].bytes == 2u << 20 && options.prewarm.item[1].blocks == 1);
    cr_expect_str_eq(options.report, "/tmp/r.%p");
    cr_expect(options.format == CW_FORMAT_BOTH && options.stacks == CW_STACKS_CALLER);
    cr_expect_eq(options.stack_depth, 128u);
    cr_expect(options.python == CW_PYTHON_OFF && options.cupti == CW_CUPTI_AUDIT &&
              options.deepbind == CW_DEEPBIND_PATCH);
    cr_expect(options.log == CW_LOG_DEBUG && options.preset == CW_PRESET_INFERENCE);
    cr_expect_eq(options.limit.device[0].size.amount, UINT64_C(8) << 30);
    cr_expect_eq(options.limit.fallback.amount, CW_SHARE_OF_WHOLE / 2);
    cr_expect_eq(options.min_free.fallback.kind, CW_SIZE_BYTES);
    cr_expect_arr_eq(options.pressure.percent, ((uint8_t[]){50, 70, 100}), 3);
    cr_expect(options.fallback == CW_FALLBACK_MANAGED && options.budget.count == 2);
    cr_expect(options.fail.every == 5u && options.fail.above == 512u);
    cr_expect(options.dump_oom == CW_DUMP_OOM_OFF && options.frames == CW_FRAMES_ALL);
    cr_expect_eq(options.dump_interval, 100000000u);
    cr_expect_eq(options.log_interval, 2000000000u);
    for (size_t i = 0; i < CW_OPTION_COUNT; i++)
        cr_expect_eq(options.origin[i], CW_ORIGIN_ENVIRONMENT);
}

Test(options, takes_every_word_of_every_enumeration)
{
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        const struct cw_option_row *row = cw_options_row(i);
        char words[128];

        if (!strstr(row->values, ", "))
            continue;
        snprintf(words, sizeof(words), "%s", row->values);
        for (char *word = strtok(words, ", "); word; word = strtok(NULL, ", ")) {
            char printed[64];

            parse_one(row->name, word);
            cr_expect_eq(complaints.count, 0u);
            cw_options_print_value(&options, i, printed, sizeof(printed));
            cr_expect_str_eq(printed, word);
        }
    }
}

Test(options, a_bad_word_gets_one_line_and_the_default_stays)
{
    PARSE("CUWARDEN_MODE=fast");
    expect_single_complaint(
        "CUWARDEN_MODE: 'fast' is not one of pool, track, off; using the default 'pool'");
    expect_defaults();
}

Test(options, words_are_taken_exactly)
{
    static const char *const bad[] = {"Off", "OFF", "off ", " off", "of", "offf", "pool,off"};

    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++) {
        parse_one("MODE", bad[i]);
        cr_expect_eq(complaints.count, 1u, "%s", bad[i]);
        expect_defaults();
    }
}

Test(options, counts_reject_everything_but_digits_in_range)
{
    static const char *const bad[] = {
        "0",
        "129",
        "+1",
        "-1",
        " 1",
        "1 ",
        "1x",
        "x",
        "0x10",
        "1.0",
        "1e1",
        "32K",
        "18446744073709551616", /* 2^64 */
        "18446744073709551648", /* 2^64 + 32 */
        "99999999999999999999999999",
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++) {
        char wanted[256];

        snprintf(wanted, sizeof(wanted),
                 "CUWARDEN_STACK_DEPTH: '%s' is not a whole number from 1 to 128; using the "
                 "default '32'",
                 bad[i]);
        parse_one("STACK_DEPTH", bad[i]);
        expect_single_complaint(wanted);
        expect_defaults();
    }
}

Test(options, counts_take_both_ends_and_leading_zeros)
{
    PARSE("CUWARDEN_STACK_DEPTH=1");
    cr_expect_eq(options.stack_depth, 1u);
    PARSE("CUWARDEN_STACK_DEPTH=128");
    cr_expect_eq(options.stack_depth, 128u);
    PARSE("CUWARDEN_STACK_DEPTH=007");
    cr_expect_eq(options.stack_depth, 7u);
    cr_expect_eq(complaints.count, 0u);
}

Test(options, an_empty_value_of_an_option_without_a_default_is_silent)
{
    PARSE("CUWARDEN_REPORT=", "CUWARDEN_PREWARM=", "CUWARDEN_MISTAKE=");
    expect_defaults();
    cr_expect_eq(complaints.count, 0u);
}

Test(options, an_empty_value_of_any_other_gets_one_line_and_the_default_stays)
{
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        const struct cw_option_row *row = cw_options_row(i);
        char begin[64];
        char end[64];
        const char *at;

        if (!*row->fallback)
            continue;
        snprintf(begin, sizeof(begin), "CUWARDEN_%s: '' is not ", row->name);
        snprintf(end, sizeof(end), "; using the default '%s'", row->fallback);
        parse_one(row->name, "");
        expect_defaults();
        cr_assert_eq(complaints.count, 1u, "%s", row->name);
        cr_expect_eq(strncmp(complaints.line[0], begin, strlen(begin)), 0);
        at = strstr(complaints.line[0], end);
        cr_expect(at && strlen(at) == strlen(end), "%s", complaints.line[0]);
    }
}

Test(options, the_first_of_two_equal_variables_counts)
{
    PARSE("CUWARDEN_LOG=info", "CUWARDEN_LOG=debug", "CUWARDEN_LOG=bad");
    cr_expect_eq(options.log, CW_LOG_INFO);
    cr_expect_eq(complaints.count, 0u);
    PARSE("CUWARDEN_LOG=", "CUWARDEN_LOG=debug");
    cr_expect_eq(options.log, CW_LOG_WARN);
    cr_expect_eq(complaints.count, 1u);
}

Test(options, report_templates_of_all_known_sequences_pass)
{
    PARSE("CUWARDEN_REPORT=%p-%h-%e-%t-%n-%r-%q{HOME}-%%p");
    cr_expect_eq(complaints.count, 0u);
    cr_expect_str_eq(options.report, "%p-%h-%e-%t-%n-%r-%q{HOME}-%%p");
    PARSE("CUWARDEN_REPORT=-");
    cr_expect_eq(complaints.count, 0u);
    cr_expect_str_eq(options.report, "-");
}

Test(options, a_bad_report_template_is_complained_of_and_kept)
{
    static const char *const bad[] = {"a%z",     "a%",   "%q", "%qHOME",
                                      "%q{HOME", "%q{}", "%P", "%p%%%"};

    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++) {
        parse_one("REPORT", bad[i]);
        cr_expect_eq(complaints.count, 1u, "%s", bad[i]);
        cr_expect_str_eq(options.report, bad[i]);
        cr_expect_eq(options.origin[CW_OPTION_INDEX_REPORT], CW_ORIGIN_ENVIRONMENT);
    }
    PARSE("CUWARDEN_REPORT=a%z");
    expect_single_complaint("CUWARDEN_REPORT: 'a%z' contains the unknown sequence '%z'; use %p %h "
                            "%e %t %n %r %q{VAR} %%; used as it is");
}

static char long_entry[CW_OPTION_VALUE_MAX + 64];

static const char *make_long_entry(const char *name, size_t len)
{
    int at = snprintf(long_entry, sizeof(long_entry), "CUWARDEN_%s=", name);

    memset(long_entry + at, 'x', len);
    long_entry[at + (int)len] = '\0';
    return long_entry;
}

Test(options, the_longest_report_name_fits)
{
    PARSE(make_long_entry("REPORT", CW_OPTION_VALUE_MAX - 1));
    cr_expect_eq(complaints.count, 0u);
    cr_expect_eq(strlen(options.report), (size_t)CW_OPTION_VALUE_MAX - 1);
}

Test(options, a_longer_value_is_refused_and_quoted_in_part)
{
    PARSE(make_long_entry("REPORT", CW_OPTION_VALUE_MAX));
    cr_expect_eq(complaints.count, 1u);
    cr_expect_not_null(strstr(complaints.line[0], "xxx...' is not a file name of at most 1023"));
    cr_expect_not_null(strstr(complaints.line[0], "ignored"));
    expect_defaults();
    PARSE(make_long_entry("MODE", CW_OPTION_VALUE_MAX));
    cr_expect_eq(complaints.count, 1u);
    PARSE(make_long_entry("STACK_DEPTH", CW_OPTION_VALUE_MAX));
    cr_expect_eq(complaints.count, 1u);
    expect_defaults();
}

Test(options, a_complaint_is_free_of_control_characters)
{
    PARSE("CUWARDEN_MODE=a\nb\033c");
    expect_single_complaint(
        "CUWARDEN_MODE: 'a?b?c' is not one of pool, track, off; using the default 'pool'");
}

Test(options, an_unknown_name_gets_the_nearest_known_one)
{
    static const char *const pairs[][2] = {
        {"MOD", "MODE"},
        {"MDOE", "MODE"},
        {"mode", "MODE"},
        {"FORMATS", "FORMAT"},
        {"STACK", "STACKS"},
        {"STACKDEPTH", "STACK_DEPTH"},
        {"STACKS_DEPTH", "STACK_DEPTH"},
        {"LOGS", "LOG"},
        {"REPROT", "REPORT"},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(pairs); i++) {
        char wanted[256];

        snprintf(wanted, sizeof(wanted),
                 "CUWARDEN_%s='1' is not a known variable; did you mean CUWARDEN_%s? See 'cuwarden "
                 "options'",
                 pairs[i][0], pairs[i][1]);
        parse_one(pairs[i][0], "1");
        expect_single_complaint(wanted);
        expect_defaults();
    }
}

Test(options, an_unknown_name_that_resembles_none_gets_no_suggestion)
{
    PARSE("CUWARDEN_BANANA=x");
    expect_single_complaint("CUWARDEN_BANANA='x' is not a known variable; see 'cuwarden options'");
    PARSE("CUWARDEN_=x");
    cr_expect_eq(complaints.count, 1u);
    memset(long_entry, 'N', 200);
    memcpy(long_entry, "CUWARDEN_", 9);
    strcpy(long_entry + 200, "=x");
    PARSE(long_entry);
    cr_expect_eq(complaints.count, 1u);
    cr_expect_not_null(strstr(complaints.line[0], "NNN...='x' is not a known variable"));
}

Test(options, complaints_past_the_last_line_are_counted)
{
    const char *env[CW_OPTION_COMPLAINTS + 4];
    char names[CW_OPTION_COMPLAINTS + 3][32];

    for (int i = 0; i < CW_OPTION_COMPLAINTS + 3; i++) {
        snprintf(names[i], sizeof(names[i]), "CUWARDEN_BANANA%d=x", i);
        env[i] = names[i];
    }
    env[CW_OPTION_COMPLAINTS + 3] = NULL;
    parse(env);
    cr_expect_eq(complaints.count, (unsigned)CW_OPTION_COMPLAINTS + 3);
    parse(NULL);
    cr_expect_eq(complaints.count, 0u);
}

Test(options, a_setuid_program_ignores_all_of_them_with_one_line)
{
    static const char *const env[] = {"CUWARDEN_MODE=off", "CUWARDEN_REPORT=/etc/shadow",
                                      "CUWARDEN_NONSENSE=1", NULL};
    static const char *const other[] = {"HOME=/", NULL};

    cw_options_parse((char *const *)env, 0, &options, &complaints);
    expect_defaults();
    expect_single_complaint("the CUWARDEN_ variables are ignored in a setuid program");
    cw_options_parse((char *const *)other, 0, &options, &complaints);
    cr_expect_eq(complaints.count, 0u);
}

Test(options, complaints_may_be_left_out)
{
    static const char *const env[] = {"CUWARDEN_MODE=off", "CUWARDEN_NONSENSE=1", NULL};

    cw_options_parse((char *const *)env, 1, &options, NULL);
    cr_expect_eq(options.mode, CW_MODE_OFF);
    cw_options_parse((char *const *)env, 0, &options, NULL);
    cr_expect_eq(options.mode, CW_MODE_POOL);
}

Test(options, set_changes_one_option_or_says_why_not)
{
    char why[CW_OPTION_LINE_MAX];
    char cut[8];

    parse(NULL);
    cr_expect_eq(cw_options_set(&options, "MODE", "off", why, sizeof(why)), 0);
    cr_expect_eq(options.mode, CW_MODE_OFF);
    cr_expect_str_eq(why, "");
    cr_expect_eq(options.origin[CW_OPTION_INDEX_MODE], CW_ORIGIN_ENVIRONMENT);
    cr_expect_eq(cw_options_set(&options, "MODE", "x", why, sizeof(why)), -1);
    cr_expect_str_eq(why, "'x' is not one of pool, track, off");
    cr_expect_eq(options.mode, CW_MODE_OFF);
    cr_expect_eq(cw_options_set(&options, "MOD", "x", why, sizeof(why)), -1);
    cr_expect_str_eq(why, "unknown option");
    cr_expect_eq(cw_options_set(&options, "MODE", "x", cut, sizeof(cut)), -1);
    cr_expect_str_eq(cut, "'x' is ");
    cr_expect_eq(cw_options_set(&options, "MODE", "x", NULL, 0), -1);
}

Test(options, set_refuses_a_bad_report_template)
{
    char why[CW_OPTION_LINE_MAX];

    parse(NULL);
    cr_expect_eq(cw_options_set(&options, "REPORT", "a%z", why, sizeof(why)), -1);
    cr_expect_str_eq(options.report, "");
    cr_expect_eq(cw_options_set(&options, "REPORT", "a%p", why, sizeof(why)), 0);
    cr_expect_str_eq(options.report, "a%p");
}

Test(options, printed_values_parse_back)
{
    char value[CW_OPTION_VALUE_MAX];
    char why[CW_OPTION_LINE_MAX];

    PARSE("CUWARDEN_REPORT=/tmp/x%%y", "CUWARDEN_STACK_DEPTH=5", "CUWARDEN_LOG=off",
          "CUWARDEN_POOL_MAX=1:0,0:12.5%", "CUWARDEN_POOL_IDLE=1.5", "CUWARDEN_PREWARM=1G:4096",
          "CUWARDEN_LIMIT=1:none,8G", "CUWARDEN_FAIL=above=1M,prob=0.5,seed=3",
          "CUWARDEN_DUMP_INTERVAL=2m", "CUWARDEN_PRESSURE=1%,2,3%");
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        struct cw_options copy;

        cw_options_parse(NULL, 1, &copy, NULL);
        cw_options_print_value(&options, i, value, sizeof(value));
        cr_expect_eq(cw_options_set(&copy, cw_options_row(i)->name, value, why, sizeof(why)), 0);
        cw_options_print_value(&copy, i, why, sizeof(why));
        cr_expect_str_eq(why, value);
    }
}

Test(options, every_row_is_complete_and_its_default_parses_and_stands_first)
{
    char printed[CW_OPTION_VALUE_MAX];
    char why[CW_OPTION_LINE_MAX];

    parse(NULL);
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        const struct cw_option_row *row = cw_options_row(i);
        struct cw_options copy = options;

        cr_expect_eq(cw_options_set(&copy, row->name, row->fallback, why, sizeof(why)), 0);
        cw_options_print_value(&copy, i, printed, sizeof(printed));
        cr_expect_str_eq(printed, row->fallback);
        cr_expect(strlen(row->help) > 0 && strlen(row->help) <= 60);
        cr_expect_gt(strlen(row->detail), 0u);
        cr_expect_neq(row->help[strlen(row->help) - 1], '.');
        cr_expect_eq(row->detail[strlen(row->detail) - 1], '.');
        if (strstr(row->values, ", "))
            cr_expect_eq(strncmp(row->values, row->fallback, strlen(row->fallback)), 0);
    }
    cr_expect_str_eq(cw_options_row(CW_OPTION_INDEX_STACKS)->values, "full, caller, off");
    cr_expect_str_eq(cw_options_row(CW_OPTION_INDEX_STACK_DEPTH)->values, "1..128");
    cr_expect_str_eq(cw_options_row(CW_OPTION_INDEX_REPORT)->values, "FILE");
    cr_expect_str_eq(cw_options_row(CW_OPTION_INDEX_POOL_IDLE)->values, "0s..24h");
}

/* The line for a value of the pool's options, whole. */
static void expect_refused(const char *name, const char *value, const char *form, const char *rest)
{
    char wanted[CW_OPTION_LINE_MAX];

    snprintf(wanted, sizeof(wanted), "CUWARDEN_%s: '%s' is not %s; %s", name, value, form, rest);
    parse_one(name, value);
    expect_single_complaint(wanted);
    expect_defaults();
}

Test(options, a_bad_size_time_or_batch_gets_one_line_and_the_default_stays)
{
    static const char sizes[] = "a size (8G), a share (25%), or a list of up to 16, each device "
                                "at most once (0:8G,GPU-<uuid>:50%,4G)";
    static const char time[] = "a time from 0s to 24h, as in 500ms, 10s or 2m";
    static const char interval[] = "off, or a time from 100ms to 24h, as in 500ms, 10s or 2m";
    static const char batches[] = "a list of up to 16 SIZE:COUNT (64M:8,1.5G:2), with sizes up to "
                                  "1T and counts from 1 to 4096";

    expect_refused("POOL_MAX", "8Q", sizes, "using the default '25%'");
    expect_refused("POOL_MAX", "none", sizes, "using the default '25%'");
    expect_refused("POOL_MAX", "0:8G,0:50%", sizes, "using the default '25%'");
    expect_refused("POOL_IDLE", "10d", time, "using the default '10s'");
    expect_refused("POOL_IDLE", "86400001ms", time, "using the default '10s'");
    expect_refused("POOL_IDLE", "24.000000000001h", time, "using the default '10s'");
    expect_refused("DUMP_INTERVAL", "99ms", interval, "using the default 'off'");
    expect_refused("DUMP_INTERVAL", "0", interval, "using the default 'off'");
    expect_refused("DUMP_INTERVAL", "25h", interval, "using the default 'off'");
    expect_refused("PREWARM", "64M", batches, "ignored");
    expect_refused("PREWARM", "64M:4097", batches, "ignored");
}

Test(options, a_limit_of_nothing_and_other_bad_limits_are_refused)
{
    static const char above_0[] =
        "none, usable, platform, a size (8G) or share (25%) above 0, or a list of up to "
        "16, each device at most once (0:8G,GPU-<uuid>:50%,4G)";
    static const char any[] = "none, a size (8G), a share (25%), or a list of up to 16, each "
                              "device at most once (0:8G,GPU-<uuid>:50%,4G)";
    static const char *const bad[] = {"0",  "0%",   "0.0001K", "0:8G,1:0", "0,0:8G",
                                      "8Q", "110%", "-1",      "0:8G,,",   "garbage"};

    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++)
        expect_refused("LIMIT", bad[i], above_0, "using the default 'none'");
    expect_refused("MIN_FREE", "-1", any, "using the default 'none'");
    PARSE("CUWARDEN_LIMIT=none");
    cr_expect_eq(complaints.count, 0u);
}

Test(options, bad_thresholds_and_plans_of_failure_name_the_form)
{
    expect_refused("PRESSURE", "80,60,95",
                   "3 whole percentages from 1 to 100 in ascending order (60,80,95)",
                   "using the default '60,80,95'");
    expect_refused("FAIL", "nth=0",
                   "off, or one of nth=N, every=N and prob=P[,seed=N] (0 < P <= 1), or above=SIZE, "
                   "or both (every=10,above=1M)",
                   "using the default 'off'");
    expect_refused("BUDGET", "cache=2G",
                   "none, or a list of up to 16 tag:PATTERN=SIZE, each with :warn or :refuse after "
                   "it or nothing (tag:^cache$=2G:refuse), no pattern twice",
                   "using the default 'none'");
}

Test(options, a_time_takes_both_ends)
{
    PARSE("CUWARDEN_POOL_IDLE=0");
    cr_expect_eq(options.pool_idle, 0u);
    PARSE("CUWARDEN_POOL_IDLE=24h");
    cr_expect_eq(options.pool_idle, UINT64_C(86400000000000));
    cr_expect_eq(complaints.count, 0u);
}

Test(options, the_longest_complaints_are_whole)
{
    PARSE(make_long_entry("POOL_MAX", 200));
    cr_expect_not_null(strstr(complaints.line[0], "xxx...' is not a size "));
    cr_expect_not_null(strstr(complaints.line[0], "; using the default '25%'"));
    PARSE(make_long_entry("POOL_IDLE", 200));
    cr_expect_not_null(strstr(complaints.line[0], "; using the default '10s'"));
    PARSE(make_long_entry("FAIL", 200));
    cr_expect_not_null(strstr(complaints.line[0], "; using the default 'off'"));
    PARSE(make_long_entry("LIMIT", 200), "CUWARDEN_PRESET=constrained");
    cr_expect_not_null(strstr(complaints.line[0], "; using '70%' from preset constrained"));
    PARSE(make_long_entry("PREWARM", 200));
    cr_expect_not_null(strstr(complaints.line[0], "; ignored"));
}

Test(options, devices_that_a_list_leaves_out_have_the_default)
{
    char printed[CW_OPTION_VALUE_MAX];
    char why[CW_OPTION_LINE_MAX];

    PARSE("CUWARDEN_POOL_MAX=1:4K,2:0");
    expect_pool_max(0, 400, 100);
    expect_pool_max(1, 400, 4096);
    expect_pool_max(2, 400, 0);
    cw_options_print_value(&options, CW_OPTION_INDEX_POOL_MAX, printed, sizeof(printed));
    cr_expect_str_eq(printed, "1:4K,2:0,25%");
    /* Also when the option was something else before. */
    cr_expect_eq(cw_options_set(&options, "POOL_MAX", "8G", why, sizeof(why)), 0);
    cr_expect_eq(cw_options_set(&options, "POOL_MAX", "1:50%", why, sizeof(why)), 0);
    expect_pool_max(0, 400, 100);
    expect_pool_max(1, 400, 200);
}

/* Each item as long as can be. */
Test(options, the_longest_list_of_sizes_fits_as_printed)
{
    char entry[CW_OPTION_VALUE_MAX + 32] = "CUWARDEN_POOL_MAX=";
    char printed[CW_OPTION_VALUE_MAX];

    for (unsigned i = 0; i < CW_SIZES_MAX; i++)
        snprintf(entry + strlen(entry), sizeof(entry) - strlen(entry),
                 "GPU-%08x-ffff-ffff-ffff-ffffffffffff:18446744073709551615,", i);
    snprintf(entry + strlen(entry), sizeof(entry) - strlen(entry), "18446744073709551615");
    PARSE(entry);
    cr_expect(complaints.count == 0 && options.pool_max.count == CW_SIZES_MAX);
    cw_options_print_value(&options, CW_OPTION_INDEX_POOL_MAX, printed, sizeof(printed));
    cr_expect_str_eq(printed, strchr(entry, '=') + 1);
}
