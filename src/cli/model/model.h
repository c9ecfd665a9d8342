/* SPDX-License-Identifier: MIT */
/*
 * A report model that the command has read, from a live file or from a report in JSON, and what it
 * stands on. Every form of output, filter, comparison and view works on `report`
 * (report/model/report_model.h), and cannot tell where it came from.
 */
#ifndef CW_CLI_MODEL_H
#define CW_CLI_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "report/model/report_model.h"

struct cw_json_storage;
struct cw_lines;
struct cw_model_file;
struct cw_report_job;
struct cw_source_file;

struct cw_model {
    struct cw_report_model *report;
    struct cw_report_job *job;       /* of a live file */
    struct cw_json_storage *storage; /* of JSON */
    struct cw_model_file *file;      /* that cw_model_read opened */
    void *lists;                     /* of a selection (selection.h) */
};

/* How the report of a live file is made. */
struct cw_model_request {
    const char *suppressions; /* a file of rules, "" for none */
    uint64_t old_ns;
    const struct cw_lines *lines; /* where source lines come from (lines.h); NULL: from nowhere */
};

/*
 * Reads a live file or a report in JSON, whichever is open, and stays so for as long as the model;
 * without the frames of a live file's stacks. 0, or -1 after a message that names the file and the
 * reason.
 */
int cw_model_read_file(struct cw_model *model, struct cw_source_file *file,
                       const struct cw_model_request *request);
/* Once, after that: the frames of all stacks, or of those alone that the text shows. */
void cw_model_read_stacks(struct cw_model *model, int is_for_text);
/* Both, of what an operand names: a process id, a live file or a report. With the suppressions of
 * this environment. */
int cw_model_read(struct cw_model *model, const char *operand);
void cw_model_free(struct cw_model *model);

#endif
