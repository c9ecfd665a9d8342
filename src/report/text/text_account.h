/* SPDX-License-Identifier: MIT */
/*
 * Text about out-of-memory errors: the refusal, and an account of the device's memory. Printed in
 * the report, and when the error happens.
 */
#ifndef CW_REPORT_TEXT_ACCOUNT_H
#define CW_REPORT_TEXT_ACCOUNT_H

#include "report/text/text_put.h"

/* A refused call. */
struct cw_refusal {
    uint32_t site; /* index, or CW_SITE_NONE */
    unsigned device, cause;
    uint64_t bytes;
    int code;
    uint32_t count;
};

/* The rest of a line, "cudaMalloc, device 0: 8.0 GiB refused (error 2)", the stack, and why. */
void cw_text_refusal(const struct cw_text *text, const struct cw_refusal *refusal);

/* The parts of the device's memory that are not empty; returns their number. */
struct cw_report_part {
    const char *label;
    uint64_t bytes;
};
#define CW_REPORT_PARTS 6
unsigned cw_report_oom_parts(const struct cw_report_oom *oom,
                             struct cw_report_part part[CW_REPORT_PARTS]);

void cw_text_account(const struct cw_text *text, const struct cw_report_oom *oom);

#endif
