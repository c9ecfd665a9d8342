/* SPDX-License-Identifier: MIT */
/*
 * Out of memory in words: the refusal, and the account of where the memory was. Needs no snapshot:
 * it is printed in the report and at the moment it happens.
 */
#ifndef CW_REPORT_TEXT_ACCOUNT_H
#define CW_REPORT_TEXT_ACCOUNT_H

#include "report/text/text_put.h"

/* What is told of a call that was refused. */
struct cw_refusal {
    uint32_t site; /* of the layout, 0: not known */
    unsigned device, cause;
    uint64_t bytes;
    int code;
    uint32_t count;
};

/* The rest of a line, "cudaMalloc, device 0: 8.0 GiB refused (error 2)", the stack, and why. */
void cw_text_refusal(const struct cw_text *text, const struct cw_refusal *refusal);

void cw_text_account(const struct cw_text *text, const struct cw_live_oom *oom);
/* Marks the stacks that cw_text_account prints. */
void cw_text_account_want(const struct cw_report_source *source, const struct cw_live_oom *oom);

#endif
