/* SPDX-License-Identifier: MIT */
/*
 * The Python frames of the calling thread, read from the interpreter's memory; of a worker that
 * others wait for, behind them those of the thread that waits (python_waiting.h).
 *
 * CPython 3.9 to 3.15. Nothing of the interpreter is called but, from 3.15 on, a function that
 * returns a thread-local pointer, and no lock of its or ours is taken, so that it does not matter
 * whether the thread holds the GIL; no memory is allocated. The module that knows the loaded
 * objects passes the interpreter's symbols; until then there is no Python.
 *
 * A thread reads its own frames inside a call that Python code made. Its chain of frames and their
 * code objects stay as they are until that call returns. Those of another thread are copied first.
 */
#ifndef CW_CORE_PYTHON_H
#define CW_CORE_PYTHON_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/python/python_layout.h"
#include "core/python/python_symbols.h"

/* The first ones that are set stay, until NULL says that this interpreter was unloaded: before its
 * memory goes, and while no thread walks. */
void cw_python_set_symbols(const struct cw_python_symbols *symbols);
/*
 * The word that is not 0 once the interpreter has begun to end; NULL: no Python that is known.
 * What is freed from then on, the program has held until its exit.
 */
extern CW_HIDDEN const uintptr_t *_Atomic cw_python_finalizing;

static inline int cw_python_is_ending(void)
{
    const uintptr_t *word = atomic_load_explicit(&cw_python_finalizing, memory_order_acquire);

    return CW_UNLIKELY(word != NULL) && __atomic_load_n(word, __ATOMIC_RELAXED) != 0;
}

/* In a forked child. */
void cw_python_reset(void);

/* The interpreter's, NULL: there is none, or none that is known. */
const struct cw_python_symbols *cw_python_symbols_now(void);
/* How it lays out what is read; NULL: no Python. */
const struct cw_python_layout *cw_python_layout_now(const struct cw_python_symbols **out_symbols);
/* 1: there may be frames. 0: a walk finds none. */
extern CW_HIDDEN _Atomic int cw_python_is_armed;

/* The version, "3.11", or why there are no frames. Good until the next call of set_symbols. */
const char *cw_python_status(void);
/* There is an interpreter, but its frames cannot be read. */
int cw_python_is_missing(void);

struct cw_python_frame {
    uint64_t code;  /* the code object; 0: an evaluator whose frame is gone already */
    int32_t instr;  /* byte offset of its current instruction; -1: before the first */
    uint32_t stamp; /* differs, in all likelihood, when another code object has the address */
    /* The evaluator was entered with this frame: the native frames of one _PyEval_EvalFrameDefault
     * stand for it and for the frames further in, up to the next that is an entry. */
    int16_t is_entry;
    int16_t is_copied; /* of another thread: its memory may change or go */
};

/* Innermost first, at most max; how many. 0: no Python here. For a call from Python code, not from
 * a signal handler that interrupted the evaluator. */
unsigned cw_python_walk(struct cw_python_frame *out, unsigned max);

#define CW_PYTHON_FILE     1024 /* room for names, with their NUL; of a longer file name the end */
#define CW_PYTHON_FUNCTION 512  /* is kept, of a longer function name the beginning */

/* UTF-8; an invalid character becomes U+FFFD. */
struct cw_python_text {
    char file[CW_PYTHON_FILE];         /* of a notebook's cell its name, see base/cell_name.h */
    char function[CW_PYTHON_FUNCTION]; /* from 3.11 on with its class: "Model.forward" */
    int32_t line;                      /* 0: not known */
};

/* What the frame shows. Between the walk and the return to Python, in the same thread: the frame
 * keeps its code object alive. 0, or -1: the frame has no code. */
int cw_python_describe(const struct cw_python_frame *frame, struct cw_python_text *out);

#endif
