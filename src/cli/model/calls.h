/* SPDX-License-Identifier: MIT */
/*
 * The functions of a model's stacks, including inlined ones: each frame is a call, after the calls
 * that were inlined into it, innermost first.
 *
 * Owns its arrays; strings are the model's.
 */
#ifndef CW_CLI_CALLS_H
#define CW_CLI_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "report/model/report_model.h"

struct cw_call {
    const char *function, *file; /* "" if unknown */
    uint32_t line;
    uint32_t module; /* index; UINT32_MAX: none */
    uint64_t offset;
    uint8_t is_python;
    uint8_t is_inlined; /* into the next call */
};

/* The visible part of a stack, innermost first: `count` entries of stack_call. */
struct cw_call_stack {
    uint32_t first, count;
};

struct cw_calls {
    const struct cw_report_model *model;
    struct cw_call *call;
    uint32_t count;
    uint32_t *stack_call;
    struct cw_call_stack *stack; /* by number; 0 is empty */
};

/* 0, or -1 after an out-of-memory message, with nothing to free. */
int cw_calls_init(struct cw_calls *calls, const struct cw_report_model *model);
void cw_calls_free(struct cw_calls *calls);

/* Empty for 0 and for an unknown number. */
const struct cw_call_stack *cw_calls_stack(const struct cw_calls *calls, uint32_t stack);
/* The first call inlined into this one; the call itself if there is none. */
uint32_t cw_calls_first_inlined(const struct cw_calls *calls, uint32_t call);
/* As cw_report_frame_name. */
const char *cw_call_name(const struct cw_calls *calls, uint32_t call, char *buf, size_t cap);

#endif
