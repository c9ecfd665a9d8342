/* SPDX-License-Identifier: MIT */
/*
 * The command `cuwarden`: selects the subcommand.
 *
 * Owns the table of subcommands, and checks standard output at the end: a report that did not reach
 * its file must not exit with success.
 */

#include <errno.h>
#include <getopt.h>
#include <stdio_ext.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

static const struct cw_command commands[] = {
#define X(name, summary) {#name, "cuwarden " #name, cw_cmd_##name, cw_line_##name, summary},
    CW_COMMANDS(X)
#undef X
};

const struct cw_command *cw_cli_commands(size_t *count)
{
    *count = CW_ARRAY_LEN(commands);
    return commands;
}

static int print_help(void)
{
    printf("Usage: cuwarden COMMAND [ARGUMENT]...\n"
           "Account for the CUDA memory of unmodified programs.\n"
           "\n"
           "Commands:\n");
    for (size_t i = 0; i < CW_ARRAY_LEN(commands); i++)
        printf("  %-14s %s\n", commands[i].name, commands[i].summary);
    printf("  help COMMAND   display the help of a command; version: as --version\n"
           "\n"
           "  -h, --help     display this help and exit\n"
           "  -V, --version  output version information and exit\n"
           "\n"
           "The exit status is 0 on success, 1 on failure, and 2 for a usage error;\n"
           "'cuwarden run' exits with the status of the program it runs.\n"
           "For help on a command, run 'cuwarden COMMAND --help'; see also cuwarden(1).\n");
    return CW_EXIT_OK;
}

static int print_version(void)
{
    printf("cuwarden %s\n", PACKAGE_VERSION);
    return CW_EXIT_OK;
}

static int dispatch(int argc, char **argv);

static int refuse_operand(const char *operand)
{
    cw_cli_error("extra operand '%s'", operand);
    return cw_cli_usage_error();
}

/* "help", "help COMMAND". */
static int help(int argc, char **argv)
{
    static char *flag = (char *)"--help";

    if (argc < 2)
        return print_help();
    if (argc > 2)
        return refuse_operand(argv[2]);
    return dispatch(2, (char *[]){argv[1], flag, NULL});
}

static int refuse_command(const char *name)
{
    struct cw_nearest nearest = cw_nearest_to(name, strlen(name));
    char guess[CW_SUGGESTION_MAX];

    for (size_t i = 0; i < CW_ARRAY_LEN(commands); i++)
        cw_nearest_offer(&nearest, commands[i].name, strlen(commands[i].name));
    cw_cli_error("unknown command '%s'%s", name, cw_cli_suggestion(guess, sizeof(guess), &nearest));
    return cw_cli_usage_error();
}

static int dispatch(int argc, char **argv)
{
    if (strcmp(argv[0], "help") == 0)
        return help(argc, argv);
    if (strcmp(argv[0], "version") == 0)
        return argc > 1 ? refuse_operand(argv[1]) : print_version();
    for (size_t i = 0; i < CW_ARRAY_LEN(commands); i++) {
        if (strcmp(argv[0], commands[i].name) != 0)
            continue;
        cw_cli_speak_as(commands[i].full_name);
        argv[0] = (char *)commands[i].full_name;
        optind = 0; /* GNU getopt: restart with another vector */
        return commands[i].run(argc, argv);
    }
    return refuse_command(argv[0]);
}

static int run_command_line(int argc, char **argv)
{
    static const struct option flags[] = {
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };

    argv[0] = (char *)"cuwarden"; /* as getopt prints it, so that messages look alike */
    switch (getopt_long(argc, argv, "+hV", flags, NULL)) {
    case -1:
        break;
    case 'h':
        return print_help();
    case 'V':
        return print_version();
    default:
        return cw_cli_usage_error();
    }
    if (optind == argc) {
        cw_cli_error("missing command");
        return cw_cli_usage_error();
    }
    return dispatch(argc - optind, argv + optind);
}

/* A full disk shows only when the buffer is flushed. */
static int close_stdout(int status)
{
    int failed = ferror(stdout);
    int has_text = __fpending(stdout) > 0;

    errno = 0;
    /* Closed from the start, with nothing written: not an error. */
    if (fclose(stdout) != 0 && (has_text || errno != EBADF))
        failed = 1;
    if (!failed)
        return status;
    cw_cli_error("write error%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
    return status == CW_EXIT_OK ? CW_EXIT_FAILURE : status;
}

/* Enough for every command. A small `ulimit -s` is meant for the program, which inherits it. */
#define STACK_BYTES ((size_t)1 << 20)

static struct {
    int argc;
    char **argv;
    int status;
} line;

static void run_line(void)
{
    line.status = run_command_line(line.argc, line.argv);
}

/* Runs the command line on a stack of our own. -1: there is none. */
static int run_on_own_stack(void)
{
    static ucontext_t here, there;
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

    if (stack == MAP_FAILED || getcontext(&there) != 0)
        return -1;
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &here;
    makecontext(&there, run_line, 0);
    return swapcontext(&here, &there);
}

int main(int argc, char **argv)
{
    struct rlimit limit;

    if (argc < 1)
        return CW_EXIT_USAGE;
    line.argc = argc;
    line.argv = argv;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_BYTES ||
        run_on_own_stack() != 0)
        run_line();
    return close_stdout(line.status);
}
