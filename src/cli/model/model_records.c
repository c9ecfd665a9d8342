/* SPDX-License-Identifier: MIT */
/*
 * The records of a report in JSON: gathered in self->now, appended when they end. What a record
 * refers to is still the report's number then: an object of JSON has no order, and what is meant
 * may stand behind it. model_links.c makes indices of the numbers.
 */
#include "cli/model/model_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/ui/message.h"

void cw_reader_fail(struct cw_reader *self, const char *why)
{
    if (!self->failed)
        cw_cli_error("'%s' is no report of cuwarden that this version reads: %s", self->name, why);
    self->failed = 1;
}

/* ---- arrays that grow ---- */

void *cw_reader_append(struct cw_reader *self, void *array, struct vector *vector, size_t size)
{
    void **items = array;

    if (vector->count == vector->cap) {
        size_t cap = vector->cap ? vector->cap * 2 : 64;
        void *grown = reallocarray(*items, cap, size);

        if (!grown || cap > UINT32_MAX) {
            if (!self->failed)
                cw_cli_error("'%s': out of memory", self->name);
            self->failed = 1;
            return NULL;
        }
        *items = grown;
        vector->cap = cap;
    }
    memset((char *)*items + vector->count * size, 0, size);
    return (char *)*items + vector->count++ * size;
}

/* ---- beginnings of records ---- */

static void begin_device(struct cw_reader *self)
{
    self->now.device = (struct device_now){.device = {.ordinal = CW_MODEL_HOST,
                                                      .name = "",
                                                      .uuid = "",
                                                      .level = "low",
                                                      .is_listed = 1,
                                                      .driver_used = NO_SAMPLE}};
}

static void begin_pool_device(struct cw_reader *self)
{
    memset(&self->now.pool, 0, sizeof(self->now.pool));
    self->now.pool.device = CW_MODEL_HOST;
    self->now.pool.of.in_use = UINT64_MAX;
    self->now.pool.first_bucket = (uint32_t)self->bucket.count;
}

static void begin_pressure_device(struct cw_reader *self)
{
    memset(&self->now.pressure, 0, sizeof(self->now.pressure));
    self->now.pressure.device = CW_MODEL_HOST;
    self->now.pressure.level = "low";
}

static void begin_bucket(struct cw_reader *self)
{
    self->now.bucket = (struct cw_model_bucket){.kind = ""};
}

static void begin_module(struct cw_reader *self)
{
    self->now.module = (struct cw_model_module){.path = "", .build_id = ""};
    self->now.module_id = 0;
}

static const struct frame_now no_frame = {
    .frame = {.function = "", .file = "", .module = CW_MODEL_NONE}, .lang = ""};

static void begin_frame(struct cw_reader *self)
{
    self->now.frame = no_frame;
    self->now.frame_address = "";
    self->now.first_inlined = (uint32_t)self->frame.count;
}

static void begin_inlined(struct cw_reader *self)
{
    self->now.inlined = no_frame;
}

static void begin_stack(struct cw_reader *self)
{
    self->now.first_id = (uint32_t)self->stack_ids.count;
    self->now.shown_numbers = 0;
    self->now.stack_number = 0;
}

static void begin_site(struct cw_reader *self)
{
    self->now.site = (struct cw_model_site){.device = CW_MODEL_HOST,
                                            .api = "",
                                            .kind = "",
                                            .tag = "",
                                            .leak = "",
                                            .rule = CW_MODEL_NONE,
                                            .growth = {.step = ""},
                                            .series = CW_MODEL_NONE};
    self->now.site_id = self->now.site_stack = self->now.site_owner = 0;
    self->now.site.oldest_ns = NO_AGE;
    self->now.site_key = "";
}

static void begin_leak(struct cw_reader *self)
{
    self->now.block = (struct cw_model_block){.site = CW_MODEL_NONE};
    self->now.block_site = CW_MODEL_NONE;
    self->now.block_address = "";
}

static void begin_event(struct cw_reader *self)
{
    self->now.event = (struct cw_model_event){.type = "",
                                              .device = CW_MODEL_HOST,
                                              .level = "",
                                              .level_before = "",
                                              .share_of = "",
                                              .cause = "",
                                              .rung = "",
                                              .address = "",
                                              .first_site = CW_MODEL_NONE};
    self->now.event.count = 1;
    self->now.event_site = CW_MODEL_NONE;
}

static void begin_diagnostic(struct cw_reader *self)
{
    self->now.diagnostic = (struct cw_model_diagnostic){.text = "", .is_loss = 1};
}

