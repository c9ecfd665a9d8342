/* SPDX-License-Identifier: MIT */
/* Filling the model from a live layout. See model_live.h. */
#include "report/model/model_live.h"

#include <string.h>

#include "base/mem.h"
#include "base/options/options.h"
#include "report/symbols/stack.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* Zeroed, and freed with the model; NULL: no memory. */
static void *take(struct cw_live_model *live, size_t count, size_t size)
{
    size_t bytes = (count > 0 ? count : 1) * size;
    void *items = live->arrays < CW_LIVE_MODEL_ARRAYS ? cw_mem_alloc(bytes) : NULL;

    if (items) {
        live->array[live->arrays].items = items;
        live->array[live->arrays++].size = bytes;
    }
    return items;
}

/* ---- the process ---- */

static void read_process(struct cw_report_model *model, const struct cw_report_source *source)
{
    const struct cw_live_header *header = cw_view_header(source->view);

    model->pid = header->pid;
    model->version = source->version ? source->version : "";
    model->command = cw_view_text(source->view, header->command);
    model->end = cw_report_end(source);
    model->has_exit_code = cw_report_has_exit_code(source);
    model->exit_code = LOAD(header->exit_code);
    model->has_no_stacks = header->stacks_mode == CW_STACKS_OFF;
    model->invalid_frees = LOAD(header->invalid_frees);
    for (unsigned i = 0; i < CW_DIAGNOSTICS; i++) {
        struct cw_report_diagnostic *to = &model->diagnostic[model->diagnostics];

        if (cw_report_diagnostic(source, i, to->text, sizeof(to->text)) == 0)
            continue;
        to->is_loss = i < CW_DIAGNOSTICS_LOSSES;
        model->diagnostics++;
    }
}

static void read_audit(struct cw_report_model *model, const struct cw_view *view)
{
    const struct cw_live_audit *audit = &cw_view_header(view)->audit;

    model->audit = audit;
    model->audit_why = cw_view_text(view, audit->why);
    for (unsigned i = 0; i < CW_AUDIT_FINDINGS; i++)
        model->audit_source[i] = cw_view_text(view, audit->finding[i].source);
    for (unsigned i = 0; i < CW_AUDIT_VARIABLES; i++)
        model->audit_name[i] = cw_view_text(view, audit->variable[i].name);
}

static void read_tags(struct cw_live_model *live, const struct cw_view *view)
{
    struct cw_report_model *model = &live->model;
    uint32_t count = cw_view_count(view, CW_TABLE_TAG);

    model->tag = take(live, count, sizeof(*model->tag));
    for (uint32_t i = 0; model->tag && i < count; i++) {
        const struct cw_live_tag *tag = i != 0 ? cw_view_tag(view, i) : NULL;

        model->tag[i].name = tag ? cw_view_text(view, tag->name) : "";
        model->tag[i].domain = tag ? cw_view_text(view, tag->domain) : "";
        model->tags++;
    }
}

static void read_peaks(struct cw_report_model *model)
{
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct cw_snapshot_device *device = &model->snapshot->device[i];

        model->peak[i] = (struct cw_report_peak){
            .site = device->peak,
            .shown = device->peak_sites < CW_PEAK_SITES ? device->peak_sites : CW_PEAK_SITES,
            .count = device->peak_sites,
            .rest = device->peak_rest};
    }
}

/* ---- events ---- */

static uint32_t index_of(const struct cw_snapshot *snapshot, uint32_t live_site)
{
    return live_site < snapshot->merged_count ? snapshot->merged[live_site] : CW_SITE_NONE;
}

static void read_event(const struct cw_live_event *live, const struct cw_snapshot *snapshot,
                       struct cw_report_event *out)
{
    *out = (struct cw_report_event){.t_ns = live->t_ns,
                                    .key = live->key,
                                    .bytes = live->bytes,
                                    .free_bytes = live->free_bytes,
                                    .total_bytes = live->total_bytes,
                                    .released = LOAD(live->released),
                                    .site = index_of(snapshot, live->site),
                                    .first_site = index_of(snapshot, live->other_site),
                                    .code = live->code,
                                    .count = LOAD(live->count),
                                    .share = live->share,
                                    .type = live->type,
                                    .device = live->device,
                                    .cause = live->cause,
                                    .level = live->level,
                                    .level_before = live->level_before,
                                    .rung = live->rung};
}

