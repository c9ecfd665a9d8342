/* SPDX-License-Identifier: MIT */
/*
 * Filling the model of the report layer from JSON. See model_report.h.
 *
 * Numbers are what the reader made of them; words become the numbers of their tables, those of a
 * later version the number behind the last. Owns its arrays, and borrows all strings of the model.
 */
#include "cli/model/model_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/model/model_report_parts.h"
#include "report/text/report_text.h"

void *cw_model_report_take(struct cw_model_report *self, size_t count, size_t size)
{
    void *items = self->arrays < CW_ARRAY_LEN(self->array) ? calloc(count + 1, size) : NULL;

    if (items)
        self->array[self->arrays++] = items;
    else
        self->failed = 1;
    return items;
}

unsigned cw_model_report_find(const char *name, const char *(*name_of)(unsigned), unsigned count)
{
    unsigned at = 0;

    while (at < count && strcmp(name, name_of(at)) != 0)
        at++;
    return at;
}

static uint8_t device_of(uint32_t ordinal)
{
    return ordinal < CW_DEVICES ? (uint8_t)ordinal : CW_DEVICE_HOST;
}

/* ---- the process ---- */

static void fill_process(struct cw_model_report *self)
{
    const struct cw_model_process *process = &self->from->process;
    struct cw_report_model *to = &self->model;

    to->pid = process->pid;
    to->version = process->version;
    to->command = process->command[0] ? process->command : process->exe;
    to->end = process->end[0] ? process->end : "unknown";
    to->has_exit_code = process->has_exit_code;
    to->exit_code = process->exit_code;
    to->has_no_stacks = process->has_no_stacks;
    to->invalid_frees = self->from->invalid_frees;
    for (uint32_t i = 0; i < self->from->diagnostics && i < CW_REPORT_DIAGNOSTICS; i++) {
        struct cw_report_diagnostic *diagnostic = &to->diagnostic[to->diagnostics++];

        snprintf(diagnostic->text, sizeof(diagnostic->text), "%s", self->from->diagnostic[i].text);
        diagnostic->is_loss = self->from->diagnostic[i].is_loss;
    }
}

static void fill_summary(struct cw_model_report *self)
{
    const struct cw_model_summary *from = &self->from->summary;

    self->snapshot.duration_ns = self->from->process.duration_ns;
    self->snapshot.summary = (struct cw_snapshot_summary){.leaked_bytes = from->leaked_bytes,
                                                          .leaked_blocks = from->leaked_blocks,
                                                          .leak_sites = from->leak_sites,
                                                          .peak_bytes = from->peak_bytes,
                                                          .allocs = from->allocs,
                                                          .frees = from->frees,
                                                          .failed = from->failed,
                                                          .pool_hits = from->pool_hits,
                                                          .pool_misses = from->pool_misses};
}

static void fill_audit(struct cw_model_report *self)
{
    const struct cw_model_audit *from = &self->from->audit;
    struct cw_report_model *to = &self->model;

    to->audit = &from->of;
    to->audit_why = from->why ? from->why : "";
    for (unsigned i = 0; i < CW_AUDIT_FINDINGS; i++)
        to->audit_source[i] = from->source[i] ? from->source[i] : "";
    for (unsigned i = 0; i < CW_AUDIT_VARIABLES; i++)
        to->audit_name[i] = from->name[i] ? from->name[i] : "";
}

/* ---- tags ---- */

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* The number of a name, a new one where it has none yet; 0: it has none, or there is no room. */
uint32_t cw_model_report_tag(struct cw_model_report *self, const char *name)
{
    uint32_t at = hash_of(name) % TAG_SLOTS;

    if (name[0] == '\0')
        return 0;
    for (; self->tag_slot[at] != 0; at = (at + 1) % TAG_SLOTS)
        if (strcmp(self->model.tag[self->tag_slot[at]].name, name) == 0)
            return self->tag_slot[at];
    if (self->model.tags == TAGS_MAX)
        return 0;
    self->tag_slot[at] = self->model.tags;
    self->model.tag[self->model.tags] = (struct cw_report_tag){name, ""};
    return self->model.tags++;
}

