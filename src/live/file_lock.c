/* SPDX-License-Identifier: MIT */
/* Locks on files. See file_lock.h. */
#include "live/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "base/lock.h"
#include "base/sys.h"
#include "live/live_dir.h"

/* How often a claim is made again while somebody looks whether there is one. */
#define TURNS 200u

static struct flock range(short type, uint64_t from, uint64_t len)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)len};
}

/* ---- bytes ---- */

static int set(int fd, short type, uint64_t from, uint64_t len)
{
    struct flock lock = range(type, from, len);
    int rc = cw_sys_fcntl(fd, F_OFD_SETLK, (uintptr_t)&lock);

    if (rc != 0 && errno == EINVAL)
        rc = cw_sys_fcntl(fd, F_SETLK, (uintptr_t)&lock);
    return rc;
}

int cw_file_lock_take(int fd, uint64_t from, uint64_t len)
{
    return set(fd, F_WRLCK, from, len);
}

void cw_file_lock_drop(int fd, uint64_t from, uint64_t len)
{
    (void)set(fd, F_UNLCK, from, len);
}

/* ---- a claim ---- */

static int lock_file(int fd, int how)
{
    return (int)syscall(SYS_flock, fd, how);
}

/* Who only looks has the file for a moment. */
static int claim_file(int fd)
{
    unsigned turns = 0;
    int rc = lock_file(fd, LOCK_EX | LOCK_NB);

    while (rc != 0 && errno == EWOULDBLOCK && turns < TURNS) {
        cw_lock_relax(&turns);
        rc = lock_file(fd, LOCK_EX | LOCK_NB);
    }
    return rc;
}

int cw_file_lock_claim(int fd)
{
    struct flock lock = range(F_WRLCK, CW_LIVE_LOCK_PROCESS, 1);
    int rc = cw_sys_fcntl(fd, F_OFD_SETLK, (uintptr_t)&lock);

    return rc != 0 && errno == EINVAL ? claim_file(fd) : rc;
}

/* By a shared lock, so that several who look do not take each other for the process. */
static int is_file_claimed(int fd)
{
    if (lock_file(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? 1 : -1;
    (void)lock_file(fd, LOCK_UN);
    return 0;
}

int cw_file_lock_is_claimed(int fd)
{
    struct flock lock = range(F_WRLCK, CW_LIVE_LOCK_PROCESS, 1);

    if (cw_sys_fcntl(fd, F_OFD_GETLK, (uintptr_t)&lock) == 0)
        return lock.l_type != F_UNLCK;
    return errno == EINVAL ? is_file_claimed(fd) : -1;
}