static void read_events(struct cw_live_model *live, const struct cw_view *view)
{
    struct cw_report_model *model = &live->model;
    uint32_t count = cw_view_count(view, CW_TABLE_EVENT);

    model->event = take(live, count, sizeof(*model->event));
    for (uint32_t i = 1; model->event && i < count; i++) {
        const struct cw_live_event *event = cw_view_event(view, i);

        if (event)
            read_event(event, model->snapshot, &model->event[i - 1]);
        model->events = i;
    }
}

void cw_live_model_read_oom(const struct cw_live_oom *oom, const struct cw_snapshot *snapshot,
                            struct cw_report_oom *out)
{
    *out = (struct cw_report_oom){.t_ns = oom->t_ns,
                                  .event = oom->event - 1,
                                  .site = index_of(snapshot, oom->site),
                                  .code = oom->code,
                                  .device = oom->device,
                                  .cause = oom->cause,
                                  .unserved = oom->unserved,
                                  .is_fragmented = (uint8_t)cw_oom_is_fragmented(oom),
                                  .bytes = oom->bytes,
                                  .fits = oom->fits,
                                  .limit = oom->limit,
                                  .min_free = oom->min_free,
                                  .live = oom->live,
                                  .held = oom->held,
                                  .idle = oom->idle,
                                  .spare = oom->spare,
                                  .free_bytes = oom->free_bytes,
                                  .total_bytes = oom->total_bytes,
                                  .others = cw_oom_others(oom),
                                  .rest_bytes = oom->rest_bytes,
                                  .rest_blocks = oom->rest_blocks,
                                  .holders = cw_oom_holders(oom)};
    for (unsigned i = 0; i < out->holders; i++) {
        out->holder[i].site = index_of(snapshot, oom->holder[i].site);
        out->holder[i].bytes = oom->holder[i].bytes;
        out->holder[i].blocks = oom->holder[i].blocks;
    }
}

static void read_ooms(struct cw_live_model *live, const struct cw_view *view)
{
    struct cw_report_model *model = &live->model;
    uint32_t count = cw_view_count(view, CW_TABLE_OOM);

    model->oom = take(live, count, sizeof(*model->oom));
    for (uint32_t i = 1; model->oom && i < count; i++) {
        const struct cw_live_oom *oom = cw_view_oom(view, i);

        if (oom && oom->t_ns != 0)
            cw_live_model_read_oom(oom, model->snapshot, &model->oom[model->ooms++]);
    }
}

/* ---- rules ---- */

static void read_rules(struct cw_live_model *live)
{
    const struct cw_rules *rules = live->source->rules;
    struct cw_report_model *model = &live->model;
    uint32_t count = rules && rules->use ? cw_rules_count(rules) : 0;

    model->rules_path = rules && rules->count > 0 ? rules->path : "";
    model->rule = take(live, count, sizeof(*model->rule));
    for (uint32_t i = 0; model->rule && i < count; i++) {
        const struct cw_rule *rule = cw_rules_at(rules, i);

        if (i < rules->count || rules->use[i].sites > 0)
            model->rule[model->rules++] = (struct cw_report_rule){.id = i,
                                                                  .line = rule->line,
                                                                  .owner = rule->label,
                                                                  .rule = rule,
                                                                  .words = "",
                                                                  .use = rules->use[i]};
    }
}

/* ---- stacks ---- */

#define IS_WANTED UINT32_MAX /* in place of a count */

void cw_live_model_want(void *arg, uint32_t stack)
{
    struct cw_live_model *live = arg;
    struct cw_report_model *model = &live->model;

    if (stack == 0 || stack >= model->stacks || model->stack[stack].count == IS_WANTED)
        return;
    model->stack[stack].count = IS_WANTED;
    live->wanted[live->wants++] = stack;
    cw_symbols_want(live->source->symbols, stack);
}

