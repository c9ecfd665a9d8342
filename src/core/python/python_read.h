/* SPDX-License-Identifier: MIT */
/* Reading of the interpreter's memory, word by word; no state. */
#ifndef CW_CORE_PYTHON_READ_H
#define CW_CORE_PYTHON_READ_H

#include <stdint.h>
#include <string.h>

#include "core/python/python_layout.h"

#define CW_PYTHON_INSTR_MAX ((int64_t)1 << 30)

/* Whether at is aligned and size bytes from there, at most a page, can be read, by asking the
 * kernel: two system calls. errno is preserved. */
int cw_python_is_readable(uintptr_t at, size_t size);

/* The characters of a str. */
struct cw_python_chars {
    uintptr_t at;
    uint64_t count;
    unsigned width; /* 1, 2, 4 bytes each */
};

/* 0, or -1: this is no str whose characters follow it, or one of nonsense length. */
int cw_python_find_chars(const struct cw_python_layout *layout,
                         const struct cw_python_symbols *symbols, uintptr_t object,
                         struct cw_python_chars *out);

/* Bytes of a str from its start to the end of its characters, as far as they follow it. */
uint64_t cw_python_text_size(const struct cw_python_layout *layout,
                             const struct cw_python_symbols *symbols, uintptr_t object);

static inline uintptr_t cw_read_word(uintptr_t at)
{
    uintptr_t value;

    memcpy(&value, (const void *)at, sizeof(value));
    return value;
}

static inline uint32_t cw_read_int(uintptr_t at)
{
    uint32_t value;

    memcpy(&value, (const void *)at, sizeof(value));
    return value;
}

static inline uint8_t cw_read_byte(uintptr_t at)
{
    return *(const uint8_t *)at;
}

/* Of a frame: whether it is none of Python code. */
static inline int cw_python_is_shim(const struct cw_python_layout *layout, uintptr_t frame)
{
    return layout->owner != CW_PYTHON_NONE && layout->is_entry == CW_PYTHON_NONE &&
           cw_read_byte(frame + layout->owner) >= CW_PYTHON_OWNER_SHIM;
}

static inline uintptr_t cw_python_code_of(const struct cw_python_layout *layout, uintptr_t frame)
{
    return cw_read_word(frame + layout->code) & ~(uintptr_t)layout->tag;
}

/* Its place in the code object with this address, see struct cw_python_frame. */
static inline int32_t cw_python_instr_of(const struct cw_python_layout *layout, uintptr_t frame,
                                         uintptr_t code)
{
    int64_t at;

    if (layout->instr == CW_PYTHON_INSTR_ADDRESS)
        at = (int64_t)(cw_read_word(frame + layout->frame_instr) - (code + layout->bytes));
    else
        at = (int64_t)(int32_t)cw_read_int(frame + layout->frame_instr) *
             (layout->instr == CW_PYTHON_INSTR_UNITS ? 2 : 1);
    return at < 0 || at > CW_PYTHON_INSTR_MAX ? -1 : (int32_t)at;
}

/* Of a code object: from 3.12 on the interpreter has code of its own that calls __init__ for it, in
 * no file and on no line. A frame of it is never an entry. */
static inline int cw_python_is_own_code(const struct cw_python_layout *layout, uintptr_t code)
{
    return layout->minor >= 12 && cw_read_int(code + layout->first_line) == 0 &&
           cw_read_word(code + layout->file) == cw_read_word(code + layout->name);
}

#endif
