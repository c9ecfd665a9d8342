/* SPDX-License-Identifier: MIT */
/* See links.h. */
#include "base/links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/out.h"
#include "base/sys.h"

#define LINKS_MAX 40 /* as in the kernel */

/* Behind the directory that a relative link starts from. */
static int read_link(int fd, char *path, size_t cap)
{
    char *slash = strrchr(path, '/'), *target = slash != NULL ? slash + 1 : path;
    size_t room = cap - (size_t)(target - path);
    long len = syscall(SYS_readlinkat, fd, "", target, room);

    if (len < 0)
        return -1;
    if ((size_t)len == room) {
        errno = ENAMETOOLONG;
        return -1;
    }
    target[len] = '\0';
    if (target[0] == '/')
        memmove(path, target, (size_t)len + 1);
    return 1;
}

int cw_links_is_of_other(const struct stat *info)
{
    return info->st_uid != 0 && info->st_uid != geteuid();
}

/* 1: it was a link, and `path` is where it leads; 0: the end; or -1. */
static int step(int fd, char *path, size_t cap, enum cw_links_end *out_end)
{
    struct statfs system;
    struct stat info;

    if (cw_sys_stat(fd, &info) != 0)
        return -1;
    if (!S_ISLNK(info.st_mode))
        return 0;
    if (syscall(SYS_fstatfs, fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC) {
        *out_end = CW_LINKS_KERNEL;
        return 0;
    }
    if (cw_links_is_of_other(&info)) {
        errno = EPERM;
        return -1;
    }
    return read_link(fd, path, cap);
}

int cw_links_follow(const char *path, char *out_path, size_t cap, enum cw_links_end *out_end)
{
    size_t len = strlen(path);

    *out_end = CW_LINKS_FILE;
    if (len >= cap) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(out_path, path, len + 1);
    for (unsigned i = 0; i <= LINKS_MAX; i++) {
        int fd = cw_sys_open(out_path, O_PATH | O_NOFOLLOW, 0), rc, saved_errno;

        if (fd < 0)
            return errno == ENOENT ? 0 : -1;
        rc = step(fd, out_path, cap, out_end);
        saved_errno = errno;
        cw_sys_close(fd);
        errno = saved_errno;
        if (rc <= 0)
            return rc;
    }
    errno = ELOOP;
    return -1;
}

static int close_with(int fd, int error)
{
    cw_sys_close(fd);
    errno = error;
    return -1;
}

/* The descriptor, unless it is of a FIFO that another user made, who would read what is written. */
static int refuse_strange(int fd)
{
    struct stat info;

    if (fd < 0)
        return -1;
    if (cw_sys_stat(fd, &info) != 0)
        return close_with(fd, errno);
    return S_ISFIFO(info.st_mode) && cw_links_is_of_other(&info) ? close_with(fd, EPERM) : fd;
}

/* Looks before it opens, since to open a FIFO may be to wait; and opens what it has looked at. A
 * pipe that procfs names was handed to this process, whoever made it. */
static int open_end(const char *path, int flags, enum cw_links_end end)
{
    char name[32];
    int seen, fd, saved_errno;

    if (end == CW_LINKS_KERNEL)
        return cw_sys_open(path, flags, 0);
    seen = refuse_strange(cw_sys_open(path, O_PATH | O_NOFOLLOW, 0));
    if (seen < 0)
        return -1;
    cw_format(name, sizeof(name), "/proc/self/fd/%d", seen);
    fd = cw_sys_open(name, flags, 0);
    if (fd < 0 && errno == ENOENT) /* procfs is not mounted */
        fd = refuse_strange(cw_sys_open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0));
    saved_errno = errno;
    cw_sys_close(seen);
    errno = saved_errno;
    return fd;
}

int cw_links_open(const char *path, int flags, char *buf, size_t cap)
{
    enum cw_links_end end;

    if (cw_links_follow(path, buf, cap, &end) != 0)
        return -1;
    return open_end(buf, flags, end);
}

/* A duplicate of the descriptor that the link names, of this process, if it is one of this file: it
 * shares the position with whoever writes there. -1: none. */
static int duplicate(const char *path, const struct stat *file)
{
    const char *digits = strrchr(path, '/');
    unsigned long number = digits != NULL ? strtoul(digits + 1, NULL, 10) : 0;
    struct stat own;
    int flags = number < INT_MAX ? cw_sys_fcntl((int)number, F_GETFL, 0) : -1;

    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || cw_sys_stat((int)number, &own) != 0 ||
        own.st_dev != file->st_dev || own.st_ino != file->st_ino)
        return -1;
    return cw_sys_fcntl((int)number, F_DUPFD_CLOEXEC, CW_SYS_FIRST_FD);
}

/* The descriptor to write to, which may be another one; or -1 with errno. */
static int check_stream(int fd, const char *path, int is_linked, enum cw_links_end end)
{
    struct stat info;
    int other;

    if (cw_sys_stat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return fd;
    if (end == CW_LINKS_KERNEL) {
        other = duplicate(path, &info);
        return other < 0 ? fd : other;
    }
    if (is_linked)
        return syscall(SYS_ftruncate, fd, 0L) == 0 ? fd : -1;
    errno = EEXIST;
    return -1;
}

int cw_links_open_stream(const char *path, int flags, char *buf, size_t cap)
{
    enum cw_links_end end;
    int fd, stream, saved_errno;

    if (cw_links_follow(path, buf, cap, &end) != 0)
        return -1;
    fd = open_end(buf, flags | (end == CW_LINKS_KERNEL ? O_APPEND : 0), end);
    stream = fd < 0 ? -1 : check_stream(fd, buf, strcmp(path, buf) != 0, end);
    saved_errno = errno;
    if (stream != fd)
        cw_sys_close(fd);
    errno = saved_errno;
    return stream;
}
