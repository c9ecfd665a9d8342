/* SPDX-License-Identifier: MIT */
/* Finds live files. */
#ifndef CW_CLI_LIVE_FILES_H
#define CW_CLI_LIVE_FILES_H

#include <stddef.h>
#include <stdint.h>

struct cw_live_name {
    const char *path;
    size_t named; /* bytes of `path` that are the searched directory (foreign_file.h) */
    uint32_t pid;
    uint64_t start; /* seconds since 1970, from the name */
};

struct cw_live_files {
    struct cw_live_name *file; /* newest first */
    size_t count;
};

/* Adds the directory's files, only those of one process if pid is not 0. with_runs: includes
 * programs under `cuwarden run`, which have their own subdirectories (run_live.h), and nested runs.
 * 0, or -1 with errno. */
int cw_live_files_add(struct cw_live_files *files, const char *directory, uint32_t pid,
                      int with_runs);
/* Adds the files of one process from all directories that the library uses in this environment; the
 * searched directories go to `where`, for a message. */
void cw_live_files_of(struct cw_live_files *files, uint32_t pid, char *where, size_t cap);
/* The newest file of the process with this id, or the one that it has open; NULL after a message.
 * `files` owns it. */
const struct cw_live_name *cw_live_files_of_process(struct cw_live_files *files,
                                                    const char *number);
/* The name of a file as the user wrote it. */
struct cw_live_name cw_live_name_of(const char *path);
/* Opens it, and checks whose it is (foreign_file.h). The descriptor; or -1 with errno, and `why`
 * has the words unless it is empty. */
int cw_live_file_open(const struct cw_live_name *name, int flags, uint32_t *out_uid, char *why,
                      size_t cap);
/* 1 if the file's process runs: it holds the file's lock or, if that cannot be tested, maps it. */
int cw_live_file_is_mapped(uint32_t pid, const char *path);
int cw_live_file_is_in_use(int fd, uint32_t pid, const char *path);
void cw_live_files_free(struct cw_live_files *files);

#endif
