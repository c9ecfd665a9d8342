/* SPDX-License-Identifier: MIT */
/* See links.h. */
#include "base/links.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
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

int cw_links_open(const char *path, int flags, char *buf, size_t cap)
{
    enum cw_links_end end;

    if (cw_links_follow(path, buf, cap, &end) != 0)
        return -1;
    return cw_sys_open(buf, flags | (end == CW_LINKS_FILE ? O_NOFOLLOW : 0), 0);
}

int cw_links_open_stream(const char *path, int flags, char *buf, size_t cap)
{
    int fd = cw_links_open(path, flags, buf, cap);
    struct stat info;

    if (fd < 0 || cw_sys_stat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return fd;
    if (strcmp(path, buf) != 0 &&
        syscall(SYS_ftruncate, fd, 0L) == 0) /* a link of ours led there */
        return fd;
    cw_sys_close(fd);
    errno = EEXIST;
    return -1;
}