static int begin_tags(struct cw_model_report *self)
{
    self->model.tag = cw_model_report_take(self, TAGS_MAX, sizeof(*self->model.tag));
    self->tag_slot = cw_model_report_take(self, TAG_SLOTS, sizeof(*self->tag_slot));
    if (self->failed)
        return -1;
    self->model.tag[0] = (struct cw_report_tag){"", ""};
    self->model.tags = 1;
    return 0;
}

/* ---- sites ---- */

#define NOW_NS (UINT64_C(1) << 63) /* ages are known, and births only by them */

static uint8_t leak_of(const char *name)
{
    unsigned leak = CW_LEAK_NONE;

    if (strcmp(name, "ipc-imported") == 0)
        return CW_LEAK_IMPORT;
    while (leak <= CW_LEAK_SUPPRESSED && strcmp(name, cw_leak_class_name(leak)) != 0)
        leak++;
    return leak <= CW_LEAK_SUPPRESSED ? (uint8_t)leak : CW_LEAK_NONE;
}

static void fill_site(struct cw_model_report *self, const struct cw_model_site *from,
                      struct cw_snapshot_site *to)
{
    *to = (struct cw_snapshot_site){
        .stack = from->stack != CW_MODEL_NONE ? from->stack + 1 : 0,
        .id = from->id,
        .owner = from->owner != CW_MODEL_NONE ? from->owner + 1 : 0,
        .kind = (uint8_t)cw_model_report_find(from->kind, cw_kind_name, CW_KIND_COUNT),
        .device = device_of(from->device),
        .leak = leak_of(from->leak),
        .past_cap = from->is_past_cap,
        .tag = (uint16_t)cw_model_report_tag(self, from->tag),
        .rule = from->rule < CW_RULE_NONE ? (uint16_t)from->rule : CW_RULE_NONE,
        .api = from->api,
        .first_ns = from->first_ns,
        .last_ns = from->last_ns,
        .allocs = from->total.count,
        .oom = from->oom,
        .reclaimed = from->reclaimed.count,
        .reclaimed_bytes = from->reclaimed.bytes,
        .live_blocks = from->live.count,
        .live_bytes = from->live.bytes,
        .live_held = from->held,
        .at_peak_blocks = from->at_peak.count,
        .at_peak_bytes = from->at_peak.bytes,
    };
    if (from->has_age && from->oldest_age_ns < NOW_NS)
        to->oldest_ns = NOW_NS - from->oldest_age_ns;
}

static void fill_sites(struct cw_model_report *self)
{
    struct cw_snapshot *to = &self->snapshot;

    to->site = cw_model_report_take(self, self->from->sites, sizeof(*to->site));
    for (uint32_t i = 0; to->site && i < self->from->sites; i++) {
        fill_site(self, &self->from->site[i], &to->site[i]);
        to->kind[0].oom += to->site[i].oom; /* it is their sum that counts */
    }
    to->sites = to->site ? self->from->sites : 0;
    to->now_ns = NOW_NS;
}

/* ---- lists of sites ---- */

typedef int (*wanted_fn)(unsigned leak);

static int is_leak(unsigned leak)
{
    return cw_leak_is_counted(leak);
}

static int is_library(unsigned leak)
{
    return leak == CW_LEAK_LIBRARY;
}

static int is_cache(unsigned leak)
{
    return leak == CW_LEAK_CACHE;
}

static int is_import(unsigned leak)
{
    return leak == CW_LEAK_IMPORT;
}

static int is_suppressed(unsigned leak)
{
    return leak == CW_LEAK_SUPPRESSED;
}

static int is_other(unsigned leak)
{
    return leak == CW_LEAK_SUPPRESSED || leak == CW_LEAK_HANDLE;
}

