/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that we keep in the process of a program, which may close any of them and reuse the
 * number for a file of its own: look before each use. Owns nothing; no lock. A program that does so
 * between the look and the use is not noticed.
 */
#ifndef CW_LIVE_OWN_FD_H
#define CW_LIVE_OWN_FD_H

#include <stdint.h>

/* 1: the descriptor is of this file. */
int cw_own_fd_is(int fd, uint64_t device, uint64_t inode);

/* Moves it to a number above those of programs that count theirs, or close a range; the same if
 * there is none. Closed on exec. */
int cw_own_fd_raise(int fd);

#endif
