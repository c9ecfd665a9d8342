/* SPDX-License-Identifier: MIT */
/* Scripted failures: rules that make chosen calls of a function fail.
 *
 *   SYMBOL[:nth=N][:every=N][:from=N][:code=C][:sticky=C][:times=N][:at=SITE] ; ...
 *
 * nth fails the Nth call counted from the rule's birth, every each Nth, from the Nth and all later
 * ones; with none of them all calls fail. code is returned (2 if absent); sticky breaks the current
 * context for good as well. at: only calls that return to this place count (sim_site.c). SYMBOL may
 * end in `*`. Rules are guarded by sim.lock.
 */
#include "sim_script.h"
#include "sim_site.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_rule {
    struct sim_rule *next;
    unsigned long seen, nth, every, from, times, fired;
    CUresult code, sticky;
    char site[SIM_SITE]; /* "": any */
};

static void set_key(struct sim_rule *rule, const char *key, unsigned long value)
{
    const struct {
        const char *name;
        unsigned long *slot;
    } keys[] = {
        {"nth", &rule->nth},
        {"every", &rule->every},
        {"from", &rule->from},
        {"times", &rule->times},
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i].name, key))
            *keys[i].slot = value;
    if (!strcmp(key, "code"))
        rule->code = (CUresult)value;
    if (!strcmp(key, "sticky"))
        rule->sticky = (CUresult)value;
}

static void add_rule(const char *pattern, const struct sim_rule *model)
{
    bool is_known = false;

    for (unsigned i = 0; i < sim_nrows; i++) {
        struct sim_rule *rule;

        if (fnmatch(pattern, sim_rows[i].symbol, 0))
            continue;
        is_known = true;
        rule = malloc(sizeof *rule);
        if (!rule)
            return;
        *rule = *model;
        rule->next = sim_tallies[i].rules;
        sim_tallies[i].rules = rule;
    }
    if (!is_known)
        fprintf(stderr, "cusim: CUSIM_FAIL names unknown function %s\n", pattern);
}

static void load_rule(char *text)
{
    struct sim_rule model = {.code = CUDA_SUCCESS};
    char *rest = NULL, *symbol = strtok_r(text, ": \n\t", &rest), *field;

    if (!symbol)
        return;
    while ((field = strtok_r(NULL, ": \n\t", &rest))) {
        char *equals = strchr(field, '=');

        if (!equals)
            continue;
        *equals = '\0';
        if (!strcmp(field, "at"))
            snprintf(model.site, sizeof model.site, "%s", equals + 1);
        set_key(&model, field, strtoul(equals + 1, NULL, 0));
    }
    if (model.code == CUDA_SUCCESS)
        model.code = model.sticky ? model.sticky : CUDA_ERROR_OUT_OF_MEMORY;
    add_rule(symbol, &model);
}

void sim_script_load(const char *text)
{
    char *copy = text ? strdup(text) : NULL, *rest = NULL;

    if (!copy)
        return;
    for (char *rule = strtok_r(copy, ";", &rest); rule; rule = strtok_r(NULL, ";", &rest))
        load_rule(rule);
    free(copy);
}

void sim_script_reset(void)
{
    for (unsigned i = 0; i < sim_nrows; i++) {
        while (sim_tallies[i].rules) {
            struct sim_rule *rule = sim_tallies[i].rules;

            sim_tallies[i].rules = rule->next;
            free(rule);
        }
    }
}

static bool is_from(const char *site)
{
    char here[SIM_SITE];

    if (!*site)
        return true;
    sim_site_name(sim_thread()->caller, here);
    return !strcmp(here, site);
}

static bool fires(struct sim_rule *rule)
{
    if (!is_from(rule->site))
        return false;
    rule->seen++;
    if (rule->times && rule->fired >= rule->times)
        return false;
    if (rule->nth)
        return rule->seen == rule->nth;
    if (rule->every)
        return rule->seen % rule->every == 0;
    return rule->seen >= rule->from;
}

CUresult sim_script_check(unsigned index)
{
    CUresult status = CUDA_SUCCESS;

    for (struct sim_rule *rule = sim_tallies[index].rules; rule; rule = rule->next) {
        struct sim_context *ctx = sim_context_current();

        if (!fires(rule))
            continue;
        rule->fired++;
        sim_tallies[index].failed++;
        if (rule->sticky && ctx)
            ctx->sticky = rule->sticky;
        status = rule->code;
    }
    return status;
}
