/* SPDX-License-Identifier: MIT */
/* The path of the file that this process runs. */
#ifndef CW_BASE_OWN_PATH_H
#define CW_BASE_OWN_PATH_H

#include <stddef.h>

/*
 * As /proc has it; where that is not mounted, as the process was started, from the current
 * directory on. 0, or -1 and "": it is not known, or does not fit.
 */
int cw_own_path(char *out_path, size_t cap);

#endif
