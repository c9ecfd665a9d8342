/* SPDX-License-Identifier: MIT */
/* Descriptors among those of a program. See own_fd.h. */
#include "live/own_fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/process_status.h"
#include "base/sys.h"

#define HIGH_FD 900
#define ROOM_FD 4 /* of a table that ends below that, we take one of the last */

int cw_own_fd_is(int fd, uint64_t device, uint64_t inode)
{
    struct stat info;

    return fd >= 0 && cw_sys_stat(fd, &info) == 0 && (uint64_t)info.st_ino == inode &&
           (uint64_t)info.st_dev == device;
}

/* Not beyond the table of descriptors that the kernel has made: a larger one costs a process of
 * several threads an RCU grace period, 11 ms. */
int cw_own_fd_raise(int fd)
{
    struct rlimit limit;
    long made = cw_process_status("FDSize");
    uint64_t floor = HIGH_FD;
    int high;

    if (made > ROOM_FD + CW_SYS_FIRST_FD && made < HIGH_FD + ROOM_FD)
        floor = (uint64_t)made - ROOM_FD;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 8 * 7 < floor)
        floor = limit.rlim_cur / 8 * 7;
    high = cw_sys_fcntl(fd, F_DUPFD_CLOEXEC, floor);
    if (high < 0)
        return fd;
    cw_sys_close(fd);
    return high;
}
