/* SPDX-License-Identifier: MIT */
/*
 * The verdict on a run: what a person has to know, in at most CW_RUN_VERDICT_LINES lines, over all
 * processes. What comes first matters most: memory errors, out of memory, leaks, growth and the
 * caches of frameworks, the audit, the peak and who held it, the one command that tells more.
 *
 * Equal findings of several processes (same binaries, same stack) are one. Owns what it prints:
 * models need not outlive their adding.
 */
#ifndef CW_CLI_VERDICT_H
#define CW_CLI_VERDICT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/run/finding.h"
#include "report/leaks/cache.h"
#include "report/model/report_model.h"
#include "report/text/report_text.h"

#define CW_RUN_VERDICT_LINES 8

/* The largest of one device in one process; who held it are findings. */
struct cw_verdict_peak {
    uint64_t bytes;
    uint32_t device;
};

struct cw_run_verdict {
    struct cw_run_findings findings;
    uint64_t processes;
    uint64_t running;              /* of them that have not ended */
    uint64_t killed, killed_bytes; /* of them ended by a signal, and what these had then */
    uint64_t refused;              /* others, in which the driver did not start */
    int32_t init_error;            /* of the last of them */
    char refused_exe[64];
    uint64_t unseen, uncalled; /* processes whose calls of CUDA came to us in part, or not at all */
    char unseen_object[64];    /* that made them, in the last of these */
    struct cw_snapshot_summary sum; /* of all processes; the peak is that of one */
    /* Leaks, or what a process that runs has, of the sites selected; and the bytes of all. */
    uint64_t leaked_bytes, leaked_blocks, all_leaked_bytes;
    uint64_t *leak_site; /* keys of these sites; equal ones of several processes are one */
    size_t leak_sites;
    uint64_t ooms, fallback_bytes;
    const char *framework;    /* that was asked for its tensors, or NULL */
    uint8_t has_tensors;      /* and told of them */
    char framework_error[96]; /* why it could not */
    uint64_t held_bytes;      /* until exit */
    /* Processes that CUPTI has audited, and those in which that was asked for and broke off. */
    uint64_t audited, unaudited, audit_findings, audit_dropped;
    char audit_why[160]; /* it broke off in the last of these */
    char oom_uuid[48];   /* of the device on which memory ran out last; "": none, or not known */
    uint64_t cache_bytes[CW_CACHE_COUNT]; /* of devices, kept by caches of frameworks */
    struct cw_verdict_peak gpu, host;     /* neither hides the other */
    uint8_t has_several;                  /* a process had memory on several GPUs */
    uint8_t has_graphs;                   /* a process made graphs that allocate */
    uint8_t has_pool;                     /* a process ran in pool mode */
    uint8_t is_short;                     /* out of memory: some findings are missing */
};

struct cw_verdict_ending {
    uint64_t peak_bytes; /* over all processes and devices */
    const char *next;    /* the command that tells more; NULL: none */
    const char *others;  /* who else is on the device that was full, or NULL */
    const char *prefix;  /* of each line */
    int is_patched;      /* DEEPBIND=patch */
    unsigned columns;
};

/* Names the stacks that the verdict needs; a cw_report_list_fn (report/report.h). */
void cw_verdict_want(const struct cw_report_model *model, cw_report_want_fn want, void *arg);
/* After the frames of these stacks have been read. What a process that was killed had then is
 * neither leaked nor grown; its errors and its peak count. What one has that runs is not leaked.
 * Returns 0 if it was no process with CUDA: the driver refused to start, or nobody's calls came to
 * us; the verdict says so. */
int cw_verdict_add(struct cw_run_verdict *verdict, const struct cw_report_model *model);

/* Whether something is wrong: an error, out of memory, a leak or growth. */
int cw_verdict_is_bad(const struct cw_run_verdict *verdict);
/* Nothing for no process at all. */
void cw_verdict_print(const struct cw_run_verdict *verdict, const struct cw_verdict_ending *ending,
                      FILE *out);

void cw_verdict_free(struct cw_run_verdict *verdict);

#endif
