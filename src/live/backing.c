/* SPDX-License-Identifier: MIT */
/* The file behind an arena. See backing.h for what always holds. */
#include "live/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_room.h"
#include "base/out.h"
#include "base/sys.h"
#include "live/file_lock.h"
#include "live/layout.h"
#include "live/own_fd.h"

/* ---- descriptors ---- */

static int is_ours(const struct cw_backing *backing, int fd)
{
    return cw_own_fd_is(fd, backing->device, backing->inode);
}

/* A private descriptor of our file, which the program cannot redirect; -1 with errno. Opened by
 * path if the program has closed the kept one. What has its number then is not even copied: to
 * close the copy would take away the program's record locks of that file. */
static int borrow(const struct cw_backing *backing)
{
    int fd = -1;

    if (is_ours(backing, backing->fd))
        fd = cw_sys_fcntl(backing->fd, F_DUPFD_CLOEXEC, CW_SYS_FIRST_FD);
    if (fd >= 0 && is_ours(backing, fd))
        return fd;
    if (fd >= 0)
        cw_sys_close(fd);
    fd = cw_sys_open(backing->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 || is_ours(backing, fd))
        return fd;
    cw_sys_close(fd);
    errno = ENOENT; /* somebody has taken it away */
    return -1;
}

/* ---- room ---- */

struct step {
    uint64_t offset, len;
    unsigned number; /* in the first MiB, or of all */
};

static struct step step_at(uint64_t at)
{
    if (at < CW_STEP)
        return (struct step){at / CW_STEP_FIRST * CW_STEP_FIRST, CW_STEP_FIRST,
                             (unsigned)(at / CW_STEP_FIRST)};
    return (struct step){at / CW_STEP * CW_STEP, CW_STEP, (unsigned)(at / CW_STEP)};
}

static int is_settled(const struct cw_backing *backing, const struct step *step)
{
    if (step->len == CW_STEP_FIRST)
        return backing->first_steps >> step->number & 1;
    return backing->steps[step->number / 64] >> step->number % 64 & 1;
}

/* All steps of the run. */
static void note_settled(struct cw_backing *backing, const struct step *run)
{
    struct step step;

    for (uint64_t at = run->offset; at < run->offset + run->len; at = step.offset + step.len) {
        step = step_at(at);
        if (step.len == CW_STEP_FIRST)
            backing->first_steps |= UINT32_C(1) << step.number;
        else
            backing->steps[step.number / 64] |= UINT64_C(1) << step.number % 64;
    }
}

/* The steps from this one on that lie side by side below `end` and are settled, or are not, as it
 * is: one piece, with the number of its last step. */
static struct step run_at(const struct cw_backing *backing, struct step step, uint64_t end)
{
    int settled = is_settled(backing, &step);
    struct step run = {.offset = step.offset};

    while (step.offset < end && is_settled(backing, &step) == settled) {
        run.len += step.len;
        run.number = step.number;
        step = step_at(step.offset + step.len);
    }
    return run;
}

/* 0, or the errno. */
static int take_room(struct cw_backing *backing, int fd, const struct step *step)
{
    int error;

    if (backing->room - backing->taken < step->len)
        return ENOSPC;
    error = cw_file_room_take(fd, step->offset, step->len);
    if (error == 0)
        backing->taken += step->len;
    return error;
}

/* A failed mapping may have removed the old one. */
static int restore_memory(void *at, size_t len)
{
    void *memory = mmap(at, len, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? -1 : 0;
}

static int map_step(int fd, void *base, const struct step *step)
{
    char *at = (char *)base + step->offset;
    int error;

    if (mmap(at, step->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             (off_t)step->offset) != MAP_FAILED)
        return 0;
    error = errno;
    return restore_memory(at, step->len) == 0 ? error : -1;
}

static int add_run(struct cw_backing *backing, void *base, const struct step *run)
{
    int fd, error;

    if (run->number >= CW_STEPS_MAX)
        return EFBIG;
    fd = borrow(backing);
    if (fd < 0)
        return errno;
    error = take_room(backing, fd, run);
    if (error == 0)
        error = map_step(fd, base, run);
    cw_sys_close(fd);
    return error;
}

static int is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE;
}

/* A missed step cannot be backed later: other threads write into it without a lock. */
static int settle(struct cw_backing *backing, void *base, const struct step *run)
{
    int error = add_run(backing, base, run);

    if (error == 0 || is_out_of_descriptors(error))
        note_settled(backing, run);
    backing->missed += is_out_of_descriptors(error);
    return error;
}

int cw_backing_reach(struct cw_backing *backing, void *base, uint64_t from, uint64_t to)
{
    int saved = errno, error = 0, grows = CW_BACKING_GROWS;

    while (from < to && (error == 0 || is_out_of_descriptors(error)) &&
           atomic_load(&backing->state) == CW_BACKING_GROWS) {
        struct step step = step_at(from), run = run_at(backing, step, to);

        if (!is_settled(backing, &step))
            error = settle(backing, base, &run);
        from = run.offset + run.len;
    }
    if (error != 0 && !is_out_of_descriptors(error) &&
        !atomic_compare_exchange_strong(&backing->state, &grows, CW_BACKING_FULL) && error > 0)
        error = 0; /* the process ends: nobody reads the file any more */
    errno = saved;
    return error;
}

/* ---- making it ---- */

