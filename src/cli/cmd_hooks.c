/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden hooks`: the functions that the library takes the place of.
 *
 * Read from the library's dynamic exports and not from a table: what is exported is what is
 * intercepted, also when the library at hand is of another build than this command.
 */
#include "cli/cli.h"

#include <getopt.h>
#include <limits.h>
#include <string.h>

static int print_help(void)
{
    printf("Usage: cuwarden hooks [--preload=FILE]\n"
           "List the functions that libcuwarden.so takes the place of, and the layer of each:\n"
           "driver (libcuda), runtime (libcudart), nvml, nvtx (what NVTX in a program calls),\n"
           "or libc.\n"
           "\n"
           "  --preload=FILE  read FILE, not the libcuwarden.so that is found\n"
           "  -h, --help      display this help and exit\n");
    return CW_EXIT_OK;
}

static int begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Exported, but no hook: the API for programs, and what some linkers export by themselves. */
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

    if (cw_exports_read(&exports, path) != 0)
        return CW_EXIT_FAILURE;
    for (size_t i = 0; i < exports.count; i++) {
        if (!is_own(exports.name[i]))
            printf("%-48s %s\n", exports.name[i], layer_of(exports.name[i]));
    }
    cw_exports_destroy(&exports);
    return CW_EXIT_OK;
}

int cw_cmd_hooks(int argc, char **argv)
{
    static const struct option flags[] = {
        {"preload", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *preload = NULL;
    char path[PATH_MAX];
    int flag;

    while ((flag = getopt_long(argc, argv, "h", flags, NULL)) != -1) {
        if (flag == 'h')
            return print_help();
        if (flag != 'p')
            return cw_cli_usage_error();
        preload = optarg;
    }
    if (optind < argc) {
        cw_cli_error("extra operand '%s'", argv[optind]);
        return cw_cli_usage_error();
    }
    if (cw_library_find(preload, path, sizeof(path)) != 0)
        return CW_EXIT_FAILURE;
    return print_hooks(path);
}
