/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden run`: becomes the program, with the library in front of LD_PRELOAD.
 *
 * exec, and no fork: job control, signals and exit status stay the program's own. Every row of
 * options.def is a flag; a value is checked by the library's own parser, so a typing error ends
 * here and not as a warning somewhere in the program's output.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"

enum { FLAG_HELP = 'h', FLAG_PRELOAD = 0x100, FLAG_FIRST_ROW };

struct request {
    struct cw_options options; /* only to check values against */
    const char *preload;
    int wants_help;
};

static int print_help(void)
{
    printf("Usage: cuwarden run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
           "Run PROGRAM with libcuwarden.so preloaded.\n"
           "\n");
    cw_docs_print_flags(stdout);
    printf("\n"
           "  --preload=FILE         preload FILE, not the libcuwarden.so that is found\n"
           "  -h, --help             display this help and exit\n"
           "\n"
           "A flag sets the environment variable CUWARDEN_NAME for PROGRAM and wins over one\n"
           "that is set; 'cuwarden options --format=text' explains each.\n"
           "Unless NVTX_INJECTION64_PATH is set, it is set to the library too, so that the\n"
           "ranges and marks of NVTX in PROGRAM are seen.\n"
           "\n"
           "Exit status is that of PROGRAM; 2 for a bad command line, 125 if the library is\n"
           "not found, 126 if PROGRAM cannot be executed, 127 if it cannot be found.\n");
    return CW_EXIT_OK;
}

static void fill_flags(struct option *flags, char names[][CW_FLAG_MAX])
{
    size_t i;

    for (i = 0; i < CW_OPTION_COUNT; i++) {
        cw_docs_flag_name(names[i], CW_FLAG_MAX, cw_options_row(i)->name);
        flags[i] = (struct option){names[i], required_argument, NULL, FLAG_FIRST_ROW + (int)i};
    }
    flags[i++] = (struct option){"preload", required_argument, NULL, FLAG_PRELOAD};
    flags[i++] = (struct option){"help", no_argument, NULL, FLAG_HELP};
    flags[i] = (struct option){NULL, 0, NULL, 0};
}

static int fail_setenv(const char *variable)
{
    cw_cli_error("cannot set %s: %s", variable, strerror(errno));
    return CW_EXIT_SELF;
}

static int set_option(struct request *request, const char *flag, size_t index, const char *value)
{
    const char *name = cw_options_row(index)->name;
    char variable[sizeof(CW_OPTION_PREFIX) + CW_FLAG_MAX];
    char why[CW_OPTION_LINE_MAX];

    if (cw_options_set(&request->options, name, value, why, sizeof(why)) != 0) {
        cw_cli_error("--%s: %s", flag, why);
        return CW_EXIT_USAGE;
    }
    snprintf(variable, sizeof(variable), "%s%s", CW_OPTION_PREFIX, name);
    if (setenv(variable, value, 1) != 0)
        return fail_setenv(variable);
    return CW_EXIT_OK;
}

static int parse_flags(int argc, char **argv, struct request *request)
{
    struct option flags[CW_OPTION_COUNT + 3];
    char names[CW_OPTION_COUNT][CW_FLAG_MAX];
    int status = CW_EXIT_OK;
    int flag;

    fill_flags(flags, names);
    while (status == CW_EXIT_OK && (flag = getopt_long(argc, argv, "+h", flags, NULL)) != -1) {
        size_t index = (size_t)(flag - FLAG_FIRST_ROW);

        if (flag == FLAG_HELP)
            request->wants_help = 1;
        else if (flag == FLAG_PRELOAD)
            request->preload = optarg;
        else if (index < CW_OPTION_COUNT)
            status = set_option(request, names[index], index, optarg);
        else
            status = cw_cli_usage_error();
    }
    return status;
}

/* In front: what others preload may itself call CUDA. */
static int preload_library(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *both;
    int failed;

    if (strpbrk(library, " :"))
        cw_cli_warn("'%s' has a space or a colon, which LD_PRELOAD cannot carry; "
                    "move it or link to it",
                    library);
    if (!others || !*others)
        return setenv("LD_PRELOAD", library, 1);
    if (asprintf(&both, "%s:%s", library, others) < 0)
        return -1;
    failed = setenv("LD_PRELOAD", both, 1);
    free(both);
    return failed;
}

/* A tool that the user has chosen for it stays the one that NVTX calls. */
static int announce_to_nvtx(const char *library)
{
    return setenv("NVTX_INJECTION64_PATH", library, 0);
}

static int exec_program(char **argv)
{
    int error;

    execvp(argv[0], argv);
    error = errno;
    cw_cli_error("cannot run '%s': %s", argv[0], strerror(error));
    return error == ENOENT ? CW_EXIT_NOT_FOUND : CW_EXIT_CANNOT_RUN;
}

int cw_cmd_run(int argc, char **argv)
{
    struct request request = {.preload = NULL};
    char library[PATH_MAX];
    int status;

    cw_options_parse(NULL, 1, &request.options, NULL);
    status = parse_flags(argc, argv, &request);
    if (status != CW_EXIT_OK)
        return status;
    if (request.wants_help)
        return print_help();
    if (optind == argc) {
        cw_cli_error("missing program");
        return cw_cli_usage_error();
    }
    if (cw_library_find(request.preload, library, sizeof(library)) != 0)
        return CW_EXIT_SELF;
    if (preload_library(library) != 0)
        return fail_setenv("LD_PRELOAD");
    if (announce_to_nvtx(library) != 0)
        return fail_setenv("NVTX_INJECTION64_PATH");
    return exec_program(argv + optind);
}
