/* SPDX-License-Identifier: MIT */
/*
 * Directories of `cuwarden run`. See run_live.h.
 *
 * The directory of a killed run stays, with its files; later runs of the same user remove it by the
 * rules of live/live_dir.h, a day after its processes were first seen dead.
 */
#include "cli/input/run_live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/ui/message.h"
#include "live/file_lock.h"

#define OLD_SECOND 60 /* an empty directory may be new */

/* how: LOCK_NB, or 0 to wait for who has it. The descriptor, or -1 if it is not a directory or its
 * run is alive. */
static int open_locked(int parent, const char *name, int how)
{
    int dir = cw_sys_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

    if (dir >= 0 && flock(dir, LOCK_EX | how) != 0) {
        close(dir);
        return -1;
    }
    return dir;
}

/* ---- creation ---- */

static void take_away_all(DIR *dir, time_t age, unsigned depth);

/* Removes the directory if its run has ended and no file is left in it. With an age, only if it has
 * not changed for that long, after sweeping it by the rules of live/live_dir.h. */
static void take_away(int parent, const char *name, time_t age, unsigned depth)
{
    int fd = depth > 0 ? open_locked(parent, name, LOCK_NB) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct stat info;

    if (dir && fstat(fd, &info) == 0 && (age == 0 || time(NULL) - info.st_mtime > age)) {
        if (age > 0)
            cw_live_dir_sweep(fd);
        take_away_all(dir, age, depth - 1);
        unlinkat(parent, name, AT_REMOVEDIR);
    }
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
}

static void take_away_all(DIR *dir, time_t age, unsigned depth)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)))
        if (cw_live_dir_is_run(entry->d_name))
            take_away(dirfd(dir), entry->d_name, age, depth);
}

