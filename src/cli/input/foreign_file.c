/* SPDX-License-Identifier: MIT */
/*
 * Opening what others wrote. See foreign_file.h. Owns nothing.
 *
 * Every check is made on the descriptor that is returned, never on a name: names change. FIFOs and
 * terminals are opened without waiting and without becoming ours, and then refused.
 */
#include "cli/input/foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "live/live_copy.h"
#include "live/live_dir.h"

#define UIDS 4 /* real, effective, saved, of the file system */

/* ---- the path ---- */

static int refuse(char *why, size_t cap, const char *words)
{
    snprintf(why, cap, "%s", words);
    errno = EPERM;
    return -1;
}

/* Closes `dir` unless it is the current directory, and keeps errno. */
static void leave(int dir)
{
    int saved = errno;

    if (dir >= 0)
        cw_sys_close(dir);
    errno = saved;
}

static int open_named(const char *path, size_t named)
{
    char directory[CW_PLACE_MAX];

    if (named == 0)
        return AT_FDCWD;
    if (named >= sizeof(directory)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(directory, path, named);
    directory[named] = '\0';
    return cw_sys_open(directory, O_RDONLY | O_DIRECTORY, 0);
}

/* Takes the next directory off `*rest`; replaces `dir`. */
static int enter(int dir, const char **rest)
{
    size_t len = strcspn(*rest, "/");
    char name[256];
    int inner = -1;

    if (len < sizeof(name)) {
        memcpy(name, *rest, len);
        name[len] = '\0';
        inner = cw_sys_open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    } else {
        errno = ENAMETOOLONG;
    }
    leave(dir);
    *rest += len;
    *rest += strspn(*rest, "/");
    return inner;
}

/* Where the file lies; `*out_rest` is its name there. AT_FDCWD, a descriptor, or -1 with errno. */
static int open_parent(const char *path, size_t named, const char **out_rest, struct stat *out)
{
    const char *rest = path + named + (named > 0 ? strspn(path + named, "/") : 0);
    int dir = open_named(path, named);

    if (dir >= 0 && cw_sys_stat(dir, out) != 0) {
        leave(dir);
        return -1;
    }
    while (named > 0 && dir >= 0 && strchr(rest, '/'))
        dir = enter(dir, &rest);
    *out_rest = rest;
    return dir;
}

/* ---- the file ---- */

static int check_file(const struct stat *file, const struct stat *named, enum cw_foreign rule,
                      char *why, size_t cap)
{
    if (!S_ISREG(file->st_mode))
        return refuse(why, cap, "is not a regular file");
    if (geteuid() == 0 || file->st_uid == geteuid())
        return 0;
    if (rule == CW_FOREIGN_DIRECTORY && file->st_uid == named->st_uid)
        return 0;
    snprintf(why, cap, "belongs to another user (id %u)", (unsigned)file->st_uid);
    errno = EPERM;
    return -1;
}

int cw_foreign_open(const char *path, size_t named, int flags, enum cw_foreign rule,
                    uint32_t *out_uid, char *why, size_t cap)
{
    struct stat file, directory = {.st_uid = geteuid()};
    const char *name;
    int parent, fd;

    why[0] = '\0';
    parent = open_parent(path, named, &name, &directory);
    if (parent == -1)
        return -1;
    fd = cw_sys_open_at(parent, name, flags | O_NOFOLLOW | O_NONBLOCK, 0);
    leave(parent);
    if (fd < 0)
        return errno == ELOOP ? refuse(why, cap, "is a symbolic link") : -1;
    if (cw_sys_stat(fd, &file) == 0 && check_file(&file, &directory, rule, why, cap) == 0) {
        if (out_uid)
            *out_uid = file.st_uid;
        return fd;
    }
    leave(fd);
    return -1;
}

/* ---- its process ---- */

/* Not the owner of /proc/PID: that is root for a process that may not be dumped. 0, or -1 if there
 * is no such process, or none that may be seen. */
static int uids_of(uint32_t pid, unsigned uid[UIDS])
{
    char line[256];
    int rc = -1;
    FILE *status;

    snprintf(line, sizeof(line), "/proc/%u/status", (unsigned)pid);
    status = fopen(line, "re");
    while (status && rc != 0 && fgets(line, sizeof(line), status)) {
        if (sscanf(line, "Uid: %u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) == UIDS)
            rc = 0;
    }
    if (status)
        fclose(status);
    return rc;
}

uint32_t cw_foreign_owner_of(uint32_t pid)
{
    unsigned uids[UIDS];

    return uids_of(pid, uids) == 0 ? uids[1] : geteuid();
}

int cw_foreign_is_of_other(uint32_t pid, uint32_t uid)
{
    unsigned uids[UIDS];

    if (uid == geteuid() || uids_of(pid, uids) != 0)
        return 0;
    for (unsigned i = 0; i < UIDS; i++) {
        if (uids[i] == uid)
            return 0;
    }
    return 1;
}

/* 0: not known. */
static uint32_t own_namespace(void)
{
    struct stat info;

    return stat("/proc/self/ns/pid", &info) == 0 ? (uint32_t)info.st_ino : 0;
}

int cw_foreign_check_process(uint32_t uid, uint32_t wanted, const struct cw_live_identity *identity,
                             char *why, size_t cap)
{
    uint32_t space = own_namespace();
    int is_elsewhere =
        identity->pid_namespace != 0 && space != 0 && identity->pid_namespace != space;

    if (wanted != 0 && identity->pid != wanted) {
        snprintf(why, cap, "is of process %u, not of the one in its name", (unsigned)identity->pid);
        return -1;
    }
    if (is_elsewhere || !cw_foreign_is_of_other(identity->pid, uid))
        return 0;
    snprintf(why, cap, "belongs to user %u, but process %u does not", (unsigned)uid,
             (unsigned)identity->pid);
    return -1;
}
