/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden hooks`: the functions that the library intercepts.
 *
 * Read from the library's dynamic exports, not from a table: the exports are what is intercepted,
 * even if the library is from another build than this command.
 */
#include "cli/ui/flags.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/doctor/exports.h"
#include "cli/doctor/library.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#include <limits.h>
#include <string.h>
#include <stdio.h>

#define WHY_MAX 256

const struct cw_command_line *cw_line_hooks(void)
{
    static const struct cw_flag flags[] = {
        {.id = 0x100,
         .name = "preload",
         .value = "FILE",
         .help = "read FILE instead of the installed libcuwarden.so"},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]...",
        .about = "List the functions that libcuwarden.so intercepts, each with its layer: driver "
                 "(libcuda), runtime (libcudart), nvml, nvtx (the entry point for NVTX), or libc.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL}},
    };

    return &line;
}

static int begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Exports that are not hooks: the API for programs, and symbols that some linkers add. */
static int is_own(const char *name)
{
    return begins_with(name, "cuwarden_") || strcmp(name, "_init") == 0 ||
           strcmp(name, "_fini") == 0;
}

static const char *layer_of(const char *name)
{
    if (begins_with(name, "cuda") || begins_with(name, "__cuda"))
        return "runtime";
    if (begins_with(name, "cu"))
        return "driver";
    if (begins_with(name, "InitializeInjection"))
        return "nvtx";
    return begins_with(name, "nvml") ? "nvml" : "libc";
}

static int print_hooks(const char *path)
{
    struct cw_exports exports;
    char why[WHY_MAX];

    if (cw_exports_read(&exports, path, why, sizeof(why)) != 0) {
        cw_cli_error("'%s' %s", path, why);
        return CW_EXIT_FAILURE;
    }
    for (size_t i = 0; i < exports.count; i++) {
        if (!is_own(exports.name[i]))
            printf("%-48s %s\n", exports.name[i], layer_of(exports.name[i]));
    }
    cw_exports_destroy(&exports);
    return CW_EXIT_OK;
}

static int set_preload(void *preload, int flag, char *value)
{
    (void)flag;
    *(const char **)preload = value;
    return 0;
}

int cw_cmd_hooks(int argc, char **argv)
{
    const char *preload = NULL;
    char path[PATH_MAX];
    int status = cw_flags_parse(cw_line_hooks(), argc, argv, set_preload, &preload);

    if (status >= 0)
        return status;
    if (cw_library_find(preload, path, sizeof(path)) != 0)
        return CW_EXIT_FAILURE;
    return print_hooks(path);
}
