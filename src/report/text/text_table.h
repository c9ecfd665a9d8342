/* SPDX-License-Identifier: MIT */
/* Tables of the text report: columns are as wide as their content. Those that do not fit on the
 * screen follow below, beside the first column again. */
#ifndef CW_REPORT_TEXT_TABLE_H
#define CW_REPORT_TEXT_TABLE_H

#include "report/text/text_put.h"

#define CW_TEXT_CELL_MAX 64
#define CW_TEXT_COLUMNS  16

struct cw_text_table {
    const char *const *title; /* one for each column */
    unsigned columns;         /* at most CW_TEXT_COLUMNS */
    unsigned left;            /* bit n: column n is left-aligned */
    unsigned hidden;          /* bit n: column n is omitted */
    int indent;
    /* Writes the words of one cell into CW_TEXT_CELL_MAX bytes. `row` is an element of `rows`. */
    void (*format)(const struct cw_text *text, uint32_t row, unsigned column, char *cell);
};

/* The titles, and a line for each row. */
void cw_text_table(const struct cw_text *text, const struct cw_text_table *table,
                   const uint32_t *rows, unsigned count);

#endif
