/* SPDX-License-Identifier: MIT */
/*
 * What the records of a report in JSON refer to: modules, frames, stacks and sites by numbers of
 * the report, devices by their ordinals. Linked once all of it is read, whatever stood first.
 */
#include "cli/model/model_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

void cw_reader_put_id(struct cw_reader *self, struct by_id *map, uint32_t id, size_t index)
{
    uint32_t **page;

    if (id >= ID_MAX) {
        cw_reader_fail(self, "a number is out of range");
        return;
    }
    page = &map->page[id / ID_PAGE];
    if (!*page)
        *page = calloc(ID_PAGE, sizeof(**page));
    if (!*page) {
        cw_reader_fail(self, "it does not fit into memory");
        return;
    }
    (*page)[id % ID_PAGE] = (uint32_t)index + 1;
}

static uint32_t get_id(const struct by_id *map, uint32_t id)
{
    const uint32_t *page = id < ID_MAX ? map->page[id / ID_PAGE] : NULL;

    return page && page[id % ID_PAGE] != 0 ? page[id % ID_PAGE] - 1 : CW_MODEL_NONE;
}

void cw_reader_free_ids(struct by_id *map)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(map->page); i++)
        free(map->page[i]);
}

/* ---- stacks ---- */

/* With those that are inlined into it in front of it. */
static void show_frame(struct cw_reader *self, uint32_t id)
{
    uint32_t frame = get_id(&self->frames, id);

    if (frame == CW_MODEL_NONE) {
        cw_reader_fail(self, "a stack names a frame that is not there");
        return;
    }
    for (uint32_t at = frame - self->inlined_of[frame]; at <= frame; at++) {
        uint32_t *entry =
            cw_reader_append(self, &self->model->stack_frame, &self->stack_frame, sizeof(*entry));

        if (entry)
            *entry = at;
    }
}

static void link_stacks(struct cw_reader *self)
{
    for (size_t i = 0; i < self->stack.count && !self->failed; i++) {
        struct cw_model_stack *stack = &self->model->stack[i];
        struct cw_model_stack ids = *stack;

        stack->first = (uint32_t)self->stack_frame.count;
        for (uint32_t k = 0; k < ids.count && !self->failed; k++)
            show_frame(self, self->stack_id[ids.first + k]);
        stack->count = (uint32_t)self->stack_frame.count - stack->first;
    }
}

/* ---- sites, and what belongs to one ---- */

static void link_sites(struct cw_reader *self)
{
    struct cw_model *model = self->model;
    uint64_t now_ns = model->process.duration_ns;

    for (size_t i = 0; i < self->site.count; i++) {
        struct cw_model_site *site = &model->site[i];
        uint64_t age_ns = site->oldest_ns;

        site->stack = get_id(&self->stacks, site->stack);
        site->owner = get_id(&self->modules, site->owner);
        site->has_age = site->live.count > 0 && age_ns != NO_AGE;
        site->oldest_age_ns = site->has_age ? age_ns : 0;
        site->oldest_ns = site->live.count > 0 && age_ns < now_ns ? now_ns - age_ns : 0;
    }
    for (size_t i = 0; i < self->block.count; i++)
        model->block[i].site = get_id(&self->sites, model->block[i].site);
    for (size_t i = 0; i < self->event.count; i++) {
        model->event[i].site = get_id(&self->sites, model->event[i].site);
        model->event[i].first_site = get_id(&self->sites, model->event[i].first_site);
    }
    for (size_t i = 0; i < self->old.count; i++)
        model->old[i].site = get_id(&self->sites, model->old[i].site);
    for (size_t i = 0; i < self->oom.count; i++)
        model->oom[i].site = get_id(&self->sites, model->oom[i].site);
    for (size_t i = 0; i < self->holder.count; i++)
        model->holder[i].site = get_id(&self->sites, model->holder[i].site);
    for (size_t i = 0; i < self->regrowth.count; i++)
        model->regrowth[i].site = get_id(&self->sites, model->regrowth[i].site);
    for (size_t i = 0; i < self->suspect.count; i++)
        model->suspect[i] = get_id(&self->sites, model->suspect[i]);
}

