/* SPDX-License-Identifier: MIT */
/* Requests to another process. See mailbox.h. */
#include "live/mailbox.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file_room.h"
#include "base/sys.h"
#include "live/file_lock.h"
#include "live/live_dir.h"

#define PAGE 65536u /* the largest of any machine; a multiple of the others */

uint32_t cw_mailbox_get(int fd, size_t at)
{
    uint32_t value = 0;

    (void)cw_sys_read_at(fd, &value, sizeof(value), at);
    return value;
}

static int put_bytes(int fd, size_t at, const void *bytes, size_t len)
{
    return syscall(SYS_pwrite64, fd, bytes, len, (long)at) == (long)len ? 0 : -1;
}

static int put(int fd, size_t at, uint32_t value)
{
    return put_bytes(fd, at, &value, sizeof(value));
}

/* ---- the place of the asker ---- */

int cw_mailbox_lock(int fd)
{
    return cw_file_lock_take(fd, CW_LIVE_LOCK_ASKER, 1);
}

void cw_mailbox_unlock(int fd)
{
    cw_file_lock_drop(fd, CW_LIVE_LOCK_ASKER, 1);
}

/* ---- asking ---- */

/* The kernel reads the mapping, we do not: of a file that was cut off it says so. A file system
 * that maps another file than was opened wakes nobody, and the process answers when it can. */
static void ring(int fd)
{
    size_t at = CW_MAILBOX_CONTROL(bell), from = at & ~(size_t)(PAGE - 1);
    size_t len = at - from + sizeof(struct cw_alarm);
    char *map;

    if (put(fd, at, 1) != 0)
        return;
    map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)from);
    if (map == MAP_FAILED)
        return;
    syscall(SYS_futex, map + (at - from), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    munmap(map, len);
}

int cw_mailbox_ask(int fd, const struct cw_mail *mail, uint32_t *out_number)
{
    if (cw_file_room_is_beyond(sizeof(struct cw_live_header))) {
        errno = EFBIG;
        return -1;
    }
    *out_number = cw_mailbox_get(fd, CW_MAILBOX_CONTROL(asked)) + 1;
    /* First what somebody asked who died before the answer. */
    if (put(fd, CW_MAILBOX_CONTROL(what), CW_CONTROL_NONE) != 0 ||
        put(fd, CW_MAILBOX_CONTROL(asker), (uint32_t)getpid()) != 0 ||
        put(fd, CW_MAILBOX_CONTROL(device), mail->device) != 0 ||
        put(fd, CW_MAILBOX_CONTROL(is_share), mail->is_share) != 0 ||
        put_bytes(fd, CW_MAILBOX_CONTROL(argument), &mail->argument, 8) != 0 ||
        put_bytes(fd, CW_MAILBOX_CONTROL(subject), mail->subject, strlen(mail->subject) + 1) != 0 ||
        put(fd, CW_MAILBOX_CONTROL(asked), *out_number) != 0 ||
        put(fd, CW_MAILBOX_CONTROL(what), (uint32_t)mail->what) != 0 ||
        put(fd, CW_MAILBOX_CONTROL(is_due), 1) != 0)
        return -1;
    ring(fd);
    return 0;
}

int cw_mailbox_is_answered(int fd, uint32_t number)
{
    return cw_mailbox_get(fd, CW_MAILBOX_CONTROL(answered)) == number;
}

int cw_mailbox_withdraw(int fd, uint32_t number)
{
    return put(fd, CW_MAILBOX_CONTROL(withdrawn), number) == 0 &&
           cw_mailbox_get(fd, CW_MAILBOX_CONTROL(taken)) != number;
}
