/* SPDX-License-Identifier: MIT */
/*
 * Where CPython keeps what, per minor version: offsets in bytes, for 64-bit builds with a GIL.
 *
 * 3.9 to 3.12 from tables here; from 3.13 on the runtime publishes its own offsets at its
 * beginning, and the table says which of them are read.
 */
#ifndef CW_CORE_PYTHON_LAYOUT_H
#define CW_CORE_PYTHON_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "core/python/python_symbols.h"

#define CW_PYTHON_NONE UINT16_MAX /* this version has no such field */

/* What all known versions agree on. */
#define CW_PYTHON_TYPE         8  /* of an object: its type */
#define CW_PYTHON_SIZE         16 /* of an object of varying size: how many items */
#define CW_PYTHON_BYTES        32 /* of a bytes object: the first */
#define CW_PYTHON_TEXT_LENGTH  16 /* of a str: characters, then how they are stored */
#define CW_PYTHON_TEXT_STATE   32
#define CW_PYTHON_OWNER_SHIM   3 /* of a frame: an evaluator's entry; above: other than Python */
#define CW_PYTHON_OLDEST_MINOR 9

enum cw_python_lines {
    CW_PYTHON_LINES_LNOTAB,    /* 3.9: pairs of deltas, lines may go backwards */
    CW_PYTHON_LINES_RANGES,    /* 3.10: the same with instructions that have no line (PEP 626) */
    CW_PYTHON_LINES_LOCATIONS, /* 3.11: entries of varying size with columns (PEP 657) */
};

enum cw_python_instr {
    CW_PYTHON_INSTR_BYTES,   /* 3.9: an int, the offset itself */
    CW_PYTHON_INSTR_UNITS,   /* 3.10: an int, in instructions of 2 bytes */
    CW_PYTHON_INSTR_ADDRESS, /* 3.11: a pointer into the code */
};

struct cw_python_layout {
    uint8_t minor;
    uint8_t lines; /* enum cw_python_lines */
    uint8_t instr; /* enum cw_python_instr */
    uint8_t tag;   /* bits of a reference to a code object that are no address */
    /* _PyRuntime */
    uint16_t finalizing; /* the thread state that ends the interpreter */
    uint16_t key;        /* the thread-specific key of thread states: is it made, its number; none
                          * from 3.15 on, where a function tells (python_symbols.h) */
    uint16_t key_slack;  /* how far from there it may be in other builds */
    /* thread state */
    uint16_t thread_id, thread_frame;
    uint16_t cframe_frame; /* thread_frame leads to a C frame, and that to the frame */
    /* frame */
    uint16_t previous, code, frame_instr;
    uint16_t owner;    /* a byte */
    uint16_t is_entry; /* a byte; without it, shims between the frames tell */
    /* code object */
    uint16_t file, name, function, line_table, first_line;
    uint16_t bytes; /* where its instructions begin; before 3.11: a reference to them */
    /* str: where the characters begin, of ASCII ones and of others; which bit of the state is the
     * first of the kind */
    uint16_t ascii, compact;
    uint16_t kind_bit;
};

/* 0, or -1 with the reason in the text. */
int cw_python_layout_find(const struct cw_python_symbols *symbols, struct cw_python_layout *out,
                          char *reason, size_t cap);

/* How much of each is read, from its start. */
size_t cw_python_layout_thread_size(const struct cw_python_layout *layout);
size_t cw_python_layout_frame_size(const struct cw_python_layout *layout);
size_t cw_python_layout_code_size(const struct cw_python_layout *layout);

#endif
