/* SPDX-License-Identifier: MIT */
/* Room in a file, so that what is written to its mapping has a place: a full disk is an error then,
 * and neither SIGBUS nor SIGXFSZ ends the program. */
#ifndef CW_BASE_FILE_ROOM_H
#define CW_BASE_FILE_ROOM_H

#include <stdint.h>

/* 1: a write up to `end` would exceed RLIMIT_FSIZE and raise SIGXFSZ. */
int cw_file_room_is_beyond(uint64_t end);

/* Takes it, by zeros where the file system has no fallocate. len: a multiple of 4096. 0, or the
 * errno; EFBIG: is_beyond. errno is undefined afterwards. */
int cw_file_room_take(int fd, uint64_t offset, uint64_t len);

#endif
