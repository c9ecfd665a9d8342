/* SPDX-License-Identifier: MIT */
/* An estimate as text and as JSON. */
#ifndef CW_CLI_ESTIMATE_PRINT_H
#define CW_CLI_ESTIMATE_PRINT_H

#include <stdio.h>

#include "cli/devices/devices.h"
#include "cli/estimate/model_request.h"

#define CW_MEMORIES_MAX 16

/* What it is held against: sizes, then devices of this machine by what is free. */
struct cw_estimate_against {
    uint64_t memory[CW_MEMORIES_MAX];
    unsigned memories;
    const struct cw_devices *devices;
};

void cw_estimate_print_text(FILE *to, const struct cw_model_answer *answer,
                            const struct cw_estimate_against *against);
/* 0, or -1 with errno: it could not be written. */
int cw_estimate_print_json(FILE *to, const struct cw_model_request *request,
                           const struct cw_model_answer *answer,
                           const struct cw_estimate_against *against);

#endif
