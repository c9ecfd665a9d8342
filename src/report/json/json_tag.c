/* SPDX-License-Identifier: MIT */
/* Ranges and marks in the JSON report. See json_tag.h. */
#include "report/json/json_tag.h"

#include "report/snapshot/snapshot_growth.h"
#include "report/snapshot/tag.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

void cw_json_site_tag(struct cw_json *json, const struct cw_snapshot_site *site)
{
    char label[CW_TAG_LABEL_MAX];

    if (cw_tag_label(json->view, site->tag, label, sizeof(label))[0] != '\0')
        cw_json_string(json, "tag", label);
}

/* What was found out about the tag's steps, or NULL. */
static const struct cw_growth_step *find_step(const struct cw_json *json, uint32_t tag)
{
    const struct cw_snapshot_growth *growth = &json->snapshot->growth;

    for (uint32_t i = 0; i < growth->steps; i++)
        if (growth->step[i].tag == tag)
            return &growth->step[i];
    return NULL;
}

static void put_line(struct cw_json *json, const struct cw_growth_step *step)
{
    if (step->has_line) {
        cw_json_decimal(json, "mean_ns", step->mean_ns);
        cw_json_decimal(json, "slope_bytes", step->slope);
        cw_json_decimal(json, "r2", step->r2);
    }
    cw_json_truth(json, "rising", step->is_rising);
}

static void put_steps(struct cw_json *json, uint32_t index, const struct cw_live_tag *tag)
{
    const struct cw_growth_step *step = find_step(json, index);

    cw_json_number(json, "steps", step ? step->steps : 0);
    if (!step)
        return;
    cw_json_number(json, "first_ns", LOAD(tag->first_ns));
    cw_json_number(json, "last_ns", LOAD(tag->last_ns));
    cw_json_number(json, "first_bytes", LOAD(tag->first_bytes));
    cw_json_number(json, "last_bytes", LOAD(tag->last_bytes));
    cw_json_number(json, "least_bytes", LOAD(tag->least_bytes));
    cw_json_number(json, "most_bytes", LOAD(tag->most_bytes));
    put_line(json, step);
}

void cw_json_tags(struct cw_json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_TAG);
    char label[CW_TAG_LABEL_MAX];

    cw_json_open(json, "tags", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_tag *tag = cw_view_tag(json->view, i);

        if (!tag || LOAD(tag->begun) == 0)
            continue;
        cw_json_element(json, '{');
        cw_json_string(json, "tag", cw_tag_label(json->view, i, label, sizeof(label)));
        if (tag->is_pattern) {
            cw_json_key(json, "is_pattern");
            cw_out_string(json->out, "true");
        }
        cw_json_number(json, "begun", LOAD(tag->begun));
        put_steps(json, i, tag);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}
