/* SPDX-License-Identifier: MIT */
/*
 * What the processes under one `cuwarden run` leave: totals, verdict and reports, from their live
 * files as they end.
 */
#ifndef CW_CLI_RUN_ACCOUNT_H
#define CW_CLI_RUN_ACCOUNT_H

#include <sys/types.h>

#include "base/options/options.h"
#include "cli/input/run_live.h"
#include "cli/run/run_report.h"
#include "cli/run/torch.h"
#include "cli/run/verdict.h"

struct cw_run_span {
    uint64_t from_ns, to_ns, peak_bytes;
};

struct cw_run_account {
    const struct cw_options *options; /* the options of the processes */
    struct cw_run_live live;
    int is_quiet;
    int counts_killed; /* what processes had that were ended by a signal is leaked, too */
    pid_t child;       /* the program itself */
    int wait_status;   /* of the program, once it has ended; otherwise 0 */
    int has_said_death;
    uint64_t processes;
    uint64_t unreadable; /* unreadable live files */
    uint64_t running;    /* processes still running, not included in the totals */
    struct cw_run_verdict verdict;
    struct cw_run_reports reports;
    struct cw_torch torch;
    struct cw_run_span *span; /* of each process; `processes` of them */
    const char *next;         /* the command that tells more about what is wrong */
};

/* Counts the processes that have ended. is_last: also those left to nested runs, and processes
 * about to end get a moment to do so. */
void cw_run_account_collect(struct cw_run_account *account, int is_last);

/* Within another run, which has a verdict on all. */
int cw_run_account_is_inner(const struct cw_run_account *account);
/* Names the reports, and prints the verdict and the SUMMARY if any process has called CUDA. */
void cw_run_account_print(struct cw_run_account *account);

void cw_run_account_free(struct cw_run_account *account);

#endif
