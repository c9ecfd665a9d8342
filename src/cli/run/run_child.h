/* SPDX-License-Identifier: MIT */
/*
 * A program that runs as our child and is to notice nothing of it: what would have reached it had
 * it been executed in our place reaches it, and what it does shows in us.
 */
#ifndef CW_CLI_RUN_CHILD_H
#define CW_CLI_RUN_CHILD_H

#include <signal.h>
#include <sys/types.h>

struct cw_run_child {
    pid_t pid;
    int failure;             /* a pipe: the errno, if it could not be executed */
    sigset_t mask;           /* as we were given them, and as it has them */
    struct sigaction ending; /* of SIGCHLD */
};

/*
 * Starts argv in our process group, with our files, terminal, directory, limits and signals. From
 * here on every signal is blocked here, and pipes and sockets that it was given, but for stderr,
 * are closed here, unless keeps_files. 0, or -1 with errno and nothing changed.
 */
int cw_run_child_start(struct cw_run_child *child, char **argv, int keeps_files);

/*
 * Waits for its end; passes on signals, stops when it stops and lets it go on. Calls `idle` every
 * few seconds. Its wait status.
 */
int cw_run_child_wait(struct cw_run_child *child, void (*idle)(void *arg), void *arg);

/* After its end: the errno with which it could not be executed, or 0. */
int cw_run_child_failure(const struct cw_run_child *child);

/* Signals that are meant to end us do so again; those that its end made meaningless are gone. */
void cw_run_child_release(const struct cw_run_child *child);

/* Ends as a program does that the signal kills, without a core: there is one already, or none. */
void cw_run_child_die(int number) __attribute__((noreturn));

#endif
