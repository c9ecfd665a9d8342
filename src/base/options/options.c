/* SPDX-License-Identifier: MIT */
/*
 * The parser of the options: names, presets, the environment, complaints.
 *
 * Owns the table made from presets.def, which is constant; everything else is the caller's, so
 * there is no lock. Nothing here allocates, prints, follows the locale or reads the environment.
 * Every value of a preset is accepted by the parser of its option.
 */
#include "base/nearest.h"
#include "base/options/options.h"

#include <string.h>

#include "base/options/option_table.h"
#include "base/out.h"

#define CLIP 64 /* bytes of a name quoted in a complaint */

/* ---- presets ---- */

#define NAME_OF(constant, word) [constant] = (word),
static const char *const preset_names[] = {CW_ENUM_preset(NAME_OF)};

#define PRESET_VALUE(preset, NAME, value) {preset, CW_OPTION_INDEX_##NAME, value},
static const struct preset_value {
    enum cw_preset preset;
    size_t index;
    const char *value;
} preset_values[] = {
#include "base/options/presets.def"
};
#undef PRESET_VALUE

const char *cw_options_preset_name(enum cw_preset preset)
{
    return (size_t)preset < CW_ARRAY_LEN(preset_names) ? preset_names[preset] : NULL;
}

const char *cw_options_preset_value(enum cw_preset preset, size_t index)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(preset_values); i++) {
        if (preset_values[i].preset == preset && preset_values[i].index == index)
            return preset_values[i].value;
    }
    return NULL;
}

/* ---- values that nobody set ---- */

static const char *standing_value(const struct cw_options *options, size_t index)
{
    const char *value = cw_options_preset_value(options->preset, index);

    return value ? value : cw_options_row(index)->fallback;
}

static void set_standing(struct cw_options *options, size_t index)
{
    const char *value = standing_value(options, index);
    struct cw_out nowhere;
    int is_bad;

    cw_out_init(&nowhere, -1, NULL, 0);
    is_bad = cw_option_parse(index, value, value, options, &nowhere) != CW_OPTION_TAKEN;
#ifdef CW_DEBUG
    if (is_bad)
        __builtin_trap(); /* a wrong row in options.def or presets.def */
#else
    (void)is_bad;
#endif
    options->origin[index] =
        cw_options_preset_value(options->preset, index) ? CW_ORIGIN_PRESET : CW_ORIGIN_DEFAULT;
}

/* Applies the preset's values to the options that are not set. */
static void follow_preset(struct cw_options *options)
{
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        if (i != CW_OPTION_INDEX_PRESET && options->origin[i] != CW_ORIGIN_ENVIRONMENT)
            set_standing(options, i);
    }
}

static void set_defaults(struct cw_options *options)
{
    memset(options, 0, sizeof(*options));
    set_standing(options, CW_OPTION_INDEX_PRESET);
    follow_preset(options);
}

/* ---- names ---- */

/* The index of the option, or CW_OPTION_COUNT. */
static size_t find_option(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < CW_OPTION_COUNT; i++) {
        const char *known = cw_options_row(i)->name;

        if (strncmp(known, name, len) == 0 && known[len] == '\0')
            break;
    }
    return i;
}

/* The known name that was probably meant, or NULL. */
static const char *find_nearest(const char *name, size_t len)
{
    struct cw_nearest nearest = cw_nearest_to(name, len);

    for (size_t i = 0; i < CW_OPTION_COUNT; i++)
        cw_nearest_offer(&nearest, cw_options_row(i)->name, strlen(cw_options_row(i)->name));
    return nearest.found;
}

/* ---- the environment ---- */

struct parse {
    struct cw_options *options;
    struct cw_option_complaints *complaints;
    char seen[CW_OPTION_COUNT]; /* the variable has occurred before */
};

static void complain(struct parse *parse, const char *line)
{
    struct cw_option_complaints *complaints = parse->complaints;

    if (!complaints)
        return;
    if (complaints->count < CW_OPTION_COMPLAINTS)
        cw_format(complaints->line[complaints->count], CW_OPTION_LINE_MAX, "%s", line);
    complaints->count++;
}

static void complain_of_name(struct parse *parse, const char *name, size_t len, const char *value)
{
    char line[CW_OPTION_LINE_MAX];
    const char *nearest = find_nearest(name, len);
    struct cw_out out;

    cw_out_init(&out, -1, line, sizeof(line) - 1);
    cw_out_string(&out, CW_OPTION_PREFIX);
    cw_out_write(&out, name, len < CLIP ? len : CLIP);
    cw_out_string(&out, len < CLIP ? "=" : "...=");
    cw_option_quote(&out, value, strlen(value));
    cw_out_string(&out, " is not a known variable");
    if (nearest)
        cw_out_printf(&out, "; did you mean %s%s?", CW_OPTION_PREFIX, nearest);
    cw_out_string(&out, nearest ? " See 'cuwarden options'" : "; see 'cuwarden options'");
    line[out.len] = '\0';
    complain(parse, line);
}

static void say_what_stays(struct cw_out *out, const struct cw_options *options, size_t index)
{
    const char *value = standing_value(options, index);

    if (cw_options_preset_value(options->preset, index))
        cw_out_printf(out, "using '%s' from preset %s", value,
                      cw_options_preset_name(options->preset));
    else if (*value)
        cw_out_printf(out, "using the default '%s'", value);
    else
        cw_out_string(out, "ignored");
}