/* Those of the selection, in its order. */
static void fill_list(struct cw_model_report *self, wanted_fn is_wanted,
                      struct cw_snapshot_list *list)
{
    list->site = cw_model_report_take(self, self->sites, sizeof(*list->site));
    for (uint32_t i = 0; list->site && i < self->sites; i++) {
        const struct cw_snapshot_site *site = &self->snapshot.site[self->site[i]];

        if (!is_wanted(site->leak))
            continue;
        list->site[list->count++] = self->site[i];
        list->bytes += cw_leaked_bytes(site);
        list->blocks += cw_leaked_blocks(site);
    }
}

static void fill_lists(struct cw_model_report *self)
{
    struct cw_snapshot *to = &self->snapshot;

    fill_list(self, is_leak, &to->leaks);
    fill_list(self, is_library, &to->library);
    fill_list(self, is_cache, &to->caches);
    fill_list(self, is_import, &to->imports);
    fill_list(self, is_suppressed, &to->suppressed);
    fill_list(self, is_other, &self->selection.apart);
}

static void fill_old(struct cw_model_report *self)
{
    struct cw_snapshot *to = &self->snapshot;

    to->old_ns = self->from->old_ns;
    to->old.site = cw_model_report_take(self, self->from->olds, sizeof(*to->old.site));
    for (uint32_t i = 0; to->old.site && i < self->from->olds; i++) {
        const struct cw_model_old *old = &self->from->old[i];

        if (old->site >= to->sites || !self->is_shown[old->site])
            continue;
        to->site[old->site].old_blocks = old->old.count;
        to->site[old->site].old_bytes = old->old.bytes;
        to->site[old->site].oldest_ns = NOW_NS - (old->age_ns < NOW_NS ? old->age_ns : 0);
        to->old.site[to->old.count++] = old->site;
        to->old.bytes += old->old.bytes;
        to->old.blocks += old->old.count;
    }
}

static const struct cw_snapshot_site *sorted; /* those that are being sorted */

static int compare_peak(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

    if (sorted[i].at_peak_bytes != sorted[k].at_peak_bytes)
        return sorted[i].at_peak_bytes < sorted[k].at_peak_bytes ? 1 : -1;
    return i < k ? -1 : i > k;
}

static void fill_peak(struct cw_model_report *self, uint32_t device, uint32_t *site)
{
    struct cw_report_peak *peak = &self->model.peak[device];

    for (uint32_t i = 0; i < self->sites; i++) {
        const struct cw_model_site *from = &self->from->site[self->site[i]];

        if (from->at_peak.bytes > 0 && cw_model_site_home(from) == device)
            site[peak->count++] = self->site[i];
    }
    sorted = self->snapshot.site;
    qsort(site, peak->count, sizeof(*site), compare_peak);
    peak->site = site;
    peak->shown =
        peak->count < CW_PEAK_SITES || self->selection.shows_all ? peak->count : CW_PEAK_SITES;
    for (uint32_t i = peak->shown; i < peak->count; i++)
        peak->rest += self->snapshot.site[site[i]].at_peak_bytes;
}

static void fill_peaks(struct cw_model_report *self)
{
    uint32_t *site = cw_model_report_take(self, self->sites, sizeof(*site));

    for (uint32_t i = 0; site && i < self->from->devices; i++) {
        uint32_t device = self->from->device[i].ordinal;

        if (device >= CW_DEVICES || self->model.peak[device].site)
            continue;
        fill_peak(self, device, site);
        site += self->model.peak[device].count; /* each site is counted once */
    }
}

