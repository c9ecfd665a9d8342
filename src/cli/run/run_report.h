/* SPDX-License-Identifier: MIT */
/*
 * The reports of the processes under one `cuwarden run`.
 *
 * The library writes text and JSON when a process ends, so that they exist as early as the program
 * may look for them. The run writes them once more, from the live file: with source lines, and with
 * one file for each process. What the library cannot write, the run alone does: other forms, what
 * goes to stderr, and the reports of processes that were killed.
 *
 * One process: exactly the name that was asked for. Several: the rank or the process id before the
 * extension; and a number, if one process executed several programs. Of what the library can write,
 * names that lead to devices, FIFOs or links, and those with %n, are left to it.
 */
#ifndef CW_CLI_RUN_REPORT_H
#define CW_CLI_RUN_REPORT_H

#include <stddef.h>

#include "base/options/options.h"
#include "cli/input/lines.h"
#include "cli/input/source_file.h"

#define CW_RUN_OUTPUTS 2 /* --report and --html */

struct cw_run_form;
struct cw_run_made;

struct cw_run_output {
    char pattern[CW_OPTION_VALUE_MAX + 16];
    const struct cw_run_form *form; /* NULL: text, JSON or both, as the options say */
};

struct cw_run_reports {
    const struct cw_options *options;
    struct cw_run_output output[CW_RUN_OUTPUTS];
    unsigned outputs;
    struct cw_lines lines; /* for these and for the verdict */
    struct cw_run_made *made;
    size_t count, room;
    unsigned overwritten; /* by processes with the same name */
    unsigned missing;     /* pages of --html that could not be written, as has been said */
    /* Of the process that is being reported: */
    enum cw_report_process process;
    const struct cw_report_tensors *tensors; /* or NULL */
};

/*
 * html: the value of --html, or NULL. If the library must not write what CUWARDEN_REPORT says, sets
 * *instead to what it is to read there. 0, or -1 after a message about a name.
 */
int cw_run_reports_init(struct cw_run_reports *reports, const struct cw_options *options,
                        const char *html, const char **instead);

/* Of a process that has ended; was_written: by itself. Returns whether the run wrote any. */
int cw_run_reports_write(struct cw_run_reports *reports, struct cw_source_file *file,
                         int was_written);

/* Gives the files their names, and prints these unless is_quiet. Returns the number of files. */
size_t cw_run_reports_finish(struct cw_run_reports *reports, int is_quiet);

void cw_run_reports_free(struct cw_run_reports *reports);

#endif
