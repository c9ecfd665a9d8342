/* SPDX-License-Identifier: MIT */
/*
 * Finds libcuwarden.so: beside an uninstalled command, relative to an installed (and possibly
 * moved) one, or else in the configured directory. No variable overrides this, only --preload.
 */
#include "cli/doctor/library.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stdio.h>

#include "base/own_path.h"
#include "base/compiler.h"
#include "cli/ui/message.h"

#define LIBRARY "libcuwarden.so"

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu" /* location in Debian packages */
#else
#define MULTIARCH "aarch64-linux-gnu"
#endif

/* libtool runs an uninstalled command from .libs itself; the last entry is absolute. */
static const struct place {
    const char *dir; /* relative to the command's directory unless it begins with '/' */
    int only_in_libs;
} places[] = {
    {".libs", 0},
    {".", 1},
    {"../lib/cuwarden", 0},
    {"../lib64/cuwarden", 0},
    {"../lib/" MULTIARCH "/cuwarden", 0},
    {CW_PKGLIBDIR, 0},
};

/* The directory of this command, links resolved; "." if unknown. */
static void find_own_dir(char dir[PATH_MAX])
{
    char path[PATH_MAX] = "", *slash;

    /* If it does not come from /proc, it may be a link. */
    if (cw_own_path(path, sizeof(path)) != 0 || !realpath(path, dir))
        dir[0] = '\0';
    slash = strrchr(dir, '/');
    if (!slash)
        strcpy(dir, ".");
    else
        slash[slash == dir] = '\0';
}

static int is_libs(const char *dir)
{
    const char *slash = strrchr(dir, '/');

    return strcmp(slash ? slash + 1 : dir, ".libs") == 0;
}

static int is_readable(const char *candidate, char *path)
{
    return realpath(candidate, path) && access(path, R_OK) == 0;
}

static void fill_candidate(char *candidate, size_t cap, const struct place *place, const char *own)
{
    if (place->dir[0] == '/')
        snprintf(candidate, cap, "%s/%s", place->dir, LIBRARY);
    else
        snprintf(candidate, cap, "%s/%s/%s", own, place->dir, LIBRARY);
}

static int find_in_places(const char *own, char *path)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(places); i++) {
        char candidate[2 * PATH_MAX];

        if (places[i].only_in_libs && !is_libs(own))
            continue;
        fill_candidate(candidate, sizeof(candidate), &places[i], own);
        if (is_readable(candidate, path))
            return 0;
    }
    return -1;
}

static void complain_of_places(const char *own)
{
    char list[CW_ARRAY_LEN(places) * 2 * PATH_MAX];
    size_t len = 0;

    for (size_t i = 0; i < CW_ARRAY_LEN(places); i++) {
        if (places[i].only_in_libs && !is_libs(own))
            continue;
        list[len++] = ' ';
        fill_candidate(list + len, 2 * PATH_MAX - 1, &places[i], own);
        len += strlen(list + len);
    }
    list[len] = '\0';
    cw_cli_error("cannot find %s in%s; use --preload=FILE", LIBRARY, list);
}

int cw_library_find(const char *preload, char *path, size_t cap)
{
    char found[PATH_MAX];
    char own[PATH_MAX];

    find_own_dir(own);
    if (preload && !is_readable(preload, found)) {
        cw_cli_error("cannot read '%s' (--preload): %s", preload, strerror(errno));
        return -1;
    }
    if (!preload && find_in_places(own, found) != 0) {
        complain_of_places(own);
        return -1;
    }
    if (strlen(found) >= cap) {
        cw_cli_error("the path of the library is too long: %s", found);
        return -1;
    }
    strcpy(path, found);
    return 0;
}
