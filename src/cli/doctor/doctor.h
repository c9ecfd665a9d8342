/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden doctor`: the checks and what they find. A check is a function and a row of the table of
 * its file; it says at most a few sentences, each with the way out where one is needed. A check
 * that finds nothing worth saying says nothing.
 */
#ifndef CW_CLI_DOCTOR_H
#define CW_CLI_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/doctor/loader.h"
#include "cli/doctor/needed.h"
#include "cli/doctor/program_file.h"

enum cw_verdict { CW_VERDICT_OK, CW_VERDICT_WARNING, CW_VERDICT_PROBLEM, CW_VERDICT_COUNT };

struct cw_finding {
    const char *check; /* name of the check */
    enum cw_verdict verdict;
    char *text;
    char *way_out; /* NULL: none is needed */
};

struct cw_doctor {
    const char *root;       /* "": this system */
    const char *library;    /* libcuwarden.so */
    const char *shown_name; /* the program as the user names it; NULL: none */
    uint32_t pid;           /* of a process that is looked at, or 0 */
    struct cw_loader loader;
    struct cw_program_file program; /* if shown_name or pid */
    struct cw_needed *needed;       /* of the program; NULL: it has none that can be read */
    struct cw_finding *finding;
    size_t findings;
    unsigned count[CW_VERDICT_COUNT];
    const char *check; /* that runs */
    int is_over;       /* what follows depends on what was not found */
};

typedef void (*cw_check_fn)(struct cw_doctor *doctor);

struct cw_check {
    const char *name;
    cw_check_fn run;
};

/* In their order, until one says that what follows makes no sense. */
void cw_doctor_run(struct cw_doctor *doctor, const struct cw_check *checks, size_t count);

void cw_doctor_free(struct cw_doctor *doctor);

void cw_doctor_ok(struct cw_doctor *doctor, const char *fmt, ...) CW_PRINTF(2, 3);
void cw_doctor_warn(struct cw_doctor *doctor, const char *way_out, const char *fmt, ...)
    CW_PRINTF(3, 4);
void cw_doctor_problem(struct cw_doctor *doctor, const char *way_out, const char *fmt, ...)
    CW_PRINTF(3, 4);

/* The three tables: of the library and the machine, of the program, of a process. */
void cw_doctor_check_library(struct cw_doctor *doctor);
void cw_doctor_check_machine(struct cw_doctor *doctor);
void cw_doctor_check_program(struct cw_doctor *doctor);
void cw_doctor_check_process(struct cw_doctor *doctor);

/*
 * Whether a program that ran, and is looked for as execvp does, could not have the library
 * preloaded: 1, and `why` has the first problem that a check finds, with the way out; else 0.
 */
int cw_doctor_keeps_out(const char *program, const char *library, char *why, size_t cap);

#endif
