/* SPDX-License-Identifier: MIT */
/* Fills the model's records from a live layout. See model_live.h. */
#include "report/model/model_live.h"

#include <stddef.h>
#include <string.h>

#include "base/out.h"
#include "report/leaks/cache.h"
#include "report/leaks/suppress.h"
#include "report/model/live_parts.h"
#include "report/snapshot/tag.h"

#define BLOCKS_MAX 10000
#define RULE_MAX   1200 /* a longer rule is truncated */

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* ---- the audit ---- */

static void read_findings(struct cw_live_model *live, const struct cw_live_audit *from)
{
    struct cw_report_audit *audit = &live->model.audit;

    for (; audit->findings < from->findings && audit->findings < CW_AUDIT_FINDINGS;
         audit->findings++) {
        const struct cw_live_audit_finding *finding = &from->finding[audit->findings];

        audit->finding[audit->findings] =
            (struct cw_report_finding){.address = finding->address,
                                       .count = finding->count,
                                       .bytes = finding->bytes,
                                       .tool_bytes = finding->tool_bytes,
                                       .source = cw_live_model_text_at(live, finding->source),
                                       .side = finding->side,
                                       .class = finding->class,
                                       .op = finding->op};
    }
    for (; audit->variables < from->variables && audit->variables < CW_AUDIT_VARIABLES;
         audit->variables++) {
        const struct cw_live_audit_variable *variable = &from->variable[audit->variables];

        audit->variable[audit->variables] =
            (struct cw_report_static){.name = cw_live_model_text_at(live, variable->name),
                                      .bytes = variable->bytes,
                                      .is_managed = variable->is_managed};
    }
}

static void read_audit(struct cw_live_model *live)
{
    const struct cw_live_audit *from = &cw_view_header(live->view)->audit;
    struct cw_report_audit *audit = &live->model.audit;
    uint32_t status = atomic_load_explicit(&from->status, memory_order_acquire);

    audit->status = status <= CW_AUDIT_CUT ? (uint8_t)status : CW_AUDIT_OFF;
    audit->version = from->version;
    audit->why = cw_live_model_text_at(live, from->why);
    if (status != CW_AUDIT_DONE)
        return;
    audit->all_findings = from->all_findings;
    audit->dropped = from->dropped;
    audit->not_kept = from->not_kept;
    audit->excused = from->excused;
    audit->fixed = from->fixed;
    memcpy(audit->row, from->row, sizeof(audit->row));
    read_findings(live, from);
}

/* ---- modules ---- */

static void read_module(struct cw_live_model *live, const struct cw_live_module *from,
                        struct cw_report_module *out)
{
    char hex[2 * sizeof(from->build_id) + 1] = "";
    size_t len = from->build_id_len <= sizeof(from->build_id) ? from->build_id_len : 0;

    for (size_t i = 0; i < len; i++)
        cw_format(hex + 2 * i, 3, "%02x", from->build_id[i]);
    *out = (struct cw_report_module){.path = cw_live_model_text_at(live, from->path),
                                     .build_id = cw_live_model_copy(live, hex, 2 * len),
                                     .base = from->base,
                                     .generation = from->generation};
}

void cw_live_model_read_modules(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;
    uint32_t count = cw_view_count(live->view, CW_TABLE_MODULE);

    model->module = cw_live_model_take(live, count, sizeof(*model->module));
    for (uint32_t i = 1; model->module && i < count; i++) {
        const struct cw_live_module *module = cw_view_module(live->view, i);

        model->module[i - 1] = (struct cw_report_module){.path = "", .build_id = ""};
        if (module)
            read_module(live, module, &model->module[i - 1]);
        model->modules = i;
    }
}

/* ---- tags ---- */

static void read_tag(struct cw_live_model *live, uint32_t index, struct cw_report_tag *out)
{
    const struct cw_live_tag *tag = cw_view_tag(live->view, index);
    char label[CW_TAG_LABEL_MAX];

    cw_tag_label(live->view, index, label, sizeof(label));
    *out = (struct cw_report_tag){
        .label = cw_live_model_text(live, cw_live_model_copy(live, label, strlen(label)))};
    if (!tag)
        return;
    out->is_pattern = tag->is_pattern;
    out->begun = LOAD(tag->begun);
    out->first_ns = LOAD(tag->first_ns);
    out->last_ns = LOAD(tag->last_ns);
    out->first_bytes = LOAD(tag->first_bytes);
    out->last_bytes = LOAD(tag->last_bytes);
    out->least_bytes = LOAD(tag->least_bytes);
    out->most_bytes = LOAD(tag->most_bytes);
}

