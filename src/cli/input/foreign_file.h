/* SPDX-License-Identifier: MIT */
/*
 * The one way to open a file that another process wrote: a live file, or a report that was found in
 * a directory. Others may write to that directory, so a name proves nothing.
 */
#ifndef CW_CLI_FOREIGN_FILE_H
#define CW_CLI_FOREIGN_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Whose file it may be; root may open everybody's. */
enum cw_foreign {
    CW_FOREIGN_OWN,       /* the user's own */
    CW_FOREIGN_DIRECTORY, /* also of the user who owns the directory that was named */
};

/*
 * Opens a regular file, with O_RDONLY or O_RDWR. The first `named` bytes of the path are a
 * directory that the user named, or one of the library's; the rest was found there and is no
 * symbolic link in any of its parts. 0: nothing was found, the path is what the user wrote, and
 * only its last part is no link. Returns the descriptor, or -1 with errno; `why` then has the
 * words, to be read after the file's name, if this refused the file, or is empty if the system did.
 * `out_uid`: its owner.
 */
int cw_foreign_open(const char *path, size_t named, int flags, enum cw_foreign rule,
                    uint32_t *out_uid, char *why, size_t cap);

/*
 * Whether the live file of the user `uid`, which says to be of process `pid` of that PID namespace,
 * may be believed. `wanted` is the process id in its name, 0 if the name has none. Where the
 * process is not visible from here (it ended, or is in another namespace), the file's owner
 * decides. 0, or -1 with the words in `why`.
 */
struct cw_live_identity;
int cw_foreign_check_process(uint32_t uid, uint32_t wanted, const struct cw_live_identity *identity,
                             char *why, size_t cap);
/* The user of the process; the caller if it is not visible from here. */
uint32_t cw_foreign_owner_of(uint32_t pid);
/* 1 if a process with this id is visible and does not belong to the user; root's own files pass. */
int cw_foreign_is_of_other(uint32_t pid, uint32_t uid);

#endif
