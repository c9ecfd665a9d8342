/* SPDX-License-Identifier: MIT */
/* Targets that read text: options, suppressions, names of reports, traces, reports in JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/export/form.h"
#include "cli/model/json_read.h"
#include "cli/replay/replay_csv.h"
#include "fuzz.h"
#include "live/layout.h"
#include "base/pattern.h"
#include "report/leaks/suppress.h"
#include "report/path/dump_name.h"
#include "report/path/path.h"
#include "report/symbols/qualified.h"
#include "report/text/report_text.h"

#define LINES 64

/* Divides the text in place; the last is followed by NULL. */
static void split(char *text, char *line[LINES + 1])
{
    unsigned count = 0;

    while (text && count < LINES)
        line[count++] = strsep(&text, "\n");
    line[count] = NULL;
}

/* ---- options ---- */

/* What is printed of an option is read as the same value. */
static void print_and_read(const struct cw_options *options)
{
    static struct cw_options again;
    char value[2 * CW_OPTION_VALUE_MAX], printed[2 * CW_OPTION_VALUE_MAX];
    char why[CW_OPTION_LINE_MAX];

    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        const char *name = cw_options_row(i)->name;

        cw_options_print_value(options, i, value, sizeof(value));
        again = *options;
        if (options->origin[i] != CW_ORIGIN_ENVIRONMENT)
            continue;
        if (cw_options_set(&again, name, value, why, sizeof(why)) != 0) {
            if (!strchr(value, '%')) /* an unknown sequence, which only the environment may have */
                fuzz_wrong("%s is printed as '%s', which is refused: %s", name, value, why);
            continue;
        }
        cw_options_print_value(&again, i, printed, sizeof(printed));
        if (strcmp(value, printed) != 0)
            fuzz_wrong("%s: '%s' is read as '%s'", name, value, printed);
    }
}

/* Lines NAME=VALUE. */
void fuzz_options(const uint8_t *bytes, size_t size)
{
    static struct cw_options options;
    static struct cw_option_complaints complaints;
    char *text = fuzz_text(bytes, size), *line[LINES + 1], *env[LINES + 1] = {NULL};
    char why[CW_OPTION_LINE_MAX];
    unsigned count = 0;

    split(text, line);
    for (; line[count]; count++)
        if (asprintf(&env[count], CW_OPTION_PREFIX "%s", line[count]) < 0)
            abort();
    cw_options_parse(env, 1, &options, &complaints);
    print_and_read(&options);
    for (unsigned i = 0; i < count; i++) {
        char *value = strchr(line[i], '=');

        if (value) {
            *value++ = '\0';
            (void)cw_options_set(&options, line[i], value, why, sizeof(why));
        }
        free(env[i]);
    }
    free(text);
}

/* ---- suppressions ---- */

/* Glob by the book: * is any characters. */
static int is_glob(const char *pattern, size_t len, const char *text)
{
    if (len == 0)
        return *text == '\0';
    if (*pattern == '*')
        return is_glob(pattern + 1, len - 1, text) || (*text && is_glob(pattern, len, text + 1));
    return *text == *pattern && is_glob(pattern + 1, len - 1, text + 1);
}

static int must_match(const char *pattern, const char *text)
{
    char whole[64];
    size_t len = strlen(pattern);
    int begins = *pattern == '^', ends;

    pattern += begins;
    len -= (size_t)begins;
    ends = len > 0 && pattern[len - 1] == '$';
    len -= (size_t)ends;
    snprintf(whole, sizeof(whole), "%s%.*s%s", begins ? "" : "*", (int)len, pattern,
             ends ? "" : "*");
    return is_glob(whole, strlen(whole), text);
}

/* A file of rules; its first two lines are also a pattern and a text. */
void fuzz_suppressions(const uint8_t *bytes, size_t size)
{
    struct cw_rules rules;
    char *text = fuzz_text(bytes, size), *line[LINES + 1], buffer[512];
    struct cw_out out;
    int nowhere = open("/dev/null", O_WRONLY);

    cw_rules_init(&rules, fuzz_file(bytes, size), NULL);
    cw_out_init(&out, nowhere, buffer, sizeof(buffer));
    for (uint32_t i = 0; i < rules.count; i++) {
        const struct cw_rule *rule = cw_rules_at(&rules, i);

        cw_rule_print(rule, &out);
        cw_rule_print_caps(rule, &out);
        (void)cw_pattern_matches(rule->pattern, "void at::native::grow_cache(int)");
    }
    cw_out_flush(&out);
    cw_rules_fini(&rules);
    close(nowhere);
    split(text, line);
    if (line[0] && line[1] && strlen(line[0]) < 12 && strlen(line[1]) < 24 &&
        cw_pattern_matches(line[0], line[1]) != must_match(line[0], line[1]))
        fuzz_wrong("'%s' and '%s' match, or not", line[0], line[1]);
    free(text);
}

