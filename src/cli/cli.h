/* SPDX-License-Identifier: MIT */
/*
 * The subcommands of `cuwarden`: one file cmd_NAME.c and one row here for each.
 *
 * One process, one thread, its own standard output: unlike the library the command may use stdio
 * and malloc.
 */
#ifndef CW_CLI_CLI_H
#define CW_CLI_CLI_H

#include <stddef.h>

/* ---- the subcommands ---- */

/* X(NAME, "what it does"), in the order of --help. */
#define CW_COMMANDS(X)                                                                             \
    X(run, "run a program under libcuwarden.so, and report what it leaked")                        \
    X(report, "report on a running or dead process")                                               \
    X(diff, "compare two processes by call site")                                                  \
    X(merge, "compare the ranks of a parallel job")                                                \
    X(top, "monitor the memory of running processes")                                              \
    X(metrics, "export the memory of running processes to Prometheus")                             \
    X(ctl, "make a running process trim, report, or change a limit")                               \
    X(doctor, "check whether and how a program can be monitored")                                  \
    X(estimate, "estimate the memory that a model takes, and where it fits")                       \
    X(pick, "print the GPU with enough free memory for a program")                                 \
    X(replay, "replay a trace under other settings")                                               \
    X(options, "show all options, their values and where these come from")                         \
    X(hooks, "list the functions that libcuwarden.so intercepts")                                  \
    X(completion, "print a completion script for a shell")

struct cw_command_line;

/* cw_cmd_NAME: argv[0] is "cuwarden NAME", and getopt is reset. cw_line_NAME: its table. */
#define X(name, summary)                                                                           \
    int cw_cmd_##name(int argc, char **argv);                                                      \
    const struct cw_command_line *cw_line_##name(void);
CW_COMMANDS(X)
#undef X

struct cw_command {
    const char *name;
    const char *full_name; /* prefix of getopt's messages */
    int (*run)(int argc, char **argv);
    const struct cw_command_line *(*line)(void);
    const char *summary;
};

const struct cw_command *cw_cli_commands(size_t *count);

#endif
