/* SPDX-License-Identifier: MIT */
/*
 * What the pool's soundness rests on, asked of a real driver by doing it. Each fact is a function
 * and a row; work that goes on for sure is a host function in a stream, which lasts until it is
 * told to end, so that no kernel has to be brought along.
 */
#ifndef CW_CLI_GPU_FACTS_H
#define CW_CLI_GPU_FACTS_H

#include <stddef.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/gpu_driver.h"

struct cw_gpu_fact {
    enum cw_verdict verdict;
    char text[256];
    const char *way_out; /* NULL: none is needed */
};

/* How many there are; the context is current. Fact i, asked now: it may end the process. */
size_t cw_gpu_facts(void);
const char *cw_gpu_fact_name(size_t i);
void cw_gpu_fact_ask(const struct cw_gpu_driver *driver, size_t i, struct cw_gpu_fact *out);

#endif