/* Until it is published its name begins with a dot. */
static int make_file(struct cw_backing *backing, int dir, const char *directory)
{
    char name[64];
    struct stat info;

    cw_live_dir_name(name, sizeof(name));
    backing->name = strlen(directory) + 1;
    if (cw_format(backing->path, sizeof(backing->path), "%s/.%s", directory, name) >=
        sizeof(backing->path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    backing->fd = cw_sys_open_at(dir, backing->path + backing->name,
                                 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (backing->fd < 0)
        return -1;
    /* Whatever the umask: readers, and processes that clean up after dead ones, must be able to
     * open it. */
    if (syscall(SYS_fchmod, backing->fd, 0600) != 0 || cw_sys_stat(backing->fd, &info) != 0)
        return -1;
    backing->inode = info.st_ino;
    backing->device = info.st_dev;
    (void)cw_file_lock_claim(
        backing->fd); /* without locks a reader asks the system for the process */
    backing->fd = cw_own_fd_raise(backing->fd);
    return 0;
}

/* least: bytes of room. 0, or the errno. */
static int create_in(struct cw_backing *backing, void *base, const char *directory, int is_private,
                     uint64_t least)
{
    int dir = cw_live_dir_open(directory, is_private);
    int error = dir < 0 ? errno : 0;

    if (error != 0)
        return error;
    *backing = (struct cw_backing){.fd = -1, .room = cw_live_dir_room(dir), .stays = !is_private};
    if (is_private) /* before there is a live file to look at */
        cw_live_dir_sweep(dir);
    if (backing->room < least)
        error = ENOSPC;
    else if (make_file(backing, dir, directory) != 0)
        error = errno;
    if (error == 0) {
        backing->state = CW_BACKING_GROWS;
        error = cw_backing_reach(backing, base, 0, sizeof(struct cw_live_header));
    }
    if (error != 0)
        cw_backing_remove(backing);
    cw_sys_close(dir);
    return error;
}

static int create_in_default(struct cw_backing *backing, void *base, const char *tmpdir,
                             uint64_t least)
{
    char directory[CW_PLACE_MAX];
    int error = ENOENT;

    for (unsigned which = 0; which < CW_PLACE_DEFAULTS && error != 0; which++) {
        if (cw_live_dir_default(which, (uint32_t)geteuid(), tmpdir, directory, sizeof(directory)) ==
            0)
            error = create_in(backing, base, directory, 1, least);
    }
    return error;
}

int cw_backing_create(struct cw_backing *backing, void *base, const struct cw_live_dir *place)
{
    int saved = errno, error = 0;

    if (place->directory != NULL)
        error = create_in(backing, base, place->directory, 0, CW_LIVE_ROOM_LEAST);
    else if (create_in_default(backing, base, place->tmpdir, CW_LIVE_ROOM_GOOD) != 0)
        error = create_in_default(backing, base, place->tmpdir, CW_LIVE_ROOM_LEAST);
    errno = error != 0 ? error : saved;
    return error != 0 ? -1 : 0;
}

static int map_again(int fd, void *base, const struct step *step)
{
    char *at = (char *)base + step->offset;

    if (mmap(at, step->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             (off_t)step->offset) != MAP_FAILED ||
        msync(at, step->len, MS_ASYNC) == 0)
        return 0; /* one of the two mappings is there, and both have the same pages */
    restore_memory(at, step->len);
    return -1;
}

/* valgrind notes for each mapping the name that its file has then, joins neighbours of one file
 * whatever their names, and dies if those differed. So what was mapped under the hidden name is
 * mapped once more, neighbours at one go, before something comes to lie beside it. Only by the kept
 * descriptor, since the mapping keeps the lock. 0, or -1 when the memory is not what it was. */
static int take_name(const struct cw_backing *backing, void *base, uint64_t size)
{
    int fd = cw_sys_fcntl(backing->fd, F_DUPFD_CLOEXEC, CW_SYS_FIRST_FD), error = 0;
    struct step step = step_at(0);

    if (fd < 0)
        return 0;
    while (step.offset < size && error == 0 && is_ours(backing, fd) && backing->missed == 0) {
        struct step run = run_at(backing, step, size);

        if (is_settled(backing, &step))
            error = map_again(fd, base, &run);
        step = step_at(run.offset + run.len);
    }
    cw_sys_close(fd);
    return error;
}

int cw_backing_publish(struct cw_backing *backing, void *base, uint64_t size)
{
    char hidden[CW_PLACE_MAX];
    int saved = errno, error = 0;
    size_t name = backing->name;

    if (backing->state == CW_BACKING_NONE || backing->published)
        return 0;
    memcpy(hidden, backing->path, sizeof(hidden));
    memmove(backing->path + name, backing->path + name + 1, strlen(backing->path + name));
    if (syscall(SYS_renameat2, AT_FDCWD, hidden, AT_FDCWD, backing->path, 0) == 0)
        backing->published = 1;
    else
        error = errno;
    if (error != 0)
        memcpy(backing->path, hidden, sizeof(hidden));
    else
        error = take_name(backing, base, size);
    errno = saved;
    return error;
}

/* ---- the end ---- */

void cw_backing_remove(struct cw_backing *backing)
{
    int saved = errno;

    if (backing->fd >= 0 || backing->state != CW_BACKING_NONE)
        syscall(SYS_unlinkat, AT_FDCWD, backing->path, 0);
    cw_backing_forget(backing);
    errno = saved;
}

void cw_backing_unlink(struct cw_backing *backing)
{
    int saved = errno;

    if (atomic_load(&backing->published) && !backing->stays &&
        atomic_exchange(&backing->state, CW_BACKING_GONE) != CW_BACKING_GONE)
        syscall(SYS_unlinkat, AT_FDCWD, backing->path, 0);
    errno = saved;
}

void cw_backing_forget(struct cw_backing *backing)
{
    if (is_ours(backing, backing->fd))
        cw_sys_close(backing->fd);
    *backing = (struct cw_backing){.fd = -1};
}
