/* SPDX-License-Identifier: MIT */
/*
 * Directories and names of live files. See live_dir.h. Owns nothing; no lock: what several
 * processes do in one directory at a time is safe because a name is random and a file is only taken
 * away when nobody holds its lock.
 */
#include "live/live_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/out.h"
#include "base/random.h"
#include "base/sys.h"
#include "live/file_lock.h"

#define STEP          ((uint64_t)1 << 20)
#define SHARE         16 /* of what is free */
#define DAY_SECONDS   (24 * 60 * 60)
#define DUMP_SECONDS  (7 * DAY_SECONDS)
#define LISTING       ((size_t)32 * 1024) /* some 500 entries */
#define LISTINGS      64                  /* looked at; each takes some 50 us */
#define RANDOM_DIGITS 16
#define MODE_DEAD     0400 /* somebody has seen that its process is gone; its time says when */

int cw_live_dir_default(unsigned which, uint32_t uid, const char *tmpdir, char *buf, size_t cap)
{
    const char *parent = which == 0 ? "/dev/shm" : tmpdir;

    if (parent == NULL || parent[0] != '/')
        parent = "/tmp";
    return cw_format(buf, cap, "%s/" CW_PLACE_PREFIX "%u", parent, (unsigned)uid) < cap ? 0 : -1;
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static int is_own_directory(const char *path)
{
    struct stat info;

    return cw_sys_stat_path(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

int cw_live_dir_passed_over(const char *chosen, const char *tmpdir, char *buf, size_t cap)
{
    struct stat info;

    for (unsigned i = 0; i < CW_PLACE_DEFAULTS; i++) {
        if (cw_live_dir_default(i, (uint32_t)geteuid(), tmpdir, buf, cap) != 0)
            continue;
        if (strncmp(chosen, buf, strlen(buf)) == 0 && chosen[strlen(buf)] == '/')
            return 0;
        if (cw_sys_stat_path(buf, &info) == 0 && !is_own_directory(buf))
            return 1;
    }
    return 0;
}

/* ---- the directory that the user names ---- */

/* Whether a run has made it: the user's own may be called run-1, or run-2026-11-29. */
static int is_made_by_run(const char *path)
{
    const char *name = last_component(path);

    return cw_live_dir_is_run(name) && strlen(strrchr(name, '-') + 1) == RANDOM_DIGITS &&
           strspn(name, "run-0123456789abcdef") == strlen(name);
}

static int is_default(const char *directory)
{
    const char *name = last_component(directory);
    size_t len = sizeof(CW_PLACE_PREFIX) - 1;

    return strncmp(name, CW_PLACE_PREFIX, len) == 0 &&
           name[len + strspn(name + len, "0123456789")] == '\0';
}

const char *cw_live_dir_named(const char *live, char *buf, size_t cap)
{
    int is_run = 0;

    if (strcmp(live, "auto") == 0)
        return NULL;
    if (cw_format(buf, cap, "%s", live) >= cap)
        return live;
    while (buf[0] == '/' && is_made_by_run(buf) && !is_own_directory(buf)) {
        buf[last_component(buf) - buf - 1] = '\0';
        is_run = 1;
    }
    return is_run && is_default(buf) ? NULL : buf;
}

/* ---- the directory ---- */

static int make(const char *path)
{
    if (syscall(SYS_mkdirat, AT_FDCWD, path, 0700) != 0)
        return errno == EEXIST ? 0 : -1;
    /* The program's umask may have taken away even our own access. */
    return (int)syscall(SYS_fchmodat, AT_FDCWD, path, 0700);
}

static int make_parents(const char *directory)
{
    char path[CW_PLACE_MAX];
    size_t len = strlen(directory);

    if (len >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path, directory, len + 1);
    for (size_t i = 1; i < len; i++) {
        if (path[i] != '/')
            continue;
        path[i] = '\0';
        (void)make(path); /* the last one tells */
        path[i] = '/';
    }
    return make(path);
}

/* Others could take away or plant files in a directory that is not ours alone. */
static int claim(int dir)
{
    struct stat info;

    if (cw_sys_stat(dir, &info) != 0)
        return -1;
    if (info.st_uid != geteuid()) {
        errno = EPERM;
        return -1;
    }
    return (info.st_mode & 077) == 0 ? 0 : (int)syscall(SYS_fchmod, dir, 0700);
}

/* The directory of a run is there while it is that run's. */
int cw_live_dir_open(const char *directory, int is_private)
{
    int is_run = !is_private && is_made_by_run(directory), is_own = is_private || is_run;
    int flags = O_RDONLY | O_DIRECTORY | (is_own ? O_NOFOLLOW : 0);
    int saved, dir;

    if (!is_run && (is_private ? make(directory) : make_parents(directory)) != 0)
        return -1;
    dir = cw_sys_open(directory, flags, 0);
    if (dir < 0 || !is_own || claim(dir) == 0)
        return dir;
    saved = errno;
    cw_sys_close(dir);
    errno = saved;
    return -1;
}

uint64_t cw_live_dir_room(int dir)
{
    struct statfs system;

    if (fstatfs(dir, &system) != 0)
        return 0;
    if (system.f_blocks == 0) /* a tmpfs without a limit */
        return UINT64_MAX;
    return (uint64_t)system.f_bavail * (uint64_t)system.f_bsize / SHARE & ~(STEP - 1);
}

/* ---- names ---- */

void cw_live_dir_name(char *buf, size_t cap)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    cw_format(buf, cap, "%u-%ju-%0*jx" CW_PLACE_SUFFIX, (unsigned)getpid(), (uintmax_t)now.tv_sec,
              RANDOM_DIGITS, (uintmax_t)cw_random());
}

int cw_live_dir_is_run(const char *name)
{
    size_t len = sizeof(CW_LIVE_RUN_PREFIX) - 1;

    return strncmp(name, CW_LIVE_RUN_PREFIX, len) == 0 && name[len] >= '0' && name[len] <= '9';
}

static int ends_in(const char *name, const char *suffix)
{
    size_t len = strlen(name), end = strlen(suffix);

    return len > end && strcmp(name + len - end, suffix) == 0;
}

int cw_live_dir_is_file(const char *name)
{
    return ends_in(name, CW_PLACE_SUFFIX);
}

/* ---- what the dead left ---- */

/* Reports that were made while a process ran lie in the same directory (report/path/dump_name.h),
 * and what PyTorch said in that of a run (cli/run/torch.h). */
static int is_dump(const char *name)
{
    return strstr(name, ".dump-") != NULL ||
           strncmp(name, CW_LIVE_TORCH_PREFIX, sizeof(CW_LIVE_TORCH_PREFIX) - 1) == 0;
}

static int is_older(int fd, int64_t now, int64_t seconds)
{
    struct stat info;

    return cw_sys_stat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
           now - info.st_mtim.tv_sec > seconds;
}

/* Whoever takes a part in it locks a byte. While all are locked nobody can begin to, so that is not
 * done to one that is new, and an old one may have become new meanwhile. */
static void sweep_sum(int dir, const char *name, int64_t now)
{
    int fd = cw_sys_open_at(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);

    if (fd < 0)
        return;
    if (is_older(fd, now, DAY_SECONDS) && cw_file_lock_take(fd, 0, 0) == 0 &&
        is_older(fd, now, DAY_SECONDS))
        syscall(SYS_unlinkat, dir, name, 0);
    cw_sys_close(fd);
}

/* Memory that a process maps is written without a trace in the file's times: when it died is not
 * known, only when that was first seen. */
static void sweep_file(int dir, const char *name, int64_t now)
{
    struct stat info;
    int fd;

    if (ends_in(name, CW_PLACE_SUM_SUFFIX))
        sweep_sum(dir, name, now);
    if (!cw_live_dir_is_file(name) && !is_dump(name))
        return;
    fd = cw_sys_open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (is_dump(name)) {
        if (is_older(fd, now, DUMP_SECONDS))
            syscall(SYS_unlinkat, dir, name, 0);
    } else if (cw_sys_stat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
               cw_file_lock_is_claimed(fd) == 0) {
        /* One with a hidden name never lived long, and may be about to take its lock. */
        if (name[0] != '.' && (info.st_mode & 0777) != MODE_DEAD) {
            syscall(SYS_fchmod, fd, MODE_DEAD);
            syscall(SYS_utimensat, fd, NULL, NULL, 0);
        } else if (now - info.st_mtim.tv_sec > DAY_SECONDS) {
            syscall(SYS_unlinkat, dir, name, 0);
        }
    }
    cw_sys_close(fd);
}

/* The record that getdents64 fills in. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t len;
    uint8_t type;
    char name[];
};

static const struct entry *entry_at(const char *listing, long at)
{
    return (const struct entry *)(listing + at);
}

static unsigned count_entries(const char *listing, long len)
{
    unsigned count = 0;

    for (long at = 0; at < len; at += entry_at(listing, at)->len)
        count++;
    return count;
}

/* Some entries from a random one on, the next ones of a circle. */
static void sweep_listing(int dir, const char *listing, long len, unsigned most)
{
    unsigned count = count_entries(listing, len), number = 0;
    unsigned first = (unsigned)(cw_random() % count);
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    for (long at = 0; at < len; at += entry_at(listing, at)->len) {
        unsigned distance = (number++ + count - first) % count;

        if (distance < most)
            sweep_file(dir, entry_at(listing, at)->name, now.tv_sec);
    }
}

/* Of a directory that takes several listings one of them is chosen, each as likely as the others:
 * the first alone has the same entries each time, and what is old may never be among them. */
void cw_live_dir_sweep(int dir)
{
    char *listings = cw_mem_alloc(2 * LISTING), *next = listings, *chosen = NULL;
    long len, chosen_len = 0;
    unsigned seen = 0;

    if (listings == NULL)
        return;
    while (seen < LISTINGS && (len = syscall(SYS_getdents64, dir, next, LISTING)) > 0) {
        if (cw_random() % ++seen != 0)
            continue;
        chosen = next;
        chosen_len = len;
        next = next == listings ? listings + LISTING : listings;
    }
    if (chosen != NULL)
        sweep_listing(dir, chosen, chosen_len, seen > 1 ? UINT_MAX : CW_PLACE_SWEPT);
    cw_mem_free(listings, 2 * LISTING);
}

/* ---- all entries ---- */

void cw_live_dir_each(int dir, int (*look)(void *self, const char *name), void *self)
{
    char *listing = cw_mem_alloc(LISTING);
    int is_over = listing == NULL;
    long len;

    while (!is_over && (len = syscall(SYS_getdents64, dir, listing, LISTING)) > 0)
        for (long at = 0; at < len && !is_over; at += entry_at(listing, at)->len)
            is_over = look(self, entry_at(listing, at)->name);
    if (listing != NULL)
        cw_mem_free(listing, LISTING);
}
