/* SPDX-License-Identifier: MIT */
/* Reading --help. See help_text.h. */
#include "cli/ui/help_text.h"

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define FLAG_INDENT  2
#define VALUE_INDENT 4
#define MORE_INDENT  10 /* at least, of a line that goes on with the help of a flag */

/* ---- strings that grow ---- */

/* Adds `text` behind `glue`, which is left out where there was nothing. 0, or -1. */
static int append(char **to, const char *glue, const char *text, size_t len)
{
    char *grown;

    if (asprintf(&grown, "%s%s%.*s", *to ? *to : "", *to && **to ? glue : "", (int)len, text) < 0)
        return -1;
    free(*to);
    *to = grown;
    return 0;
}

/* ---- lists of words ---- */

static size_t word_length(const char *text)
{
    size_t len = 0;

    while (islower((unsigned char)text[len]) || isdigit((unsigned char)text[len]) ||
           (len > 0 && text[len] == '-'))
        len++;
    return isdigit((unsigned char)text[0]) ? 0 : len;
}

/* Past "(default)", and what stands between two words; NULL where something else does. */
static const char *skip_between(const char *text, int *is_end)
{
    static const char *const between[] = {", or ", ", and ", ", ", " or ", " and "};

    if (strncmp(text, " (default)", 10) == 0)
        text += 10;
    *is_end = *text == '\0' || strcmp(text, ".") == 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(between); i++) {
        if (strncmp(text, between[i], strlen(between[i])) == 0)
            return text + strlen(between[i]);
    }
    return NULL;
}

/* "text (default) or json", alone or behind the last colon; "" if it is not such a list. */
static char *words_of(const char *help)
{
    const char *text = help;
    char *words = strdup("");
    int is_end = 0, count = 0;

    for (const char *colon = help; (colon = strstr(colon, ": ")); colon += 2)
        text = colon + 2;
    while (text && words) {
        size_t len = word_length(text);

        if (len == 0 || append(&words, " ", text, len) != 0)
            break;
        count++;
        text = skip_between(text + len, &is_end);
    }
    if (words && (!is_end || count < 2))
        words[0] = '\0';
    return words;
}

/* ---- lines ---- */

static enum cw_help_value value_of(const char *placeholder)
{
    if (strncmp(placeholder, "FILE", 4) == 0)
        return CW_HELP_VALUE_FILE;
    return strncmp(placeholder, "DIR", 3) == 0 ? CW_HELP_VALUE_DIRECTORY : CW_HELP_VALUE_OTHER;
}

