/* SPDX-License-Identifier: MIT */
/* An interpreter that is none: memory laid out as CPython's would be, with frames as the test wants
 * them. One per process. */
#ifndef PYTHON_FIXTURE_H
#define PYTHON_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "core/python.h"
#include "core/python_layout.h"

#define FAKE_FRAMES 16

enum fake_owner { FAKE_THREAD, FAKE_SHIM = 3, FAKE_OTHER = 4 };

struct fake_text {
    uint64_t words[6 + 16]; /* the head, then the characters */
};

struct fake_python {
    struct cw_python_symbols symbols;
    struct cw_python_layout layout;
    unsigned key;
    uint64_t runtime[1024], code_type[4], unicode_type[4], state[64], cframe[4];
    uint64_t frame[FAKE_FRAMES][32], code[FAKE_FRAMES][64], table[16];
    struct fake_text file, name;
};

extern struct fake_python fake;

/* Lays it out as this version does, with a state of the calling thread and no frames. */
void fake_start(uint32_t version);
/* Tells the reader of it. */
void fake_arm(void);

void fake_put_word(void *base, size_t at, uint64_t value);
void fake_put_int(void *base, size_t at, uint32_t value);

/* A str in one piece: characters of width bytes, as they lie in memory. */
void fake_set_text(struct fake_text *text, const void *chars, size_t count, unsigned width,
                   int is_ascii);
/* The line table of every code object. */
void fake_set_table(const void *bytes, size_t size);

/* The frame runs its own code, at this byte of it, or none; the frame before is the one that is
 * further out. */
void fake_set_frame(unsigned index, enum fake_owner owner, int32_t instr);
/* Frames 0 to count - 1, from the innermost to the outermost. */
void fake_link(unsigned count);

#endif
