/* SPDX-License-Identifier: MIT */
/*
 * The parser of the options.
 *
 * Owns the table made from options.def, which is constant; everything else is the caller's, so
 * there is no lock. Nothing here allocates, prints, follows the locale or asks for the environment.
 * Every default passes the parser of its own row.
 */
#include "base/options.h"

#include <string.h>

#include "base/out.h"

#define CLIP          64 /* bytes of a value or name that a complaint repeats */
#define COMPARED_NAME 32 /* longest name that is compared with the known ones */

/* ---- the table ---- */

enum kind { KIND_ENUM, KIND_COUNT, KIND_SIZES, KIND_TIME, KIND_BATCHES, KIND_PATH };

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
    const char *min_time; /* of a time, as the user would write it */
    const char *max_time;
    int takes_none; /* of sizes */
};

#define WORD(constant, word)    {(int)(constant), (word)},
#define WORDS_ENUM(name)        CW_ENUM_##name(WORD)
#define WORDS_EXTERN_ENUM(name) CW_ENUM_##name(WORD)
#define WORDS_COUNT(min, max)
#define WORDS_SIZES(takes_none)
#define WORDS_TIME(min, max)
#define WORDS_BATCHES
#define WORDS_PATH
#define OPTION(field, type, NAME, fallback, help, detail)                                          \
    static const struct word words_##field[] = {WORDS_##type{0, NULL}};
#include "base/options.def"
#undef OPTION

/* ", full" ", caller" ", off", from the third character on. */
#define LISTED(constant, word)   ", " word
#define VALUES_ENUM(name)        &(CW_ENUM_##name(LISTED))[2]
#define VALUES_EXTERN_ENUM(name) &(CW_ENUM_##name(LISTED))[2]
#define VALUES_COUNT(min, max)   #min ".." #max
#define VALUES_SIZES(none)       "SIZES"
#define VALUES_TIME(min, max)    min ".." max
#define VALUES_BATCHES           "SIZE:COUNT[,...]"
#define VALUES_PATH              "FILE"

#define KIND_OF_ENUM(name)        .kind = KIND_ENUM
#define KIND_OF_EXTERN_ENUM(name) .kind = KIND_ENUM
#define KIND_OF_COUNT(low, high)  .kind = KIND_COUNT, .min = (low), .max = (high)
#define KIND_OF_SIZES(none)       .kind = KIND_SIZES, .takes_none = (none)
#define KIND_OF_TIME(low, high)   .kind = KIND_TIME, .min_time = (low), .max_time = (high)
#define KIND_OF_BATCHES           .kind = KIND_BATCHES
#define KIND_OF_PATH              .kind = KIND_PATH

