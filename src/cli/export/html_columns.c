/* SPDX-License-Identifier: MIT */
/* Records as columns. See html_columns.h. Avoids printf: there may be a million records. */
#include "cli/export/html_columns.h"

#include <inttypes.h>
#include <math.h>

#include "live/view.h"

void cw_html_put_text(FILE *out, const char *text)
{
    putc_unlocked('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < ' ' || c == '<' || c == '>' || c == 0x7f) {
            fprintf(out, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\')
                putc_unlocked('\\', out);
            putc_unlocked(c, out);
        }
    }
    putc_unlocked('"', out);
}

void cw_html_put_number(FILE *out, int64_t value)
{
    char digits[24];
    unsigned at = sizeof(digits);
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

    do
        digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (value < 0)
        digits[--at] = '-';
    fwrite(digits + at, 1, sizeof(digits) - at, out);
}

static const char *record_at(const struct cw_html_records *records, uint32_t i)
{
    return (const char *)records->base + i * records->size;
}

static int64_t renumber(const struct cw_html_writer *self, uint32_t value)
{
    return value < self->rows && self->row[value] != UINT32_MAX ? (int64_t)self->row[value] : -1;
}

/* Numbers are limited to the range of int64_t. */
static int64_t clamp(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t whole_number(struct cw_html_writer *self, const struct cw_html_column *column,
                            const struct cw_html_records *records, uint32_t i)
{
    const char *field = record_at(records, i) + column->offset;

    switch (column->type) {
    case CW_HTML_U8:
        return *(const uint8_t *)field;
    case CW_HTML_U32:
        return *(const uint32_t *)field == UINT32_MAX ? -1 : (int64_t) * (const uint32_t *)field;
    case CW_HTML_TEXT:
        return cw_strings_add(&self->strings, *(const char *const *)field);
    case CW_HTML_KIND:
        return cw_strings_add(&self->strings, cw_kind_name(*(const uint8_t *)field));
    case CW_HTML_ROW:
        return renumber(self, *(const uint32_t *)field);
    case CW_HTML_STEP:
        if (i > 0) {
            const char *before = record_at(records, i - 1) + column->offset;

            return clamp(*(const uint64_t *)field) - clamp(*(const uint64_t *)before);
        }
        return clamp(*(const uint64_t *)field);
    default:
        return clamp(*(const uint64_t *)field);
    }
}

static double real_number(const struct cw_html_column *column,
                          const struct cw_html_records *records, uint32_t i)
{
    double value = *(const double *)(record_at(records, i) + column->offset);

    return isfinite(value) ? value : 0;
}

static void put_value(struct cw_html_writer *self, const struct cw_html_column *column,
                      const struct cw_html_records *records, uint32_t i)
{
    if (column->type == CW_HTML_REAL)
        fprintf(self->out, "%.6g", real_number(column, records, i));
    else
        cw_html_put_number(self->out, whole_number(self, column, records, i));
}

/* Reads the first value first: texts are numbered in the order of the records. */
static int is_constant(struct cw_html_writer *self, const struct cw_html_column *column,
                       const struct cw_html_records *records)
{
    int is_real = column->type == CW_HTML_REAL;
    int64_t whole = 0;
    double real = 0;

    if (records->count == 0)
        return 0;
    if (is_real)
        real = real_number(column, records, 0);
    else
        whole = whole_number(self, column, records, 0);
    for (uint32_t i = 1; i < records->count; i++)
        if (is_real ? real_number(column, records, i) != real
                    : whole_number(self, column, records, i) != whole)
            return 0;
    return 1;
}

static void put_column(struct cw_html_writer *self, const struct cw_html_column *column,
                       const struct cw_html_records *records)
{
    fprintf(self->out, ",\"%s\":", column->name);
    if (is_constant(self, column, records)) {
        put_value(self, column, records, 0);
        return;
    }
    putc_unlocked('[', self->out);
    for (uint32_t i = 0; i < records->count; i++) {
        if (i > 0)
            putc_unlocked(',', self->out);
        put_value(self, column, records, i);
    }
    putc_unlocked(']', self->out);
}

void cw_html_put_columns(struct cw_html_writer *self, const struct cw_html_column *column,
                         const struct cw_html_records *records)
{
    fprintf(self->out, "{\"n\":%u", records->count);
    for (; column->name; column++)
        put_column(self, column, records);
    putc_unlocked('}', self->out);
}

void cw_html_add_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, ",\"%s\":", key);
    cw_html_put_text(out, text);
}

void cw_html_add_number(FILE *out, const char *key, uint64_t value)
{
    fprintf(out, ",\"%s\":%" PRIu64, key, value);
}