static void fill_selection(struct cw_model_report *self, const struct cw_selection *selection)
{
    struct cw_report_selection *to = &self->selection;
    struct cw_report_rank *rank;

    to->sites = self->sites;
    to->of = self->from->sites_of;
    to->shows_all = selection->top != 0;
    if (self->sites != to->of || selection->top != 0 || selection->has_sort ||
        selection->metric != CW_METRIC_LIVE)
        self->model.selection = to;
    if (selection->metric == CW_METRIC_LIVE)
        return;
    to->metric = cw_metric_name(selection->metric);
    to->is_count = selection->metric == CW_METRIC_COUNT;
    to->rank = rank = cw_model_report_take(self, self->sites, sizeof(*rank));
    for (uint32_t i = 0; rank && i < self->sites; i++) {
        const struct cw_model_site *site = &self->from->site[self->site[i]];

        if (site->total.count > 0)
            rank[to->ranks++] =
                (struct cw_report_rank){self->site[i], cw_metric_of(site, selection->metric)};
    }
}

/* ---- events and accounts ---- */

static uint16_t share_of(double part)
{
    return part > 0 && part < 6 ? (uint16_t)llround(part * 10000) : 0;
}

static void fill_event(const struct cw_model_event *from, struct cw_report_event *to)
{
    *to = (struct cw_report_event){
        .t_ns = from->t_ns,
        .key = strtoull(from->address, NULL, 16),
        .bytes = from->bytes,
        .free_bytes = from->free,
        .total_bytes = from->total,
        .released = from->released,
        .site = from->site,
        .first_site = from->first_site,
        .code = from->code,
        .count = from->count,
        .share = share_of(from->share),
        .type = (uint8_t)cw_model_report_find(from->type, cw_event_name, CW_EVENT_COUNT),
        .device = device_of(from->device),
        .cause = (uint8_t)cw_model_report_find(from->cause, cw_cause_name, CW_CAUSE_COUNT),
        .level = (uint8_t)cw_model_report_find(from->level, cw_level_name, CW_LEVEL_COUNT),
        .level_before =
            (uint8_t)cw_model_report_find(from->level_before, cw_level_name, CW_LEVEL_COUNT),
        .rung = (uint8_t)cw_model_report_find(from->rung, cw_rung_name, CW_RUNG_COUNT)};
    if (to->type == CW_EVENT_PRESSURE)
        to->cause = strcmp(from->share_of, "limit") == 0 ? CW_CAUSE_LIMIT : CW_CAUSE_DRIVER;
}

void cw_model_report_oom(const struct cw_model *model, const struct cw_model_oom *oom,
                         struct cw_report_oom *out)
{
    *out = (struct cw_report_oom){
        .t_ns = oom->t_ns,
        .event = oom->event,
        .site = oom->site,
        .code = oom->code,
        .device = device_of(oom->device),
        .cause = (uint8_t)cw_model_report_find(oom->cause, cw_cause_name, CW_CAUSE_COUNT),
        .unserved =
            oom->fallback[0] == '\0'
                ? CW_UNSERVED_UNASKED
                : (uint8_t)cw_model_report_find(oom->fallback, cw_unserved_name, CW_UNSERVED_COUNT),
        .is_fragmented = oom->is_fragmented,
        .bytes = oom->bytes,
        .fits = oom->fits,
        .limit = oom->limit,
        .min_free = oom->min_free,
        .live = oom->live,
        .held = oom->held,
        .idle = oom->idle,
        .spare = oom->spare,
        .free_bytes = oom->free,
        .total_bytes = oom->total,
        .others = oom->others,
        .rest_bytes = oom->rest.bytes,
        .rest_blocks = oom->rest.count};
    for (uint32_t i = 0; i < oom->holders && i < CW_OOM_HOLDERS; i++) {
        const struct cw_model_holder *holder = &model->holder[oom->first_holder + i];

        out->holder[i].site = holder->site;
        out->holder[i].bytes = holder->held.bytes;
        out->holder[i].blocks = holder->held.count;
        out->holders++;
    }
}

