/* SPDX-License-Identifier: MIT */
/*
 * System calls on files that are not cancellation points: a thread that arms the library, or writes
 * the report in an exit handler, may have a cancellation pending, and must not be ended half-way.
 * Each returns -1 with errno like the function of the same name.
 */
#ifndef CW_BASE_SYS_H
#define CW_BASE_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The program may have closed 0, 1 or 2 and still print: not into a file of ours. */
#define CW_SYS_FIRST_FD 3

static inline int cw_sys_open_at(int dir, const char *name, int flags, unsigned mode)
{
    int fd = (int)syscall(SYS_openat, dir, name, flags | O_CLOEXEC | O_NOCTTY, mode);
    int low = fd, saved;

    if (fd < 0 || fd >= CW_SYS_FIRST_FD)
        return fd;
    fd = (int)syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, CW_SYS_FIRST_FD);
    saved = fd < 0 && errno == EINVAL ? EMFILE : errno; /* 3 is beyond the limit */
    syscall(SYS_close, low);
    errno = saved;
    return fd;
}

static inline int cw_sys_open(const char *path, int flags, unsigned mode)
{
    return cw_sys_open_at(AT_FDCWD, path, flags, mode);
}

/* Not statx: kernels before 4.11 have none, and some sandboxes answer EPERM. Not the functions:
 * their symbol is of glibc 2.33. On 64-bit machines struct stat is the kernel's own. */
static inline int cw_sys_stat(int fd, struct stat *out)
{
    return (int)syscall(SYS_fstat, fd, out);
}

/* Does not follow a symbolic link. */
static inline int cw_sys_stat_path(const char *path, struct stat *out)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

static inline void cw_sys_close(int fd)
{
    syscall(SYS_close, fd);
}

static inline int cw_sys_fcntl(int fd, int command, uint64_t argument)
{
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

static inline int cw_sys_fallocate(int fd, uint64_t offset, uint64_t len)
{
    return (int)syscall(SYS_fallocate, fd, 0, (long)offset, (long)len);
}

/* Reads len bytes at offset. Returns the number read: fewer only at the end of the file or on
 * error. */
static inline size_t cw_sys_read_at(int fd, void *buf, size_t len, uint64_t offset)
{
    size_t done = 0;

    while (done < len) {
        long n = syscall(SYS_pread64, fd, (char *)buf + done, len - done, (long)(offset + done));

        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* The start of a file as a string: 0, or -1 where there is none, or nothing in it. */
static inline int cw_sys_read_text(const char *path, char *buf, size_t cap)
{
    int fd = cw_sys_open(path, O_RDONLY, 0);
    size_t len;

    if (fd < 0)
        return -1;
    len = cw_sys_read_at(fd, buf, cap - 1, 0);
    cw_sys_close(fd);
    buf[len] = '\0';
    return len > 0 ? 0 : -1;
}

#endif
