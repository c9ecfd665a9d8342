/* SPDX-License-Identifier: MIT */
/*
 * The last step of reading a report in JSON, whose records may come in any order: converts the
 * report's record numbers to the model's, and derives from the values what the library derives from
 * its layout. See json_place.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/model/json_place.h"

#define SCHEMA_FAMILY "cuwarden-report/"
#define SCHEMA        SCHEMA_FAMILY "1"
#define CALL_SIZE     16 /* of a line, besides names */
#define GROWTH        UINT64_C(64)
#define GROWTH_MIN    (UINT64_C(64) << 20)

/* A later version has the same name and a greater number. */
static void check_schema(struct cw_json_storage *self)
{
    const char *schema = self->model.schema ? self->model.schema : "";

    if (strcmp(schema, SCHEMA) == 0)
        return;
    if (strncmp(schema, SCHEMA_FAMILY, strlen(SCHEMA_FAMILY)) == 0)
        cw_json_fail(self, "its \"schema\" is not " SCHEMA " but %.40s: use a newer cuwarden",
                     schema);
    else
        cw_json_fail(self, "its \"schema\" is not " SCHEMA "%s%.40s", schema[0] ? " but " : "",
                     schema);
}

/* Read as zeros, what is not there would be a program without leaks. */
static void check_complete(struct cw_json_storage *self)
{
    if (self->lacking)
        cw_json_fail(self, "its %s%s\"%s\" is missing", self->lacking_in ? self->lacking_in : "",
                     self->lacking_in ? "'s " : "", self->lacking);
}

/* ---- numbers ---- */

/* Sites and frames have indices, stacks and modules numbers that begin at 1. */
static void link_number(struct cw_json_storage *self, unsigned table, uint32_t *number)
{
    uint32_t place = cw_json_numbers_find(&self->number[table], *number);

    if (table == CW_JSON_FRAMES && place == CW_JSON_NO_PLACE)
        cw_json_fail(self, "a stack refers to a missing frame");
    if (table == CW_JSON_STACKS || table == CW_JSON_MODULES)
        *number = place == CW_JSON_NO_PLACE ? 0 : place + 1;
    else
        *number = place;
}

static void link_record(struct cw_json_storage *self, const struct cw_json_field *row, char *base);

static void link_list(struct cw_json_storage *self, const struct cw_json_field *row, char *first,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char *item = first + (size_t)i * row->size;

        if (row->of != CW_JSON_RECORD_NONE)
            link_record(self, cw_json_record[row->of].field, item);
        else if (row->plain == CW_JSON_REF)
            link_number(self, row->table, (uint32_t *)item);
    }
}

static char *list_at(const void *where)
{
    char *list;

    memcpy(&list, where, sizeof(list));
    return list;
}

/* Links slices with the record that has them, and the model's lists by their own rows. */
static void link_record(struct cw_json_storage *self, const struct cw_json_field *row, char *base)
{
    for (; row->key; row++) {
        char *value = base + row->offset;
        uint32_t *slice = (uint32_t *)value;

        if (row->type == CW_JSON_REF)
            link_number(self, row->table, (uint32_t *)value);
        else if (row->type == CW_JSON_OBJECT && !row->each)
            link_record(self, cw_json_record[row->of].field, value);
        else if (row->type == CW_JSON_LIST)
            link_list(self, row, list_at(value), *(uint32_t *)(base + row->other));
        else if (row->type == CW_JSON_SLICE && slice[1] > 0)
            link_list(self, row,
                      list_at((char *)&self->model + row->pool) + (size_t)slice[0] * row->size,
                      slice[1]);
        else if (row->type == CW_JSON_ARRAY && row->other != 0)
            link_list(self, row, value, *(uint32_t *)(base + row->other));
    }
}

/* ---- the process ---- */

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* The arguments, separated by spaces. */
static const char *join(struct cw_json_storage *self)
{
    const struct cw_process_facts *process = &self->model.process;
    size_t size = 1, at = 0;
    char *command;

    for (uint32_t i = 0; i < process->argc; i++)
        size += strlen(process->argv[i]) + 1;
    command = cw_pages_take(&self->pages, size);
    for (uint32_t i = 0; command && i < process->argc; i++)
        at += (size_t)snprintf(command + at, size - at, "%s%s", i > 0 ? " " : "", process->argv[i]);
    return command && at > 0 ? command : process->exe;
}

