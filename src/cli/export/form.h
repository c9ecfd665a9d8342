/* SPDX-License-Identifier: MIT */
/*
 * The forms in which `cuwarden report` writes a model: one row and one file form_NAME.c each. A
 * writer receives a complete model and the sites to show, writes to `out` and returns whether it
 * succeeded. It prints a message only for failures other than a write error, and omits what its
 * format cannot express.
 */
#ifndef CW_CLI_FORM_H
#define CW_CLI_FORM_H

#include <stdint.h>
#include <stdio.h>

#include "cli/model/model.h"
#include "cli/model/select.h"

struct cw_form_request {
    const struct cw_report_model *model;
    const struct cw_selection *selection;
    const uint32_t *site; /* to show, largest first */
    uint32_t sites;
    unsigned sections;  /* of the text (report/text/report_text.h) */
    unsigned columns;   /* that its tables fit in */
    int has_all_frames; /* of its stacks */
    int by_call;        /* collapsed stacks: a frame is a call, not a function */
    FILE *out;
};

#define CW_FORM_TOLD (-2)

/* 0; -1: write error; CW_FORM_TOLD: failed after a message. */
typedef int (*cw_form_fn)(const struct cw_form_request *request);

int cw_form_text(const struct cw_form_request *request);
int cw_form_json(const struct cw_form_request *request);
int cw_form_html(const struct cw_form_request *request);
int cw_form_collapsed(const struct cw_form_request *request);
int cw_form_pprof(const struct cw_form_request *request);
int cw_form_perfetto(const struct cw_form_request *request);
int cw_form_heaptrack(const struct cw_form_request *request);
int cw_form_suggestions(const struct cw_form_request *request);
int cw_form_torch(const struct cw_form_request *request);

#endif
