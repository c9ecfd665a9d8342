/* SPDX-License-Identifier: MIT */
/*
 * The table of options, and how each value is parsed and printed.
 *
 * Owns the table made from options.def, which is constant; no lock. Nothing here allocates, prints,
 * or follows the locale. Every default is accepted by its own parser.
 */
#include "base/nearest.h"
#include "base/options/option_table.h"

#include <string.h>

#include "base/signal_name.h"

#define CLIP 64 /* bytes of a value quoted in a complaint */

/* ---- the table ---- */

enum kind {
    KIND_ENUM,
    KIND_COUNT,
    KIND_AUTO_COUNT,
    KIND_SIZES,
    KIND_TIME,
    KIND_INTERVAL,
    KIND_LEVELS,
    KIND_FAIL,
    KIND_BUDGETS,
    KIND_BATCHES,
    KIND_PATH,
    KIND_PLACE,
    KIND_INPUT,
    KIND_SIGNAL
};

struct word {
    int value;
    const char *text; /* NULL ends a list */
};

struct definition {
    struct cw_option_row row;
    enum kind kind;
    size_t offset;            /* in struct cw_options */
    const struct word *words; /* of an enum; the default first */
    uint64_t min;             /* of a count */
    uint64_t max;
    const char *min_time; /* of a time or interval, as the user would write it */
    const char *max_time;
    unsigned size_words; /* of sizes: CW_SIZE_TAKES_* */
    int takes_zero;
};

#define WORD(constant, word)    {(int)(constant), (word)},
#define WORDS_ENUM(name)        CW_ENUM_##name(WORD)
#define WORDS_EXTERN_ENUM(name) CW_ENUM_##name(WORD)
#define WORDS_COUNT(min, max)
#define WORDS_AUTO_COUNT(min, max)
#define WORDS_SIZES(none, zero)
#define WORDS_TIME(min, max)
#define WORDS_INTERVAL(min, max)
#define WORDS_LEVELS
#define WORDS_FAIL
#define WORDS_BUDGETS
#define WORDS_BATCHES
#define WORDS_PATH
#define WORDS_PLACE
#define WORDS_INPUT
#define WORDS_SIGNAL
#define OPTION(field, type, NAME, fallback, help, detail)                                          \
    static const struct word words_##field[] = {WORDS_##type{0, NULL}};
#include "base/options/options.def"
#undef OPTION

/* ", full" ", caller" ", off", from the third character on. */
#define LISTED(constant, word)      ", " word
#define VALUES_ENUM(name)           &(CW_ENUM_##name(LISTED))[2]
#define VALUES_EXTERN_ENUM(name)    &(CW_ENUM_##name(LISTED))[2]
#define VALUES_COUNT(min, max)      #min ".." #max
#define VALUES_AUTO_COUNT(min, max) "auto or " #min ".." #max
#define VALUES_SIZES(words, zero)   VALUES_SIZES_##words
#define VALUES_SIZES_0              "SIZES"
#define VALUES_SIZES_NONE           "none or SIZES"
#define VALUES_SIZES_NONE_OR_WORD   "none or usable or platform or SIZES"
#define VALUES_TIME(min, max)       min ".." max
#define VALUES_INTERVAL(min, max)   "off or " min ".." max
#define VALUES_LEVELS               "MEDIUM,HIGH,CRITICAL"
#define VALUES_FAIL                 "off or KEY=VALUE[,...]"
#define VALUES_BUDGETS              "none or tag:PATTERN=SIZE[:warn or :refuse][,...]"
#define VALUES_BATCHES              "SIZE:COUNT[,...]"
#define VALUES_PATH                 "FILE"
#define VALUES_PLACE                "auto, off, or DIRECTORY"
#define VALUES_INPUT                "FILE"
#define VALUES_SIGNAL               "off or SIGNAL"

#define SIZE_WORDS_0            0
#define SIZE_WORDS_NONE         CW_SIZE_TAKES_NONE
#define SIZE_WORDS_NONE_OR_WORD (CW_SIZE_TAKES_NONE | CW_SIZE_TAKES_USABLE | CW_SIZE_TAKES_PLATFORM)

#define KIND_OF_ENUM(name)            .kind = KIND_ENUM
#define KIND_OF_EXTERN_ENUM(name)     .kind = KIND_ENUM
#define KIND_OF_COUNT(low, high)      .kind = KIND_COUNT, .min = (low), .max = (high)
#define KIND_OF_AUTO_COUNT(low, high) .kind = KIND_AUTO_COUNT, .min = (low), .max = (high)
#define KIND_OF_SIZES(words, zero)                                                                 \
    .kind = KIND_SIZES, .size_words = SIZE_WORDS_##words, .takes_zero = (zero)
