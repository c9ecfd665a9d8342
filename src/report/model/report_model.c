/* SPDX-License-Identifier: MIT */
/* Access to a model. See report_model.h. */
#include "report/model/report_model.h"

#include <string.h>

#include "base/out.h"
#include "live/view.h"

const struct cw_report_stack *cw_report_stack(const struct cw_report_model *model, uint32_t stack)
{
    return stack != 0 && stack <= model->stacks ? &model->stack[stack - 1] : NULL;
}

const struct cw_report_frame *cw_report_shown_frame(const struct cw_report_model *model,
                                                    const struct cw_report_stack *stack,
                                                    uint32_t at)
{
    return &model->frame[model->stack_frame[stack->first + stack->shown_first + at]];
}

const char *cw_report_module_path(const struct cw_report_model *model, uint32_t module)
{
    return module != 0 && module <= model->modules ? model->module[module - 1].path : "";
}

const char *cw_report_module_name(const struct cw_report_model *model, uint32_t module)
{
    const char *path = cw_report_module_path(model, module);
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

const char *cw_report_frame_name(const struct cw_report_model *model,
                                 const struct cw_report_frame *frame, char *buf, size_t cap)
{
    const char *module = cw_report_module_name(model, frame->module);

    if (frame->function)
        return frame->function;
    if (module[0] == '\0')
        return "?";
    cw_format(buf, cap, "%s+0x%jx", module, (uintmax_t)frame->offset);
    return buf;
}

const char *cw_report_tag_label(const struct cw_report_model *model, uint32_t tag)
{
    return tag != 0 && tag <= model->tags ? model->tag[tag - 1].label : "";
}

const struct cw_report_rule *cw_report_rule_at(const struct cw_report_model *model, uint32_t id)
{
    for (uint32_t i = 0; i < model->rules; i++)
        if (model->rule[i].id == id)
            return &model->rule[i];
    return NULL;
}

uint32_t cw_report_site_home(const struct cw_snapshot_site *site)
{
    unsigned home;

    if (site->kind >= CW_KIND_COUNT) /* from a newer version */
        return site->device;
    home = cw_kind_home(site->kind, site->device);
    return home < CW_DEVICES ? home : CW_SITE_NONE;
}

int cw_report_has_device(const struct cw_report_model *model, uint32_t device)
{
    const struct cw_snapshot *snapshot = &model->snapshot;

    return snapshot->device[device].seen || snapshot->pool.device[device].used ||
           snapshot->pressure.device[device].used || snapshot->growth.timeline[device].has_peaks ||
           snapshot->growth.timeline[device].idle.is_steady;
}

static int is_error(const struct cw_report_event *event)
{
    return event->type == CW_EVENT_INVALID_FREE || event->type == CW_EVENT_FATAL;
}

void cw_report_find_empty(struct cw_report_model *model)
{
    struct cw_snapshot_site *site = model->snapshot.site;
    uint32_t sites = model->snapshot.sites, full = 0;

    for (uint32_t i = 0; i < sites; i++)
        site[i].is_empty = (site[i].allocs | site[i].live_blocks | site[i].reclaimed |
                            site[i].failed | site[i].oom) == 0;
    for (uint32_t i = 0; i < model->events; i++) {
        const struct cw_report_event *event = &model->event[i];

        if (is_error(event) && event->site < sites)
            site[event->site].is_empty = 0;
        if (is_error(event) && event->first_site < sites)
            site[event->first_site].is_empty = 0;
        if (is_error(event) && event->alloc_site < sites)
            site[event->alloc_site].is_empty = 0;
    }
    for (uint32_t i = 0; i < sites; i++)
        full += !site[i].is_empty;
    if (model->sites_of < full)
        model->sites_of = full;
}

uint32_t cw_report_held(const struct cw_report_model *model, uint32_t *site, uint32_t max)
{
    const struct cw_snapshot *snapshot = &model->snapshot;
    uint32_t count = 0;

    for (uint32_t i = 0; i < snapshot->sites; i++) {
        uint32_t at = count < max ? count : max;

        if (snapshot->site[i].held_until_exit == 0)
            continue;
        for (; at > 0 &&
               snapshot->site[site[at - 1]].held_until_exit < snapshot->site[i].held_until_exit;
             at--)
            if (at < max)
                site[at] = site[at - 1];
        if (at < max)
            site[at] = i;
        count++;
    }
    return count;
}

/* Calls without a site are counted only by cause. */
uint64_t cw_report_oom_calls(const struct cw_report_model *model)
{
    uint64_t by_kind = 0, by_cause = 0;

    for (unsigned i = 0; i < CW_KIND_COUNT; i++)
        by_kind += model->snapshot.kind[i].oom;
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        by_cause += model->snapshot.pressure.all.refused[i];
    return by_kind > by_cause ? by_kind : by_cause;
}

void cw_report_note_end(struct cw_report_model *model)
{
    model->is_alive = strcmp(model->process.end, CW_END_RUNNING) == 0;
    model->is_killed = strcmp(model->process.end, CW_END_KILLED) == 0;
}

int cw_report_has_leaks(const struct cw_report_model *model)
{
    return !model->is_alive && !model->is_killed;
}

struct cw_snapshot_summary cw_report_summary(const struct cw_report_model *model)
{
    struct cw_snapshot_summary summary = model->snapshot.summary;

    if (!cw_report_has_leaks(model))
        summary.leaked_bytes = summary.leaked_blocks = summary.leak_sites = 0;
    return summary;
}
