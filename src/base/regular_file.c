/* SPDX-License-Identifier: MIT */
/* See regular_file.h. Owns nothing. */
#include "base/regular_file.h"

#include <stddef.h>

#include "base/out.h"
#include "base/sys.h"

#define HOLLOW_MIN   (UINT64_C(64) << 20)
#define HOLLOW_RATIO 64
#define BLOCK_BYTES  512

int cw_regular_is_hollow(const struct stat *file)
{
    uint64_t size = (uint64_t)file->st_size, room = (uint64_t)file->st_blocks * BLOCK_BYTES;

    return size > HOLLOW_MIN && size / HOLLOW_RATIO > room;
}

/* A file system that does not count blocks reports none: then the content decides. */
static int check(const struct stat *file)
{
    if (!S_ISREG(file->st_mode) || file->st_size < 0)
        return EINVAL;
    return file->st_blocks > 0 && cw_regular_is_hollow(file) ? EFBIG : 0;
}

static int open_same(const char *path, int flags, const struct stat *file)
{
    int fd = cw_sys_open(path, O_RDONLY | O_NONBLOCK | flags, 0);
    struct stat info;

    if (fd < 0 ||
        (cw_sys_stat(fd, &info) == 0 && info.st_dev == file->st_dev && info.st_ino == file->st_ino))
        return fd;
    cw_sys_close(fd);
    errno = EINVAL;
    return -1;
}

/* By the descriptor; by its name where /proc is not mounted. */
static int reopen(int at, const char *path, int flags, const struct stat *file)
{
    char link[64];
    int fd;

    cw_format(link, sizeof(link), "/proc/thread-self/fd/%d", at);
    fd = open_same(link, 0, file);
    return fd < 0 && errno == ENOENT ? open_same(path, flags, file) : fd;
}

int cw_regular_open(const char *path, int flags, uint64_t *out_size)
{
    int at = cw_sys_open(path, O_PATH | flags, 0), fd = -1, error;
    struct stat info;

    if (at < 0)
        return -1;
    error = cw_sys_stat(at, &info) == 0 ? check(&info) : errno;
    if (error == 0) {
        fd = reopen(at, path, flags, &info);
        error = errno;
    }
    cw_sys_close(at);
    if (fd >= 0)
        *out_size = (uint64_t)info.st_size;
    else
        errno = error;
    return fd;
}

const char *cw_regular_reason(int error)
{
    if (error == EINVAL)
        return "it is not a regular file";
    return error == EFBIG ? "it is a large file that is nearly all holes" : NULL;
}
