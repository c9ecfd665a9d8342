/* SPDX-License-Identifier: MIT */
/*
 * Reads a file of suppressions. See suppress.h.
 *
 * Also runs in the user's process as it ends: no malloc, no stdio, and nothing that blocks. The
 * whole file is in memory; patterns point into it.
 */
#include "report/leaks/suppress.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/reason.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/options/number.h"
#include "report/leaks/cache.h"
#include "report/leaks/leak_class.h"
#include "base/sys.h"

#define BAD_LINES_SAID 5
#define LINE_SHOWN     60

static const char *const kind_words[] = {
    [CW_RULE_LEAK] = "leak:",
    [CW_RULE_MODULE] = "module:",
    [CW_RULE_SITE] = "site:",
    [CW_RULE_TAG] = "tag:",
};

/* ---- one line ---- */

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char *trim(char *line)
{
    size_t len;

    while (is_blank(*line))
        line++;
    for (len = strlen(line); len > 0 && is_blank(line[len - 1]);)
        line[--len] = '\0';
    return line;
}

/* "8M" after "max=". */
static int read_max(const char *at, uint64_t *out)
{
    struct cw_decimal number;

    at = cw_number_read_decimal(at, &number);
    at = at ? cw_number_read_bytes(at, &number, out) : NULL;
    return at && *at == '\0' ? 0 : -1;
}

static int read_count(const char *at, uint64_t *out)
{
    at = cw_number_read_digits(at, out);
    return at && *at == '\0' ? 0 : -1;
}

/* 1: a cap, "max=8M" or "count=2"; 0: not a cap; -1: a bad one, or the second of its kind. */
static int read_cap(const char *word, struct cw_rule *rule)
{
    if (strncmp(word, "max=", 4) == 0)
        return rule->max_bytes == CW_CAP_NONE && read_max(word + 4, &rule->max_bytes) == 0 ? 1 : -1;
    if (strncmp(word, "count=", 6) == 0)
        return rule->max_blocks == CW_CAP_NONE && read_count(word + 6, &rule->max_blocks) == 0 ? 1
                                                                                               : -1;
    return 0;
}

static char *find_last_blank(char *text)
{
    char *found = NULL;

    for (; *text != '\0'; text++)
        if (is_blank(*text))
            found = text;
    return found;
}

/* Removes the caps from the end of the pattern, which may itself contain blanks. */
static int read_caps(char *pattern, struct cw_rule *rule)
{
    char *blank;

    while ((blank = find_last_blank(pattern)) != NULL) {
        int found = read_cap(blank + 1, rule);

        if (found < 0)
            return -1;
        if (found == 0)
            return 0;
        *blank = '\0';
        trim(pattern);
    }
    return read_cap(pattern, rule) == 0 ? 0 : -1; /* a cap of zero */
}