#define OPTION(field, type, NAME, fallback, help, detail)                                          \
    {.row = {#NAME, VALUES_##type, fallback, help, detail},                                        \
     .offset = offsetof(struct cw_options, field),                                                 \
     .words = words_##field,                                                                       \
     KIND_OF_##type},
static const struct definition definitions[] = {
#include "base/options.def"
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

static void say_quoted(struct cw_out *why, const char *text, size_t len)
{
    size_t shown = len;

    if (len > CLIP) {
        shown = CLIP;
        while (shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80)
            shown--;
    }
    cw_out_char(why, '\'');
    for (size_t i = 0; i < shown; i++) {
        unsigned char byte = (unsigned char)text[i];

        cw_out_char(why, byte < 0x20 || byte == 0x7f ? '?' : text[i]);
    }
    cw_out_string(why, shown < len ? "...'" : "'");
}

static void say_form(struct cw_out *why, const struct definition *def)
{
    switch (def->kind) {
    case KIND_ENUM:
        cw_out_printf(why, "one of %s", def->row.values);
        return;
    case KIND_COUNT:
        cw_out_printf(why, "a whole number from %ju to %ju", (uintmax_t)def->min,
                      (uintmax_t)def->max);
        return;
    case KIND_SIZES:
        cw_out_printf(why,
                      "%sa size (8G), a share (25%%), or a list of at most %d, each device once "
                      "(0:8G,GPU-<uuid>:50%%,4G)",
                      def->takes_none ? "none, " : "", CW_SIZES_MAX);
        return;
    case KIND_TIME:
        cw_out_printf(why, "a time from %s to %s, as in 500ms, 10s or 2m", def->min_time,
                      def->max_time);
        return;
    case KIND_BATCHES:
        cw_out_printf(why,
                      "a list of at most %d SIZE:COUNT (64M:8,1.5G:2), sizes up to 1T and counts "
                      "from 1 to %d",
                      CW_BATCHES_MAX, CW_BATCH_BLOCKS);
        return;
    case KIND_PATH:
        cw_out_printf(why, "a file name of at most %d bytes, or -", CW_OPTION_VALUE_MAX - 1);
        return;
    }
}

/* ---- one value ---- */

enum verdict { TAKEN, TAKEN_WITH_COMPLAINT, REFUSED };

static enum verdict refuse(struct cw_out *why, const struct definition *def, const char *value)
{
    say_quoted(why, value, strlen(value));
    cw_out_string(why, " is not ");
    say_form(why, def);
    return REFUSED;
}

static const struct word *find_word(const struct definition *def, const char *text)
{
    for (const struct word *word = def->words; word->text; word++) {
        if (strcmp(word->text, text) == 0)
            return word;
    }
    return NULL;
}

static enum verdict parse_enum(const struct definition *def, const char *value, void *field,
                               struct cw_out *why)
{
    const struct word *word = find_word(def, value);

    if (!word)
        return refuse(why, def, value);
    memcpy(field, &word->value, sizeof(word->value));
    return TAKEN;
}

static enum verdict parse_count(const struct definition *def, const char *value, void *field,
                                struct cw_out *why)
{
    uint64_t number;

    if (cw_count_parse(value, &number) != 0 || number < def->min || number > def->max)
        return refuse(why, def, value);
    memcpy(field, &number, sizeof(number));
    return TAKEN;
}

/* Devices that a list leaves out have the default, whatever the option was set to before. */
static enum verdict parse_sizes(const struct definition *def, const char *value, void *field,
                                struct cw_out *why)
{
    struct cw_device_sizes sizes = {.count = 0};

    if (cw_sizes_parse(def->row.fallback, def->takes_none, &sizes) != 0 ||
        cw_sizes_parse(value, def->takes_none, &sizes) != 0)
        return refuse(why, def, value);
    memcpy(field, &sizes, sizeof(sizes));
    return TAKEN;
}

static enum verdict parse_time(const struct definition *def, const char *value, void *field,
                               struct cw_out *why)
{
    uint64_t min;
    uint64_t max;
    uint64_t ns;

    if (cw_time_parse(def->min_time, &min) != 0 || cw_time_parse(def->max_time, &max) != 0 ||
        cw_time_parse(value, &ns) != 0 || ns < min || ns > max)
        return refuse(why, def, value);
    memcpy(field, &ns, sizeof(ns));
    return TAKEN;
}

static enum verdict parse_batches(const struct definition *def, const char *value, void *field,
                                  struct cw_out *why)
{
    struct cw_option_batches batches;

    if (cw_batches_parse(value, &batches) != 0)
        return refuse(why, def, value);
    memcpy(field, &batches, sizeof(batches));
    return TAKEN;
}

/* The caller has checked that the value fits. */
static enum verdict parse_path(const char *value, void *field, struct cw_out *why)
{
    const char *bad = cw_path_find_bad_sequence(value);

    memcpy(field, value, strlen(value) + 1);
    if (!bad)
        return TAKEN;
    say_quoted(why, value, strlen(value));
    cw_out_string(why, " has an unknown sequence ");
    say_quoted(why, bad, strnlen(bad, 2));
    cw_out_string(why, "; known are %p %h %e %t %n %q{VAR} %%");
    return TAKEN_WITH_COMPLAINT;
}

static enum verdict parse_value(const struct definition *def, const char *value,
                                struct cw_options *options, struct cw_out *why)
{
    void *field = member(options, def);

    if (strlen(value) >= CW_OPTION_VALUE_MAX)
        return refuse(why, def, value);
    switch (def->kind) {
    case KIND_ENUM:
        return parse_enum(def, value, field, why);
    case KIND_COUNT:
        return parse_count(def, value, field, why);
    case KIND_SIZES:
        return parse_sizes(def, value, field, why);
    case KIND_TIME:
        return parse_time(def, value, field, why);
    case KIND_BATCHES:
        return parse_batches(def, value, field, why);
    case KIND_PATH:
        return parse_path(value, field, why);
    }
    return REFUSED;
}

static void set_defaults(struct cw_options *options)
{
    memset(options, 0, sizeof(*options));
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        const struct definition *def = &definitions[i];
        struct cw_out nowhere;
        int is_bad;

        cw_out_init(&nowhere, -1, NULL, 0);
        is_bad = parse_value(def, def->row.fallback, options, &nowhere) != TAKEN;
#ifdef CW_DEBUG
        if (is_bad)
            __builtin_trap(); /* a wrong row in options.def */
#else
        (void)is_bad;
#endif
    }
}

/* ---- names ---- */

static const struct definition *find_definition(const char *name, size_t len)
{
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        const char *known = definitions[i].row.name;

        if (strncmp(known, name, len) == 0 && known[len] == '\0')
            return &definitions[i];
    }
    return NULL;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;

    return least < c ? least : c;
}

/* Levenshtein distance, letter case aside; len at most COMPARED_NAME. */
static unsigned edit_distance(const char *name, size_t len, const char *known)
{
    unsigned row[COMPARED_NAME + 1];

    for (unsigned i = 0; i <= len; i++)
        row[i] = i;
    for (; *known; known++) {
        unsigned diagonal = row[0]++;

        for (size_t i = 1; i <= len; i++) {
            unsigned replaced = diagonal + (upper(name[i - 1]) != *known);

            diagonal = row[i];
            row[i] = min3(row[i] + 1, row[i - 1] + 1, replaced);
        }
    }
    return row[len];
}

/* The known name that was probably meant, or NULL: at most one wrong letter in three, or so. */
static const char *find_nearest(const char *name, size_t len)
{
    const char *nearest = NULL;
    unsigned least = (unsigned)(len + 2) / 3 + 1;

    if (len > COMPARED_NAME)
        return NULL;
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        unsigned distance = edit_distance(name, len, definitions[i].row.name);

        if (distance < least) {
            least = distance;
            nearest = definitions[i].row.name;
        }
    }
    return nearest;
}

