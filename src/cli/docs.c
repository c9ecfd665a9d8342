/* SPDX-License-Identifier: MIT */
/*
 * The options as documentation: made from the rows of options.def, so it cannot drift from them.
 */
#include "cli/cli.h"

#include <string.h>

#include "base/options.h"

#define COLUMNS     79
#define FLAG_COLUMN 25 /* where the help of a flag begins */

char *cw_docs_flag_name(char *buf, size_t cap, const char *name)
{
    size_t i;

    for (i = 0; name[i] && i + 1 < cap; i++) {
        char c = name[i];

        if (c == '_')
            c = '-';
        else if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        buf[i] = c;
    }
    buf[i] = '\0';
    return buf;
}

void cw_docs_print_flags(FILE *to)
{
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        const struct cw_option_row *row = cw_options_row(i);
        char flag[CW_FLAG_MAX];
        int is_list;
        int len;

        cw_docs_flag_name(flag, sizeof(flag), row->name);
        is_list = strstr(row->values, ", ") != NULL;
        len = fprintf(to, "  --%s=%s", flag, is_list ? "WORD" : row->values);
        if (len >= FLAG_COLUMN) {
            fputc('\n', to);
            len = 0;
        }
        fprintf(to, "%*s%s%s\n", FLAG_COLUMN - len, "", row->help, is_list ? ":" : "");
        if (is_list)
            fprintf(to, "%*s%s\n", FLAG_COLUMN + 2, "", row->values);
    }
}

/* ---- running text ---- */

/* troff takes a line that begins with a dot or a quote for a request, and a backslash for its own.
 */
static void put_word(FILE *to, const char *word, size_t len, int is_man, int begins_line)
{
    if (is_man && begins_line && (word[0] == '.' || word[0] == '\''))
        fputs("\\&", to);
    for (size_t i = 0; i < len; i++) {
        if (is_man && word[i] == '\\')
            fputs("\\e", to);
        else
            fputc(word[i], to);
    }
}

static int ends_sentence(const char *word, size_t len)
{
    return len > 1 && word[len - 1] == '.' && word[len] == ' ';
}

/* Words up to COLUMNS; a manual begins each sentence on a line of its own. */
static void put_text(FILE *to, const char *text, int indent, int is_man)
{
    int column = 0;

    for (size_t len; *text; text += len + (text[len] == ' ')) {
        int begins_line;

        len = strcspn(text, " ");
        if (column > 0 && column + 1 + (int)len > COLUMNS) {
            fputc('\n', to);
            column = 0;
        }
        begins_line = column == 0;
        column += begins_line ? fprintf(to, "%*s", indent, "") : fprintf(to, " ");
        put_word(to, text, len, is_man, begins_line);
        column += (int)len;
        if (is_man && ends_sentence(text, len)) {
            fputc('\n', to);
            column = 0;
        }
    }
    fputc('\n', to);
}

static const char *shown_default(const struct cw_option_row *row)
{
    return *row->fallback ? row->fallback : "unset";
}

/* ---- the forms ---- */

static void print_text(FILE *to, const struct cw_option_row *row)
{
    fprintf(to, "%s%s=%s (default: %s)\n", CW_OPTION_PREFIX, row->name, row->values,
            shown_default(row));
    fprintf(to, "    %s.\n", row->help);
    put_text(to, row->detail, 4, 0);
}

static void print_man(FILE *to, const struct cw_option_row *row)
{
    char flag[CW_FLAG_MAX];

    cw_docs_flag_name(flag, sizeof(flag), row->name);
    fprintf(to, ".It Ev %s%s , Fl Fl %s\n", CW_OPTION_PREFIX, row->name, flag);
    fprintf(to, "%s.\n", row->help);
    put_text(to, row->detail, 0, 1);
    fprintf(to, "Values: %s.\nDefault: %s.\n", row->values, shown_default(row));
}

static void print_readme(FILE *to, const struct cw_option_row *row)
{
    fprintf(to, "| `%s%s` | %s | %s | %s |\n", CW_OPTION_PREFIX, row->name, row->values,
            shown_default(row), row->help);
}

static const struct form {
    const char *name;
    const char *heading;
    void (*print)(FILE *to, const struct cw_option_row *row);
} forms[] = {
    {"text", "", print_text},
    {"man", "", print_man},
    {"readme", "| variable | values | default | meaning |\n|---|---|---|---|\n", print_readme},
};

int cw_docs_print(FILE *to, const char *form)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(forms); i++) {
        if (strcmp(form, forms[i].name) != 0)
            continue;
        fputs(forms[i].heading, to);
        for (size_t row = 0; row < CW_OPTION_COUNT; row++)
            forms[i].print(to, cw_options_row(row));
        return 0;
    }
    return -1;
}
