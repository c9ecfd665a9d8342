/* SPDX-License-Identifier: MIT */
/* Presets: every row of presets.def, what wins over a preset, and where each value came from. */
#include "base/options/options.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static struct cw_options options;
static struct cw_option_complaints complaints;

static void parse(const char *const env[])
{
    cw_options_parse((char *const *)env, 1, &options, &complaints);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static const char *printed(size_t index)
{
    static char text[CW_OPTION_VALUE_MAX];

    cw_options_print_value(&options, index, text, sizeof(text));
    return text;
}

static void expect_value(size_t index, const char *value, enum cw_option_origin origin)
{
    cr_expect_str_eq(printed(index), value);
    cr_expect_eq(options.origin[index], origin, "%s", cw_options_row(index)->name);
}

/* Once: the first row of an option in a preset is the one that counts. */
Test(option_presets, every_row_parses_names_an_option_and_stands_once)
{
    static const struct {
        enum cw_preset preset;
        size_t index;
        const char *value;
    } rows[] = {
#define PRESET_VALUE(preset, NAME, value) {preset, CW_OPTION_INDEX_##NAME, value},
#include "base/options/presets.def"
#undef PRESET_VALUE
    };
    char why[CW_OPTION_LINE_MAX];

    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        const char *name = cw_options_row(rows[i].index)->name;

        parse(NULL);
        cr_expect_eq(cw_options_set(&options, name, rows[i].value, why, sizeof(why)), 0, "%s", why);
        expect_value(rows[i].index, rows[i].value, CW_ORIGIN_ENVIRONMENT);
        cr_expect_str_eq(cw_options_preset_value(rows[i].preset, rows[i].index), rows[i].value);
        cr_expect_neq(rows[i].preset, CW_PRESET_DEFAULT);
        cr_expect_neq(rows[i].index, (size_t)CW_OPTION_INDEX_PRESET);
        for (size_t other = 0; other < i; other++)
            cr_expect(rows[other].preset != rows[i].preset || rows[other].index != rows[i].index);
    }
}

/* The preset's values and nothing else but the defaults, whichever it is. */
Test(option_presets, a_preset_is_its_rows_over_the_defaults)
{
    const char *name;

    for (int preset = 0; (name = cw_options_preset_name(preset)); preset++) {
        char entry[64];

        snprintf(entry, sizeof(entry), "CUWARDEN_PRESET=%s", name);
        PARSE(entry);
        cr_expect_eq(complaints.count, 0u);
        cr_expect_eq((int)options.preset, preset);
        expect_value(CW_OPTION_INDEX_PRESET, name, CW_ORIGIN_ENVIRONMENT);
        for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
            const char *value = cw_options_preset_value(preset, i);

            if (i != CW_OPTION_INDEX_PRESET)
                expect_value(i, value ? value : cw_options_row(i)->fallback,
                             value ? CW_ORIGIN_PRESET : CW_ORIGIN_DEFAULT);
        }
    }
    cr_expect_null(cw_options_preset_name((enum cw_preset) - 1));
}

Test(option_presets, inference_uses_what_is_there)
{
    PARSE("CUWARDEN_PRESET=inference");
    cr_expect_eq(options.pool_max.fallback.amount, CW_SHARE_OF_WHOLE / 10 * 9);
    cr_expect_eq(options.pool_bucket_max, CW_COUNT_AUTO);
    cr_expect_eq(options.pool_idle, UINT64_C(600000000000));
    cr_expect_arr_eq(options.pressure.percent, ((uint8_t[]){85, 93, 98}), 3);
    cr_expect_eq(options.limit.fallback.kind, CW_SIZE_NONE);
    cr_expect_eq(options.fallback, CW_FALLBACK_OFF);
}

Test(option_presets, constrained_leaves_room_for_others)
{
    PARSE("CUWARDEN_PRESET=constrained");
    cr_expect_eq(options.limit.fallback.kind, CW_SIZE_SHARE);
    cr_expect_eq(options.limit.fallback.amount, CW_SHARE_OF_WHOLE / 10 * 7);
    cr_expect_eq(options.min_free.fallback.amount, UINT64_C(512) << 20);
    cr_expect_eq(options.pool_max.fallback.amount, CW_SHARE_OF_WHOLE / 10);
    cr_expect_eq(options.pool_bucket_max, 2u);
    cr_expect_eq(options.pool_idle, UINT64_C(2000000000));
    cr_expect_arr_eq(options.pressure.percent, ((uint8_t[]){50, 70, 90}), 3);
    cr_expect_eq(options.fallback, CW_FALLBACK_MANAGED);
}

static void expect_explicit_ones(void)
{
    cr_expect_eq(complaints.count, 0u);
    expect_value(CW_OPTION_INDEX_LIMIT, "none", CW_ORIGIN_ENVIRONMENT);
    expect_value(CW_OPTION_INDEX_FALLBACK, "off", CW_ORIGIN_ENVIRONMENT);
    expect_value(CW_OPTION_INDEX_POOL_IDLE, "2s", CW_ORIGIN_PRESET);
    expect_value(CW_OPTION_INDEX_LOG, "warn", CW_ORIGIN_DEFAULT);
}