/* ---- their ends ---- */

static void end_device(struct cw_reader *self)
{
    struct cw_model_device *device =
        cw_reader_append(self, &self->model->device, &self->device, sizeof(*device));

    if (!device)
        return;
    *device = self->now.device.device;
    device->total_allocated.count = device->allocs;
    device->has_sample = device->driver_used != NO_SAMPLE;
    if (!device->has_sample)
        device->driver_used = 0;
}

static void end_pool_device(struct cw_reader *self)
{
    struct cw_reader_device *about = cw_reader_about(self, self->now.pool.device);

    if (!about)
        return;
    about->pool = self->now.pool;
    about->pool.buckets = (uint32_t)self->bucket.count - about->pool.first_bucket;
    about->pool.of.is_there = about->is_there = 1;
}

static void end_pressure_device(struct cw_reader *self)
{
    struct cw_reader_device *about = cw_reader_about(self, self->now.pressure.device);

    if (!about)
        return;
    about->pressure = self->now.pressure;
    about->pressure.of.is_there = about->is_there = 1;
}

static void end_bucket(struct cw_reader *self)
{
    struct cw_model_bucket *bucket =
        cw_reader_append(self, &self->model->bucket, &self->bucket, sizeof(*bucket));

    if (bucket)
        *bucket = self->now.bucket;
}

static void end_module(struct cw_reader *self)
{
    struct cw_model_module *module =
        cw_reader_append(self, &self->model->module, &self->module, sizeof(*module));

    if (!module)
        return;
    *module = self->now.module;
    cw_reader_put_id(self, &self->modules, self->now.module_id, self->module.count - 1);
}

/* One that is inlined into the next that is appended, which lies in the same module. */
static void end_inlined(struct cw_reader *self)
{
    struct cw_model_frame *frame =
        cw_reader_append(self, &self->model->frame, &self->frame, sizeof(*frame));
    uint32_t *before;

    if (!frame)
        return;
    *frame = self->now.inlined.frame;
    frame->is_inlined = 1;
    before = cw_reader_append(self, &self->inlined_of, &self->inlined_ofs, sizeof(*before));
    if (before)
        *before = 0;
}

static void end_frame(struct cw_reader *self)
{
    const struct frame_now *now = &self->now.frame;
    uint32_t inlined = (uint32_t)self->frame.count - self->now.first_inlined;
    struct cw_model_frame *frame =
        cw_reader_append(self, &self->model->frame, &self->frame, sizeof(*frame));
    uint32_t *before;

    if (!frame)
        return;
    *frame = now->frame;
    frame->address = strtoull(self->now.frame_address, NULL, 16);
    frame->module = now->module ? now->module : CW_MODEL_NONE;
    frame->is_python = strcmp(now->lang, "python") == 0;
    for (uint32_t i = 0; i < inlined; i++) {
        self->model->frame[self->now.first_inlined + i].module = frame->module;
        self->model->frame[self->now.first_inlined + i].offset = frame->offset;
    }
    before = cw_reader_append(self, &self->inlined_of, &self->inlined_ofs, sizeof(*before));
    if (before)
        *before = inlined;
    cw_reader_put_id(self, &self->frames, now->id, self->frame.count - 1);
}

/* A number in the list of a stack, which waits until all frames are known. */
static void end_stack_frame(struct cw_reader *self)
{
    uint32_t *id = cw_reader_append(self, &self->stack_id, &self->stack_ids, sizeof(*id));

    if (id)
        *id = self->now.frame.id;
}

static void end_stack_shown(struct cw_reader *self)
{
    if (self->now.shown_numbers < 2)
        self->now.shown[self->now.shown_numbers++] = self->now.shown_number;
}

/* What of the list is shown. */
static void end_stack(struct cw_reader *self)
{
    struct cw_model_stack *stack =
        cw_reader_append(self, &self->model->stack, &self->stack, sizeof(*stack));

    if (!stack)
        return;
    stack->first = self->now.first_id;
    stack->count = (uint32_t)self->stack_ids.count - stack->first;
    if (self->now.shown_numbers == 2 &&
        (uint64_t)self->now.shown[0] + self->now.shown[1] <= stack->count) {
        stack->first += self->now.shown[0];
        stack->count = self->now.shown[1];
    }
    cw_reader_put_id(self, &self->stacks, self->now.stack_number, self->stack.count - 1);
}