static void complain_of_value(struct parse *parse, size_t index, enum cw_option_verdict verdict,
                              const char *why)
{
    char line[CW_OPTION_LINE_MAX];
    struct cw_out out;

    cw_out_init(&out, -1, line, sizeof(line) - 1);
    cw_out_printf(&out, "%s%s: %s; ", CW_OPTION_PREFIX, cw_options_row(index)->name, why);
    if (verdict == CW_OPTION_TAKEN_WITH_COMPLAINT)
        cw_out_string(&out, "used as it is");
    else
        say_what_stays(&out, parse->options, index);
    line[out.len] = '\0';
    complain(parse, line);
}

static void parse_known(struct parse *parse, size_t index, const char *value)
{
    const struct cw_option_row *row = cw_options_row(index);
    struct cw_options *options = parse->options;
    char why[CW_OPTION_LINE_MAX];
    enum cw_option_verdict verdict;
    struct cw_out out;

    if (parse->seen[index])
        return;
    parse->seen[index] = 1;
    if (!*value && !*row->fallback)
        return;
    cw_out_init(&out, -1, why, sizeof(why) - 1);
    verdict = cw_option_parse(index, standing_value(options, index), value, options, &out);
    why[out.len] = '\0';
    if (verdict != CW_OPTION_TAKEN)
        complain_of_value(parse, index, verdict, why);
    if (verdict != CW_OPTION_REFUSED)
        options->origin[index] = CW_ORIGIN_ENVIRONMENT;
}

/* The name after the prefix, or NULL if the variable is not ours. */
static const char *own_part(const char *entry)
{
    size_t len = sizeof(CW_OPTION_PREFIX) - 1;

    return strncmp(entry, CW_OPTION_PREFIX, len) == 0 ? entry + len : NULL;
}

static void parse_entry(struct parse *parse, const char *entry)
{
    const char *name = own_part(entry);
    const char *equals = name ? strchr(name, '=') : NULL;
    size_t index;
    size_t len;

    if (!equals)
        return;
    len = (size_t)(equals - name);
    index = find_option(name, len);
    if (index < CW_OPTION_COUNT)
        parse_known(parse, index, equals + 1);
    else if (equals[1])
        complain_of_name(parse, name, len, equals + 1);
}

/* Before all others, wherever it is: their values are relative to the preset's. */
static void parse_preset(struct parse *parse, char *const env[])
{
    static const char preset[] = CW_OPTION_PREFIX "PRESET=";

    for (; *env; env++) {
        if (strncmp(*env, preset, sizeof(preset) - 1) == 0)
            parse_known(parse, CW_OPTION_INDEX_PRESET, *env + sizeof(preset) - 1);
    }
    if (parse->seen[CW_OPTION_INDEX_PRESET]) /* otherwise every process would read all defaults
                                                twice */
        follow_preset(parse->options);
}

/* The first one, as for getenv(3); one that is too long is ignored. */
static void find_tmpdir(char *const env[], struct cw_options *out)
{
    static const char name[] = "TMPDIR=";

    while (*env && strncmp(*env, name, sizeof(name) - 1) != 0)
        env++;
    if (*env)
        cw_format(out->tmpdir, sizeof(out->tmpdir), "%s",
                  strlen(*env) < sizeof(out->tmpdir) ? *env + sizeof(name) - 1 : "");
}

/* They are the platform's: a value that is not understood is said, and limits nothing. */
static void read_platform(struct parse *parse, const char *entry)
{
    char line[CW_OPTION_LINE_MAX];
    struct cw_out out;

    cw_out_init(&out, -1, line, sizeof(line) - 1);
    if (cw_platform_limits_read(&parse->options->platform, entry, &out) == 0)
        return;
    line[out.len] = '\0';
    complain(parse, line);
}

static int has_own_variable(char *const env[])
{
    for (; *env; env++) {
        if (own_part(*env))
            return 1;
    }
    return 0;
}

void cw_options_parse(char *const env[], int trusted, struct cw_options *out,
                      struct cw_option_complaints *complaints)
{
    struct parse parse = {.options = out, .complaints = complaints};

    set_defaults(out);
    if (complaints)
        complaints->count = 0;
    if (!env)
        return;
    if (!trusted) {
        if (has_own_variable(env))
            complain(&parse, "the " CW_OPTION_PREFIX " variables are ignored in a setuid program");
        return;
    }
    find_tmpdir(env, out);
    parse_preset(&parse, env);
    for (; *env; env++) {
        parse_entry(&parse, *env);
        read_platform(&parse, *env);
    }
}

int cw_options_set(struct cw_options *options, const char *name, const char *value, char *why,
                   size_t why_cap)
{
    size_t index = find_option(name, strlen(name));
    struct cw_options changed = *options;
    enum cw_option_verdict verdict = CW_OPTION_REFUSED;
    struct cw_out out;

    cw_out_init(&out, -1, why, why_cap > 0 ? why_cap - 1 : 0);
    if (index < CW_OPTION_COUNT)
        verdict = cw_option_parse(index, standing_value(options, index), value, &changed, &out);
    else
        cw_out_string(&out, "unknown option");
    if (why_cap > 0)
        why[out.len] = '\0';
    if (verdict != CW_OPTION_TAKEN)
        return -1;
    changed.origin[index] = CW_ORIGIN_ENVIRONMENT;
    if (index == CW_OPTION_INDEX_PRESET)
        follow_preset(&changed);
    *options = changed;
    return 0;
}