/* Removes the remains of killed runs. */
static void sweep_all(int parent)
{
    int copy = cw_sys_open_at(parent, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;

    if (!dir)
        return;
    take_away_all(dir, OLD_SECOND, CW_RUNS_MAX);
    closedir(dir);
}

/* 0, or the errno. */
static int make_in(struct cw_run_live *live, int parent, const char *directory)
{
    char name[128], *suffix;
    int len;

    cw_live_dir_name(name, sizeof(name));
    suffix = strstr(name, CW_PLACE_SUFFIX);
    if (suffix)
        *suffix = '\0';
    len = snprintf(live->directory, sizeof(live->directory), "%s/" CW_LIVE_RUN_PREFIX "%s",
                   directory, name);
    if (len >= (int)sizeof(live->directory))
        return ENAMETOOLONG;
    if (mkdir(live->directory, 0700) != 0)
        return errno;
    (void)chmod(live->directory, 0700); /* whatever the umask */
    /* One that sweeps may have it for a moment. */
    live->lock = open_locked(parent, live->directory + strlen(directory) + 1, 0);
    return 0;
}

/* least: bytes of room. 0, or the errno. */
static int try_place(struct cw_run_live *live, const char *directory, int is_private,
                     uint64_t least)
{
    int parent = cw_live_dir_open(directory, is_private);
    int error;

    if (parent < 0)
        return errno;
    if (is_private)
        sweep_all(parent);
    error = cw_live_dir_room(parent) < least ? ENOSPC : make_in(live, parent, directory);
    close(parent);
    if (error != 0)
        live->directory[0] = '\0';
    return error;
}

static int make_at_home(struct cw_run_live *live, const char *directory, char *why, size_t cap)
{
    char start[CW_PLACE_MAX] = "";
    int error;

    if (directory[0] != '/' && !getcwd(start, sizeof(start)))
        start[0] = '\0';
    if (snprintf(live->home, sizeof(live->home), "%s%s%s", start, start[0] ? "/" : "", directory) >=
        (int)sizeof(live->home))
        error = ENAMETOOLONG;
    else
        error = try_place(live, live->home, 0, CW_LIVE_ROOM_LEAST);
    if (error == 0)
        return 0;
    snprintf(why, cap, "'%s' (CUWARDEN_LIVE): %s", directory, strerror(error));
    return -1;
}

static int make_in_default(struct cw_run_live *live, const struct cw_options *options,
                           uint64_t least, char *why, size_t cap)
{
    char directory[CW_PLACE_MAX];
    size_t len = 0;

    why[0] = '\0';
    for (unsigned i = 0; i < CW_PLACE_DEFAULTS; i++) {
        int error = ENAMETOOLONG;

        if (cw_live_dir_default(i, geteuid(), options->tmpdir, directory, sizeof(directory)) == 0)
            error = try_place(live, directory, 1, least);
        if (error == 0)
            return 0;
        if (len < cap)
            len += (size_t)snprintf(why + len, cap - len, "%s'%s': %s", len > 0 ? "; " : "",
                                    directory, strerror(error));
    }
    return -1;
}

int cw_run_live_make(struct cw_run_live *live, const struct cw_options *options, char *why,
                     size_t cap)
{
    char directory[CW_PLACE_MAX];
    const char *named = cw_live_dir_named(options->live, directory, sizeof(directory));

    *live = (struct cw_run_live){.lock = -1};
    if (named)
        return make_at_home(live, named, why, cap);
    return make_in_default(live, options, CW_LIVE_ROOM_GOOD, why, cap) == 0 ||
                   make_in_default(live, options, CW_LIVE_ROOM_LEAST, why, cap) == 0
               ? 0
               : -1;
}

void cw_run_live_warn(const struct cw_run_live *live, const struct cw_options *options,
                      int is_quiet)
{
    char taken[CW_PLACE_MAX];

    if (!is_quiet && live->home[0] == '\0' &&
        cw_live_dir_passed_over(live->directory, options->tmpdir, taken, sizeof(taken)))
        cw_cli_warn("'%s' belongs to another user or is no directory, so live files are in '%.*s'; "
                    "remove it, or choose a place with --live=DIR",
                    taken, (int)(strrchr(live->directory, '/') - live->directory), live->directory);
}

/* ---- removal ---- */

void cw_run_live_settle(const struct cw_run_live *live, const char *path, int is_reported)
{
    char target[CW_PLACE_MAX];
    const char *name = strrchr(path, '/') + 1;

    if (live->home[0] == '\0') {
        unlink(path);
        return;
    }
    if (is_reported)
        (void)chmod(path, CW_RUN_LIVE_REPORTED);
    if (snprintf(target, sizeof(target), "%s/%s", live->home, name) < (int)sizeof(target))
        (void)rename(path, target);
}

/* Any living outer run will read the file, which moves outwards from home to home. */
int cw_run_live_is_of_other(const struct cw_run_live *live, const char *path)
{
    size_t len = strlen(live->directory);
    const char *slash = path + len;
    char inner[CW_PLACE_MAX];
    int is_idle = 1;

    if (strncmp(path, live->directory, len) != 0)
        return 0;
    while (is_idle && *slash && (slash = strchr(slash + 1, '/'))) {
        int dir;

        snprintf(inner, sizeof(inner), "%.*s", (int)(slash - path), path);
        dir = open_locked(AT_FDCWD, inner, LOCK_NB);
        is_idle = dir >= 0;
        if (dir >= 0)
            close(dir);
    }
    return !is_idle;
}

/* Removes a file that is unreadable because its process died while creating it. */
static void remove_unfinished(int dir, const char *name)
{
    int fd = cw_sys_open_at(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

    if (fd < 0)
        return;
    if (cw_file_lock_is_claimed(fd) == 0)
        unlinkat(dir, name, 0);
    close(fd);
}

void cw_run_live_end(struct cw_run_live *live)
{
    DIR *dir = live->directory[0] ? opendir(live->directory) : NULL;
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);

        if (cw_live_dir_is_run(entry->d_name))
            take_away(dirfd(dir), entry->d_name, 0, CW_RUNS_MAX);
        else if (entry->d_name[0] == '.' && len > 5 &&
                 strcmp(entry->d_name + len - 5, CW_PLACE_SUFFIX) == 0)
            remove_unfinished(dirfd(dir), entry->d_name);
    }
    if (dir)
        closedir(dir);
    rmdir(live->directory);
    if (live->lock >= 0)
        close(live->lock);
    live->lock = -1;
}
