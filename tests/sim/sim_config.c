/* SPDX-License-Identifier: MIT */
/* Reads the CUSIM_* environment, once, at the first call. The variables are listed in README.md. */
#include "sim_lazy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CUSIM_OLD
#define DEFAULT_VERSION CUDA_VERSION
#else
#define DEFAULT_VERSION CUSIM_OLD
#endif

static int unit_shift(char letter)
{
    switch (toupper((unsigned char)letter)) {
    case 'K':
        return 10;
    case 'M':
        return 20;
    case 'G':
        return 30;
    case 'T':
        return 40;
    default:
        return 0;
    }
}

bool sim_parse_size(const char *text, size_t *out, const char **end)
{
    char *after;
    unsigned long long value = strtoull(text, &after, 0);
    int shift = unit_shift(*after);

    if (after == text)
        return false;
    *out = (size_t)value << shift;
    *end = after + (shift != 0);
    return true;
}

static size_t size_option(const char *name, size_t fallback)
{
    const char *text = getenv(name), *end;
    size_t value;

    return text && sim_parse_size(text, &value, &end) ? value : fallback;
}

static long number_option(const char *name, long fallback)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 0) : fallback;
}

/* "8G,1G": one size per device, the last one for the rest. */
static void load_memory(struct sim_config *config)
{
    const char *text = getenv("CUSIM_MEMORY");
    size_t size = (size_t)1 << 30;

    for (int i = 0; i < SIM_MAX_DEVICES; i++) {
        if (text && *text && sim_parse_size(text, &size, &text) && *text == ',')
            text++;
        config->memory[i] = size;
    }
}

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

void sim_config_load(void)
{
    struct sim_config *config = &sim.config;
    const char *report = getenv("CUSIM_REPORT"), *addresses = getenv("CUSIM_PROC_ADDRESS");

    sim.is_configured = true;
    config->ndevices = (int)number_option("CUSIM_DEVICES", 2);
    if (config->ndevices > SIM_MAX_DEVICES)
        config->ndevices = SIM_MAX_DEVICES;
    config->driver_version = (int)number_option("CUSIM_DRIVER_VERSION", DEFAULT_VERSION);
    config->context_bytes = size_option("CUSIM_CONTEXT_BYTES", (size_t)16 << 20);
    config->granularity = size_option("CUSIM_GRANULARITY", (size_t)2 << 20);
    config->module_bytes = size_option("CUSIM_MODULE_BYTES", 0);
    /* A control function may have been faster than the environment. */
    if (!config->delay_us)
        config->delay_us = number_option("CUSIM_DELAY_US", 0);
    config->free_waits = number_option("CUSIM_FREE_WAITS", 1);
    if (!config->is_lazy)
        sim_lazy_seed((uint64_t)number_option("CUSIM_LAZY", 0));
    config->is_private = addresses && !strcmp(addresses, "private");
    snprintf(config->report, sizeof config->report, "%s", report ? report : "");
    load_memory(config);
    load_cost(getenv("CUSIM_COST_NS"));
    sim_script_load(getenv("CUSIM_FAIL"));
}