/* ---- names ---- */

/* Of a function: what it is known by, and how it is read. */
static void name_function(const char *symbol)
{
    static const size_t caps[] = {8, 9, 40, 512};

    for (size_t i = 0; i < sizeof(caps) / sizeof(*caps); i++) {
        char *name = malloc(caps[i]);

        if (!name)
            abort();
        if (strlen(cw_short_name(symbol, 0, name, caps[i])) >= caps[i] || (symbol[0] && !name[0]))
            fuzz_wrong("'%s' in short is '%s'", symbol, name);
        (void)cw_qualified_name(symbol, name, caps[i]);
        free(name);
    }
}

/* The pattern, which a function may have, too, then the environment. */
void fuzz_names(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_text(bytes, size), *line[LINES + 1];
    struct cw_path_values values = {
        .pid = 4711, .host = "host", .program = "/bin/a.out", .number = 3, .env = line + 1};
    static char path[CW_PATH_MAX], other[2 * CW_PATH_MAX], again[CW_PATH_MAX];

    split(text, line);
    if (!line[0])
        line[0] = text;
    if (cw_path_expand(path, sizeof(path), line[0], &values) == 0) {
        cw_dump_name_escape(other, sizeof(other), path);
        if (cw_path_expand(again, sizeof(again), other, &values) != 0 || strcmp(path, again) != 0)
            fuzz_wrong("'%s' is escaped as '%s', which is '%s'", path, other, again);
        for (size_t cap = 1; cap < 40; cap += 13)
            if ((cw_path_expand(again, cap, line[0], &values) == 0) != (strlen(path) < cap))
                fuzz_wrong("'%s' fits in %zu bytes, or not", path, cap);
    }
    (void)cw_dump_name_number(other, CW_PATH_MAX, line[0], 7);
    (void)cw_path_insert(other, 32, line[0], ".2");
    (void)cw_path_names_file(line[0]);
    (void)cw_path_has_number(line[0]);
    (void)cw_path_ends_in(line[0], ".json");
    (void)cw_path_is_shared(line[0]);
    name_function(line[0]);
    free(text);
}

/* ---- traces ---- */

void fuzz_csv(const uint8_t *bytes, size_t size)
{
    struct cw_csv csv;
    struct cw_csv_event event;
    uint64_t ns = 0, line = 1;

    if (cw_csv_open(&csv, fuzz_file(bytes, size)) != 0)
        return;
    while (cw_csv_next(&csv, &event) == 1) {
        if (event.ns < ns || event.line <= line)
            fuzz_wrong("line %ju goes back", (uintmax_t)event.line);
        if (event.action > CW_CSV_FAILURE || event.kind >= CW_KIND_COUNT ||
            (event.device >= CW_MAX_DEVICES && event.device != CW_DEVICE_HOST))
            fuzz_wrong("line %ju: action %u, kind %u, device %u", (uintmax_t)event.line,
                       event.action, event.kind, event.device);
        ns = event.ns;
        line = event.line;
    }
    cw_csv_close(&csv);
}

/* ---- JSON ---- */

static void write_forms(const struct cw_report_model *model)
{
    static const cw_form_fn forms[] = {cw_form_text,  cw_form_json,      cw_form_html,
                                       cw_form_pprof, cw_form_heaptrack, cw_form_perfetto,
                                       cw_form_torch, cw_form_collapsed, cw_form_suggestions};
    struct cw_selection selection = {.metric = CW_METRIC_LIVE};
    struct cw_form_request form = {.model = model,
                                   .selection = &selection,
                                   .sections = CW_TEXT_ALL,
                                   .columns = 100,
                                   .out = fopen("/dev/null", "w")};
    uint32_t *site = cw_select_sites(model, &selection, &form.sites);

    form.site = site;
    for (size_t i = 0; site && i < sizeof(forms) / sizeof(forms[0]); i++)
        (void)forms[i](&form);
    free(site);
    fclose(form.out);
}

void fuzz_json(const uint8_t *bytes, size_t size)
{
    int fd = open(fuzz_file(bytes, size), O_RDONLY);
    struct cw_json_storage *storage = cw_json_read(fd, "report.json");

    if (storage) {
        write_forms(cw_json_model(storage));
        cw_json_storage_free(storage);
    }
    close(fd);
}
