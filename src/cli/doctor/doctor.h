/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden doctor`: the checks and their findings. A check is a function and a row in the table of
 * its file; it reports at most a few findings, each with a remedy if one is needed, or nothing.
 */
#ifndef CW_CLI_DOCTOR_H
#define CW_CLI_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/device_properties.h"
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

/* What a driver says of a device; 0 and "": nothing. */
struct cw_doctor_gpu {
    int ordinal, driver;
    char name[96], bus[32];
    uint64_t total; /* bytes */
    struct cw_device_properties properties;
    int integrated, managed;
};

struct cw_doctor {
    const char *root;       /* "": this system */
    const char *library;    /* libcuwarden.so */
    const char *shown_name; /* the program as named by the user; NULL: none */
    uint32_t pid;           /* of the process to inspect, or 0 */
    struct cw_loader loader;
    struct cw_program_file program; /* if shown_name or pid */
    struct cw_needed *needed;       /* of the program; NULL: none can be read */
    struct cw_doctor_gpu *gpu;      /* devices, with --gpu */
    size_t gpus;
    struct cw_finding *finding;
    size_t findings;
    unsigned count[CW_VERDICT_COUNT];
    const char *check; /* that runs */
    int is_over;       /* the remaining checks depend on something missing */
};

typedef void (*cw_check_fn)(struct cw_doctor *doctor);

struct cw_check {
    const char *name;
    cw_check_fn run;
};

/* Runs the checks in order, until one makes the remaining ones pointless. */
void cw_doctor_run(struct cw_doctor *doctor, const struct cw_check *checks, size_t count);

void cw_doctor_free(struct cw_doctor *doctor);

void cw_doctor_ok(struct cw_doctor *doctor, const char *fmt, ...) CW_PRINTF(2, 3);
void cw_doctor_warn(struct cw_doctor *doctor, const char *way_out, const char *fmt, ...)
    CW_PRINTF(3, 4);
void cw_doctor_problem(struct cw_doctor *doctor, const char *way_out, const char *fmt, ...)
    CW_PRINTF(3, 4);

/* The tables of checks: library and machine, program, process. */
void cw_doctor_check_library(struct cw_doctor *doctor);
void cw_doctor_check_machine(struct cw_doctor *doctor);
void cw_doctor_check_program(struct cw_doctor *doctor);
void cw_doctor_check_process(struct cw_doctor *doctor);
/* A check: limits that the platform sets, and what they come to. */
void cw_doctor_check_platform(struct cw_doctor *doctor);
/* With --gpu: what the driver does, by doing it in a process of its own. */
void cw_doctor_check_gpu(struct cw_doctor *doctor);

/*
 * 1 if the library could not be preloaded into a program that has run, searched for like execvp
 * does; `why` gets the first problem found, with its remedy. Otherwise 0.
 */
int cw_doctor_keeps_out(const char *program, const char *library, char *why, size_t cap);

#endif
