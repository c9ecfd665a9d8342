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
    X(run, "run a program under libcuwarden.so")                                                   \
    X(report, "report on a process that runs or has died")                                         \
    X(diff, "compare two processes by call site")                                                  \
    X(merge, "put the ranks of a parallel job beside each other")                                  \
    X(top, "watch what running processes hold")                                                    \
    X(metrics, "the same for Prometheus")                                                          \
    X(ctl, "ask a running process to trim, report, or change a limit")                             \
    X(doctor, "say whether and how a program can be watched")                                      \
    X(replay, "play a trace under other settings")                                                 \
    X(options, "show every option, its value and its origin")                                      \
    X(hooks, "list the functions that libcuwarden.so intercepts")                                  \
    X(completion, "print a script for a shell")

struct cw_command_line;

/* cw_cmd_NAME: argv[0] is "cuwarden NAME" and getopt is fresh. cw_line_NAME: its table. */
#define X(name, summary)                                                                           \
    int cw_cmd_##name(int argc, char **argv);                                                      \
    const struct cw_command_line *cw_line_##name(void);
CW_COMMANDS(X)
#undef X

struct cw_command {
    const char *name;
    const char *full_name; /* what getopt puts in front of its messages */
    int (*run)(int argc, char **argv);
    const struct cw_command_line *(*line)(void);
    const char *summary;
};

const struct cw_command *cw_cli_commands(size_t *count);

#endif
