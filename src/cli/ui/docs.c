/* SPDX-License-Identifier: MIT */
/*
 * The documentation of the options, generated from the rows of options.def so that the two agree.
 */
#include "cli/ui/docs.h"

#include <string.h>

#include "base/options/options.h"
#include "report/leaks/cache.h"

#define COLUMNS    79
#define PRESET_MAX 512 /* longest list of a preset's values, with its NUL */

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

/* The placeholder for a flag's value; value lists with blanks go below the help. */
static const char *placeholder(const struct cw_option_row *row)
{
    if (!strchr(row->values, ' '))
        return row->values;
    return strstr(row->values, ", ") ? "WORD" : "VALUE";
}

/* The words of "pool, track or off", separated by blanks; "" if it is anything else. */
static void offer_words(const char *values, char *buf, size_t cap)
{
    size_t len = 0, count = 0, word;

    for (buf[0] = '\0'; *values; values += word + strspn(values + word, ", ")) {
        word = strspn(values, "abcdefghijklmnopqrstuvwxyz-");
        if (word == 0 || (values[word] && !strchr(", ", values[word]))) {
            buf[0] = '\0';
            return;
        }
        if (strncmp(values, "or ", 3) != 0 && ++count)
            len += (size_t)snprintf(buf + len, cap - len, "%s%.*s", len > 0 ? " " : "", (int)word,
                                    values);
    }
    if (count < 2)
        buf[0] = '\0';
}

void cw_docs_flag(struct cw_docs_flag *flag, size_t row_index, int id)
{
    const struct cw_option_row *row = cw_options_row(row_index);

    cw_docs_flag_name(flag->name, sizeof(flag->name), row->name);
    offer_words(row->values, flag->offers, sizeof(flag->offers));
    flag->flag = (struct cw_flag){.id = id,
                                  .name = flag->name,
                                  .value = placeholder(row),
                                  .help = row->help,
                                  .offers = flag->offers[0] ? flag->offers : NULL,
                                  .below = strchr(row->values, ' ') ? row->values : NULL,
                                  .is_option = 1};
}

/* ---- running text ---- */

/* In troff, a line that begins with a dot or a quote is a request, and a backslash escapes. */
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

/* Wraps at COLUMNS; in a manual each sentence begins on a new line. */
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

/* "POOL_MAX=90%, POOL_IDLE=10m", each enclosed in `mark`. */
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

/* The first preset is the default and has no values. */
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

void cw_docs_print(FILE *to, const char *name)
{
    const struct form *form = forms;

    while (strcmp(name, form->name) != 0)
        form++;
    fputs(form->heading, to);
    for (size_t row = 0; row < CW_OPTION_COUNT; row++)
        form->print(to, cw_options_row(row));
    form->end(to);
}

/* ---- caches ---- */

static void print_code(FILE *to, const char *code)
{
    if (code[0])
        fprintf(to, "`%s`", code);
}

void cw_docs_print_caches(FILE *to)
{
    const struct cw_cache *cache;

    fprintf(to,
            "| cache | keeps | look inside | empties it or switches it off |\n|---|---|---|---|\n");
    for (unsigned id = CW_CACHE_NONE + 1; (cache = cw_cache_row(id)) != NULL; id++) {
        fprintf(to, "| %s%s | %s%s | ", cache->owner, cache->is_host ? ", pinned" : "",
                cache->keeps, cache->is_emptied ? "; none after a normal exit" : "");
        print_code(to, cache->flag);
        fputs(cache->flag[0] && cache->inside[0] ? ", " : "", to);
        print_code(to, cache->inside);
        fputs(" | ", to);
        print_code(to, cache->empties);
        fputs(" |\n", to);
    }
}
