/* SPDX-License-Identifier: MIT */
/*
 * What the processes under one `cuwarden run` did, added up from their live files as they end; and
 * the reports of those that could not write theirs.
 */
#ifndef CW_CLI_RUN_ACCOUNT_H
#define CW_CLI_RUN_ACCOUNT_H

#include <sys/types.h>

#include "base/options/options.h"
#include "cli/input/run_live.h"
#include "report/snapshot/snapshot.h"

#define CW_RUN_NAMED_MAX 16

struct cw_run_span {
    uint64_t from_ns, to_ns, peak_bytes;
};

struct cw_run_account {
    const struct cw_options *options; /* what the processes go by */
    struct cw_run_live live;
    int is_quiet;
    pid_t child;     /* the program itself */
    int wait_status; /* of the program, once it has ended; else 0 */
    uint64_t processes;
    uint64_t unreadable; /* files that say nothing */
    uint64_t running;    /* processes that have not ended, and are in none of the sums */
    struct cw_snapshot_summary sum;
    struct cw_run_span *span;     /* of each process; `processes` of them */
    char *name[CW_RUN_NAMED_MAX]; /* files of reports that have been named; `named` of them */
    unsigned named;
    unsigned unnamed, overwritten; /* reports beyond these, and in one of these */
};

/* Takes in whoever has ended. is_last: also what was left to other runs inside this one, and who is
 * about to end gets a moment for it. */
void cw_run_account_collect(struct cw_run_account *account, int is_last);

/* What is said at the end, if any process has called CUDA. */
void cw_run_account_print(const struct cw_run_account *account);

void cw_run_account_free(struct cw_run_account *account);

#endif