static int is_counted_class(const char *leak)
{
    static const char *const names[] = {"lost", "growing", "context-destroyed"};

    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++)
        if (strcmp(leak, names[i]) == 0)
            return 1;
    return 0;
}

static void end_site(struct cw_reader *self)
{
    struct cw_model_site *site =
        cw_reader_append(self, &self->model->site, &self->site, sizeof(*site));

    if (!site)
        return;
    *site = self->now.site;
    site->id = (uint32_t)strtoul(self->now.site_key, NULL, 16);
    site->stack = self->now.site_stack;
    site->owner = self->now.site_owner;
    site->is_leak = (uint8_t)is_counted_class(site->leak);
    site->is_counted = cw_model_site_home(site) != CW_MODEL_NONE;
    cw_reader_put_id(self, &self->sites, self->now.site_id, self->site.count - 1);
}

static void end_leak(struct cw_reader *self)
{
    struct cw_model_block *block =
        cw_reader_append(self, &self->model->block, &self->block, sizeof(*block));

    if (!block)
        return;
    *block = self->now.block;
    block->site = self->now.block_site;
    block->address = strtoull(self->now.block_address, NULL, 16);
}

static void end_event(struct cw_reader *self)
{
    struct cw_model_event *event =
        cw_reader_append(self, &self->model->event, &self->event, sizeof(*event));

    if (!event)
        return;
    *event = self->now.event;
    event->site = self->now.event_site;
}

static void end_diagnostic(struct cw_reader *self)
{
    struct cw_model_diagnostic *diagnostic =
        cw_reader_append(self, &self->model->diagnostic, &self->diagnostic, sizeof(*diagnostic));

    if (diagnostic)
        *diagnostic = self->now.diagnostic;
}

/* ---- over time ---- */

static void begin_timeline(struct cw_reader *self)
{
    self->now.timeline_device = CW_MODEL_HOST;
    self->now.first_point = (uint32_t)self->point.count;
}

static void begin_point(struct cw_reader *self)
{
    memset(self->now.point, 0, sizeof(self->now.point));
    self->now.point_numbers = 0;
}

/* A number of a point, in the order of the struct. */
static void end_point_number(struct cw_reader *self)
{
    if (self->now.point_numbers < CW_ARRAY_LEN(self->now.point))
        self->now.point[self->now.point_numbers++] = self->now.moment_ns;
}

static void end_point(struct cw_reader *self)
{
    struct cw_model_point *point =
        cw_reader_append(self, &self->model->point, &self->point, sizeof(*point));
    const uint64_t *number = self->now.point;

    if (point)
        *point = (struct cw_model_point){.t_ns = number[0],
                                         .live = number[1],
                                         .held = number[2],
                                         .idle = number[3],
                                         .used = number[4]};
}

static void end_timeline(struct cw_reader *self)
{
    struct cw_reader_device *about = cw_reader_about(self, self->now.timeline_device);

    if (!about)
        return;
    about->first_point = self->now.first_point;
    about->points = (uint32_t)self->point.count - self->now.first_point;
}

static void end_moment(struct cw_reader *self)
{
    uint64_t *moment =
        cw_reader_append(self, &self->model->sample_ns, &self->sample, sizeof(*moment));

    if (moment)
        *moment = self->now.moment_ns;
}

static void begin_series(struct cw_reader *self)
{
    self->now.site.series = (uint32_t)self->series.count;
}

static void end_series_number(struct cw_reader *self)
{
    uint64_t *bytes =
        cw_reader_append(self, &self->model->series_bytes, &self->series, sizeof(*bytes));

    if (bytes)
        *bytes = self->now.moment_bytes;
}

static void begin_step(struct cw_reader *self)
{
    self->now.step = (struct cw_model_step){.name = ""};
}

static void end_step(struct cw_reader *self)
{
    struct cw_model_step *step =
        cw_reader_append(self, &self->model->step, &self->step, sizeof(*step));

    if (step)
        *step = self->now.step;
}

static void begin_regrowth(struct cw_reader *self)
{
    self->now.regrowth = (struct cw_model_regrowth){.site = CW_MODEL_NONE};
    self->now.regrowth_site = CW_MODEL_NONE;
}

static void end_regrowth(struct cw_reader *self)
{
    struct cw_model_regrowth *regrowth =
        cw_reader_append(self, &self->model->regrowth, &self->regrowth, sizeof(*regrowth));

    if (!regrowth)
        return;
    *regrowth = self->now.regrowth;
    regrowth->site = self->now.regrowth_site;
}

