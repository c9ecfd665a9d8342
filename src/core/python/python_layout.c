/* SPDX-License-Identifier: MIT */
/* Layouts of CPython's structures. See python_layout.h. Constant tables; no state. */
#include "core/python/python_layout.h"

#include <string.h>

#include "base/compiler.h"
#include "base/out.h"

#define NONE CW_PYTHON_NONE

/* From 3.13 on, 0 means: published. The key is not; it is counted from `finalizing` there. */
static const struct cw_python_layout layouts[] = {
    {.minor = 9,
     .lines = CW_PYTHON_LINES_LNOTAB,
     .instr = CW_PYTHON_INSTR_BYTES,
     .finalizing = 16,
     .key = 584,
     .key_slack = 64,
     .thread_id = 176,
     .thread_frame = 24,
     .cframe_frame = NONE,
     .previous = 24,
     .code = 32,
     .frame_instr = 104,
     .owner = NONE,
     .is_entry = NONE,
     .file = 104,
     .name = 112,
     .function = 112,
     .line_table = 120,
     .first_line = 40,
     .bytes = 48,
     .ascii = 48,
     .compact = 72,
     .kind_bit = 2},
    {.minor = 10,
     .lines = CW_PYTHON_LINES_RANGES,
     .instr = CW_PYTHON_INSTR_UNITS,
     .finalizing = 16,
     .key = 584,
     .key_slack = 64,
     .thread_id = 176,
     .thread_frame = 24,
     .cframe_frame = NONE,
     .previous = 24,
     .code = 32,
     .frame_instr = 96,
     .owner = NONE,
     .is_entry = NONE,
     .file = 104,
     .name = 112,
     .function = 112,
     .line_table = 120,
     .first_line = 40,
     .bytes = 48,
     .ascii = 48,
     .compact = 72,
     .kind_bit = 2},
    {.minor = 11,
     .lines = CW_PYTHON_LINES_LOCATIONS,
     .instr = CW_PYTHON_INSTR_ADDRESS,
     .finalizing = 24,
     .key = 592,
     .key_slack = 64,
     .thread_id = 152,
     .thread_frame = 56,
     .cframe_frame = 8,
     .previous = 48,
     .code = 32,
     .frame_instr = 56,
     .owner = 69,
     .is_entry = 68,
     .file = 112,
     .name = 120,
     .function = 128,
     .line_table = 136,
     .first_line = 72,
     .bytes = 184,
     .ascii = 48,
     .compact = 72,
     .kind_bit = 2},
    {.minor = 12,
     .lines = CW_PYTHON_LINES_LOCATIONS,
     .instr = CW_PYTHON_INSTR_ADDRESS,
     .finalizing = 24,
     .key = 1544,
     .key_slack = 64,
     .thread_id = 136,
     .thread_frame = 56,
     .cframe_frame = 0,
     .previous = 8,
     .code = 0,
     .frame_instr = 56,
     .owner = 70,
     .is_entry = NONE,
     .file = 112,
     .name = 120,
     .function = 128,
     .line_table = 136,
     .first_line = 68,
     .bytes = 192,
     .ascii = 40,
     .compact = 56,
     .kind_bit = 2},
    {.minor = 13,
     .lines = CW_PYTHON_LINES_LOCATIONS,
     .instr = CW_PYTHON_INSTR_ADDRESS,
     .key = 1552,
     .key_slack = 64,
     .cframe_frame = NONE,
     .is_entry = NONE,
     .compact = 56,
     .kind_bit = 2},
    /* Alphas of 3.14 stored the kind of a str elsewhere (python/cpython#133085). */
    {.minor = 14,
     .lines = CW_PYTHON_LINES_LOCATIONS,
     .instr = CW_PYTHON_INSTR_ADDRESS,
     .tag = 7,
     .key = 1552,
     .key_slack = 512,
     .cframe_frame = NONE,
     .is_entry = NONE,
     .compact = 56,
     .kind_bit = 2},
    {.minor = 15,
     .lines = CW_PYTHON_LINES_LOCATIONS,
     .instr = CW_PYTHON_INSTR_ADDRESS,
     .tag = 7,
     .key = NONE,
     .cframe_frame = NONE,
     .is_entry = NONE,
     .compact = 56,
     .kind_bit = 2},
};

