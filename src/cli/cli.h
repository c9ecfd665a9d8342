/* SPDX-License-Identifier: MIT */
/*
 * The command `cuwarden`: what its files share.
 *
 * One process, one thread, its own standard output: unlike the library it may use stdio and malloc.
 * A subcommand is one file cmd_NAME.c and one row of the table in main.c. Errors are one line on
 * stderr that begins with "cuwarden NAME: " and tells the file or value and the way out.
 */
#ifndef CW_CLI_CLI_H
#define CW_CLI_CLI_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"

enum cw_exit {
    CW_EXIT_OK = 0,
    CW_EXIT_FAILURE = 1,      /* could not do it: unreadable file, failed write */
    CW_EXIT_USAGE = 2,        /* bad option, argument or value */
    CW_EXIT_SELF = 125,       /* run: failed before the program was tried, as in env(1) */
    CW_EXIT_CANNOT_RUN = 126, /* run: the program is there but cannot be executed */
    CW_EXIT_NOT_FOUND = 127,  /* run: there is no such program */
};

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

/* ---- message.c ---- */

/* "cuwarden NAME", which must last; "cuwarden" until then. */
void cw_cli_speak_as(const char *name);
/* Prints "cuwarden NAME: text" on stderr. */
void cw_cli_error(const char *fmt, ...) CW_PRINTF(1, 2);
/* Prints "cuwarden: warning: text" on stderr, as the library would. */
void cw_cli_warn(const char *fmt, ...) CW_PRINTF(1, 2);
/* Points to --help after a message about the command line; returns CW_EXIT_USAGE. */
int cw_cli_usage_error(void);

/* ---- library.c: where libcuwarden.so is ---- */

/*
 * Its absolute path: `preload` if not NULL, else the first place that has one. Returns 0, or -1
 * after a message that names the places.
 */
int cw_library_find(const char *preload, char *path, size_t cap);

/* ---- live_files.c: which live files there are ---- */

struct cw_live_name {
    char *path;
    uint32_t pid;
    uint64_t start; /* seconds since 1970, as the name has it */
};

struct cw_live_files {
    struct cw_live_name *file; /* newest first */
    size_t count;
};

/* Adds those in the directory, of one process if pid is not 0; with_runs: and those of programs
 * under `cuwarden run`, which have directories of their own in it (run_live.h), also of a run
 * inside a run. 0, or -1 with errno. */
int cw_live_files_add(struct cw_live_files *files, const char *directory, uint32_t pid,
                      int with_runs);
/* Of one process, wherever the library puts them in this environment; what was searched, for a
 * message, goes to `where`. */
void cw_live_files_of(struct cw_live_files *files, uint32_t pid, char *where, size_t cap);
/* The newest of the process whose id this is, or the one that it has open; NULL after a message. It
 * belongs to `files`. */
const char *cw_live_files_of_process(struct cw_live_files *files, const char *number);
/* 1 if its process runs: it holds the lock of the file, or, where that cannot be told, maps it. */
int cw_live_file_is_mapped(uint32_t pid, const char *path);
int cw_live_file_is_in_use(int fd, uint32_t pid, const char *path);
void cw_live_files_free(struct cw_live_files *files);

/* ---- exports.c: what an ELF library exports ---- */

struct cw_exports {
    char **name; /* sorted */
    size_t count;
};

/* Returns 0, or -1 after a message. */
int cw_exports_read(struct cw_exports *exports, const char *path);
void cw_exports_destroy(struct cw_exports *exports);

#endif