/* "-o, --output=FILE  write to FILE"; 0, or -1 without memory. */
static int add_flag(struct cw_help *help, const char *line)
{
    struct cw_help_flag flag = {.letter = '\0'};
    size_t len;

    if (line[1] != '-') {
        flag.letter = line[1];
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    if (strncmp(line, "--", 2) != 0 || help->flags == CW_HELP_FLAGS_MAX)
        return 0;
    line += 2;
    len = strcspn(line, "= ");
    flag.name = strndup(line, len);
    line += len;
    flag.value = *line == '=' ? value_of(line + 1) : CW_HELP_VALUE_NONE;
    line += strcspn(line, " ");
    line += strspn(line, " ");
    flag.help = strdup(line);
    flag.words = strdup("");
    help->flag[help->flags++] = flag;
    return flag.name && flag.help && flag.words ? 0 : -1;
}

/* The values of a flag whose help ends in "one of" have a line each. */
static int takes_values(const struct cw_help_flag *flag)
{
    static const char end[] = "one of";
    size_t len = strlen(flag->help);

    return len >= sizeof(end) - 1 && strcmp(flag->help + len - (sizeof(end) - 1), end) == 0;
}

static int add_line(struct cw_help *help, const char *line, int *is_request)
{
    size_t indent = strspn(line, " ");
    const char *text = line + indent;
    struct cw_help_flag *last = help->flags > 0 ? &help->flag[help->flags - 1] : NULL;

    if (indent == 0) {
        *is_request = strcmp(line, "Requests:") == 0;
        return 0;
    }
    if (indent == FLAG_INDENT && *text == '-') {
        *is_request = 0;
        return add_flag(help, text);
    }
    if (indent == FLAG_INDENT && *is_request) {
        size_t len = strcspn(text, " =");

        return append(&help->operands.words, " ", text, len + (text[len] == '='));
    }
    if (indent == VALUE_INDENT && last && takes_values(last))
        return append(&last->words, " ", text, strcspn(text, " "));
    if (indent >= MORE_INDENT && last && !*is_request && *text)
        return append(&last->help, " ", text, strlen(text));
    return 0;
}

/* ---- operands ---- */

/* One of "PID|FILE|DIR", "bash|zsh|fish"; brackets and dots are gone. */
static int add_operand(struct cw_help_operands *operands, const char *word, size_t len)
{
    if (len == word_length(word))
        return append(&operands->words, " ", word, len);
    operands->program |= strncmp(word, "PROGRAM", len) == 0;
    operands->pid |= strncmp(word, "PID", len) == 0;
    operands->file |=
        len >= 3 && (strncmp(word, "FILE", len) == 0 || strncmp(word, "DIR", len) == 0);
    return 0;
}

/* "Usage: cuwarden ctl [OPTION]... PID|FILE REQUEST" */
static int read_usage(struct cw_help *help, const char *line)
{
    const char *text = strstr(line, "cuwarden ");

    if (!text)
        return 0;
    text += strlen("cuwarden ");
    text += strcspn(text, " "); /* the command's name */
    while (*text) {
        int is_flag;
        size_t len;

        text += strspn(text, " ");
        is_flag = *text == '-' || strncmp(text, "[-", 2) == 0;
        if (is_flag) {
            text += strcspn(text, " ");
            continue;
        }
        text += strspn(text, "[]|.");
        len = strcspn(text, " []|.");
        if (len > 0 && add_operand(&help->operands, text, len) != 0)
            return -1;
        text += len;
    }
    return 0;
}

/* ---- all ---- */

static int is_usage(const char *line)
{
    return strncmp(line, "Usage: ", 7) == 0 || strncmp(line, "  or:  ", 7) == 0;
}

int cw_help_parse(struct cw_help *help, char *text)
{
    char *line, *rest = text;
    int rc = 0, is_request = 0;

    *help = (struct cw_help){.operands.words = strdup("")};
    while (rc == 0 && (line = strsep(&rest, "\n")))
        rc = is_usage(line) ? read_usage(help, line) : add_line(help, line, &is_request);
    for (size_t i = 0; rc == 0 && i < help->flags; i++) {
        struct cw_help_flag *flag = &help->flag[i];

        if (flag->value != CW_HELP_VALUE_OTHER || flag->words[0] != '\0')
            continue;
        free(flag->words);
        flag->words = words_of(flag->help);
        rc = flag->words ? 0 : -1;
    }
    if (rc == 0 && help->operands.words)
        return 0;
    cw_cli_error("no memory");
    cw_help_free(help);
    return -1;
}

/* Its status is that of success, whatever is printed goes to the text. */
static char *print_to_memory(const struct cw_command *command)
{
    char name[64], flag[] = "--help";
    char *argv[] = {name, flag, NULL};
    FILE *terminal = stdout;
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);

    if (!memory)
        return NULL;
    snprintf(name, sizeof(name), "%s", command->full_name);
    optind = 0;
    stdout = memory;
    command->run(2, argv);
    stdout = terminal;
    if (fclose(memory) == 0)
        return text;
    free(text);
    return NULL;
}

int cw_help_read(struct cw_help *help, const struct cw_command *command)
{
    char *text = print_to_memory(command);
    int rc;

    if (!text) {
        cw_cli_error("no memory");
        return -1;
    }
    rc = cw_help_parse(help, text);
    free(text);
    return rc;
}

void cw_help_free(struct cw_help *help)
{
    for (size_t i = 0; i < help->flags; i++) {
        free(help->flag[i].name);
        free(help->flag[i].help);
        free(help->flag[i].words);
    }
    free(help->operands.words);
    *help = (struct cw_help){.flags = 0};
}
