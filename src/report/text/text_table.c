/* SPDX-License-Identifier: MIT */
/* Tables of the text report. See text_table.h. */
#include "report/text/text_table.h"

#include <string.h>

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

void cw_text_table(const struct cw_text *text, const struct cw_text_table *table,
                   const uint32_t *rows, unsigned count)
{
    size_t width[CW_TEXT_COLUMNS];
    char cell[CW_TEXT_CELL_MAX];

    begin_row(text, table);
    for (unsigned column = 0; column < table->columns; column++) {
        width[column] = measure(text, table, column, rows, count);
        if (is_shown(table, column))
            put_cell(text, table, column, width[column], table->title[column]);
    }
    cw_text_end_line(text);
    for (unsigned i = 0; i < count; i++) {
        begin_row(text, table);
        for (unsigned column = 0; column < table->columns; column++) {
            if (!is_shown(table, column))
                continue;
            table->format(text, rows[i], column, cell);
            put_cell(text, table, column, width[column], cell);
        }
        cw_text_end_line(text);
    }
}
