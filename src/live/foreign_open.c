/* SPDX-License-Identifier: MIT */
/*
 * Opening what others wrote. See foreign_open.h. Owns nothing.
 *
 * Every check is made on the descriptor that is returned, never on a name: names change. FIFOs and
 * terminals are opened without waiting and without becoming ours, and then refused.
 */
#include "live/foreign_open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/out.h"
#include "base/sys.h"
#include "live/live_dir.h"

/* ---- the path ---- */

static int refuse(char *why, size_t cap, const char *words)
{
    cw_format(why, cap, "%s", words);
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
    if (file->st_uid == geteuid() || (geteuid() == 0 && rule == CW_FOREIGN_OWN))
        return 0;
    if (rule == CW_FOREIGN_DIRECTORY && file->st_uid == named->st_uid)
        return 0;
    cw_format(why, cap, "belongs to another user (id %u)", (unsigned)file->st_uid);
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
