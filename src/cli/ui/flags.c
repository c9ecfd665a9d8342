/* SPDX-License-Identifier: MIT */
/* Command lines as tables. See flags.h. */
#include "cli/ui/flags.h"
#include "base/compiler.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#include <ctype.h>
#include <getopt.h>
#include <string.h>
#include <stdio.h>

#define COLUMNS     79
#define INDENT      2
#define HELP_COLUMN 25  /* maximum column where help begins */
#define TEXT_MAX    512 /* longest help of a flag, with its NUL */
#define FLAGS_MAX   96

static const struct cw_flag help_flag = {
    .id = 'h', .name = "help", .help = "display this help and exit"};

/* ---- rows ---- */

const struct cw_flag *cw_flags_at(const struct cw_command_line *line, size_t i)
{
    for (size_t g = 0; g < CW_FLAG_GROUPS; g++) {
        if (i < line->group[g].count)
            return &line->group[g].flag[i];
        i -= line->group[g].count;
    }
    return i == 0 ? &help_flag : NULL;
}

char cw_flag_letter(const struct cw_flag *flag)
{
    return flag->id > ' ' && flag->id < 0x7f ? (char)flag->id : '\0';
}

static void add(char *buf, size_t cap, const char *glue, const char *text, size_t len)
{
    size_t used = strlen(buf);

    snprintf(buf + used, cap - used, "%s%.*s", used > 0 ? glue : "", (int)len, text);
}

const char *cw_flag_values(const struct cw_flag *flag, char *buf, size_t cap)
{
    const char *words = flag->words ? flag->words : flag->offers;

    buf[0] = '\0';
    for (const struct cw_flag_word *each = flag->each; each && each->name; each++)
        add(buf, cap, " ", each->name, strlen(each->name));
    for (size_t len; words && *words; words += len + (words[len] == ' ')) {
        words += *words == '*';
        len = strcspn(words, " ");
        add(buf, cap, " ", words, len);
    }
    return buf;
}

/* "text (default), json or collapsed". */
static void list_words(const char *words, char *buf, size_t cap)
{
    const char *glue = "";

    buf[0] = '\0';
    for (size_t len; *words; words += len + (words[len] == ' ')) {
        int is_default = *words == '*';

        words += is_default;
        len = strcspn(words, " ");
        add(buf, cap, glue, words, len);
        if (is_default)
            add(buf, cap, "", " (default)", 10);
        glue = words[len] && !strchr(words + len + 1, ' ') ? " or " : ", ";
    }
}

const char *cw_flag_help(const struct cw_flag *flag, char *buf, size_t cap)
{
    const char *place = strstr(flag->help, "%w");
    char words[TEXT_MAX];

    if (!place) {
        snprintf(buf, cap, "%s", flag->help);
        return buf;
    }
    list_words(flag->words, words, sizeof(words));
    snprintf(buf, cap, "%.*s%s%s", (int)(place - flag->help), flag->help, words, place + 2);
    return buf;
}

const char *cw_flags_operand_words(const struct cw_command_line *line, char *buf, size_t cap)
{
    buf[0] = '\0';
    if (line->words)
        add(buf, cap, "", line->words, strlen(line->words));
    for (const struct cw_flag_word *word = line->requests; word && word->name; word++) {
        size_t len = strcspn(word->name, "=");

        add(buf, cap, " ", word->name, len + (word->name[len] == '='));
    }
    return buf;
}

/* ---- getopt ---- */

static int is_one_of(const struct cw_flag *flag, const char *value)
{
    char words[TEXT_MAX], list[TEXT_MAX] = "", guess[CW_SUGGESTION_MAX];
    struct cw_nearest nearest = cw_nearest_to(value, strlen(value));
    const char *at;

    cw_flag_values(flag, words, sizeof(words));
    at = words;
    for (size_t len; *at; at += len + (at[len] == ' ')) {
        len = strcspn(at, " ");
        if (strlen(value) == len && strncmp(at, value, len) == 0)
            return 1;
        add(list, sizeof(list), ", ", at, len);
        cw_nearest_offer(&nearest, at, len);
    }
    cw_cli_error("--%s: '%s' is not one of %s%s", flag->name, value, list,
                 cw_cli_suggestion(guess, sizeof(guess), &nearest));
    return 0;
}

