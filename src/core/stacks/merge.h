/* SPDX-License-Identifier: MIT */
/*
 * One stack out of two: the native frames, with Python's in the place of the interpreter's. Pure
 * functions of their arguments.
 */
#ifndef CW_CORE_MERGE_H
#define CW_CORE_MERGE_H

#include <stdint.h>

#include "core/python/python.h"

/* As in struct cw_live_frame. */
struct cw_merge_frame {
    uint64_t pc;
    uint32_t module;
};

struct cw_merge_python {
    uint32_t code; /* CW_TABLE_CODE; 0: stands for an evaluator, but shows nothing */
    int is_entry;
};

/* Innermost first. */
struct cw_merge {
    const struct cw_merge_frame *native;
    unsigned natives;
    int is_cut; /* there are more native frames further out */
    const struct cw_merge_python *python;
    unsigned pythons;
    unsigned waiting; /* the last of them: of the thread that waits, no evaluator is here */
    /* Where the interpreter's machine code lies. */
    const struct cw_python_symbols *interpreter;
};

/*
 * At most max frames, innermost first; how many.
 *
 * Each evaluator gives way to the Python frames that it stands for, and the rest of the
 * interpreter's own frames to nothing; extension modules and other libraries stay. Without a Python
 * frame that shows anything the native frames are left as they are. Where the two do not match, the
 * order of Python's frames among themselves holds, and those that are left over come outermost, as
 * do those of a thread that waits. If
 * there are too many frames, Python's have a right to half the room: what goes first are the outer
 * native frames.
 */
unsigned cw_merge_stacks(const struct cw_merge *merge, struct cw_merge_frame *out, unsigned max);

#endif
