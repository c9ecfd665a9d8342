/* SPDX-License-Identifier: MIT */
/* Where the parts of a Python interpreter are that its frames are read with. */
#ifndef CW_CORE_PYTHON_SYMBOLS_H
#define CW_CORE_PYTHON_SYMBOLS_H

#include <stdint.h>

/* What a process has of one interpreter and of the C library. */
struct cw_python_symbols {
    uint32_t version;         /* as in PY_VERSION_HEX; 0: older than 3.9 */
    const void *runtime;      /* _PyRuntime */
    const void *code_type;    /* PyCode_Type */
    const void *unicode_type; /* PyUnicode_Type */
    /* The object that has the evaluator, and _PyEval_EvalFrameDefault in it as far as one piece of
     * it is known. Addresses of machine code; 0: not known. */
    uint64_t object, object_end;
    uint64_t evaluator, evaluator_end;
    void *(*thread_value)(unsigned key); /* pthread_getspecific */
    void *(*thread_state)(void);         /* PyGILState_GetThisThreadState */
    unsigned long (*thread_self)(void);  /* pthread_self */
};

#endif
