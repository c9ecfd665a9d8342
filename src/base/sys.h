/* SPDX-License-Identifier: MIT */
/*
 * System calls on files that are no cancellation points: a thread that arms the library, or writes
 * the report in an exit handler, may have a cancellation pending, and must not be ended half-way.
 * Each returns -1 with errno like the function of the same name.
 */
#ifndef CW_BASE_SYS_H
#define CW_BASE_SYS_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int cw_sys_open(const char *path, int flags, unsigned mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, mode);
}

static inline int cw_sys_open_at(int dir, const char *name, int flags, unsigned mode)
{
    return (int)syscall(SYS_openat, dir, name, flags | O_CLOEXEC | O_NOCTTY, mode);
}

/* Not the function: musl before 1.2.5 has none, and its programs would not start under the preload.
 */
struct statx;
static inline int cw_sys_statx(int dir, const char *path, int flags, unsigned mask,
                               struct statx *out)
{
    return (int)syscall(SYS_statx, dir, path, flags, mask, out);
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

/* Reads up to len bytes at offset; the number read, less only at the end of the file or on error.
 */
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

#endif
