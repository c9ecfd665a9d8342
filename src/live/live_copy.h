/* SPDX-License-Identifier: MIT */
/*
 * A copy of a live file, taken at one moment, of a process that runs or that has ended. A copy,
 * because the bytes must not change between a check and a use, a file that somebody cuts off must
 * not end the reader by a signal, and reading a hole of a mapped /dev/shm takes memory from it.
 * Blocks, samples and points that changed while they were copied read as absent.
 */
#ifndef CW_LIVE_LIVE_COPY_H
#define CW_LIVE_LIVE_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "live/view.h"

struct cw_live_copy {
    struct cw_view view;
    int is_locked; /* 1: its process runs, 0: nobody holds the lock, -1: cannot be told */
    void *memory;
    size_t size;
};

/* Reads the file that fd stands for. 0, or -1 and in `why` what is wrong with it, to be read after
 * the file's name. */
int cw_live_copy_read(int fd, struct cw_live_copy *image, char *why, size_t cap);
/* Which process a header says that it is of. */
struct cw_live_identity {
    uint32_t pid;
    uint32_t pid_namespace; /* where `pid` counts; 0: not known */
};

struct cw_live_identity cw_live_identity(const struct cw_live_header *header);
/* Reads and checks the header alone; whose file it is. */
int cw_live_copy_check(int fd, struct cw_live_identity *out_identity, char *why, size_t cap);
/* How long the open file is: 0, or -1 and why it cannot be that long. */
int cw_live_copy_size(int fd, uint64_t *out_size, char *why, size_t cap);
/* No table has more records than the file has bytes: a bad count must not cost a long loop. */
void cw_live_copy_bound_counts(struct cw_live_header *header, uint64_t file_size);
/* Reads from `from` to `until` into the same places of `to`, but no holes, which stay as they are.
 * The place at which the file ended, or could not be read. */
uint64_t cw_live_copy_read_data(int fd, char *to, uint64_t from, uint64_t until);
void cw_live_copy_free(struct cw_live_copy *image);

#endif
