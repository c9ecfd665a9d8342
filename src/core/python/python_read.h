/* SPDX-License-Identifier: MIT */
/* Reading of the interpreter's memory, word by word; no state. */
#ifndef CW_CORE_PYTHON_READ_H
#define CW_CORE_PYTHON_READ_H

#include <stdint.h>
#include <string.h>

#include "core/python/python_layout.h"

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

#endif
