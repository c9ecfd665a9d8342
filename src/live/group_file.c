/* SPDX-License-Identifier: MIT */
/* A sum over processes. See group_file.h. */
#include "live/group_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file_room.h"
#include "base/lock.h"
#include "base/out.h"
#include "base/sys.h"
#include "live/file_lock.h"
#include "live/live_dir.h"
#include "live/own_fd.h"

#define SIZE (CW_GROUP_SLOTS * sizeof(struct cw_group_slot))
/* How often one that found no room looks again while others want some, too. */
#define TURNS 200u
/* How often a file is opened again that was taken away meanwhile, as one that nobody had. */
#define OPENINGS 3u

static int is_ours(const struct cw_group_file *group)
{
    return cw_own_fd_is(group->fd, group->device, group->inode);
}

/* ---- slots ---- */

static void clear(struct cw_group_slot *slot)
{
    atomic_store(&slot->wanted, 0);
    atomic_store(&slot->held, 0);
}

static int take_slot(struct cw_group_file *group)
{
    for (unsigned i = 0; i < CW_GROUP_SLOTS; i++) {
        if (cw_file_lock_take(group->fd, i, 1) != 0)
            continue;
        clear(&group->slots[i]); /* of one that is dead */
        group->slot = i;
        return 0;
    }
    return EAGAIN;
}

/* One thread at a time: the locks are those of the whole process. */
int cw_group_file_reap(struct cw_group_file *group)
{
    if (group->slots == NULL || !is_ours(group) || atomic_exchange(&group->is_reaping, 1))
        return -1;
    for (unsigned i = 0; i < CW_GROUP_SLOTS; i++) {
        struct cw_group_slot *slot = &group->slots[i];

        if (i == group->slot || (atomic_load(&slot->held) | atomic_load(&slot->wanted)) == 0 ||
            cw_file_lock_take(group->fd, i, 1) != 0)
            continue;
        clear(slot);
        cw_file_lock_drop(group->fd, i, 1);
    }
    atomic_store(&group->is_reaping, 0);
    return 0;
}

/* ---- the file ---- */

static int open_file(const char *tmpdir, const char *name)
{
    int fd = -1;

    for (unsigned i = 0; i < CW_PLACE_DEFAULTS && fd < 0; i++) {
        char directory[CW_PLACE_MAX];
        int dir;

        if (cw_live_dir_default(i, (uint32_t)geteuid(), tmpdir, directory, sizeof(directory)) != 0)
            continue;
        dir = cw_live_dir_open(directory, 1);
        if (dir < 0)
            continue;
        fd = cw_sys_open_at(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
        cw_sys_close(dir);
    }
    return fd;
}

static int open_own(struct cw_group_file *group, const char *tmpdir, const char *name)
{
    struct stat info;
    int fd = open_file(tmpdir, name);

    *group = (struct cw_group_file){.fd = -1};
    if (fd < 0)
        return errno;
    if (cw_sys_stat(fd, &info) != 0) {
        cw_sys_close(fd);
        return EIO;
    }
    group->fd = cw_own_fd_raise(fd);
    group->device = info.st_dev;
    group->inode = info.st_ino;
    return 0;
}

/* The room is taken before it is mapped: a full disk must be an error, and no signal. Never by
 * zeros, over what others show. */
static int take_room(int fd)
{
    struct stat info;
    int rc;

    if (cw_sys_stat(fd, &info) == 0 && (uint64_t)info.st_size >= SIZE)
        return 0;
    if (cw_file_room_is_beyond(SIZE))
        return EFBIG;
    do
        rc = cw_sys_fallocate(fd, 0, SIZE);
    while (rc != 0 && errno == EINTR);
    return rc == 0 ? 0 : errno;
}

static int map_file(struct cw_group_file *group)
{
    int error = take_room(group->fd);
    void *slots;

    if (error != 0)
        return error;
    slots = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, group->fd, 0);
    if (slots == MAP_FAILED)
        return errno;
    group->slots = slots;
    return take_slot(group);
}

/* It has its name still, and is in use as of now (cw_live_dir_sweep). */
static int is_there(int fd)
{
    struct stat info;

    return syscall(SYS_utimensat, fd, NULL, NULL, 0) == 0 && cw_sys_stat(fd, &info) == 0 &&
           info.st_nlink != 0;
}

int cw_group_file_open(struct cw_group_file *group, const char *tmpdir, uint64_t key)
{
    int saved = errno, error = 0;
    char name[48];

    cw_format(name, sizeof(name), "group-%016jx" CW_PLACE_SUM_SUFFIX, (uintmax_t)key);
    for (unsigned i = 0; i < OPENINGS; i++) {
        error = open_own(group, tmpdir, name);
        if (error == 0)
            error = map_file(group);
        if (error == 0 && is_there(group->fd)) {
            cw_group_file_reap(group);
            break;
        }
        error = error != 0 ? error : ESTALE;
        cw_group_file_close(group);
    }
    errno = saved;
    return error;
}

void cw_group_file_close(struct cw_group_file *group)
{
    if (group->slots != NULL)
        munmap(group->slots, SIZE);
    group->slots = NULL;
    if (is_ours(group))
        cw_sys_close(group->fd);
    group->fd = -1;
}

/* ---- the sum ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t cw_group_file_others(const struct cw_group_file *group)
{
    uint64_t sum = 0;

    for (unsigned i = 0; group->slots != NULL && i < CW_GROUP_SLOTS; i++)
        if (i != group->slot)
            sum = add(sum, atomic_load(&group->slots[i].held));
    return sum;
}

void cw_group_file_show(struct cw_group_file *group, uint64_t held)
{
    if (group->slots != NULL)
        atomic_store(&group->slots[group->slot].held, held);
}

/* The lowest slot that wants something; ours is one. */
static int is_first(const struct cw_group_file *group, int *out_is_alone)
{
    int is_first = 1;

    *out_is_alone = 1;
    for (unsigned i = 0; i < CW_GROUP_SLOTS; i++) {
        if (i == group->slot || atomic_load(&group->slots[i].wanted) == 0)
            continue;
        *out_is_alone = 0;
        is_first &= i > group->slot;
    }
    return is_first;
}

static void wish(struct cw_group_slot *own, uint64_t held, uint64_t wanted)
{
    atomic_store(&own->wanted, wanted);
    atomic_store(&own->held, add(held, wanted));
}

/* Who is not the first withdraws and looks again, so that the first learns what is really held; one
 * that was alone before it added up, a second time, has no room. */
int cw_group_file_claim(struct cw_group_file *group, uint64_t held, uint64_t wanted, uint64_t most)
{
    struct cw_group_slot *own = &group->slots[group->slot];
    unsigned turns = 0;

    for (int is_again = 0; turns < TURNS;) {
        int is_alone, first;

        wish(own, held, wanted);
        first = is_first(group, &is_alone);
        if (add(cw_group_file_others(group), add(held, wanted)) <= most) {
            atomic_store(&own->wanted, 0);
            return 0;
        }
        if (is_alone && is_again)
            break;
        if (!first)
            wish(own, held, 0);
        if (!is_again)
            is_again = cw_group_file_reap(group) == 0;
        cw_lock_relax(&turns);
    }
    wish(own, held, 0);
    return -1;
}
