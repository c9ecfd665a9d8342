/* SPDX-License-Identifier: MIT */
/* Tables of the text report. See text_table.h. */
#include "report/text/text_table.h"

#include <string.h>

#define PREFIX_WIDTH 10 /* "==12345== " */
#define GAP_WIDTH    2

static int is_shown(const struct cw_text_table *table, unsigned column)
{
    return !(table->hidden >> column & 1);
}

static size_t measure(const struct cw_text *text, const struct cw_text_table *table,
                      unsigned column, const uint32_t *rows, unsigned count)
{
    size_t width = strlen(table->title[column]);
    char cell[CW_TEXT_CELL_MAX];

    for (unsigned i = 0; i < count; i++) {
        table->format(text, rows[i], column, cell);
        if (strlen(cell) > width)
            width = strlen(cell);
    }
    return width;
}

/* Writes no trailing blanks. */
static void put_cell(const struct cw_text *text, const struct cw_text_table *table, unsigned column,
                     size_t width, const char *cell)
{
    int left = table->left >> column & 1;

    if (left && column + 1 == table->columns)
        width = 0;
    cw_out_printf(text->out, "  %*s", left ? -(int)width : (int)width, cell);
}

static void begin_row(const struct cw_text *text, const struct cw_text_table *table)
{
    cw_text_begin_line(text);
    cw_text_padding(text, 0, (size_t)table->indent);
}

/* Free text at the end of a row may be longer than the screen is wide. */
static int is_free(const struct cw_text_table *table, unsigned column)
{
    return column + 1 == table->columns && (table->left >> column & 1);
}

/* Which of the columns from `first` on fit beside column 0, as bits; at least one. */
static unsigned fitting(const struct cw_text *text, const struct cw_text_table *table,
                        const size_t *width, unsigned first)
{
    size_t used = PREFIX_WIDTH + (size_t)table->indent + GAP_WIDTH + width[0];
    unsigned columns = 0;

    for (unsigned i = first; i < table->columns; i++) {
        if (!is_shown(table, i))
            continue;
        used += GAP_WIDTH + (is_free(table, i) ? 0 : width[i]);
        if (columns != 0 && used > text->columns)
            break;
        columns |= 1u << i;
    }
    return columns;
}

static void put_part(const struct cw_text *text, const struct cw_text_table *table,
                     const size_t *width, unsigned columns, const uint32_t *rows, unsigned count)
{
    char cell[CW_TEXT_CELL_MAX];

    begin_row(text, table);
    for (unsigned i = 0; i < table->columns; i++)
        if (columns >> i & 1)
            put_cell(text, table, i, width[i], table->title[i]);
    cw_text_end_line(text);
    for (unsigned row = 0; row < count; row++) {
        begin_row(text, table);
        for (unsigned i = 0; i < table->columns; i++) {
            if (!(columns >> i & 1))
                continue;
            table->format(text, rows[row], i, cell);
            put_cell(text, table, i, width[i], cell);
        }
        cw_text_end_line(text);
    }
}

void cw_text_table(const struct cw_text *text, const struct cw_text_table *table,
                   const uint32_t *rows, unsigned count)
{
    unsigned key = is_shown(table, 0) ? 1 : 0, part;
    size_t width[CW_TEXT_COLUMNS];

    for (unsigned i = 0; i < table->columns; i++)
        width[i] = measure(text, table, i, rows, count);
    for (unsigned first = 1; first < table->columns;) {
        part = fitting(text, table, width, first);
        if (part == 0)
            break;
        put_part(text, table, width, part | key, rows, count);
        while (first < table->columns && part >> first != 0)
            first++;
    }
}