static int read_site(const char *at, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t len = strlen(at);

    *out = 0;
    for (size_t i = 0; i < len; i++) {
        const char *digit =
            strchr(digits, at[i] >= 'A' && at[i] <= 'F' ? at[i] - 'A' + 'a' : at[i]);

        if (!digit)
            return -1;
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return len >= 1 && len <= 8 ? 0 : -1;
}

/* 0, or -1 if the line is not a rule. Splits the line in place. */
static int read_rule(char *line, struct cw_rule *rule)
{
    char *pattern = NULL;

    rule->max_bytes = rule->max_blocks = CW_CAP_NONE;
    rule->leak = CW_LEAK_SUPPRESSED;
    for (unsigned i = 0; i < CW_ARRAY_LEN(kind_words) && !pattern; i++) {
        if (strncmp(line, kind_words[i], strlen(kind_words[i])) != 0)
            continue;
        rule->kind = (uint8_t)i;
        pattern = trim(line + strlen(kind_words[i]));
    }
    if (!pattern || read_caps(pattern, rule) != 0 || *pattern == '\0')
        return -1;
    rule->pattern = pattern;
    return rule->kind == CW_RULE_SITE ? read_site(pattern, &rule->site) : 0;
}

/* ---- the file ---- */

static void CW_PRINTF(2, 3) complain(const struct cw_rules *rules, const char *fmt, ...)
{
    char text[CW_LOG_LINE_MAX];
    va_list ap;

    va_start(ap, fmt);
    cw_vformat(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!rules->fault)
        cw_log(CW_LOG_WARN, "%s", text);
    else if (rules->fault->text[0] == '\0')
        cw_format(rules->fault->text, sizeof(rules->fault->text), "%s", text);
}

static void complain_of_line(const struct cw_rules *rules, uint32_t line, const char *text,
                             unsigned *bad)
{
    int shown = (int)strnlen(text, LINE_SHOWN);

    if ((*bad)++ < BAD_LINES_SAID)
        complain(rules,
                 "%s:%u: '%.*s%s' is not a suppression; expected leak:PATTERN, module:PATTERN, "
                 "site:ID or tag:PATTERN, optionally followed by max=SIZE and count=N",
                 rules->path, line, shown, text, text[shown] ? "..." : "");
}

/* Terminates the line with a NUL; returns the beginning of the next one. */
static char *end_line(char *line, char *end)
{
    char *newline = memchr(line, '\n', (size_t)(end - line));

    if (!newline)
        return end + 1;
    *newline = '\0';
    return newline + 1;
}

static void read_rules(struct cw_rules *rules)
{
    char *end = rules->text + rules->size;
    uint32_t number = 0;
    unsigned bad = 0;
    char *next;

    for (char *at = rules->text; at < end; at = next) {
        struct cw_rule rule = {0};
        char said[LINE_SHOWN + 2];
        char *line;

        next = end_line(at, end);
        number++;
        line = trim(at);
        if (*line == '\0' || *line == '#')
            continue;
        if (rules->count == CW_RULES_MAX) {
            complain(rules, "%s:%u: only the first %d suppressions are used", rules->path, number,
                     CW_RULES_MAX);
            break;
        }
        cw_format(said, sizeof(said), "%s", line);
        if (read_rule(line, &rule) != 0) {
            complain_of_line(rules, number, said, &bad);
            continue;
        }
        rule.line = number;
        rules->rule[rules->count++] = rule;
    }
    if (bad > BAD_LINES_SAID)
        complain(rules, "%s: %u more lines are not suppressions", rules->path,
                 bad - BAD_LINES_SAID);
}

/* The errno, or 0. Rejects devices and FIFOs, which may block. */
static int read_text(struct cw_rules *rules, int fd)
{
    struct stat info;

    if (cw_sys_stat(fd, &info) != 0)
        return errno;
    if (S_ISDIR(info.st_mode))
        return EISDIR;
    if (!S_ISREG(info.st_mode))
        return ESPIPE;
    if ((uint64_t)info.st_size > CW_RULES_SIZE_MAX)
        return EFBIG;
    rules->size = (size_t)info.st_size;
    rules->text = cw_mem_alloc(rules->size + 1);
    rules->rule = cw_mem_alloc(CW_RULES_MAX * sizeof(*rules->rule));
    if (!rules->text || !rules->rule)
        return ENOMEM;
    if (cw_sys_read_at(fd, rules->text, rules->size, 0) != rules->size)
        return EIO;
    for (size_t i = 0; i < rules->size; i++)
        if (rules->text[i] == '\0')
            rules->text[i] = '?';
    return 0;
}

static int read_file(struct cw_rules *rules)
{
    int fd = cw_sys_open(rules->path, O_RDONLY | O_NONBLOCK, 0);
    int error;

    if (fd < 0)
        return errno;
    error = read_text(rules, fd);
    cw_sys_close(fd);
    return error;
}

int cw_rules_init(struct cw_rules *rules, const char *path, struct cw_rules_fault *fault)
{
    int error = 0;

    memset(rules, 0, sizeof(*rules));
    rules->path = path ? path : "";
    rules->fault = fault;
    if (fault)
        fault->text[0] = '\0';
    if (rules->path[0] != '\0')
        error = read_file(rules);
    if (error == 0 && rules->text)
        read_rules(rules);
    if (error != 0)
        complain(rules, "cannot read the suppressions in \"%s\": %s (errno %d)%s", rules->path,
                 cw_reason(error), error, fault ? "" : "; the report ignores them");
    rules->fault = NULL;
    rules->use = cw_mem_alloc(cw_rules_count(rules) * sizeof(*rules->use));
    return error;
}

void cw_rules_fini(struct cw_rules *rules)
{
    cw_mem_free(rules->use, cw_rules_count(rules) * sizeof(*rules->use));
    cw_mem_free(rules->rule, CW_RULES_MAX * sizeof(*rules->rule));
    cw_mem_free(rules->text, rules->size + 1);
    memset(rules, 0, sizeof(*rules));
}

/* ---- rules ---- */

uint32_t cw_rules_count(const struct cw_rules *rules)
{
    uint32_t builtin = 0;

    while (cw_leak_rule(builtin))
        builtin++;
    return rules->count + builtin;
}

const struct cw_rule *cw_rules_at(const struct cw_rules *rules, uint32_t index)
{
    return index < rules->count ? &rules->rule[index] : cw_leak_rule(index - rules->count);
}

void cw_rule_print_caps(const struct cw_rule *rule, struct cw_out *out)
{
    if (rule->max_bytes != CW_CAP_NONE) {
        cw_out_string(out, "max=");
        cw_number_print_bytes(rule->max_bytes, out);
    }
    if (rule->max_blocks != CW_CAP_NONE)
        cw_out_printf(out, "%scount=%ju", rule->max_bytes != CW_CAP_NONE ? " " : "",
                      (uintmax_t)rule->max_blocks);
}

const char *cw_rule_owner(const struct cw_rule *rule)
{
    const struct cw_cache *cache = cw_cache_row(rule->cache);

    if (cache)
        return cache->owner;
    return rule->label ? rule->label : "";
}

void cw_rule_print(const struct cw_rule *rule, struct cw_out *out)
{
    if (cw_rule_is_builtin(rule)) {
        cw_out_printf(out, "%s %s (%s)", cw_leak_class_name(rule->leak), cw_rule_owner(rule),
                      rule->pattern);
        return;
    }
    cw_out_printf(out, "%s%s", kind_words[rule->kind], rule->pattern);
    if (rule->max_bytes != CW_CAP_NONE || rule->max_blocks != CW_CAP_NONE)
        cw_out_char(out, ' ');
    cw_rule_print_caps(rule, out);
}
