/* SPDX-License-Identifier: MIT */
/*
 * Records as columns of numbers in JSON, {"n":3,"bytes":[1,2,3],"device":0}: a column of equal
 * values is written as that one value. Texts are numbers in a table of texts.
 */
#ifndef CW_CLI_HTML_COLUMNS_H
#define CW_CLI_HTML_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/ui/strings.h"

enum cw_html_type {
    CW_HTML_U8,
    CW_HTML_U32, /* UINT32_MAX is -1 */
    CW_HTML_U64,
    CW_HTML_REAL,
    CW_HTML_TEXT,
    CW_HTML_KIND, /* a uint8_t, shown by name */
    CW_HTML_STEP, /* a uint64_t, as the difference from the previous record */
    CW_HTML_ROW,  /* a uint32_t that `row` renumbers; -1: not shown */
};

/* A column without a name ends a table. */
struct cw_html_column {
    const char *name;
    enum cw_html_type type;
    size_t offset; /* in the record */
};

struct cw_html_records {
    const void *base;
    size_t size; /* of a record */
    uint32_t count;
};

struct cw_html_writer {
    FILE *out;
    struct cw_strings strings;
    const uint32_t *row; /* for CW_HTML_ROW, by index */
    uint32_t rows;
};

void cw_html_put_number(FILE *out, int64_t value);
/* Writes the whole object. */
void cw_html_put_columns(struct cw_html_writer *self, const struct cw_html_column *column,
                         const struct cw_html_records *records);

/*
 * Writes the text as a JSON string that is safe inside <script>: it has no '<' that could close the
 * element or open a comment.
 */
void cw_html_put_text(FILE *out, const char *text);

/* A member of an object that is open and not empty. */
void cw_html_add_text(FILE *out, const char *key, const char *text);
void cw_html_add_number(FILE *out, const char *key, uint64_t value);

#endif