/* ---- what the runtime publishes ---- */

enum published {
    FINALIZING,
    THREAD_FRAME,
    THREAD_ID,
    PREVIOUS,
    CODE,
    FRAME_INSTR,
    OWNER,
    FILE_NAME,
    NAME,
    FUNCTION,
    LINE_TABLE,
    FIRST_LINE,
    BYTES,
    ASCII,
    OBJECT_TYPE, /* from here on they must be what all versions agree on */
    BYTES_SIZE,
    BYTES_FIRST,
    TEXT_STATE,
    TEXT_LENGTH,
    PUBLISHED_COUNT
};

struct published_table {
    uint8_t minor;
    uint8_t words; /* all that is published, the cookie included */
    uint8_t word[PUBLISHED_COUNT];
};

static const struct published_table published_tables[] = {
    {.minor = 13,
     .words = 73,
     .word = {[FINALIZING] = 4,
              [THREAD_FRAME] = 23,
              [THREAD_ID] = 24,
              [PREVIOUS] = 29,
              [CODE] = 30,
              [FRAME_INSTR] = 31,
              [OWNER] = 33,
              [FILE_NAME] = 35,
              [NAME] = 36,
              [FUNCTION] = 37,
              [LINE_TABLE] = 38,
              [FIRST_LINE] = 39,
              [BYTES] = 43,
              [ASCII] = 70,
              [OBJECT_TYPE] = 45,
              [BYTES_SIZE] = 65,
              [BYTES_FIRST] = 66,
              [TEXT_STATE] = 68,
              [TEXT_LENGTH] = 69}},
    {.minor = 14,
     .words = 95,
     .word = {[FINALIZING] = 4,
              [THREAD_FRAME] = 26,
              [THREAD_ID] = 27,
              [PREVIOUS] = 32,
              [CODE] = 33,
              [FRAME_INSTR] = 34,
              [OWNER] = 36,
              [FILE_NAME] = 40,
              [NAME] = 41,
              [FUNCTION] = 42,
              [LINE_TABLE] = 43,
              [FIRST_LINE] = 44,
              [BYTES] = 48,
              [ASCII] = 80,
              [OBJECT_TYPE] = 51,
              [BYTES_SIZE] = 75,
              [BYTES_FIRST] = 76,
              [TEXT_STATE] = 78,
              [TEXT_LENGTH] = 79}},
    {.minor = 15,
     .words = 111,
     .word = {[FINALIZING] = 4,
              [THREAD_FRAME] = 26,
              [THREAD_ID] = 30,
              [PREVIOUS] = 40,
              [CODE] = 41,
              [FRAME_INSTR] = 42,
              [OWNER] = 44,
              [FILE_NAME] = 48,
              [NAME] = 49,
              [FUNCTION] = 50,
              [LINE_TABLE] = 51,
              [FIRST_LINE] = 52,
              [BYTES] = 56,
              [ASCII] = 92,
              [OBJECT_TYPE] = 59,
              [BYTES_SIZE] = 87,
              [BYTES_FIRST] = 88,
              [TEXT_STATE] = 90,
              [TEXT_LENGTH] = 91}},
};

enum { COOKIE_WORD, VERSION_WORD, FREE_THREADED_WORD };

static const struct published_table *published_of(unsigned minor)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(published_tables); i++)
        if (published_tables[i].minor == minor)
            return &published_tables[i];
    return NULL;
}

/* The fields are small, agree with what never changes, and the first one that follows them is where
 * it must be if there are as many of them as we think. */
static int is_sane(const struct published_table *table, const uint64_t *words)
{
    static const uint8_t constant[PUBLISHED_COUNT] = {[OBJECT_TYPE] = CW_PYTHON_TYPE,
                                                      [BYTES_SIZE] = CW_PYTHON_SIZE,
                                                      [BYTES_FIRST] = CW_PYTHON_BYTES,
                                                      [TEXT_STATE] = CW_PYTHON_TEXT_STATE,
                                                      [TEXT_LENGTH] = CW_PYTHON_TEXT_LENGTH};
    size_t flags = 5 * sizeof(int); /* of the stages of initialisation */
    uint64_t after = (table->words * sizeof(uint64_t) + flags + 7) / 8 * 8;

    for (unsigned i = 0; i < PUBLISHED_COUNT; i++)
        if (words[table->word[i]] >= 4096 ||
            (i >= OBJECT_TYPE && words[table->word[i]] != constant[i]))
            return 0;
    return words[table->word[FINALIZING]] == after;
}

