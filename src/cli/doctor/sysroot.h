/* SPDX-License-Identifier: MIT */
/*
 * Files of the system to inspect: this one, or one under a directory (an unpacked image, or
 * /proc/PID/root). Links are followed as that system would follow them, so that none leads outside.
 */
#ifndef CW_CLI_SYSROOT_H
#define CW_CLI_SYSROOT_H

#include <stddef.h>

/*
 * The real path, inside the system, of `path`, which is absolute, or relative to the working
 * directory if root is "". Returns 0, or -1 with errno; buf has PATH_MAX bytes.
 */
int cw_sysroot_resolve(const char *root, const char *path, char *buf);

/* Where to open a path that is inside the system; 0, or -1 if it is too long. */
int cw_sysroot_outside(const char *root, const char *path, char *buf, size_t cap);

/* 1 if the file exists, whatever its type. */
int cw_sysroot_has(const char *root, const char *path);

#endif
