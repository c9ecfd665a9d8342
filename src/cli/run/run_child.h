/* SPDX-License-Identifier: MIT */
/*
 * Runs a program as our child, transparently: it receives what it would receive if executed in our
 * place, and we mirror what happens to it.
 */
#ifndef CW_CLI_RUN_CHILD_H
#define CW_CLI_RUN_CHILD_H

#include <signal.h>
#include <sys/types.h>

struct cw_run_child {
    pid_t pid;
    int failure;             /* a pipe for the errno, if it could not be executed */
    int has_stopped_alone;   /* while we went on: a SIGCONT to us is for it */
    sigset_t mask;           /* inherited by us and by the child */
    struct sigaction ending; /* of SIGCHLD */
};

/*
 * Starts argv in our process group, with our files, terminal, directory, limits and signals.
 * Afterwards every signal is blocked in this process, and inherited pipes and sockets except stderr
 * are closed, unless keeps_files. 0, or -1 with errno and nothing changed.
 */
int cw_run_child_start(struct cw_run_child *child, char **argv, int keeps_files);

/*
 * Waits for its end; passes on signals, stops when it stops and continues it. Calls `idle` every
 * few seconds. Returns its wait status.
 */
int cw_run_child_wait(struct cw_run_child *child, void (*idle)(void *arg), void *arg);

/* After its end: the errno if it could not be executed, or 0. */
int cw_run_child_failure(const struct cw_run_child *child);

/* Restores the effect of terminating signals, and discards pending ones that its end made
 * meaningless. */
void cw_run_child_release(const struct cw_run_child *child);

/* Dies from the signal, without a core: the program has written one if it should. */
void cw_run_child_die(int number) __attribute__((noreturn));

#endif