#define KIND_OF_TIME(low, high)     .kind = KIND_TIME, .min_time = (low), .max_time = (high)
#define KIND_OF_INTERVAL(low, high) .kind = KIND_INTERVAL, .min_time = (low), .max_time = (high)
#define KIND_OF_LEVELS              .kind = KIND_LEVELS
#define KIND_OF_FAIL                .kind = KIND_FAIL
#define KIND_OF_BUDGETS             .kind = KIND_BUDGETS
#define KIND_OF_BATCHES             .kind = KIND_BATCHES
#define KIND_OF_PATH                .kind = KIND_PATH
#define KIND_OF_PLACE               .kind = KIND_PLACE
#define KIND_OF_INPUT               .kind = KIND_INPUT
#define KIND_OF_SIGNAL              .kind = KIND_SIGNAL

#define OPTION(field, type, NAME, fallback, help, detail)                                          \
    {.row = {#NAME, VALUES_##type, fallback, help, detail},                                        \
     .offset = offsetof(struct cw_options, field),                                                 \
     .words = words_##field,                                                                       \
     KIND_OF_##type},
static const struct definition definitions[] = {
#include "base/options/options.def"
};
#undef OPTION

_Static_assert(CW_ARRAY_LEN(definitions) == CW_OPTION_COUNT, "one definition per option");

static void *member(struct cw_options *options, const struct definition *def)
{
    return (char *)options + def->offset;
}

static const void *member_const(const struct cw_options *options, const struct definition *def)
{
    return (const char *)options + def->offset;
}

/* ---- words for complaints ---- */

void cw_option_quote(struct cw_out *why, const char *text, size_t len)
{
    size_t shown = len;

    if (len > CLIP) {
        shown = CLIP;
        while (shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80)
            shown--;
    }
    cw_out_char(why, '\'');
    cw_out_printable(why, text, shown);
    cw_out_string(why, shown < len ? "...'" : "'");
}

static void say_form(struct cw_out *why, const struct definition *def)
{
    switch (def->kind) {
    case KIND_ENUM:
        cw_out_printf(why, "one of %s", def->row.values);
        return;
    case KIND_COUNT:
    case KIND_AUTO_COUNT:
        cw_out_printf(why, "%sa whole number from %ju to %ju",
                      def->kind == KIND_AUTO_COUNT ? "auto, or " : "", (uintmax_t)def->min,
                      (uintmax_t)def->max);
        return;
    case KIND_SIZES:
        cw_out_printf(why,
                      "%s%sa size (8G)%s, or a list of up to %d, each device at most once "
                      "(0:8G,GPU-<uuid>:50%%,4G)",
                      def->size_words & CW_SIZE_TAKES_NONE ? "none, " : "",
                      def->size_words & CW_SIZE_TAKES_USABLE ? "usable, platform, " : "",
                      def->takes_zero ? ", a share (25%)" : " or share (25%) above 0",
                      CW_SIZES_MAX);
        return;
    case KIND_TIME:
    case KIND_INTERVAL:
        cw_out_printf(why, "%sa time from %s to %s, as in 500ms, 10s or 2m",
                      def->kind == KIND_INTERVAL ? "off, or " : "", def->min_time, def->max_time);
        return;
    case KIND_LEVELS:
        cw_out_printf(why, "%d whole percentages from 1 to 100 in ascending order (60,80,95)",
                      CW_THRESHOLDS);
        return;
    case KIND_FAIL:
        cw_out_string(why, "off, or one of nth=N, every=N and prob=P[,seed=N] (0 < P <= 1), or "
                           "above=SIZE, or both (every=10,above=1M)");
        return;
    case KIND_BUDGETS:
        cw_out_printf(why,
                      "none, or a list of up to %d tag:PATTERN=SIZE, each with :warn or :refuse "
                      "after it or nothing (tag:^cache$=2G:refuse), no pattern twice",
                      CW_BUDGETS_MAX);
        return;
    case KIND_BATCHES:
        cw_out_printf(why,
                      "a list of up to %d SIZE:COUNT (64M:8,1.5G:2), with sizes up to 1T and "
                      "counts from 1 to %d",
                      CW_BATCHES_MAX, CW_BATCH_BLOCKS);
        return;
    case KIND_PATH:
        cw_out_printf(why, "a file name of at most %d bytes, or -", CW_OPTION_VALUE_MAX - 1);
        return;
    case KIND_PLACE:
        cw_out_printf(why, "auto, off, or a directory of at most %d bytes",
                      CW_OPTION_VALUE_MAX - 1);
        return;
    case KIND_INPUT:
        cw_out_printf(why, "a file name of at most %d bytes", CW_OPTION_VALUE_MAX - 1);
        return;
    case KIND_SIGNAL:
        cw_out_string(why, "off, or a signal that a program can safely catch, by name or number "
                           "(USR1, SIGUSR2, RTMIN+3)");
        return;
    }
}

/* ---- one value ---- */

static enum cw_option_verdict refuse(struct cw_out *why, const struct definition *def,
                                     const char *value)
{
    cw_option_quote(why, value, strlen(value));
    cw_out_string(why, " is not ");
    say_form(why, def);
    return CW_OPTION_REFUSED;
}

static const struct word *find_word(const struct definition *def, const char *text)
{
    for (const struct word *word = def->words; word->text; word++) {
        if (strcmp(word->text, text) == 0)
            return word;
    }
    return NULL;
}

static enum cw_option_verdict parse_enum(const struct definition *def, const char *value,
                                         void *field, struct cw_out *why)
{
    const struct word *word = find_word(def, value);
    struct cw_nearest nearest = cw_nearest_to(value, strlen(value));

    if (!word) {
        refuse(why, def, value);
        for (word = def->words; word->text; word++)
            cw_nearest_offer(&nearest, word->text, strlen(word->text));
        if (nearest.found && value[0] != '\0')
            cw_out_printf(why, " (did you mean %s?)", nearest.found);
        return CW_OPTION_REFUSED;
    }
    memcpy(field, &word->value, sizeof(word->value));
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_count(const struct definition *def, const char *value,
                                          void *field, struct cw_out *why)
{
    uint64_t number;

    if (cw_count_parse(value, &number) != 0 || number < def->min || number > def->max)
        return refuse(why, def, value);
    memcpy(field, &number, sizeof(number));
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_auto_count(const struct definition *def, const char *value,
                                               void *field, struct cw_out *why)
{
    uint64_t number = CW_COUNT_AUTO;

    if (strcmp(value, "auto") != 0)
        return parse_count(def, value, field, why);
    memcpy(field, &number, sizeof(number));
    return CW_OPTION_TAKEN;
}

/* Devices missing in a list get the standing value, whatever was set before. */
static enum cw_option_verdict parse_sizes(const struct definition *def, const char *standing,
                                          const char *value, void *field, struct cw_out *why)
{
    struct cw_device_sizes sizes = {.count = 0};

    if (cw_sizes_parse(standing, def->size_words, &sizes) != 0 ||
        cw_sizes_parse(value, def->size_words, &sizes) != 0 ||
        (!def->takes_zero && cw_sizes_have_zero(&sizes)))
        return refuse(why, def, value);
    memcpy(field, &sizes, sizeof(sizes));
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_time(const struct definition *def, const char *value,
                                         void *field, struct cw_out *why)
{
    uint64_t min;
    uint64_t max;
    uint64_t ns;

    if (cw_time_parse(def->min_time, &min) != 0 || cw_time_parse(def->max_time, &max) != 0 ||
        cw_time_parse(value, &ns) != 0 || ns < min || ns > max)
        return refuse(why, def, value);
    memcpy(field, &ns, sizeof(ns));
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_interval(const struct definition *def, const char *value,
                                             void *field, struct cw_out *why)
{
    if (strcmp(value, "off") != 0)
        return parse_time(def, value, field, why);
    memset(field, 0, sizeof(uint64_t));
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_levels(const struct definition *def, const char *value,
                                           void *field, struct cw_out *why)
{
    struct cw_levels levels;

    if (cw_levels_parse(value, &levels) != 0)
        return refuse(why, def, value);
    memcpy(field, &levels, sizeof(levels));
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_fail(const struct definition *def, const char *value,
                                         void *field, struct cw_out *why)
{
    struct cw_fail_plan plan;

    if (cw_fail_plan_parse(value, &plan) != 0)
        return refuse(why, def, value);
    memcpy(field, &plan, sizeof(plan));
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_budgets(const struct definition *def, const char *value,
                                            void *field, struct cw_out *why)
{
    struct cw_budget_rules rules;

    if (cw_budget_rules_parse(value, &rules) != 0)
        return refuse(why, def, value);
    memcpy(field, &rules, sizeof(rules));
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_batches(const struct definition *def, const char *value,
                                            void *field, struct cw_out *why)
{
    struct cw_option_batches batches;

    if (cw_batches_parse(value, &batches) != 0)
        return refuse(why, def, value);
    memcpy(field, &batches, sizeof(batches));
    return CW_OPTION_TAKEN;
}

/* The caller has checked that the value fits. */
static enum cw_option_verdict parse_path(const char *value, void *field, struct cw_out *why)
{
    const char *bad = cw_path_find_bad_sequence(value);

    memcpy(field, value, strlen(value) + 1);
    if (!bad)
        return CW_OPTION_TAKEN;
    cw_option_quote(why, value, strlen(value));
    cw_out_string(why, " contains the unknown sequence ");
    cw_option_quote(why, bad, strnlen(bad, 2));
    cw_out_string(why, "; use %p %h %e %t %n %r %q{VAR} %%");
    return CW_OPTION_TAKEN_WITH_COMPLAINT;
}

static enum cw_option_verdict parse_place(const struct definition *def, const char *value,
                                          void *field, struct cw_out *why)
{
    if (value[0] == '\0')
        return refuse(why, def, value);
    memcpy(field, value, strlen(value) + 1);
    return CW_OPTION_TAKEN;
}

static enum cw_option_verdict parse_signal(const struct definition *def, const char *value,
                                           void *field, struct cw_out *why)
{
    int number = strcmp(value, "off") == 0 ? 0 : cw_signal_parse(value);

    if (number == 0 && strcmp(value, "off") != 0)
        return refuse(why, def, value);
    memcpy(field, &number, sizeof(number));
    return CW_OPTION_TAKEN;
}

enum cw_option_verdict cw_option_parse(size_t index, const char *standing, const char *value,
                                       struct cw_options *options, struct cw_out *why)
{
    const struct definition *def = &definitions[index];
    void *field = member(options, def);

    if (strlen(value) >= CW_OPTION_VALUE_MAX)
        return refuse(why, def, value);
    switch (def->kind) {
    case KIND_ENUM:
        return parse_enum(def, value, field, why);
    case KIND_COUNT:
        return parse_count(def, value, field, why);
    case KIND_AUTO_COUNT:
        return parse_auto_count(def, value, field, why);
    case KIND_SIZES:
        return parse_sizes(def, standing, value, field, why);
    case KIND_TIME:
        return parse_time(def, value, field, why);
    case KIND_INTERVAL:
        return parse_interval(def, value, field, why);
    case KIND_LEVELS:
        return parse_levels(def, value, field, why);
    case KIND_FAIL:
        return parse_fail(def, value, field, why);
    case KIND_BUDGETS:
        return parse_budgets(def, value, field, why);
    case KIND_BATCHES:
        return parse_batches(def, value, field, why);
    case KIND_PATH:
        return parse_path(value, field, why);
    case KIND_PLACE:
        return parse_place(def, value, field, why);
    case KIND_INPUT:
        memcpy(field, value, strlen(value) + 1);
        return CW_OPTION_TAKEN;
    case KIND_SIGNAL:
        return parse_signal(def, value, field, why);
    }
    return CW_OPTION_REFUSED;
}

/* ---- the rows, and values as text ---- */

const struct cw_option_row *cw_options_row(size_t index)
{
    return &definitions[index].row;
}

static const char *word_of(const struct definition *def, const void *field)
{
    int value;

    memcpy(&value, field, sizeof(value));
    for (const struct word *word = def->words; word->text; word++) {
        if (word->value == value)
            return word->text;
    }
    return "?";
}

static uint64_t number_in(const void *field)
{
    uint64_t number;

    memcpy(&number, field, sizeof(number));
    return number;
}

static void print_interval(uint64_t ns, struct cw_out *out)
{
    if (ns == 0)
        cw_out_string(out, "off");
    else
        cw_time_print(ns, out);
}

static void print_signal(const void *field, struct cw_out *out)
{
    int number;

    memcpy(&number, field, sizeof(number));
    if (number == 0)
        cw_out_string(out, "off");
    else
        cw_signal_print(number, out);
}

void cw_options_print_value(const struct cw_options *options, size_t index, char *buf, size_t cap)
{
    const struct definition *def = &definitions[index];
    const void *field = member_const(options, def);
    struct cw_out out;

    cw_out_init(&out, -1, buf, cap > 0 ? cap - 1 : 0);
    switch (def->kind) {
    case KIND_ENUM:
        cw_out_string(&out, word_of(def, field));
        break;
    case KIND_COUNT:
        cw_out_printf(&out, "%ju", (uintmax_t)number_in(field));
        break;
    case KIND_AUTO_COUNT:
        if (number_in(field) == CW_COUNT_AUTO)
            cw_out_string(&out, "auto");
        else
            cw_out_printf(&out, "%ju", (uintmax_t)number_in(field));
        break;
    case KIND_SIZES:
        cw_sizes_print(field, &out);
        break;
    case KIND_TIME:
        cw_time_print(number_in(field), &out);
        break;
    case KIND_INTERVAL:
        print_interval(number_in(field), &out);
        break;
    case KIND_LEVELS:
        cw_levels_print(field, &out);
        break;
    case KIND_FAIL:
        cw_fail_plan_print(field, &out);
        break;
    case KIND_BUDGETS:
        cw_budget_rules_print(field, &out);
        break;
    case KIND_BATCHES:
        cw_batches_print(field, &out);
        break;
    case KIND_PATH:
    case KIND_PLACE:
    case KIND_INPUT:
        cw_out_string(&out, field);
        break;
    case KIND_SIGNAL:
        print_signal(field, &out);
        break;
    }
    if (cap > 0)
        buf[out.len] = '\0';
}