static void take_published(const struct published_table *table, const uint64_t *words,
                           struct cw_python_layout *out)
{
#define WORD(field) ((uint16_t)words[table->word[field]])
    out->finalizing = WORD(FINALIZING);
    if (out->key != NONE)
        out->key = (uint16_t)(out->key + out->finalizing);
    out->thread_frame = WORD(THREAD_FRAME);
    out->thread_id = WORD(THREAD_ID);
    out->previous = WORD(PREVIOUS);
    out->code = WORD(CODE);
    out->frame_instr = WORD(FRAME_INSTR);
    out->owner = WORD(OWNER);
    out->file = WORD(FILE_NAME);
    out->name = WORD(NAME);
    out->function = WORD(FUNCTION);
    out->line_table = WORD(LINE_TABLE);
    out->first_line = WORD(FIRST_LINE);
    out->bytes = WORD(BYTES);
    out->ascii = WORD(ASCII);
#undef WORD
}

/* ---- choice ---- */

static const struct cw_python_layout *layout_of(unsigned minor)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(layouts); i++)
        if (layouts[i].minor == minor)
            return &layouts[i];
    return NULL;
}

static int is_complete(const struct cw_python_symbols *symbols,
                       const struct cw_python_layout *layout)
{
    return symbols->runtime != NULL && symbols->code_type != NULL &&
           symbols->unicode_type != NULL && symbols->thread_value != NULL &&
           symbols->thread_self != NULL && (layout->key != NONE || symbols->thread_state != NULL);
}

int cw_python_layout_find(const struct cw_python_symbols *symbols, struct cw_python_layout *out,
                          char *reason, size_t cap)
{
    unsigned major = symbols->version >> 24, minor = symbols->version >> 16 & 0xff;
    const struct cw_python_layout *layout = major == 3 ? layout_of(minor) : NULL;
    const struct published_table *table = major == 3 ? published_of(minor) : NULL;
    const uint64_t *words = symbols->runtime;

    if (layout == NULL) {
        if (symbols->version == 0)
            cw_format(reason, cap, "Python before 3.%d is not known", CW_PYTHON_OLDEST_MINOR);
        else
            cw_format(reason, cap, "Python %u.%u is not known", major, minor);
    } else if (!is_complete(symbols, layout)) {
        cw_format(reason, cap, "symbols of Python %u.%u are missing", major, minor);
    } else if (table != NULL && (memcmp(&words[COOKIE_WORD], "xdebugpy", 8) != 0 ||
                                 words[VERSION_WORD] != symbols->version)) {
        cw_format(reason, cap, "Python %u.%u does not say how it is laid out", major, minor);
    } else if (table != NULL && words[FREE_THREADED_WORD] != 0) {
        cw_format(reason, cap, "free-threaded build of Python %u.%u", major, minor);
    } else if (table != NULL && !is_sane(table, words)) {
        cw_format(reason, cap, "the layout of this Python %u.%u is not known", major, minor);
    } else {
        *out = *layout;
        if (table != NULL)
            take_published(table, words, out);
        return 0;
    }
    return -1;
}

static size_t end_of(size_t size, uint16_t field, size_t width)
{
    return field != NONE && field + width > size ? field + width : size;
}

size_t cw_python_layout_thread_size(const struct cw_python_layout *layout)
{
    return end_of(end_of(0, layout->thread_id, 8), layout->thread_frame, 8);
}

size_t cw_python_layout_frame_size(const struct cw_python_layout *layout)
{
    size_t size = end_of(end_of(0, layout->previous, 8), layout->code, 8);

    size = end_of(end_of(size, layout->owner, 1), layout->is_entry, 1);
    return end_of(size, layout->frame_instr, 8);
}

size_t cw_python_layout_code_size(const struct cw_python_layout *layout)
{
    size_t size = end_of(end_of(0, layout->bytes, 8), layout->line_table, 8);

    return end_of(end_of(size, layout->file, 8), layout->function, 8);
}