static void read_tags(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;
    const struct cw_snapshot_growth *growth = &model->snapshot.growth;
    uint32_t count = cw_view_count(live->view, CW_TABLE_TAG);

    model->tag = cw_live_model_take(live, count, sizeof(*model->tag));
    for (uint32_t i = 1; model->tag && i < count; i++) {
        read_tag(live, i, &model->tag[i - 1]);
        model->tags = i;
    }
    for (uint32_t i = 0; i < growth->steps; i++) {
        const struct cw_growth_step *step = &growth->step[i];
        struct cw_report_tag *tag;

        if (step->tag > model->tags)
            continue;
        tag = &model->tag[step->tag - 1];
        tag->steps = step->steps;
        tag->has_line = step->has_line;
        tag->is_rising = step->is_rising;
        tag->mean_ns = step->mean_ns;
        tag->slope = step->slope;
        tag->r2 = step->r2;
    }
}

/* ---- sites' lists ---- */

static void read_peaks(struct cw_report_model *model)
{
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct cw_snapshot_device *device = &model->snapshot.device[i];

        model->peak[i] = (struct cw_report_peak){
            .site = device->peak,
            .shown = device->peak_sites < CW_PEAK_SITES ? device->peak_sites : CW_PEAK_SITES,
            .count = device->peak_sites,
            .rest = device->peak_rest};
    }
}

static void read_old(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;
    const struct cw_snapshot_list *list = &model->snapshot.old;

    model->old = cw_live_model_take(live, list->count, sizeof(*model->old));
    for (; model->old && model->olds < list->count; model->olds++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[list->site[model->olds]];

        model->old[model->olds] = (struct cw_report_old){.site = list->site[model->olds],
                                                         .blocks = site->old_blocks,
                                                         .bytes = site->old_bytes,
                                                         .oldest_age_ns = site->oldest_age_ns};
    }
}

/* The block's site if it is leaked, else CW_SITE_NONE. */
static uint32_t leaked_by(const struct cw_snapshot *snapshot, const struct cw_live_block *block)
{
    uint32_t site = CW_SITE_NONE;

    if (block && LOAD(block->state) == CW_BLOCK_LIVE)
        site = cw_live_model_site(snapshot, LOAD(block->site));
    return site != CW_SITE_NONE && cw_leak_is_counted(snapshot->site[site].leak) ? site
                                                                                 : CW_SITE_NONE;
}

static void read_block(const struct cw_live_model *live, uint32_t index, uint32_t site,
                       struct cw_report_block *out)
{
    const struct cw_live_block *block = cw_view_block(live->view, index);
    const struct cw_live_owner *owner = cw_view_owner(live->view, index);

    *out = (struct cw_report_block){.site = site,
                                    .tid = block->tid,
                                    .address = LOAD(block->key),
                                    .bytes = LOAD(block->bytes),
                                    .held = LOAD(block->held),
                                    .born_ns = LOAD(block->born_ns)};
    if (owner == NULL)
        return;
    out->id = LOAD(owner->id);
    out->name = cw_view_text(live->view, LOAD(owner->name) & ~CW_OWNER_KEPT);
}

static void read_blocks(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;
    uint32_t count = cw_view_count(live->view, CW_TABLE_BLOCK);
    uint64_t most = model->snapshot.leaks.blocks;

    most = most < BLOCKS_MAX ? most : BLOCKS_MAX;
    model->block = cw_live_model_take(live, most, sizeof(*model->block));
    for (uint32_t i = 1; model->block && i < count; i++) {
        const struct cw_live_block *block = cw_view_block(live->view, i);
        uint32_t site = leaked_by(&model->snapshot, block);

        if (site == CW_SITE_NONE)
            continue;
        if (model->blocks < most)
            read_block(live, i, site, &model->block[model->blocks++]);
        else
            model->blocks_left_out++;
    }
}

/* ---- events ---- */

static uint8_t share_of(const struct cw_live_event *live)
{
    if (live->type != CW_EVENT_PRESSURE)
        return CW_SHARE_OF_DEVICE;
    return live->cause == CW_CAUSE_LIMIT      ? CW_SHARE_OF_LIMIT
           : live->cause == CW_CAUSE_PLATFORM ? CW_SHARE_OF_BOUND
                                              : CW_SHARE_OF_DEVICE;
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
                                    .site = cw_live_model_site(snapshot, live->site),
                                    .first_site = cw_live_model_site(snapshot, live->other_site),
                                    .alloc_site = cw_live_model_site(snapshot, live->alloc_site),
                                    .misuse = live->misuse,
                                    .code = live->code,
                                    .count = LOAD(live->count),
                                    .share = live->share,
                                    .type = live->type,
                                    .device =
                                        live->device < CW_DEVICES ? live->device : CW_DEVICE_HOST,
                                    .cause = live->cause,
                                    .level = live->level,
                                    .level_before = live->level_before,
                                    .rung = live->rung,
                                    .share_of = share_of(live),
                                    .bound = live->bound};
    if (out->site != CW_SITE_NONE)
        out->device = snapshot->site[out->site].device;
}

