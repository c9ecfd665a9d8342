/* SPDX-License-Identifier: MIT */
/* Location of libcuwarden.so. */
#ifndef CW_CLI_LIBRARY_H
#define CW_CLI_LIBRARY_H

#include <stddef.h>

/*
 * Its absolute path: `preload` if not NULL, else the first candidate that exists. Returns 0, or -1
 * after a message that lists the candidates.
 */
int cw_library_find(const char *preload, char *path, size_t cap);

#endif