static int take_flag(const struct cw_flag *flag, char *value, cw_flag_fn set, void *request)
{
    if ((flag->words || flag->each) && !is_one_of(flag, value))
        return -1;
    return set(request, flag->id, value);
}

static int check_operands(const struct cw_command_line *line, int argc, char **argv)
{
    int count = argc - optind;

    if (count < line->least)
        cw_cli_error("missing %s", line->missing);
    else if (line->most >= 0 && count > line->most)
        cw_cli_error("extra operand '%s'", argv[optind + line->most]);
    else
        return 0;
    return -1;
}

/* Flags after the program are the program's. */
static size_t make_letters(const struct cw_command_line *line, char letters[2 * FLAGS_MAX + 2])
{
    size_t len = 0;

    if (line->operands & CW_OPERAND_PROGRAM)
        letters[len++] = '+';
    letters[len++] = ':'; /* the messages are ours */
    for (size_t i = 0; cw_flags_at(line, i); i++) {
        const struct cw_flag *flag = cw_flags_at(line, i);

        if (!cw_flag_letter(flag))
            continue;
        letters[len++] = cw_flag_letter(flag);
        if (flag->value)
            letters[len++] = ':';
    }
    letters[len] = '\0';
    return len;
}

/* A name that is no flag's, nor the beginning of one. */
static void refuse_name(const struct cw_command_line *line, const char *name)
{
    size_t len = strcspn(name, "=");
    struct cw_nearest nearest = cw_nearest_to(name, len);
    char matches[TEXT_MAX] = "";
    const struct cw_flag *flag;

    for (size_t i = 0; (flag = cw_flags_at(line, i)); i++) {
        cw_nearest_offer(&nearest, flag->name, strlen(flag->name));
        if (strncmp(flag->name, name, len) == 0)
            add(matches, sizeof(matches), ", --", flag->name, strlen(flag->name));
    }
    if (matches[0])
        cw_cli_error("'--%.*s' is ambiguous: --%s", (int)len, name, matches);
    else if (nearest.found)
        cw_cli_error("there is no flag '--%.*s'; did you mean --%s?", (int)len, name,
                     nearest.found);
    else
        cw_cli_error("there is no flag '--%.*s'", (int)len, name);
}

/* What getopt refused: `id` is ':' for a missing value. */
static int refuse_flag(const struct cw_command_line *line, int id, char **argv)
{
    const struct cw_flag *flag;
    size_t i = 0;

    while ((flag = cw_flags_at(line, i)) && flag->id != optopt)
        i++;
    if (flag && id == ':')
        cw_cli_error("--%s needs a value: --%s=%s", flag->name, flag->name, flag->value);
    else if (flag)
        cw_cli_error("--%s takes no value", flag->name);
    else if (optopt != 0)
        cw_cli_error("there is no flag '-%c'", optopt);
    else
        refuse_name(line, argv[optind - 1] + 2);
    return cw_cli_usage_error();
}

