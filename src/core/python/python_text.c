/* SPDX-License-Identifier: MIT */
/*
 * What a code object says of itself: file, function, and the line of an instruction. See python.h.
 * No state. The caller's frame keeps the code object, and that its names and tables, so everything
 * here is read as it is; what the lengths say is not believed beyond reason.
 */
#include "core/python/python.h"

#include "base/cell_name.h"
#include "base/compiler.h"
#include "core/python/python_read.h"
#include "core/python/python_waiting.h"

#define TABLE_MAX  ((uint64_t)1 << 26) /* bytes of a line table */
#define NO_CHAR    UINT32_C(0xfffd)
#define NO_LINE    (-128) /* 3.10: this range has none */
#define UNKNOWN    "?"
#define CUT_MARK   "..."
#define CUT_LENGTH 3

/* ---- text ---- */

static uint32_t char_at(const struct cw_python_chars *chars, uint64_t index)
{
    uintptr_t at = chars->at + index * chars->width;
    uint32_t c = 0;

    memcpy(&c, (const void *)at, chars->width);
    return c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? NO_CHAR : c;
}

static unsigned utf8_length(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static void put_utf8(uint32_t c, char *out)
{
    unsigned length = utf8_length(c);
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (unsigned i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(length == 1 ? c : lead[length] | c);
}

/* From character first on, as much as fits. */
static void put_chars(const struct cw_python_chars *chars, uint64_t first, char *out, size_t cap)
{
    size_t used = 0;

    for (uint64_t i = first; i < chars->count; i++) {
        uint32_t c = char_at(chars, i);

        if (used + utf8_length(c) >= cap)
            break;
        put_utf8(c, out + used);
        used += utf8_length(c);
    }
    out[used] = '\0';
}

static void put_end(const struct cw_python_chars *chars, char *out, size_t cap)
{
    size_t length = 0;
    uint64_t first = 0;

    for (uint64_t i = 0; i < chars->count; i++)
        length += utf8_length(char_at(chars, i));
    if (length < cap) {
        put_chars(chars, 0, out, cap);
        return;
    }
    while (length + CUT_LENGTH >= cap)
        length -= utf8_length(char_at(chars, first++));
    memcpy(out, CUT_MARK, CUT_LENGTH);
    put_chars(chars, first, out + CUT_LENGTH, cap - CUT_LENGTH);
}

/* ---- lines ---- */

struct table {
    const uint8_t *at, *end;
};

/* Pairs of bytes: length of a range of instructions, and by how much its line differs from the one
 * before. In 3.9 the line changes at the end of the range, in 3.10 at its beginning. */
static int32_t line_of_pairs(struct table table, int32_t instr, int32_t first,
                             enum cw_python_lines lines)
{
    int32_t line = first, last = first, end = 0;

    for (; table.end - table.at >= 2; table.at += 2) {
        int32_t delta = (int8_t)table.at[1];

        end += table.at[0];
        if (lines == CW_PYTHON_LINES_LNOTAB) {
            if (end > instr)
                return line;
            line += delta;
            continue;
        }
        if (delta != NO_LINE)
            last = line += delta;
        if (end > instr)
            return last;
    }
    return lines == CW_PYTHON_LINES_LNOTAB ? line : last;
}

/* Six bits a byte, the least significant first; bit 6: there is more. */
static uint32_t take_varint(struct table *table)
{
    uint32_t value = 0;

    for (unsigned shift = 0; table->at < table->end && shift < 32; shift += 6) {
        uint8_t byte = *table->at++;

        value |= (uint32_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40))
            break;
    }
    return value;
}

static int32_t take_signed(struct table *table)
{
    uint32_t value = take_varint(table);

    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* Entries: a first byte with bit 7 set, the form in bits 3 to 6 and the number of instructions less
 * one in the rest; what follows has bit 7 clear. */
static int32_t line_of_locations(struct table table, int32_t instr, int32_t first)
{
    int32_t line = first;
    int64_t end = 0;

    while (table.at < table.end) {
        uint8_t head = *table.at++;
        unsigned form = head >> 3 & 15;

        end += ((head & 7) + 1) * 2;
        if (form == 13 || form == 14)
            line += take_signed(&table);
        else if (form >= 10 && form <= 12)
            line += (int32_t)form - 10;
        /* Form 15 has no line: the one before is the best there is. */
        if (end > instr)
            return line;
        while (table.at < table.end && !(*table.at & 0x80))
            table.at++;
    }
    return line;
}

static int32_t line_of(const struct cw_python_layout *layout, uintptr_t code, int32_t instr)
{
    uintptr_t bytes = cw_read_word(code + layout->line_table);
    int32_t first = (int32_t)cw_read_int(code + layout->first_line);
    uint64_t size = bytes != 0 ? cw_read_word(bytes + CW_PYTHON_SIZE) : 0;
    struct table table = {.at = (const uint8_t *)(bytes + CW_PYTHON_BYTES)};

    if (instr < 0 || size == 0 || size > TABLE_MAX)
        return first;
    table.end = table.at + size;
    return layout->lines == CW_PYTHON_LINES_LOCATIONS
               ? line_of_locations(table, instr, first)
               : line_of_pairs(table, instr, first, layout->lines);
}

int cw_python_describe(const struct cw_python_frame *frame, struct cw_python_text *out)
{
    const struct cw_python_symbols *symbols;
    const struct cw_python_layout *layout = cw_python_layout_now(&symbols);
    uintptr_t code = (uintptr_t)frame->code;
    struct cw_python_chars chars;

    if (frame->is_copied)
        return cw_python_waiting_describe(frame, out);
    memcpy(out->file, UNKNOWN, sizeof(UNKNOWN));
    memcpy(out->function, UNKNOWN, sizeof(UNKNOWN));
    out->line = 0;
    if (layout == NULL || code == 0)
        return -1;
    if (cw_python_find_chars(layout, symbols, cw_read_word(code + layout->file), &chars) == 0) {
        put_end(&chars, out->file, sizeof(out->file));
        cw_cell_name(out->file);
    }
    if (cw_python_find_chars(layout, symbols, cw_read_word(code + layout->function), &chars) == 0)
        put_chars(&chars, 0, out->function, sizeof(out->function));
    out->line = line_of(layout, code, frame->instr);
    return 0;
}
