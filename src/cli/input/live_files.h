/* SPDX-License-Identifier: MIT */
/* Which live files there are. */
#ifndef CW_CLI_LIVE_FILES_H
#define CW_CLI_LIVE_FILES_H

#include <stddef.h>
#include <stdint.h>

struct cw_live_name {
    char *path;
    uint32_t pid;
    uint64_t start; /* seconds since 1970, as the name has it */
};

struct cw_live_files {
    struct cw_live_name *file; /* newest first */
    size_t count;
};

/* Adds those in the directory, of one process if pid is not 0; with_runs: and those of programs
 * under `cuwarden run`, which have directories of their own in it (run_live.h), also of a run
 * inside a run. 0, or -1 with errno. */
int cw_live_files_add(struct cw_live_files *files, const char *directory, uint32_t pid,
                      int with_runs);
/* Of one process, wherever the library puts them in this environment; what was searched, for a
 * message, goes to `where`. */
void cw_live_files_of(struct cw_live_files *files, uint32_t pid, char *where, size_t cap);
/* The newest of the process whose id this is, or the one that it has open; NULL after a message. It
 * belongs to `files`. */
const char *cw_live_files_of_process(struct cw_live_files *files, const char *number);
/* 1 if its process runs: it holds the lock of the file, or, where that cannot be told, maps it. */
int cw_live_file_is_mapped(uint32_t pid, const char *path);
int cw_live_file_is_in_use(int fd, uint32_t pid, const char *path);
void cw_live_files_free(struct cw_live_files *files);

#endif
