/* SPDX-License-Identifier: MIT */
/* See reason.h. Owns nothing but constant words. */
#include "base/reason.h"

#include <errno.h>

const char *cw_reason(int error)
{
    switch (error) {
    case EPERM:
        return "operation not permitted";
    case ENOENT:
        return "no such file or directory";
    case EACCES:
        return "permission denied";
    case EEXIST:
        return "a file is in the way, or no number is free";
    case ENOTDIR:
        return "a part of the path is not a directory";
    case EISDIR:
        return "is a directory";
    case ESPIPE:
        return "is not a regular file";
    case ELOOP:
        return "is a symbolic link";
    case EFBIG:
        return "the file is too large";
    case EMFILE:
        return "the process has no descriptor left";
    case ENFILE:
        return "the system has no descriptor left";
    case ENOMEM:
        return "no memory";
    case ENOSPC:
        return "no space left on the device";
    case ENXIO:
        return "nobody reads at the other end, or there is no such device";
    case EROFS:
        return "the file system is read-only";
    case ENAMETOOLONG:
        return "the name is too long";
    default:
        return "the system refused";
    }
}
