/* SPDX-License-Identifier: MIT */
/*
 * Symbolic links and FIFOs in the place of a file that is to be written, in directories where
 * others write.
 *
 * A link that another user made, other than root, leads where they want, and a FIFO of theirs has
 * their reader, or lets us wait for one: both are refused. What is asked is the link or FIFO
 * itself, by a descriptor: its name may be given to another one at any moment, and what is opened
 * then is what was asked. Only the last component of a path is looked at: the
 * directories before it are the caller's choice.
 */
#ifndef CW_BASE_LINKS_H
#define CW_BASE_LINKS_H

#include <stddef.h>

enum cw_links_end {
    CW_LINKS_FILE,   /* no link, when it was asked; or nothing is there */
    CW_LINKS_KERNEL, /* a link of procfs (/dev/stdout), which has no other name */
};

/* Where the links at the path's end lead. 0, or -1 with errno: EPERM for another user's link, ELOOP
 * after 40 of them. */
int cw_links_follow(const char *path, char *out_path, size_t cap, enum cw_links_end *out_end);

/* Whether another user made it, other than root. */
struct stat;
int cw_links_is_of_other(const struct stat *info);

/* Opens what is there by that rule, with flags of open(2); `buf` is for the name. The descriptor,
 * or -1 with errno: EPERM for another user's link or FIFO, ELOOP if a link was put there meanwhile.
 */
int cw_links_open(const char *path, int flags, char *buf, size_t cap);

/* The same for a FIFO, a device, or a link, to be written without O_TRUNC. A regular file behind a
 * link is made empty; one that procfs names (/dev/stdout) is
 * written where this process writes next, or at its end. EEXIST: one without a link
 * was put there meanwhile, which may be a hard link to anybody's. */
int cw_links_open_stream(const char *path, int flags, char *buf, size_t cap);

#endif