static void finish_process(struct cw_json_storage *self)
{
    struct cw_process_facts *process = &self->model.process;

    self->model.tool = or_empty(self->model.tool);
    self->model.version = or_empty(self->model.version);
    self->model.audit.why = or_empty(self->model.audit.why);
    process->exe = or_empty(process->exe);
    process->cwd = or_empty(process->cwd);
    process->host = or_empty(process->host);
    process->rank = or_empty(process->rank);
    process->end = process->end && process->end[0] ? process->end : "unknown";
    process->command = join(self);
    cw_report_note_end(&self->model);
}

/* ---- devices ---- */

static void finish_devices(struct cw_snapshot *snapshot)
{
    uint64_t peak_live[CW_DEVICES];

    for (unsigned i = 0; i < CW_DEVICES; i++) {
        struct cw_snapshot_device *device = &snapshot->device[i];
        struct cw_snapshot_pool_device *pool = &snapshot->pool.device[i];
        struct cw_snapshot_pressure_device *pressure = &snapshot->pressure.device[i];

        device->ordinal = pool->ordinal = pressure->ordinal = (uint8_t)i;
        snapshot->growth.timeline[i].ordinal = (uint8_t)i;
        snapshot->devices += device->seen && i != CW_DEVICE_HOST;
        peak_live[i] = device->peak_bytes;
        for (unsigned level = 0; level < CW_LEVEL_COUNT; level++)
            pressure->time_ns += pressure->level_ns[level];
        for (unsigned rung = 0; rung < CW_RUNG_COUNT; rung++)
            pressure->rung[rung].rung = (uint8_t)rung;
        cw_snapshot_pressure_add(&snapshot->pressure.all, pressure);
    }
    cw_snapshot_pool_add_up(&snapshot->pool, peak_live);
}

/* ---- growth ---- */

/* A series without a number for each moment is dropped. */
static void finish_rows(struct cw_snapshot_growth *growth)
{
    for (uint32_t i = 0; i < growth->rows; i++)
        if (growth->row[i].count != growth->moments)
            growth->row[i].count = 0;
}

/* Tags are numbered as their list has them, and not by who names one first; those that it does not
 * have come last. */
static void finish_tags(struct cw_json_storage *self)
{
    struct cw_report_model *model = &self->model;
    struct cw_report_tag *tag = cw_pages_take(&self->pages, (model->tags + 1) * sizeof(*tag));
    uint32_t *number = cw_pages_take(&self->pages, (model->tags + 1) * sizeof(*number));
    uint32_t next = 0;

    if (!tag || !number) {
        cw_json_fail(self, "it does not fit into memory");
        return;
    }
    for (uint32_t i = 0; i < self->tag_orders; i++)
        if (number[self->tag_order[i]] == 0)
            number[self->tag_order[i]] = ++next;
    for (uint32_t i = 1; i <= model->tags; i++) {
        if (number[i] == 0)
            number[i] = ++next;
        tag[number[i] - 1] = model->tag[i - 1];
    }
    for (uint32_t i = 0; i < model->tags; i++)
        model->tag[i] = tag[i];
    for (uint32_t i = 0; i < model->snapshot.sites; i++)
        model->snapshot.site[i].tag = (uint16_t)number[model->snapshot.site[i].tag];
    for (uint32_t i = 0; i < model->snapshot.growth.rows; i++)
        model->snapshot.growth.row[i].tag = number[model->snapshot.growth.row[i].tag];
}

static void finish_steps(struct cw_json_storage *self)
{
    struct cw_snapshot_growth *growth = &self->model.snapshot.growth;

    for (uint32_t i = 0; i < self->model.tags; i++) {
        const struct cw_report_tag *tag = &self->model.tag[i];
        struct cw_growth_step *step =
            tag->steps > 0
                ? cw_json_append(self, &growth->step, &growth->steps, sizeof(*growth->step))
                : NULL;

        if (!step)
            continue;
        *step = (struct cw_growth_step){.tag = i + 1,
                                        .has_line = tag->has_line,
                                        .is_rising = tag->is_rising,
                                        .steps = tag->steps,
                                        .slope = tag->slope,
                                        .r2 = tag->r2,
                                        .growth = tag->slope * ((double)tag->steps - 1),
                                        .mean_ns = tag->mean_ns,
                                        .first_bytes = tag->first_bytes,
                                        .last_bytes = tag->last_bytes};
        if (step->is_rising)
            cw_snapshot_note_rising(growth, growth->steps - 1);
    }
}

