/* SPDX-License-Identifier: MIT */
/* Why a library that was to be preloaded into a program is not in it. */
#ifndef CW_CLI_RUN_REACH_H
#define CW_CLI_RUN_REACH_H

#include <stddef.h>

/*
 * What keeps the dynamic linker from preloading `library` into the program, which is looked for as
 * execvp does: 1 and in `why` a sentence that begins with its name; 0 if nothing is found.
 */
int cw_run_reach(const char *program, const char *library, char *why, size_t cap);

#endif