static void read_places(struct cw_report_model *model, const struct cw_symbols *symbols,
                        uint32_t index, struct cw_report_frame *out)
{
    unsigned count = cw_symbols_places(symbols, index);
    struct cw_symbol_place own;

    if (count == 0)
        return;
    own = cw_symbols_place(symbols, index, count - 1);
    if (!out->is_python) {
        out->file = own.file;
        out->line = own.line;
    }
    out->inlined = model->places;
    for (unsigned i = 0; i + 1 < count; i++) {
        struct cw_symbol_place place = cw_symbols_place(symbols, index, i);

        model->place[model->places++] =
            (struct cw_report_place){place.function, place.file, place.line};
        out->inlines++;
    }
}

static void read_frame(struct cw_report_model *model, const struct cw_report_source *source,
                       uint32_t index, struct cw_report_frame *out)
{
    const struct cw_live_frame *frame = cw_view_frame(source->view, index);
    const struct cw_live_module *module = cw_stack_module(source->view, index);
    const struct cw_live_code *code = cw_stack_code(source->view, index);
    const char *file = code ? cw_view_text(source->view, code->file) : "";

    *out = (struct cw_report_frame){.function =
                                        cw_stack_function(source->symbols, source->view, index),
                                    .module_name = cw_module_name(source->view, module),
                                    .is_python = frame && frame->module == CW_MODULE_PYTHON};
    if (file[0] != '\0') {
        out->file = file;
        out->line = code->line;
    }
    if (frame && !out->is_python)
        out->address = frame->pc;
    if (frame && module) {
        out->module = frame->module;
        out->offset = cw_frame_offset(frame, module);
    }
    read_places(model, source->symbols, index, out);
}

/* How much room the frames of a stack take. */
static void count_frames(struct cw_live_model *live, uint32_t stack)
{
    const struct cw_report_source *source = live->source;
    struct cw_stack shown;

    cw_stack_visible(source->symbols, source->view, stack, &shown);
    live->frames_limit += shown.count;
    for (unsigned i = 0; i < shown.count; i++)
        live->places_limit += cw_symbols_places(source->symbols, shown.frame[i]);
}

static void read_stack(struct cw_live_model *live, uint32_t number)
{
    const struct cw_report_source *source = live->source;
    struct cw_report_model *model = &live->model;
    struct cw_stack shown;

    cw_stack_visible(source->symbols, source->view, number, &shown);
    model->stack[number].first = model->frames;
    for (unsigned i = 0; i < shown.count && model->frames < live->frames_limit; i++)
        read_frame(model, source, shown.frame[i], &model->frame[model->frames++]);
    model->stack[number].count = model->frames - model->stack[number].first;
}

void cw_live_model_resolve(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;

    cw_symbols_resolve(live->source->symbols);
    for (uint32_t i = 0; i < live->wants; i++) {
        model->stack[live->wanted[i]].count = 0;
        count_frames(live, live->wanted[i]);
    }
    model->frame = take(live, live->frames_limit, sizeof(*model->frame));
    model->place = take(live, live->places_limit, sizeof(*model->place));
    for (uint32_t i = 0; model->frame && model->place && i < live->wants; i++)
        read_stack(live, live->wanted[i]);
}

/* ---- the whole ---- */

void cw_live_model_begin(struct cw_live_model *live, const struct cw_report_source *source)
{
    struct cw_report_model *model = &live->model;

    memset(live, 0, sizeof(*live));
    live->source = source;
    model->snapshot = source->snapshot;
    model->stacks = cw_view_count(source->view, CW_TABLE_FRAME);
    model->stack = take(live, model->stacks, sizeof(*model->stack));
    live->wanted = take(live, model->stacks, sizeof(*live->wanted));
    if (!model->stack || !live->wanted)
        model->stacks = 0;
    read_process(model, source);
}

void cw_live_model_init(struct cw_live_model *live, const struct cw_report_source *source)
{
    cw_live_model_begin(live, source);
    read_audit(&live->model, source->view);
    read_tags(live, source->view);
    read_peaks(&live->model);
    read_events(live, source->view);
    read_ooms(live, source->view);
    read_rules(live);
}

void cw_live_model_fini(struct cw_live_model *live)
{
    for (unsigned i = 0; i < live->arrays; i++)
        cw_mem_free(live->array[i].items, live->array[i].size);
}