/* Of calls that are no allocations. */
static int is_error(const struct cw_model_event *event)
{
    return strcmp(event->type, "invalid-free") == 0 || strcmp(event->type, "fatal") == 0;
}

/* A report that was made of another says how many that one had. */
static void find_empty(struct cw_reader *self)
{
    struct cw_model *model = self->model;
    uint32_t full = 0;

    for (size_t i = 0; i < self->site.count; i++) {
        struct cw_model_site *site = &model->site[i];

        site->is_empty = site->total.count + site->live.count + site->reclaimed.count == 0 &&
                         site->failed + site->oom == 0;
    }
    for (size_t i = 0; i < self->event.count; i++) {
        if (!is_error(&model->event[i]))
            continue;
        if (model->event[i].site < self->site.count)
            model->site[model->event[i].site].is_empty = 0;
        if (model->event[i].first_site < self->site.count)
            model->site[model->event[i].first_site].is_empty = 0;
    }
    for (size_t i = 0; i < self->site.count; i++)
        full += !model->site[i].is_empty;
    if (model->sites_of < full)
        model->sites_of = full;
}

/* ---- devices ---- */

static void link_device(struct cw_model_device *device, const struct cw_reader_device *about)
{
    if (about->pool.of.is_there) {
        device->pool = about->pool.of;
        device->pool_hits = about->pool.hits;
        device->pool_misses = about->pool.misses;
        device->ooms = about->pool.ooms;
        device->first_bucket = about->pool.first_bucket;
        device->buckets = about->pool.buckets;
    }
    if (about->pressure.of.is_there) {
        device->pressure = about->pressure.of;
        device->level = about->pressure.level;
        device->limit = about->pressure.limit;
        device->min_free = about->pressure.min_free;
    }
    device->rise = about->rise;
    device->first_point = about->first_point;
    device->points = about->points;
}

static int compare_ordinals(const void *a, const void *b)
{
    const struct cw_model_device *x = a, *y = b;

    return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

struct cw_reader_device *cw_reader_about(struct cw_reader *self, uint32_t ordinal)
{
    return ordinal < CW_ARRAY_LEN(self->about) ? &self->about[ordinal] : NULL;
}

/* Those of which only a part of the report tells. */
static void add_unlisted(struct cw_reader *self)
{
    for (size_t i = 0; i < self->device.count; i++)
        if (self->model->device[i].ordinal < CW_ARRAY_LEN(self->about))
            self->about[self->model->device[i].ordinal].is_there = 0;
    for (uint32_t ordinal = 0; ordinal < CW_ARRAY_LEN(self->about); ordinal++) {
        struct cw_model_device *device;

        if (!self->about[ordinal].is_there)
            continue;
        device = cw_reader_append(self, &self->model->device, &self->device, sizeof(*device));
        if (device)
            *device = (struct cw_model_device){
                .ordinal = ordinal, .name = "", .uuid = "", .level = "low"};
    }
}

static void link_devices(struct cw_reader *self)
{
    struct cw_model_device *device;

    add_unlisted(self);
    device = self->model->device;
    for (size_t i = 0; i < self->device.count; i++)
        if (device[i].ordinal < CW_ARRAY_LEN(self->about))
            link_device(&device[i], &self->about[device[i].ordinal]);
    if (device)
        qsort(device, self->device.count, sizeof(*device), compare_ordinals);
}

void cw_reader_link(struct cw_reader *self)
{
    for (size_t i = 0; i < self->frame.count; i++)
        self->model->frame[i].module = get_id(&self->modules, self->model->frame[i].module);
    link_stacks(self);
    link_sites(self);
    find_empty(self);
    link_devices(self);
}
