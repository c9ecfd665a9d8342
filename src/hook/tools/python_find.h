/* SPDX-License-Identifier: MIT */
/* Where the interpreter's symbols are: in the program itself, or in libpython. */
#ifndef CW_HOOK_PYTHON_FIND_H
#define CW_HOOK_PYTHON_FIND_H

#include "core/python/python.h"

/* 0, or -1: no object of the process has a Python interpreter. Takes the loader's lock: no lock of
 * ours is held. */
int cw_python_find(struct cw_python_symbols *out);

#endif