/* The arguments, with spaces between them. */
static void end_argument(struct cw_reader *self)
{
    size_t len = strlen(self->now.argument);
    char *grown = realloc(self->command, self->command_len + len + 2);

    if (!grown)
        return;
    self->command = grown;
    if (self->command_len > 0)
        grown[self->command_len++] = ' ';
    memcpy(grown + self->command_len, self->now.argument, len + 1);
    self->command_len += len;
}

/* One of a later version has a greater number behind the same name. */
static void end_report(struct cw_reader *self)
{
    static const char family[] = "cuwarden-report/";
    const char *schema = self->now.schema;
    char why[128];

    if (strcmp(schema, SCHEMA) == 0)
        return;
    if (strncmp(schema, family, strlen(family)) == 0)
        snprintf(why, sizeof(why),
                 "its \"schema\" is not " SCHEMA " but %.40s: a newer cuwarden reads it", schema);
    else
        snprintf(why, sizeof(why), "its \"schema\" is not " SCHEMA "%s%.40s",
                 schema[0] ? " but " : "", schema);
    cw_reader_fail(self, why);
}

static const struct {
    void (*begin)(struct cw_reader *);
    void (*end)(struct cw_reader *);
} records[IN_CONTEXTS] = {
    [IN_REPORT] = {NULL, end_report},
    [IN_DEVICE] = {begin_device, end_device},
    [IN_POOL_DEVICE] = {begin_pool_device, end_pool_device},
    [IN_BUCKET] = {begin_bucket, end_bucket},
    [IN_PRESSURE_DEVICE] = {begin_pressure_device, end_pressure_device},
    [IN_MODULE] = {begin_module, end_module},
    [IN_FRAME] = {begin_frame, end_frame},
    [IN_INLINED_FRAME] = {begin_inlined, end_inlined},
    [IN_STACK] = {begin_stack, end_stack},
    [IN_SITE] = {begin_site, end_site},
    [IN_LEAK] = {begin_leak, end_leak},
    [IN_EVENT] = {begin_event, end_event},
    [IN_GROWTH_BYTES] = {begin_series, NULL},
    [IN_TIMELINE_DEVICE] = {begin_timeline, end_timeline},
    [IN_POINT] = {begin_point, end_point},
    [IN_STEP] = {begin_step, end_step},
    [IN_REGROWTH] = {begin_regrowth, end_regrowth},
    [IN_DIAGNOSTIC] = {begin_diagnostic, end_diagnostic},
    [IN_RUNG] = {cw_reader_begin_rung, cw_reader_end_rung},
    [IN_OLD_SITE] = {cw_reader_begin_old, cw_reader_end_old},
    [IN_OOM] = {cw_reader_begin_oom, cw_reader_end_oom},
    [IN_HOLDER] = {cw_reader_begin_holder, cw_reader_end_holder},
    [IN_FLOORS] = {cw_reader_begin_floors, NULL},
    [IN_GROWTH_DEVICE] = {cw_reader_begin_growth_device, cw_reader_end_growth_device},
    [IN_RULE] = {cw_reader_begin_rule, cw_reader_end_rule},
    [IN_AUDIT] = {cw_reader_begin_audit, cw_reader_end_audit},
    [IN_FINDING] = {cw_reader_begin_finding, cw_reader_end_finding},
    [IN_VARIABLE] = {cw_reader_begin_variable, cw_reader_end_variable},
};

void cw_reader_begin(struct cw_reader *self, enum cw_reader_in context)
{
    if (records[context].begin)
        records[context].begin(self);
}

void cw_reader_end(struct cw_reader *self, enum cw_reader_in context)
{
    if (records[context].end)
        records[context].end(self);
}

/* What is to be done after a value that stands in an array by itself. */
void cw_reader_after_element(struct cw_reader *self)
{
    static void (*const after[IN_CONTEXTS])(struct cw_reader *) = {
        [IN_ARGV] = end_argument,           [IN_STACK_FRAMES] = end_stack_frame,
        [IN_STACK_SHOWN] = end_stack_shown, [IN_GROWTH_BYTES] = end_series_number,
        [IN_MOMENTS_NS] = end_moment,       [IN_POINT] = end_point_number,
        [IN_FLOORS] = cw_reader_end_floor,  [IN_SUSPECTS] = cw_reader_end_suspect,
    };
    enum cw_reader_in context = self->level[self->depth].context;

    if (after[context])
        after[context](self);
}
