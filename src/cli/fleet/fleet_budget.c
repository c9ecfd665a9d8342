/* SPDX-License-Identifier: MIT */
/*
 * The budgets of a process, from one refresh. See fleet.h.
 *
 * A budget's pattern never changes, so it is read once. What is live is the sum over the sites of
 * the tags that it counts.
 */
#include "cli/fleet/fleet.h"

#include <stdlib.h>
#include <string.h>

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static int is_named(const struct cw_fleet_process *process, const char *pattern)
{
    for (uint32_t i = 0; i < process->budgets; i++)
        if (process->budget[i].pattern != NULL && strcmp(process->budget[i].pattern, pattern) == 0)
            return 1;
    return 0;
}

int cw_fleet_has_new_budget(const struct cw_fleet_process *process)
{
    const struct cw_live_budget *from = cw_view_header(&process->look.view)->budget;

    return process->budgets < CW_BUDGETS && LOAD(from[process->budgets].pattern) != 0;
}

int cw_fleet_name_budgets(struct cw_fleet_process *process)
{
    const struct cw_view *view = &process->look.view;
    const struct cw_live_budget *from = cw_view_header(view)->budget;

    for (; process->budgets < CW_BUDGETS && LOAD(from[process->budgets].pattern) != 0;
         process->budgets++) {
        const char *pattern = cw_view_text(view, LOAD(from[process->budgets].pattern));
        char **name = &process->budget[process->budgets].pattern;

        *name = is_named(process, pattern) ? NULL : strdup(pattern);
        if (*name == NULL && !is_named(process, pattern))
            return -1;
    }
    return 0;
}

static void add_live(struct cw_fleet_process *process)
{
    const struct cw_view *view = &process->look.view;
    uint32_t count = cw_view_count(view, CW_TABLE_SITE);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_site *site = cw_view_site(view, i);
        const struct cw_live_tag *tag =
            site != NULL && site->tag != 0 ? cw_view_tag(view, site->tag) : NULL;
        uint32_t number = tag != NULL ? LOAD(tag->budget) : 0;
        struct cw_site_sums sums;

        if (number == 0 || number > process->budgets ||
            cw_kind_counted(site->kind) != CW_COUNTED_DEVICE)
            continue;
        cw_view_site_sums(site, &sums);
        process->budget[number - 1].live += sums.live_bytes;
    }
}

void cw_fleet_read_budgets(struct cw_fleet_process *process)
{
    const struct cw_live_budget *from = cw_view_header(&process->look.view)->budget;

    for (uint32_t i = 0; i < process->budgets; i++) {
        struct cw_fleet_budget *budget = &process->budget[i];

        budget->is_set = budget->pattern != NULL && LOAD(from[i].is_set) != 0;
        budget->refuses = LOAD(from[i].refuses) != 0;
        budget->bytes = LOAD(from[i].bytes);
        budget->peak = LOAD(from[i].peak_bytes);
        budget->refused = LOAD(from[i].refused);
        budget->exceeded = LOAD(from[i].exceeded);
        budget->live = 0;
    }
    if (process->budgets != 0)
        add_live(process);
}

double cw_fleet_fullest_budget(const struct cw_fleet_process *process)
{
    double fullest = -1;

    for (uint32_t i = 0; i < process->budgets; i++) {
        const struct cw_fleet_budget *budget = &process->budget[i];
        double share = (double)budget->live / (double)(budget->bytes != 0 ? budget->bytes : 1);

        if (budget->is_set && share > fullest)
            fullest = share;
    }
    return fullest;
}
