/* SPDX-License-Identifier: MIT */
/* See own_path.h. Owns nothing; changes no errno, and takes little of what may be a small stack. */
#include "base/own_path.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static int read_start(char *out_path, size_t cap)
{
    const char *name = (const char *)getauxval(AT_EXECFN);
    size_t len = 0;

    if (name == NULL || name[0] == '\0')
        return -1;
    if (name[0] == '.' && name[1] == '/')
        name += 2;
    if (name[0] != '/') {
        if (getcwd(out_path, cap) == NULL || out_path[0] != '/')
            return -1;
        len = strlen(out_path);
        out_path[len++] = '/';
    }
    if (len + strlen(name) >= cap)
        return -1;
    strcpy(out_path + len, name);
    return access(out_path, F_OK); /* the directory may have been another */
}

int cw_own_path(char *out_path, size_t cap)
{
    int saved = errno, rc = -1;
    ssize_t len = readlink("/proc/self/exe", out_path, cap);

    if (len < 0) {
        rc = read_start(out_path, cap);
    } else if ((size_t)len < cap) {
        out_path[len] = '\0';
        rc = 0;
    }
    if (rc != 0)
        out_path[0] = '\0';
    errno = saved;
    return rc;
}
