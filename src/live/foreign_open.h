/* SPDX-License-Identifier: MIT */
/*
 * The one way to open a file that another process wrote: a live file, or a report that was found in
 * a directory. Others may write to that directory, so a name proves nothing.
 */
#ifndef CW_LIVE_FOREIGN_OPEN_H
#define CW_LIVE_FOREIGN_OPEN_H

#include <stddef.h>
#include <stdint.h>

/* Whose file it may be. */
enum cw_foreign {
    CW_FOREIGN_OWN,       /* the user's own; root may open everybody's */
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

#endif
