/* SPDX-License-Identifier: MIT */
/*
 * Locks on files, by which processes know of each other: a process claims its live file for as long
 * as it lives, and takes bytes of files that several share. Owns nothing; no lock of this process.
 *
 * Both are locks of the open file (F_OFD_SETLK): they go when its last descriptor, copies by a fork
 * included, and its last mapping have gone, however the process ends and whatever descriptors it
 * closes. A forked child lets go of both (live/backing.h).
 *
 * Where the kernel knows none (EINVAL: gVisor), a claim is a lock of flock(2), which lasts as long
 * but is of the whole file, so it cannot serve for bytes. These are record locks of the process
 * (F_SETLK) then, which another descriptor of the same file takes away when this process closes it:
 * who has taken bytes opens the file no second time. A claim cannot be one, since a live file is
 * opened again and again (backing.c, borrow).
 */
#ifndef CW_LIVE_FILE_LOCK_H
#define CW_LIVE_FILE_LOCK_H

#include <stdint.h>

/* Of a live file (live/live_dir.h). 0, or -1 with errno. */
int cw_file_lock_claim(int fd);

/* 1 if a process has claimed the file, 0 if none has, -1 if that cannot be told. The descriptor is
 * one of the caller's own opening. */
int cw_file_lock_is_claimed(int fd);

/* `len` bytes, which may lie beyond the file's end; 0: all from there on. 0, or -1 with errno:
 * EAGAIN or EACCES if somebody else has one of them. The file is open for writing. */
int cw_file_lock_take(int fd, uint64_t from, uint64_t len);
/* Also where a forked child has a copy of the descriptor. */
void cw_file_lock_drop(int fd, uint64_t from, uint64_t len);

#endif