int cw_flags_parse(const struct cw_command_line *line, int argc, char **argv, cw_flag_fn set,
                   void *request)
{
    struct option options[FLAGS_MAX + 1] = {{NULL, 0, NULL, 0}};
    char letters[2 * FLAGS_MAX + 2];
    const struct cw_flag *flag;
    int id;

    for (size_t i = 0; i < FLAGS_MAX && (flag = cw_flags_at(line, i)); i++)
        options[i] = (struct option){flag->name, flag->value ? required_argument : no_argument,
                                     NULL, flag->id};
    make_letters(line, letters);
    while ((id = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        size_t i = 0;

        if (id == '?' || id == ':')
            return refuse_flag(line, id, argv);
        if (id == 'h') {
            cw_flags_print_help(stdout, argv[0], line);
            return CW_EXIT_OK;
        }
        while ((flag = cw_flags_at(line, i)) && flag->id != id)
            i++;
        if (take_flag(flag, optarg, set, request) != 0) /* the message says what to do */
            return CW_EXIT_USAGE;
    }
    return check_operands(line, argc, argv) == 0 ? -1 : cw_cli_usage_error();
}

/* ---- --help ---- */

static void print_padded(FILE *to, int from, int column)
{
    if (from + 2 > column) {
        fputc('\n', to);
        from = 0;
    }
    fprintf(to, "%*s", column - from, "");
}

/* Wraps text at `column`, which is the current position. */
static void print_wrapped(FILE *to, const char *text, int column)
{
    int at = column;

    for (size_t len; *text; text += len + (text[len] == ' ' || text[len] == '\n')) {
        len = strcspn(text, " \n");
        if (at > column && at + 1 + (int)len > COLUMNS) {
            fprintf(to, "\n%*s", column, "");
            at = column;
        }
        at += fprintf(to, "%s%.*s", at > column ? " " : "", (int)len, text);
        if (text[len] == '\n') {
            fputc('\n', to);
            at = column;
        }
    }
    fputc('\n', to);
}

static int format_flag(const struct cw_flag *flag, char *buf, size_t cap)
{
    char letter[8] = "";

    if (cw_flag_letter(flag))
        snprintf(letter, sizeof(letter), "-%c, ", cw_flag_letter(flag));
    return snprintf(buf, cap, "%s--%s%s%s", letter, flag->name, flag->value ? "=" : "",
                    flag->value ? flag->value : "");
}

/* As narrow as the flags allow; a flag that is too long has its help on the next line. */
static int column_of(const struct cw_command_line *line)
{
    char text[TEXT_MAX];
    int column = 0;

    for (size_t i = 0; cw_flags_at(line, i); i++) {
        int width = INDENT + format_flag(cw_flags_at(line, i), text, sizeof(text)) + 2;

        if (width <= HELP_COLUMN && width > column)
            column = width;
    }
    for (const struct cw_flag_word *word = line->requests; word && word->name; word++)
        if (INDENT + (int)strlen(word->name) + 2 > column)
            column = INDENT + (int)strlen(word->name) + 2;
    return column;
}

static void print_words(FILE *to, const struct cw_flag_word *word, int indent, int column)
{
    for (; word && word->name; word++) {
        print_padded(to, fprintf(to, "%*s%s", indent, "", word->name), column);
        print_wrapped(to, word->help, column);
    }
}

static void print_flag(FILE *to, const struct cw_flag *flag, int column)
{
    char text[TEXT_MAX];

    format_flag(flag, text, sizeof(text));
    print_padded(to, fprintf(to, "%*s%s", INDENT, "", text), column);
    cw_flag_help(flag, text, sizeof(text));
    if (flag->below)
        add(text, sizeof(text), "", ":", 1);
    print_wrapped(to, text, column);
    print_words(to, flag->each, 2 * INDENT, column);
    if (flag->below)
        fprintf(to, "%*s%s\n", column + INDENT, "", flag->below);
}

static void print_usage(FILE *to, const char *name, const char *usage)
{
    const char *begin = "Usage:";

    for (size_t len; *usage; usage += len + (usage[len] == '\n')) {
        len = strcspn(usage, "\n");
        fprintf(to, "%s %s %.*s\n", begin, name, (int)len, usage);
        begin = "  or: ";
    }
}

void cw_flags_print_help(FILE *to, const char *name, const struct cw_command_line *line)
{
    int column = column_of(line);

    print_usage(to, name, line->usage);
    print_wrapped(to, line->about, 0);
    if (line->requests) {
        fprintf(to, "\nRequests:\n");
        print_words(to, line->requests, INDENT, column);
    }
    for (size_t g = 0; g < CW_FLAG_GROUPS; g++) {
        const struct cw_flag_group *group = &line->group[g];

        if (group->count > 0)
            fputc('\n', to);
        if (group->heading)
            fprintf(to, "%s\n", group->heading);
        for (size_t i = 0; i < group->count; i++)
            print_flag(to, &group->flag[i], column);
    }
    if (line->group[1].count > 0 || line->group[0].count == 0)
        fputc('\n', to);
    print_flag(to, &help_flag, column);
    if (line->notes) {
        fputc('\n', to);
        print_wrapped(to, line->notes, 0);
    }
}

/* ---- mdoc ---- */

static void print_lower(FILE *to, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        fputc(tolower((unsigned char)text[i]), to);
}

static void print_man_value(FILE *to, const struct cw_flag *flag)
{
    if (!flag->value)
        return;
    fprintf(to, " Ns = Ns Ar ");
    print_lower(to, flag->value, strlen(flag->value));
}

/* "[OPTION]... [--] PROGRAM [ARGUMENT]..." without its first word, as one line of macros. */
static void print_man_operands(FILE *to, const char *usage, size_t len)
{
    static const struct {
        const char *text, *macro;
    } signs[] = {{"[OPTION]...", ""},
                 {"[--]", "Oo Fl Fl Oc"},
                 {"...", "..."},
                 {"[", "Oo"},
                 {"]", "Oc"},
                 {"|", "|"},
                 {" ", ""}};
    const char *end = usage + len, *glue = ".";

    while (usage < end) {
        size_t i = 0, word = strcspn(usage, " []|.\n");

        while (i < CW_ARRAY_LEN(signs) && strncmp(usage, signs[i].text, strlen(signs[i].text)) != 0)
            i++;
        if (i < CW_ARRAY_LEN(signs)) {
            usage += strlen(signs[i].text);
            if (!*signs[i].macro)
                continue;
            fprintf(to, "%s%s", glue, signs[i].macro);
        } else {
            fprintf(to, "%s%s ", glue, isupper((unsigned char)*usage) ? "Ar" : "Cm");
            print_lower(to, usage, word);
            usage += word;
        }
        glue = " ";
    }
    if (*glue == ' ')
        fputc('\n', to);
}

/* The manual lists the options of the library separately. */
static void print_man_option(FILE *to, const struct cw_flag *flag)
{
    if (flag->is_option)
        return;
    fprintf(to, ".Op Fl Fl %s", flag->name);
    print_man_value(to, flag);
    fputc('\n', to);
}

void cw_flags_print_synopsis(FILE *to, const char *name, const struct cw_command_line *line)
{
    const struct cw_flag *flag;

    for (const char *usage = line->usage; *usage;) {
        size_t len = strcspn(usage, "\n");

        fprintf(to, ".Nm\n.Cm %s\n", name);
        if (line->group[0].flag && line->group[0].flag->is_option)
            fprintf(to, ".Op Fl Fl Ns Ar option Ns = Ns Ar value ...\n");
        for (size_t i = 0; strncmp(usage, "[OPTION]", 8) == 0 && (flag = cw_flags_at(line, i)) &&
                           flag != &help_flag;
             i++)
            print_man_option(to, flag);
        print_man_operands(to, usage, len);
        usage += len + (usage[len] == '\n');
    }
}

/* A sentence with its first letter capitalised. */
static void print_man_text(FILE *to, const char *text)
{
    fprintf(to, "%c%s.\n", toupper((unsigned char)*text), text + 1);
}

static void print_man_flag(FILE *to, const struct cw_flag *flag)
{
    char text[TEXT_MAX];

    fprintf(to, ".It ");
    if (cw_flag_letter(flag))
        fprintf(to, "Fl %c , ", cw_flag_letter(flag));
    fprintf(to, "Fl Fl %s", flag->name);
    print_man_value(to, flag);
    fputc('\n', to);
    cw_flag_help(flag, text, sizeof(text));
    if (flag->each)
        fprintf(to, "One of:\n");
    else if (strncmp(flag->help, "%w", 2) == 0)
        fprintf(to, "One of %s.\n", text);
    else
        print_man_text(to, text);
    if (!flag->each)
        return;
    fprintf(to, ".Bl -tag -width Ds -compact\n");
    for (const struct cw_flag_word *each = flag->each; each->name; each++) {
        fprintf(to, ".It Cm %s\n", each->name);
        print_man_text(to, each->help);
    }
    fprintf(to, ".El\n");
}

void cw_flags_print_man(FILE *to, const char *name, const struct cw_command_line *line)
{
    const struct cw_flag *flag;

    if (line->group[0].count == 0)
        return;
    fprintf(to, ".Ss cuwarden %s\n.Bl -tag -width Ds\n", name);
    for (const struct cw_flag_word *word = line->requests; word && word->name; word++) {
        fprintf(to, ".It Cm %s\n", word->name);
        print_man_text(to, word->help);
    }
    for (size_t i = 0; (flag = cw_flags_at(line, i)) && flag != &help_flag; i++)
        if (!flag->is_option)
            print_man_flag(to, flag);
    fprintf(to, ".El\n");
}
