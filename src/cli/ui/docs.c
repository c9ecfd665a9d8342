/* SPDX-License-Identifier: MIT */
/*
 * The options as documentation: made from the rows of options.def, so it cannot drift from them.
 */
#include "cli/cli.h"

#include <string.h>

#include "base/options/options.h"

#define COLUMNS     79
#define FLAG_COLUMN 25  /* where the help of a flag begins */
#define PRESET_MAX  512 /* longest list of a preset's values, with its NUL */

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

/* What stands for the value of a flag; values with a blank in them come below the help. */
static const char *placeholder(const struct cw_option_row *row)
{
    if (!strchr(row->values, ' '))
        return row->values;
    return strstr(row->values, ", ") ? "WORD" : "VALUE";
}

void cw_docs_print_flags(FILE *to)
{
    for (size_t i = 0; i < CW_OPTION_COUNT; i++) {
        const struct cw_option_row *row = cw_options_row(i);
        char flag[CW_FLAG_MAX];
        int is_below = strchr(row->values, ' ') != NULL;
        int len;

        cw_docs_flag_name(flag, sizeof(flag), row->name);
        len = fprintf(to, "  --%s=%s", flag, placeholder(row));
        if (len >= FLAG_COLUMN) {
            fputc('\n', to);
            len = 0;
        }
        fprintf(to, "%*s%s%s\n", FLAG_COLUMN - len, "", row->help, is_below ? ":" : "");
        if (is_below)
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

/* ---- presets ---- */

/* "POOL_MAX=90%, POOL_IDLE=10m", each between `mark`s. */
static void list_preset(char *buf, size_t cap, enum cw_preset preset, const char *mark)
{
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < CW_OPTION_COUNT && len < cap; i++) {
        const char *value = cw_options_preset_value(preset, i);

        if (value)
            len += (size_t)snprintf(buf + len, cap - len, "%s%s%s=%s%s", len > 0 ? ", " : "", mark,
                                    cw_options_row(i)->name, value, mark);
    }
}

/* The first preset is the default one and has no values. */
static void print_presets(FILE *to, int indent, int is_man)
{
    const char *name;

    for (int preset = 1; (name = cw_options_preset_name(preset)); preset++) {
        char values[PRESET_MAX];
        char line[PRESET_MAX + 64];

        list_preset(values, sizeof(values), preset, "");
        snprintf(line, sizeof(line), "%s: %s.", name, values);
        put_text(to, line, indent, is_man);
    }
}

static void print_preset_table(FILE *to)
{
    const char *name;

    fprintf(to, "\n| preset | its values, where nothing else is set |\n|---|---|\n");
    for (int preset = 1; (name = cw_options_preset_name(preset)); preset++) {
        char values[PRESET_MAX];

        list_preset(values, sizeof(values), preset, "`");
        fprintf(to, "| %s | %s |\n", name, values);
    }
}

static int is_preset(const struct cw_option_row *row)
{
    return row == cw_options_row(CW_OPTION_INDEX_PRESET);
}

/* ---- the forms ---- */

static void print_text(FILE *to, const struct cw_option_row *row)
{
    fprintf(to, "%s%s=%s (default: %s)\n", CW_OPTION_PREFIX, row->name, row->values,
            shown_default(row));
    fprintf(to, "    %s.\n", row->help);
    put_text(to, row->detail, 4, 0);
    if (is_preset(row))
        print_presets(to, 4, 0);
}

static void print_man(FILE *to, const struct cw_option_row *row)
{
    char flag[CW_FLAG_MAX];

    cw_docs_flag_name(flag, sizeof(flag), row->name);
    fprintf(to, ".It Ev %s%s , Fl Fl %s\n", CW_OPTION_PREFIX, row->name, flag);
    fprintf(to, "%s.\n", row->help);
    put_text(to, row->detail, 0, 1);
    if (is_preset(row))
        print_presets(to, 0, 1);
    fprintf(to, "Values: %s.\nDefault: %s.\n", row->values, shown_default(row));
}

static void print_readme(FILE *to, const struct cw_option_row *row)
{
    fprintf(to, "| `%s%s` | %s | %s | %s |\n", CW_OPTION_PREFIX, row->name, row->values,
            shown_default(row), row->help);
}

static void end_nothing(FILE *to)
{
    (void)to;
}

static const struct form {
    const char *name;
    const char *heading;
    void (*print)(FILE *to, const struct cw_option_row *row);
    void (*end)(FILE *to);
} forms[] = {
    {"text", "", print_text, end_nothing},
    {"man", "", print_man, end_nothing},
    {"readme", "| variable | values | default | meaning |\n|---|---|---|---|\n", print_readme,
     print_preset_table},
};

int cw_docs_print(FILE *to, const char *form)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(forms); i++) {
        if (strcmp(form, forms[i].name) != 0)
            continue;
        fputs(forms[i].heading, to);
        for (size_t row = 0; row < CW_OPTION_COUNT; row++)
            forms[i].print(to, cw_options_row(row));
        forms[i].end(to);
        return 0;
    }
    return -1;
}