/* Drops entries with unknown sites. */
static void finish_lists(struct cw_report_model *model)
{
    struct cw_snapshot_growth *growth = &model->snapshot.growth;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < growth->suspects; i++)
        if (cw_snapshot_growth_row(&model->snapshot, growth->suspect[i]))
            growth->suspect[kept++] = growth->suspect[i];
    growth->suspects = kept;
    kept = 0;
    for (uint32_t i = 0; i < growth->regrowths; i++)
        if (cw_report_site(model, growth->regrowth[i].site))
            growth->regrowth[kept++] = growth->regrowth[i];
    growth->regrowths = kept;
    kept = 0;
    for (uint32_t i = 0; i < model->olds; i++)
        if (cw_report_site(model, model->old[i].site))
            model->old[kept++] = model->old[i];
    model->olds = kept;
}

/* ---- sites and stacks ---- */

static void finish_sites(struct cw_snapshot *snapshot)
{
    snapshot->now_ns = snapshot->duration_ns;
    for (uint32_t i = 0; i < snapshot->sites; i++) {
        struct cw_snapshot_site *site = &snapshot->site[i];

        site->has_age = site->has_age && site->live_blocks > 0;
        if (site->has_age && site->oldest_age_ns < snapshot->now_ns)
            site->oldest_ns = snapshot->now_ns - site->oldest_age_ns;
        if (site->kind < CW_KIND_COUNT)
            snapshot->kind[site->kind].oom += site->oom;
    }
}

/* Limits the visible part to the stack, and to the maximum depth. */
static void finish_stacks(struct cw_report_model *model)
{
    for (uint32_t i = 0; i < model->stacks; i++) {
        struct cw_report_stack *stack = &model->stack[i];

        if (stack->shown == 0 || (uint64_t)stack->shown_first + stack->shown > stack->count) {
            stack->shown_first = 0;
            stack->shown = stack->count;
        }
        if (stack->shown > CW_DEPTH_MAX)
            stack->shown = CW_DEPTH_MAX;
    }
}

/* ---- what it grows to ----  A frame is written once and named often, with all functions that were
 * inlined into it: a small file can stand for a text that fills the disk. */

static uint64_t text_size(const char *text)
{
    return (text ? strlen(text) : 0) + CALL_SIZE;
}

/* The size in text of each frame, or NULL without frames or memory. */
static uint64_t *measure_frames(const struct cw_report_model *model)
{
    uint64_t *size = model->frames > 0 ? calloc(model->frames, sizeof(*size)) : NULL;

    for (uint32_t i = 0; size && i < model->frames; i++) {
        const struct cw_report_frame *frame = &model->frame[i];

        size[i] = text_size(frame->function) + text_size(frame->file);
        for (uint32_t k = 0; k < frame->inlines; k++) {
            const struct cw_report_place *place = &model->place[frame->inlined + k];

            size[i] += text_size(place->function) + text_size(place->file);
        }
    }
    return size;
}

static uint64_t measure_stack(const struct cw_report_model *model, uint32_t number,
                              const uint64_t *size)
{
    const struct cw_report_stack *stack = &model->stack[number - 1];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < stack->shown; i++)
        sum += size[cw_report_shown_frame(model, stack, i) - model->frame];
    return sum;
}

/* Sites have their final stacks: numbers that begin at 1. */
static void check_expansion(struct cw_json_storage *self)
{
    const struct cw_report_model *model = &self->model;
    uint64_t *size = measure_frames(model), sum = 0;
    uint64_t most = GROWTH_MIN + GROWTH * self->bytes;

    for (uint32_t i = 0; size && i < model->snapshot.sites && sum <= most; i++) {
        uint32_t stack = model->snapshot.site[i].stack;

        if (stack != 0 && stack <= model->stacks)
            sum += measure_stack(model, stack, size);
    }
    free(size);
    if (sum > most)
        cw_json_fail(self, "its stacks are more than %ju MiB of text, and it has %ju KiB",
                     (uintmax_t)(most >> 20), (uintmax_t)(self->bytes >> 10));
}

void cw_json_finish(struct cw_json_storage *self)
{
    struct cw_report_model *model = &self->model;

    check_schema(self);
    check_complete(self);
    if (self->failed)
        return;
    link_record(self, cw_json_record[CW_JSON_RECORD_report].field, (char *)model);
    finish_process(self);
    finish_stacks(model);
    if (!self->failed)
        check_expansion(self);
    finish_sites(&model->snapshot);
    finish_devices(&model->snapshot);
    if (model->snapshot.growth.end_ns == 0) /* the report does not have it */
        model->snapshot.growth.end_ns = model->snapshot.duration_ns;
    finish_rows(&model->snapshot.growth);
    finish_tags(self);
    finish_steps(self);
    finish_lists(model);
    cw_report_find_empty(model);
}