/* Its time is set last: before that, or where the file could not grow, it says nothing. */
static const struct cw_live_event *complete_event(const struct cw_live_model *live, uint32_t index)
{
    const struct cw_live_event *event = cw_view_event(live->view, index);

    return event != NULL && event->t_ns != 0 ? event : NULL;
}

static void read_events(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;
    uint32_t count = cw_view_count(live->view, CW_TABLE_EVENT);

    model->event = cw_live_model_take(live, count, sizeof(*model->event));
    for (uint32_t i = 1; model->event && i < count; i++) {
        const struct cw_live_event *event = complete_event(live, i);

        if (event)
            read_event(event, &model->snapshot, &model->event[model->events++]);
    }
}

/* Among those that were read. */
static uint32_t event_number(const struct cw_live_model *live, uint32_t index)
{
    uint32_t number = 0;

    if (index >= cw_view_count(live->view, CW_TABLE_EVENT) || !complete_event(live, index))
        return CW_SITE_NONE;
    for (uint32_t i = 1; i < index; i++)
        number += complete_event(live, i) != NULL;
    return number < live->model.events ? number : CW_SITE_NONE;
}

void cw_live_model_read_oom(const struct cw_live_oom *oom, const struct cw_snapshot *snapshot,
                            struct cw_report_oom *out)
{
    *out = (struct cw_report_oom){.t_ns = oom->t_ns,
                                  .event = oom->event != 0 ? oom->event - 1 : CW_SITE_NONE,
                                  .site = cw_live_model_site(snapshot, oom->site),
                                  .code = oom->code,
                                  .device = oom->device < CW_DEVICES ? oom->device : CW_DEVICE_HOST,
                                  .cause = oom->cause,
                                  .unserved = oom->unserved,
                                  .is_fragmented = (uint8_t)cw_oom_is_fragmented(oom),
                                  .bytes = oom->bytes,
                                  .fits = oom->fits,
                                  .limit = oom->limit,
                                  .scope_others = oom->scope_others,
                                  .budget_bytes = oom->budget_bytes,
                                  .budget_used = oom->budget_used,
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
    for (unsigned i = 0; i < out->holders; i++)
        out->holder[i] =
            (struct cw_report_holder){.site = cw_live_model_site(snapshot, oom->holder[i].site),
                                      .bytes = oom->holder[i].bytes,
                                      .blocks = oom->holder[i].blocks};
}

static void read_ooms(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;
    uint32_t count = cw_view_count(live->view, CW_TABLE_OOM);

    model->oom = cw_live_model_take(live, count, sizeof(*model->oom));
    for (uint32_t i = 1; model->oom && i < count; i++) {
        const struct cw_live_oom *oom = cw_view_oom(live->view, i);

        if (!oom || oom->t_ns == 0)
            continue;
        cw_live_model_read_oom(oom, &model->snapshot, &model->oom[model->ooms]);
        model->oom[model->ooms++].event = event_number(live, oom->event);
    }
}

/* ---- budgets ---- */

/* What counts for a budget now, by the tags that it counts. */
static uint64_t budget_live(const struct cw_live_model *live, uint32_t number)
{
    const struct cw_snapshot *snapshot = &live->model.snapshot;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < snapshot->sites; i++) {
        const struct cw_snapshot_site *site = &snapshot->site[i];
        const struct cw_live_tag *tag = site->tag != 0 ? cw_view_tag(live->view, site->tag) : NULL;

        if (tag && LOAD(tag->budget) == number && cw_kind_counted(site->kind) == CW_COUNTED_DEVICE)
            bytes += site->live_bytes;
    }
    return bytes;
}

static void read_budgets(struct cw_live_model *live)
{
    struct cw_report_model *model = &live->model;
    const struct cw_live_budget *from = cw_view_header(live->view)->budget;

    model->budget = cw_live_model_take(live, CW_BUDGETS, sizeof(*model->budget));
    for (uint32_t i = 0; model->budget && i < CW_BUDGETS && LOAD(from[i].pattern) != 0; i++)
        model->budget[model->budgets++] =
            (struct cw_report_budget){.pattern = cw_live_model_text_at(live, LOAD(from[i].pattern)),
                                      .bytes = LOAD(from[i].bytes),
                                      .live = budget_live(live, i + 1),
                                      .peak = LOAD(from[i].peak_bytes),
                                      .peak_ns = LOAD(from[i].peak_ns),
                                      .refused = LOAD(from[i].refused),
                                      .exceeded = LOAD(from[i].exceeded),
                                      .refuses = LOAD(from[i].refuses) != 0,
                                      .is_set = LOAD(from[i].is_set) != 0};
}

