/* SPDX-License-Identifier: MIT */
/* Where libcuwarden.so is. */
#ifndef CW_CLI_LIBRARY_H
#define CW_CLI_LIBRARY_H

#include <stddef.h>

/*
 * Its absolute path: `preload` if not NULL, else the first place that has one. Returns 0, or -1
 * after a message that names the places.
 */
int cw_library_find(const char *preload, char *path, size_t cap);

#endif