Test(option_presets, what_is_set_wins_wherever_it_stands)
{
    PARSE("CUWARDEN_PRESET=constrained", "CUWARDEN_LIMIT=none", "CUWARDEN_FALLBACK=off");
    expect_explicit_ones();
    PARSE("CUWARDEN_LIMIT=none", "CUWARDEN_PRESET=constrained", "CUWARDEN_FALLBACK=off");
    expect_explicit_ones();
    PARSE("CUWARDEN_LIMIT=none", "CUWARDEN_FALLBACK=off", "CUWARDEN_PRESET=constrained",
          "CUWARDEN_PRESET=inference");
    expect_explicit_ones();
}

Test(option_presets, devices_that_a_list_leaves_out_have_the_presets_value)
{
    PARSE("CUWARDEN_LIMIT=0:8G", "CUWARDEN_PRESET=constrained");
    expect_value(CW_OPTION_INDEX_LIMIT, "0:8G,70%", CW_ORIGIN_ENVIRONMENT);
    PARSE("CUWARDEN_PRESET=constrained", "CUWARDEN_LIMIT=0:8G,none");
    expect_value(CW_OPTION_INDEX_LIMIT, "0:8G,none", CW_ORIGIN_ENVIRONMENT);
    PARSE("CUWARDEN_PRESET=inference", "CUWARDEN_LIMIT=0:8G", "CUWARDEN_POOL_MAX=1:0");
    expect_value(CW_OPTION_INDEX_LIMIT, "0:8G,none", CW_ORIGIN_ENVIRONMENT);
    expect_value(CW_OPTION_INDEX_POOL_MAX, "1:0,90%", CW_ORIGIN_ENVIRONMENT);
}

Test(option_presets, a_bad_value_leaves_the_presets_and_names_it)
{
    static const char wanted[] = "CUWARDEN_POOL_BUCKET_MAX: '' is not auto, or a whole number from "
                                 "0 to 1000000; using '2' from preset constrained";

    PARSE("CUWARDEN_POOL_BUCKET_MAX=", "CUWARDEN_PRESET=constrained");
    cr_expect_eq(complaints.count, 1u);
    cr_expect_str_eq(complaints.line[0], wanted);
    expect_value(CW_OPTION_INDEX_POOL_BUCKET_MAX, "2", CW_ORIGIN_PRESET);
    PARSE("CUWARDEN_STACK_DEPTH=0", "CUWARDEN_PRESET=constrained");
    cr_expect_not_null(strstr(complaints.line[0], "; using the default '32'"));
}

Test(option_presets, a_bad_preset_is_the_default_one)
{
    PARSE("CUWARDEN_POOL_IDLE=x", "CUWARDEN_PRESET=tiny", "CUWARDEN_PRESET=constrained");
    cr_expect_eq(complaints.count, 2u);
    cr_expect_str_eq(
        complaints.line[0],
        "CUWARDEN_PRESET: 'tiny' is not one of default, inference, constrained, guarded; "
        "using the default 'default'");
    cr_expect_not_null(strstr(complaints.line[1], "; using the default '10s'"));
    expect_value(CW_OPTION_INDEX_PRESET, "default", CW_ORIGIN_DEFAULT);
    expect_value(CW_OPTION_INDEX_POOL_MAX, "25%", CW_ORIGIN_DEFAULT);
}

Test(option_presets, a_setuid_program_has_none)
{
    static const char *const env[] = {"CUWARDEN_PRESET=constrained", NULL};

    cw_options_parse((char *const *)env, 0, &options, &complaints);
    expect_value(CW_OPTION_INDEX_LIMIT, "none", CW_ORIGIN_DEFAULT);
}

Test(option_presets, set_gives_the_values_to_what_nobody_set)
{
    char why[CW_OPTION_LINE_MAX];

    PARSE("CUWARDEN_POOL_IDLE=1m");
    cr_expect_eq(cw_options_set(&options, "MIN_FREE", "1G", why, sizeof(why)), 0);
    cr_expect_eq(cw_options_set(&options, "PRESET", "constrained", why, sizeof(why)), 0);
    expect_value(CW_OPTION_INDEX_POOL_IDLE, "1m", CW_ORIGIN_ENVIRONMENT);
    expect_value(CW_OPTION_INDEX_MIN_FREE, "1G", CW_ORIGIN_ENVIRONMENT);
    expect_value(CW_OPTION_INDEX_LIMIT, "70%", CW_ORIGIN_PRESET);
    cr_expect_eq(cw_options_set(&options, "PRESET", "inference", why, sizeof(why)), 0);
    expect_value(CW_OPTION_INDEX_LIMIT, "none", CW_ORIGIN_DEFAULT);
    expect_value(CW_OPTION_INDEX_POOL_MAX, "90%", CW_ORIGIN_PRESET);
    cr_expect_eq(cw_options_set(&options, "POOL_MAX", "0:1G", why, sizeof(why)), 0);
    expect_value(CW_OPTION_INDEX_POOL_MAX, "0:1G,90%", CW_ORIGIN_ENVIRONMENT);
}