/* ---- tensors ---- */

static void read_tensors(struct cw_live_model *live)
{
    const struct cw_report_tensors *from = live->tensors;
    struct cw_report_tensors *to = &live->model.tensors;

    if (!from)
        return;
    *to = *from;
    to->version = cw_live_model_text(live, from->version);
    to->error = cw_live_model_text(live, from->error);
    to->row = cw_live_model_take(live, from->rows, sizeof(*to->row));
    to->rows = to->row ? from->rows : 0;
    for (uint32_t i = 0; i < to->rows; i++) {
        to->row[i] = from->row[i];
        to->row[i].function = cw_live_model_text(live, from->row[i].function);
        to->row[i].file = cw_live_model_text(live, from->row[i].file);
        to->row[i].site = from->row[i].site != 0
                              ? cw_live_model_site(&live->model.snapshot, from->row[i].site)
                              : CW_SITE_NONE;
    }
}

/* ---- rules ---- */

static const char *print_rule(struct cw_live_model *live, const struct cw_rule *rule)
{
    char words[RULE_MAX];
    struct cw_out out;

    cw_out_init(&out, -1, words, sizeof(words));
    cw_rule_print(rule, &out);
    return cw_live_model_text(live, cw_live_model_copy(live, words, out.len));
}

static void read_rules(struct cw_live_model *live)
{
    const struct cw_rules *rules = live->rules;
    struct cw_report_model *model = &live->model;
    uint32_t count = rules && rules->use ? cw_rules_count(rules) : 0;

    model->rule = cw_live_model_take(live, count, sizeof(*model->rule));
    for (uint32_t i = 0; model->rule && i < count; i++) {
        const struct cw_rule *rule = cw_rules_at(rules, i);
        int is_builtin = cw_rule_is_builtin(rule);

        if (i < rules->count || rules->use[i].sites > 0)
            model->rule[model->rules++] = (struct cw_report_rule){
                .id = i,
                .line = is_builtin ? 0 : rule->line,
                .pattern = is_builtin ? rule->pattern : print_rule(live, rule),
                .source = is_builtin ? "built-in" : cw_live_model_text(live, rules->path),
                .owner = cw_rule_owner(rule),
                .leak = rule->leak,
                .use = rules->use[i]};
    }
}

/* ---- caches ---- */

static void add_cache(struct cw_report_model *model, const struct cw_snapshot_site *site)
{
    const struct cw_cache *from = cw_cache_row(site->cache);
    struct cw_report_cache *to = model->cache;

    while (to < model->cache + model->caches && to->id != site->cache)
        to++;
    if (to == model->cache + model->caches) {
        *to = (struct cw_report_cache){.id = site->cache,
                                       .owner = from->owner,
                                       .memory = from->is_host ? "host" : "device",
                                       .keeps = from->keeps,
                                       .inside = from->inside,
                                       .flag = from->flag,
                                       .empties = from->empties};
        model->caches++;
    }
    if (site->leak != CW_LEAK_CACHE)
        return;
    to->blocks += cw_leaked_blocks(site);
    to->bytes += cw_leaked_bytes(site);
}

static void read_caches(struct cw_live_model *live)
{
    const struct cw_snapshot *snapshot = &live->model.snapshot;

    live->model.cache = cw_live_model_take(live, CW_CACHE_COUNT, sizeof(*live->model.cache));
    for (uint32_t i = 0; live->model.cache && i < snapshot->sites; i++)
        if (snapshot->site[i].cache != CW_CACHE_NONE)
            add_cache(&live->model, &snapshot->site[i]);
}

/* ---- all steps ---- */

void cw_live_model_begin(struct cw_live_model *live)
{
    memset(&live->model, 0, offsetof(struct cw_report_model, snapshot));
    live->wants = 0;
    cw_live_model_begin_stacks(live);
    cw_live_model_read_process(live);
    cw_live_model_read_modules(live);
}

void cw_live_model_init(struct cw_live_model *live)
{
    cw_live_model_begin(live);
    cw_report_note_end(&live->model);
    cw_live_model_read_diagnostics(live);
    cw_live_model_read_devices(live);
    read_audit(live);
    read_tags(live);
    read_peaks(&live->model);
    read_old(live);
    read_blocks(live);
    read_events(live);
    read_ooms(live);
    read_budgets(live);
    read_tensors(live);
    read_rules(live);
    read_caches(live);
    cw_report_find_empty(&live->model);
}

void cw_live_model_fini(struct cw_live_model *live)
{
    cw_pages_free(&live->pages);
}
