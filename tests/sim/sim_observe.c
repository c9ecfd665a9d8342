/* SPDX-License-Identifier: MIT */
/* Tells somebody, the simulated CUPTI, of all memory that comes and goes. */
#include "sim_observe.h"

static void (*observer)(const struct cusim_event *event); /* under sim.lock */

void sim_observe(const struct cusim_event *event)
{
    if (observer)
        observer(event);
}

void sim_observe_set(void (*seen)(const struct cusim_event *event))
{
    observer = seen;
}
