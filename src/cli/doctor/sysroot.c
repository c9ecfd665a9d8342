/* SPDX-License-Identifier: MIT */
/* Paths under another root. See sysroot.h. */
#include "cli/doctor/sysroot.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as in the kernel */

int cw_sysroot_outside(const char *root, const char *path, char *buf, size_t cap)
{
    return (size_t)snprintf(buf, cap, "%s%s", root, path) < cap ? 0 : -1;
}

static void drop_last(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
}

/* Prepends the link's text to the rest of the path. 0, or -1 with errno. */
static int follow(const char *outside, char *rest, char *done)
{
    char text[PATH_MAX], whole[PATH_MAX];
    ssize_t len = readlink(outside, text, sizeof(text) - 1);

    if (len < 0)
        return -1;
    text[len] = '\0';
    if (text[0] == '/')
        done[0] = '\0';
    else
        drop_last(done);
    if (snprintf(whole, sizeof(whole), "%s/%s", text, rest) >= (int)sizeof(whole)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(rest, whole);
    return 0;
}

/* Descends into the first name of `rest`. 1: done, 0: none left, -1 with errno. */
static int step(const char *root, char *rest, char *done, unsigned *links)
{
    size_t skip = strspn(rest, "/"), len = strcspn(rest + skip, "/");
    char name[NAME_MAX + 1], outside[PATH_MAX];
    struct stat status;

    if (len == 0)
        return 0;
    errno = ENAMETOOLONG;
    if (len > NAME_MAX || strlen(done) + len + 2 > PATH_MAX)
        return -1;
    memcpy(name, rest + skip, len);
    name[len] = '\0';
    memmove(rest, rest + skip + len, strlen(rest + skip + len) + 1);
    if (strcmp(name, ".") == 0)
        return 1;
    if (strcmp(name, "..") == 0) {
        drop_last(done);
        return 1;
    }
    strcat(strcat(done, "/"), name);
    if (cw_sysroot_outside(root, done, outside, sizeof(outside)) != 0 ||
        lstat(outside, &status) != 0)
        return -1;
    if (!S_ISLNK(status.st_mode))
        return 1;
    if (++*links > LINKS_MAX) {
        errno = ELOOP;
        return -1;
    }
    return follow(outside, rest, done) == 0 ? 1 : -1;
}

int cw_sysroot_resolve(const char *root, const char *path, char *buf)
{
    char rest[PATH_MAX];
    unsigned links = 0;
    int more;

    if (!*root)
        return realpath(path, buf) ? 0 : -1;
    if (strlen(path) >= sizeof(rest)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(rest, path);
    buf[0] = '\0';
    do {
        more = step(root, rest, buf, &links);
    } while (more > 0);
    return more;
}

int cw_sysroot_has(const char *root, const char *path)
{
    char buf[PATH_MAX];

    return cw_sysroot_resolve(root, path, buf) == 0;
}
