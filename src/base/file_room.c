/* SPDX-License-Identifier: MIT */
/* See file_room.h. */
#include "base/file_room.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

#define ZEROS 4096

int cw_file_room_is_beyond(uint64_t end)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           end > limit.rlim_cur;
}

/* For file systems without fallocate, such as NFS. */
static int write_zeros(int fd, uint64_t offset, uint64_t len)
{
    static const char zeros[ZEROS];

    for (uint64_t done = 0; done < len; done += ZEROS) {
        long n = syscall(SYS_pwrite64, fd, zeros, (size_t)ZEROS, (long)(offset + done));

        if (n != ZEROS)
            return n < 0 ? errno : ENOSPC;
    }
    return 0;
}

int cw_file_room_take(int fd, uint64_t offset, uint64_t len)
{
    int rc;

    if (cw_file_room_is_beyond(offset + len))
        return EFBIG;
    do
        rc = cw_sys_fallocate(fd, offset, len);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return 0;
    return errno == EOPNOTSUPP || errno == ENOSYS ? write_zeros(fd, offset, len) : errno;
}
