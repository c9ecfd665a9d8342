/* SPDX-License-Identifier: MIT */
/* Locations of debug information. See lines.h. */
#include "cli/input/lines.h"
#include "cli/ui/flags.h"
#include "cli/ui/message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum flag {
    FLAG_DEBUG_DIR = CW_LINES_FLAG,
    FLAG_DEBUGINFOD,
    FLAG_NO_LINES,
    FLAG_SYSROOT,
};

const struct cw_flag cw_lines_flags[CW_LINES_FLAGS] = {
    {.id = FLAG_DEBUG_DIR,
     .name = "debug-dir",
     .value = "DIR",
     .help = "also look for debug information in DIR (may be repeated; "
             "/usr/lib/debug comes last)"},
    {.id = FLAG_DEBUGINFOD,
     .name = "debuginfod",
     .help = "download missing debug information from DEBUGINFOD_URLS"},
    {.id = FLAG_NO_LINES, .name = "no-lines", .help = "omit source lines and inlined functions"},
    {.id = FLAG_SYSROOT,
     .name = "sysroot",
     .value = "DIR",
     .help = "find the process's files under DIR (another machine, or a container)"},
};

int cw_lines_has_flag(int flag)
{
    return flag >= CW_LINES_FLAG && flag < CW_LINES_FLAG + CW_LINES_FLAGS;
}

static int check_directory(const char *flag, const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    cw_cli_error("--%s: '%s' is not a directory that can be read; name one", flag, path);
    return -1;
}

static int add_debug_directory(struct cw_debug_options *debug, const char *path)
{
    const char **grown;

    if (check_directory("debug-dir", path) != 0)
        return -1;
    grown = reallocarray(debug->dir, debug->dirs + 1, sizeof(*debug->dir));
    if (!grown) {
        cw_cli_error("out of memory for --debug-dir '%s'", path);
        return -1;
    }
    debug->dir = grown;
    debug->dir[debug->dirs++] = path;
    return 0;
}

/* Module paths begin with a slash, so the directory must not end with one. */
static int set_sysroot(struct cw_debug_options *debug, char *path)
{
    size_t len = strlen(path);

    if (check_directory("sysroot", path) != 0)
        return -1;
    while (len > 0 && path[len - 1] == '/')
        path[--len] = '\0';
    debug->sysroot = path;
    return 0;
}

int cw_lines_set(struct cw_lines *lines, int flag, char *value)
{
    switch (flag) {
    case FLAG_DEBUG_DIR:
        return add_debug_directory(&lines->debug, value);
    case FLAG_DEBUGINFOD:
        lines->debug.may_download = 1;
        return 0;
    case FLAG_NO_LINES:
        lines->is_off = 1;
        return 0;
    default:
        return set_sysroot(&lines->debug, value);
    }
}

void cw_lines_open(struct cw_lines *lines)
{
    if (!lines->debug.sysroot)
        lines->debug.sysroot = "";
    if (lines->is_off)
        return;
    if (!cw_debug_info_is_supported())
        cw_cli_warn("no source lines: this command was built without libdw (--no-lines avoids "
                    "this warning)");
    lines->info = cw_debug_info_create(&lines->debug);
}

void cw_lines_tell(struct cw_lines *lines)
{
    if (cw_debug_info_is_cut(lines->info))
        cw_cli_warn("source lines are incomplete: reading debug information took more than %u s of "
                    "CPU time, or %u s in all",
                    CW_DEBUG_CPU_SECONDS, CW_DEBUG_WALL_SECONDS);
}

void cw_lines_close(struct cw_lines *lines)
{
    cw_debug_info_destroy(lines->info);
    lines->info = NULL;
    free(lines->debug.dir);
    lines->debug.dir = NULL;
    lines->debug.dirs = 0;
}
