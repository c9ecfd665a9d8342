/* SPDX-License-Identifier: MIT */
/*
 * Opens files that others made, to be read: regular ones with their data on disk. An open alone
 * can do harm: it wakes the writer of a FIFO, and a device may act on it. So the name is resolved
 * to a file first (O_PATH), and only a file that has passed is opened.
 */
#ifndef CW_BASE_REGULAR_FILE_H
#define CW_BASE_REGULAR_FILE_H

#include <stdint.h>

struct stat;

/* Whether a file is large and nearly all holes, which would cost what its size promises. A file
 * system that compresses makes real data 10 times smaller at most. */
int cw_regular_is_hollow(const struct stat *file);

/* Returns a descriptor, or -1 with errno: EINVAL for what is not a regular file, EFBIG for a hollow
 * one. `flags`: 0 or O_NOFOLLOW. Not a cancellation point. */
int cw_regular_open(const char *path, int flags, uint64_t *out_size);

/* Words for the two errors above, to be read after "cannot be read:"; NULL for others. */
const char *cw_regular_reason(int error);

#endif
