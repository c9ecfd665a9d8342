/* SPDX-License-Identifier: MIT */
/*
 * Which functions are CUDA's own although they lie in a program or its libraries: those of a
 * runtime that is linked statically, the inline ones of the toolkit's headers, and what nvcc
 * generates for a kernel's call.
 */
#ifndef CW_REPORT_TOOLKIT_H
#define CW_REPORT_TOOLKIT_H

/* By the function's name, mangled or not (NULL: not known), and the file that it is in, which may
 * be NULL. A namesake in a namespace or a class is the program's. */
int cw_toolkit_has_function(const char *function, const char *file);

#endif
