/* SPDX-License-Identifier: MIT */
/*
 * A report model read from a live file or a report in JSON, and its storage. All outputs, filters,
 * comparisons and views work on `report` (report/model/report_model.h), whatever its source.
 */
#ifndef CW_CLI_MODEL_H
#define CW_CLI_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "report/model/live_parts.h"
#include "report/model/report_model.h"

struct cw_json_lines;
struct cw_json_storage;
struct cw_lines;
struct cw_model_file;
struct cw_report_job;
struct cw_source_file;

struct cw_model {
    struct cw_report_model *report;
    struct cw_report_job *job;       /* of a live file */
    struct cw_json_storage *storage; /* of JSON */
    const struct cw_lines *lines;    /* for JSON that has none; NULL: none */
    struct cw_json_lines *own_lines;
    struct cw_model_file *file; /* that cw_model_read opened */
    void *lists;                /* of a selection (selection.h) */
};

/* Options for the report of a live file. */
struct cw_model_request {
    enum cw_report_process process; /* of one that does not run; unknown: it died */
    const char *suppressions;       /* a file of rules, "" for none */
    uint64_t old_ns;
    const struct cw_lines *lines;            /* source lines (lines.h); NULL: none */
    const struct cw_report_tensors *tensors; /* as in report/report.h; NULL: none */
};

/*
 * Reads the open live file or report in JSON, which must stay open as long as the model. The stacks
 * of a live file have no frames yet. 0, or -1 after a message that names the file and the reason.
 */
int cw_model_read_file(struct cw_model *model, struct cw_source_file *file,
                       const struct cw_model_request *request);
/* Call once, afterwards: adds the frames of all stacks, or only of those that the text shows, and
 * to frames that were read from JSON without source lines those of this machine. */
void cw_model_read_stacks(struct cw_model *model, int is_for_text);
/* Does both for an operand that is to be compared: a process id, a live file or a report; warns if
 * that has only some call sites. Uses the suppressions of this environment. `named`: see
 * cw_source_file_open. 0, -1 after a message, or 1 if the named directory's file is gone. */
int cw_model_read(struct cw_model *model, const char *operand, size_t named);
void cw_model_free(struct cw_model *model);

#endif
