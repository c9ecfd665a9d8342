/* SPDX-License-Identifier: MIT */
/* Reads the CUSIM_* environment, once, at the first call. The variables are listed in README.md. */
#include "sim_lazy.h"
#include "sim_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CUSIM_VERSION
#define CUSIM_VERSION CUDA_VERSION
#endif

static void load_cost(const char *text)
{
    while (text && *text) {
        size_t length = strcspn(text, ",");
        const char *colon = memchr(text, ':', length);
        char name[128];

        if (!colon) {
            cusim_set_cost_ns(NULL, strtoull(text, NULL, 0));
        } else {
            snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
            cusim_set_cost_ns(name, strtoull(colon + 1, NULL, 0));
        }
        text += length + (text[length] == ',');
    }
}

static void load_memory(struct sim_config *config)
{
    size_t memory[SIM_MAX_DEVICES];

    sim_world_memory(memory);
    for (int i = 0; i < config->ndevices; i++)
        config->memory[i] = memory[config->number[i]];
}

void sim_config_load(void)
{
    struct sim_config *config = &sim.config;
    const char *report = getenv("CUSIM_REPORT"), *addresses = getenv("CUSIM_PROC_ADDRESS");

    sim.is_configured = true;
    config->ndevices = sim_world_visible(config->number);
    config->driver_version = (int)sim_option_number("CUSIM_DRIVER_VERSION", CUSIM_VERSION);
    config->context_bytes = sim_option_size("CUSIM_CONTEXT_BYTES", (size_t)16 << 20);
    config->granularity = sim_option_size("CUSIM_GRANULARITY", (size_t)2 << 20);
    config->alloc_granularity = sim_option_size("CUSIM_ALLOC_GRANULARITY", SIM_UNIT);
    config->module_bytes = sim_option_size("CUSIM_MODULE_BYTES", 0);
    config->stream_bytes = sim_option_size("CUSIM_STREAM_BYTES", 0);
    config->graph_bytes = sim_option_size("CUSIM_GRAPH_BYTES", 0);
    config->lazy_load_bytes = sim_option_size("CUSIM_LAZY_LOAD_BYTES", 0);
    config->has_peers = sim_option_number("CUSIM_PEERS", 1) != 0;
    config->has_vmm = sim_option_number("CUSIM_VMM", 1) != 0;
    config->is_managed = sim_option_number("CUSIM_MANAGED", 1) != 0;
    config->is_integrated = sim_option_number("CUSIM_INTEGRATED", 0) != 0;
    /* A control function may have been faster than the environment. */
    if (!config->delay_us)
        config->delay_us = sim_option_number("CUSIM_DELAY_US", 0);
    config->ends_own = sim_option_number("CUSIM_THREAD_STREAMS_END", 1) != 0;
    config->has_sites = sim_option_number("CUSIM_SITES", 0) != 0;
    config->free_waits = sim_option_number("CUSIM_FREE_WAITS", 1);
    config->free_waits_from = sim_option_size("CUSIM_FREE_WAITS_FROM", 0);
    if (!config->is_lazy)
        sim_lazy_seed((uint64_t)sim_option_number("CUSIM_LAZY", 0));
    config->is_private = addresses && !strcmp(addresses, "private");
    snprintf(config->report, sizeof config->report, "%s", report ? report : "");
    load_memory(config);
    sim_share_open();
    load_cost(getenv("CUSIM_COST_NS"));
    sim_script_load(getenv("CUSIM_FAIL"));
}
