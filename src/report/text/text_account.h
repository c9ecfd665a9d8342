/* SPDX-License-Identifier: MIT */
/*
 * Out of memory in words: the refusal, and the account of where the memory was. It is
 * printed in the report, and at the moment it happens.
 */
#ifndef CW_REPORT_TEXT_ACCOUNT_H
#define CW_REPORT_TEXT_ACCOUNT_H

#include "report/text/text_put.h"

/* What is told of a call that was refused. */
struct cw_refusal {
    uint32_t site; /* index, or CW_SITE_NONE */
    unsigned device, cause;
    uint64_t bytes;
    int code;
    uint32_t count;
};

/* The rest of a line, "cudaMalloc, device 0: 8.0 GiB refused (error 2)", the stack, and why. */
void cw_text_refusal(const struct cw_text *text, const struct cw_refusal *refusal);

/* Where the memory of the device was, without what is nothing: how many parts. */
struct cw_report_part {
    const char *label;
    uint64_t bytes;
};
#define CW_REPORT_PARTS 6
unsigned cw_report_oom_parts(const struct cw_report_oom *oom,
                             struct cw_report_part part[CW_REPORT_PARTS]);

void cw_text_account(const struct cw_text *text, const struct cw_report_oom *oom);

#endif
