/* SPDX-License-Identifier: MIT */
/*
 * A model on the command line: its file, flags in place of the file or over it, and what it is to
 * do. Shared by `estimate` and `pick`.
 */
#ifndef CW_CLI_MODEL_REQUEST_H
#define CW_CLI_MODEL_REQUEST_H

#include "cli/estimate/facts.h"
#include "cli/ui/flags.h"

struct cw_model_request {
    const char *path;      /* NULL: none */
    struct cw_shape given; /* by flags */
    uint64_t parameters;   /* by --params */
    struct cw_estimate_load load;
    uint8_t has_shape, has_load; /* some flag of the kind was given */
};

/* What is asked, with all defaults filled in, and the answer. */
struct cw_model_answer {
    struct cw_facts facts; /* a complete shape, unless the estimate is partial */
    struct cw_estimate_load load;
    struct cw_estimate estimate;
    uint8_t is_stored; /* the weights are as the file has them */
};

#define CW_MODEL_FIRST_FLAG 0x200

/* Rows of a command's table: what the model does, and its shape. */
struct cw_flag_group cw_model_load_flags(void);
struct cw_flag_group cw_model_shape_flags(void);
/* 0, or -1 after a message. Flags below CW_MODEL_FIRST_FLAG are not of these tables. */
int cw_model_set_flag(struct cw_model_request *request, int flag, const char *value);

/* The exit status; other than 0 after a message. */
int cw_model_estimate(const struct cw_model_request *request, struct cw_model_answer *answer);
/* No longer contexts are tried: where layers keep a window alone, there is no longest one. */
#define CW_MODEL_LONGEST_MOST (UINT64_C(1) << 24)
/* The longest context for so much memory; 0: none. */
uint64_t cw_model_longest(const struct cw_model_answer *answer, uint64_t memory);

#endif
