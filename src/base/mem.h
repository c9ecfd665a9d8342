/* SPDX-License-Identifier: MIT */
/*
 * The internal heap: small blocks for cold maps, straight pages for large ones, from mmap.
 *
 * Not malloc: the program may have replaced it by one that calls CUDA, or be inside it when it
 * calls us. Blocks are given back with their size. Zeroed on allocation; aligned to 16 bytes, and
 * to a cache line from 64 bytes on. NULL when the system has no memory; the caller degrades. errno
 * is preserved. Guarded by one lock of rank CW_RANK_MEM; callable from any thread that holds locks
 * of lower rank.
 */
#ifndef CW_BASE_MEM_H
#define CW_BASE_MEM_H

#include <stddef.h>

void *cw_mem_alloc(size_t size);
/* For memory that is accessed at random: on huge pages from 2 MiB on, if the system grants
 * madvise. */
void *cw_mem_alloc_dense(size_t size);
void cw_mem_free(void *ptr, size_t size);

/* Between the two, the calling thread's blocks are pages straight from the system, without the
 * lock: for the report, which may be written from a signal handler that interrupted a holder of it.
 * Memory allocated in between must be freed in between, or never. */
void cw_mem_detach(void);
void cw_mem_attach(void);

/* In a forked child: forget everything, the child starts clean. */
void cw_mem_reset(void);

#endif