static void fill_events(struct cw_model_report *self)
{
    struct cw_report_model *to = &self->model;

    to->event = cw_model_report_take(self, self->from->events, sizeof(*to->event));
    for (; to->event && to->events < self->from->events; to->events++)
        fill_event(&self->from->event[to->events], &to->event[to->events]);
    to->oom = cw_model_report_take(self, self->from->ooms, sizeof(*to->oom));
    for (; to->oom && to->ooms < self->from->ooms; to->ooms++)
        cw_model_report_oom(self->from, &self->from->oom[to->ooms], &to->oom[to->ooms]);
}

/* ---- rules ---- */

static const char *words_of(struct cw_model_report *self, const struct cw_model_rule *rule)
{
    size_t size = strlen(rule->leak) + strlen(rule->owner) + strlen(rule->pattern) + 8;
    char *words;

    if (rule->line != 0)
        return rule->pattern;
    words = self->words + self->words_used;
    self->words_used +=
        (size_t)snprintf(words, size, "%s %s (%s)", rule->leak, rule->owner, rule->pattern) + 1;
    return words;
}

static void fill_rules(struct cw_model_report *self)
{
    struct cw_report_model *to = &self->model;
    size_t size = 0;

    for (uint32_t i = 0; i < self->from->rules; i++)
        size += strlen(self->from->rule[i].leak) + strlen(self->from->rule[i].owner) +
                strlen(self->from->rule[i].pattern) + 8;
    self->words = cw_model_report_take(self, size, 1);
    to->rule = cw_model_report_take(self, self->from->rules, sizeof(*to->rule));
    to->rules_path = "";
    for (uint32_t i = 0; to->rule && self->words && i < self->from->rules; i++) {
        const struct cw_model_rule *from = &self->from->rule[i];

        to->rule[to->rules++] =
            (struct cw_report_rule){.id = from->id,
                                    .line = from->line,
                                    .owner = from->line == 0 ? from->owner : NULL,
                                    .words = words_of(self, from),
                                    .use = {.bytes = from->kept.bytes,
                                            .blocks = from->kept.count,
                                            .sites = (uint32_t)from->sites,
                                            .past = (uint32_t)from->past_cap}};
        if (from->line != 0 && to->rules_path[0] == '\0')
            to->rules_path = from->source;
    }
}

/* ---- the whole ---- */

static void mark_shown(struct cw_model_report *self)
{
    self->is_shown = cw_model_report_take(self, self->from->sites, 1);
    for (uint32_t i = 0; self->is_shown && i < self->sites; i++)
        self->is_shown[self->site[i]] = 1;
}

static void fill(struct cw_model_report *self, const struct cw_selection *selection)
{
    self->model.snapshot = &self->snapshot;
    mark_shown(self);
    if (self->failed || begin_tags(self) != 0 || cw_model_report_begin_stacks(self) != 0)
        return;
    fill_process(self);
    fill_summary(self);
    fill_audit(self);
    fill_sites(self);
    if (self->failed)
        return;
    fill_selection(self, selection);
    fill_lists(self);
    fill_old(self);
    fill_peaks(self);
    fill_events(self);
    fill_rules(self);
    cw_model_report_fill_devices(self);
    cw_model_report_fill_growth(self);
}

int cw_model_report_write(const struct cw_model *model, const struct cw_selection *selection,
                          const uint32_t *site, uint32_t sites, struct cw_out *out)
{
    struct cw_model_report *self = calloc(1, sizeof(*self));
    int rc = CW_MODEL_REPORT_NO_MEMORY, error = 0;

    if (!self)
        return rc;
    self->from = model;
    self->site = site;
    self->sites = sites;
    fill(self, selection);
    if (!self->failed)
        cw_report_text_want(&self->model, CW_TEXT_FULL, cw_model_report_want, self);
    if (!self->failed)
        cw_model_report_fill_stacks(self);
    if (!self->failed) {
        cw_report_text_write(&self->model, CW_TEXT_FULL, out);
        error = cw_out_flush(out);
        rc = error == 0 ? 0 : -1;
    }
    for (unsigned i = 0; i < self->arrays; i++)
        free(self->array[i]);
    free(self);
    errno = error;
    return rc;
}