/* ---- the environment ---- */

struct parse {
    struct cw_options *options;
    enum cw_option_origin *origins;
    struct cw_option_complaints *complaints;
    char seen[CW_OPTION_COUNT]; /* the variable was there before */
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
    say_quoted(&out, value, strlen(value));
    cw_out_string(&out, " is not a known variable");
    if (nearest)
        cw_out_printf(&out, "; did you mean %s%s?", CW_OPTION_PREFIX, nearest);
    cw_out_string(&out, nearest ? " See 'cuwarden options'" : "; see 'cuwarden options'");
    line[out.len] = '\0';
    complain(parse, line);
}

static void complain_of_value(struct parse *parse, const struct definition *def,
                              enum verdict verdict, const char *why)
{
    const char *fallback = def->row.fallback;
    char line[CW_OPTION_LINE_MAX];
    struct cw_out out;

    cw_out_init(&out, -1, line, sizeof(line) - 1);
    cw_out_printf(&out, "%s%s: %s; ", CW_OPTION_PREFIX, def->row.name, why);
    if (verdict == TAKEN_WITH_COMPLAINT)
        cw_out_string(&out, "kept as it stands");
    else if (*fallback)
        cw_out_printf(&out, "the default '%s' stays", fallback);
    else
        cw_out_string(&out, "it stays unset");
    line[out.len] = '\0';
    complain(parse, line);
}

static void parse_known(struct parse *parse, const struct definition *def, const char *value)
{
    size_t index = (size_t)(def - definitions);
    char why[CW_OPTION_LINE_MAX];
    enum verdict verdict;
    struct cw_out out;

    if (parse->seen[index])
        return;
    parse->seen[index] = 1;
    if (!*value)
        return;
    cw_out_init(&out, -1, why, sizeof(why) - 1);
    verdict = parse_value(def, value, parse->options, &out);
    why[out.len] = '\0';
    if (verdict != TAKEN)
        complain_of_value(parse, def, verdict, why);
    if (verdict != REFUSED && parse->origins)
        parse->origins[index] = CW_ORIGIN_ENVIRONMENT;
}

/* The part behind the prefix, or NULL when the variable is none of ours. */
static const char *own_part(const char *entry)
{
    size_t len = sizeof(CW_OPTION_PREFIX) - 1;

    return strncmp(entry, CW_OPTION_PREFIX, len) == 0 ? entry + len : NULL;
}

static void parse_entry(struct parse *parse, const char *entry)
{
    const char *name = own_part(entry);
    const char *equals = name ? strchr(name, '=') : NULL;
    const struct definition *def;
    size_t len;

    if (!equals)
        return;
    len = (size_t)(equals - name);
    def = find_definition(name, len);
    if (def)
        parse_known(parse, def, equals + 1);
    else if (equals[1])
        complain_of_name(parse, name, len, equals + 1);
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
                      enum cw_option_origin *origins, struct cw_option_complaints *complaints)
{
    struct parse parse = {.options = out, .origins = origins, .complaints = complaints};

    set_defaults(out);
    if (complaints)
        complaints->count = 0;
    for (size_t i = 0; origins && i < CW_OPTION_COUNT; i++)
        origins[i] = CW_ORIGIN_DEFAULT;
    if (!env)
        return;
    if (!trusted) {
        if (has_own_variable(env))
            complain(&parse, "the " CW_OPTION_PREFIX " variables are ignored in a setuid program");
        return;
    }
    for (; *env; env++)
        parse_entry(&parse, *env);
}

int cw_options_set(struct cw_options *options, const char *name, const char *value, char *why,
                   size_t why_cap)
{
    const struct definition *def = find_definition(name, strlen(name));
    struct cw_options changed = *options;
    enum verdict verdict = REFUSED;
    struct cw_out out;

    cw_out_init(&out, -1, why, why_cap > 0 ? why_cap - 1 : 0);
    if (def)
        verdict = parse_value(def, value, &changed, &out);
    else
        cw_out_string(&out, "no such option");
    if (why_cap > 0)
        why[out.len] = '\0';
    if (verdict != TAKEN)
        return -1;
    *options = changed;
    return 0;
}

/* ---- the rows ---- */

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
    case KIND_SIZES:
        cw_sizes_print(field, &out);
        break;
    case KIND_TIME:
        cw_time_print(number_in(field), &out);
        break;
    case KIND_BATCHES:
        cw_batches_print(field, &out);
        break;
    case KIND_PATH:
        cw_out_string(&out, field);
        break;
    }
    if (cap > 0)
        buf[out.len] = '\0';
}
