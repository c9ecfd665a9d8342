/* SPDX-License-Identifier: MIT */
/* The verdict on a run. See verdict.h. */
#include "cli/run/verdict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "cli/model/site_text.h"
#include "cli/run/finding.h"

typedef void (*visit_fn)(void *arg, uint32_t site, const struct cw_run_finding *finding);

/* ---- what is looked at ---- */

static void note_full_device(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    for (uint32_t i = 0; i < model->events; i++) {
        const struct cw_report_event *event = &model->event[i];

        if (event->type != CW_EVENT_OOM || event->cause != CW_CAUSE_DRIVER ||
            event->device >= CW_MAX_DEVICES || !model->snapshot.device[event->device].uuid)
            continue;
        snprintf(verdict->oom_uuid, sizeof(verdict->oom_uuid), "%s",
                 model->snapshot.device[event->device].uuid);
    }
}

/* A failed call is not a site's memory, so each kind of error shows its latest. Only those that are
 * close together are one event. */
static void visit_events(const struct cw_report_model *model, visit_fn visit, void *arg)
{
    for (uint32_t i = model->events; i-- > 0;) {
        const struct cw_report_event *event = &model->event[i];
        struct cw_run_finding finding = {.code = event->code,
                                         .cause = event->cause,
                                         .bytes = event->bytes,
                                         .count = event->count > 1 ? event->count : 1};

        if (event->type == CW_EVENT_FATAL) {
            finding.kind = CW_FOUND_FATAL;
        } else if (event->type == CW_EVENT_INVALID_FREE) {
            finding.kind = CW_FOUND_INVALID_FREE;
            finding.code = event->misuse;
            finding.weight = -(double)((event->misuse + CW_MISUSE_COUNT - 1) % CW_MISUSE_COUNT);
        } else if (event->type == CW_EVENT_OOM) {
            finding.kind = CW_FOUND_OOM;
            finding.weight = (double)event->bytes;
        } else {
            continue;
        }
        visit(arg, event->site, &finding);
    }
}

static void visit_leaks(const struct cw_report_model *model, visit_fn visit, void *arg)
{
    const struct cw_snapshot_list *leaks = &model->snapshot.leaks;

    for (uint32_t i = 0; i < leaks->count; i++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[leaks->site[i]];

        visit(arg, leaks->site[i],
              &(struct cw_run_finding){.kind = CW_FOUND_LEAK,
                                       .bytes = cw_leaked_bytes(site),
                                       .weight = (double)cw_leaked_bytes(site),
                                       .blocks = cw_leaked_blocks(site)});
    }
}

static void visit_growth(const struct cw_report_model *model, visit_fn visit, void *arg)
{
    const struct cw_snapshot_growth *growth = &model->snapshot.growth;

    for (uint32_t i = 0; i < growth->suspects; i++) {
        uint32_t site = growth->suspect[i];
        const struct cw_growth_row *row = cw_snapshot_growth_row(&model->snapshot, site);
        const struct cw_cache *cache = cw_cache_row(model->snapshot.site[site].cache);

        if (row)
            visit(arg, site,
                  &(struct cw_run_finding){.kind = CW_FOUND_GROWTH,
                                           .slope = row->trend.slope,
                                           .weight = row->trend.slope,
                                           .end_ns = growth->end_ns,
                                           .cache = cache ? cache->owner : NULL});
    }
}

/* The GPU with the largest peak. */
static uint32_t peak_gpu(const struct cw_report_model *model)
{
    const struct cw_snapshot_device *device = model->snapshot.device;
    uint32_t most = 0;

    for (uint32_t i = 1; i < CW_MAX_DEVICES; i++)
        if (device[i].peak_bytes > device[most].peak_bytes)
            most = i;
    return most;
}

/* Of those selected, if some are. */
static uint32_t count_sites(const struct cw_report_model *model)
{
    return model->selection ? model->selection->sites : model->snapshot.sites;
}

static void visit_holders(const struct cw_report_model *model, uint32_t device, visit_fn visit,
                          void *arg)
{
    uint8_t kind = device == CW_DEVICE_HOST ? CW_FOUND_HOST_HOLDER : CW_FOUND_HOLDER;

    for (uint32_t i = 0; i < count_sites(model); i++) {
        uint32_t index = model->selection ? model->selection->site[i] : i;
        const struct cw_snapshot_site *site = &model->snapshot.site[index];

        if (site->at_peak_bytes != 0 && cw_report_site_home(site) == device)
            visit(arg, index,
                  &(struct cw_run_finding){.kind = kind,
                                           .bytes = site->at_peak_bytes,
                                           .weight = (double)site->at_peak_bytes,
                                           .blocks = site->at_peak_blocks});
    }
}

static void visit_held(const struct cw_report_model *model, visit_fn visit, void *arg)
{
    for (uint32_t i = 0; i < model->snapshot.sites; i++) {
        uint64_t bytes = model->snapshot.site[i].held_until_exit;

        if (bytes != 0)
            visit(arg, i,
                  &(struct cw_run_finding){
                      .kind = CW_FOUND_HELD, .bytes = bytes, .weight = (double)bytes});
    }
}

/* ---- tensors ---- */

/* The line that grew most since half of the time, or NULL. */
static const struct cw_report_tensor *grown_line(const struct cw_report_tensors *tensors)
{
    const struct cw_report_tensor *most = NULL;
    uint64_t growth = 0;

    for (uint32_t i = 0; i < tensors->rows; i++) {
        const struct cw_report_tensor *row = &tensors->row[i];

        if (!row->file || row->peak_bytes <= row->half_bytes ||
            row->peak_bytes - row->half_bytes <= growth)
            continue;
        growth = row->peak_bytes - row->half_bytes;
        most = row;
    }
    return most;
}

static void place_at_line(const struct cw_report_tensor *row, struct cw_site_place *place)
{
    char *call = place->call[0];

    place->calls = 1;
    if (row->file)
        snprintf(call, CW_SITE_PLACE_MAX, "%.100s %.40s:%" PRIu32,
                 row->function ? row->function : "?", cw_last_component(row->file), row->line);
    else
        snprintf(call, CW_SITE_PLACE_MAX, "C++ (autograd)");
}

/* ---- collecting ---- */

struct wanting {
    const struct cw_report_model *model;
    cw_report_want_fn want;
    void *arg;
};

static void want_site(void *arg, uint32_t site, const struct cw_run_finding *finding)
{
    const struct wanting *wanting = arg;
    const struct cw_snapshot_site *from = cw_report_site(wanting->model, site);

    (void)finding;
    if (from)
        wanting->want(wanting->arg, from->stack);
}

void cw_verdict_want(const struct cw_report_model *model, cw_report_want_fn want, void *arg)
{
    struct wanting wanting = {model, want, arg};

    visit_events(model, want_site, &wanting);
    visit_leaks(model, want_site, &wanting);
    visit_growth(model, want_site, &wanting);
    visit_holders(model, peak_gpu(model), want_site, &wanting);
    visit_holders(model, CW_DEVICE_HOST, want_site, &wanting);
    visit_held(model, want_site, &wanting);
}

struct adding {
    struct cw_run_verdict *verdict;
    const struct cw_report_model *model;
    const struct cw_report_tensor *grown; /* of its tensors the line that grew most, or NULL */
    uint64_t *stack_key; /* of places, by stack; 0: not made yet. NULL: out of memory */
};

/* Once for each stack: many sites may have it, by tag and device. */
static uint64_t key_of_site(const struct adding *adding, const struct cw_snapshot_site *site)
{
    int is_kept = adding->stack_key && site->stack <= adding->model->stacks;
    struct cw_site_place place;
    uint64_t key;

    if (is_kept && adding->stack_key[site->stack] != 0)
        return adding->stack_key[site->stack];
    cw_site_place_find(adding->model, site, &place);
    if (place.calls == 0)
        return site->id;
    key = cw_finding_key(&place);
    if (is_kept)
        adding->stack_key[site->stack] = key;
    return key;
}

static struct cw_run_finding *merge(struct cw_run_verdict *verdict,
                                    const struct cw_run_finding *from)
{
    struct cw_run_finding *finding = cw_findings_merge(&verdict->findings, from);

    if (!finding)
        verdict->is_short = 1;
    return finding;
}

static void merge_at_line(struct cw_run_verdict *verdict, const struct cw_report_tensor *row,
                          struct cw_run_finding *from)
{
    struct cw_site_place place;
    struct cw_run_finding *finding;

    place_at_line(row, &place);
    from->site = CW_SITE_NONE;
    from->key = cw_finding_key(&place);
    finding = merge(verdict, from);
    if (!finding || finding->place)
        return;
    finding->place = malloc(sizeof(place));
    if (finding->place)
        *finding->place = place;
    else
        verdict->is_short = 1;
}

static void add_finding(void *arg, uint32_t index, const struct cw_run_finding *finding)
{
    struct adding *adding = arg;
    const struct cw_snapshot_site *site = cw_report_site(adding->model, index);
    struct cw_run_finding from = *finding;

    snprintf(from.api, sizeof(from.api), "%s", site ? site->api : "");
    if (finding->cache && adding->grown) {
        merge_at_line(adding->verdict, adding->grown, &from);
        return;
    }
    from.site = index;
    from.key = site ? key_of_site(adding, site) : 0;
    merge(adding->verdict, &from);
}

static void add_line(struct cw_run_verdict *verdict, enum cw_finding_kind kind,
                     const struct cw_report_tensor *row, uint64_t bytes, uint64_t tensors)
{
    struct cw_run_finding from = {
        .kind = kind, .bytes = bytes, .blocks = tensors, .weight = (double)bytes};

    if (bytes == 0)
        return;
    merge_at_line(verdict, row, &from);
}

/* On any device: ranks have devices of their own. */
static uint64_t key_of(const struct cw_report_model *model, const struct cw_snapshot_site *site)
{
    uint64_t key = cw_hash_add_text(cw_hash_text(site->api), cw_report_tag_label(model, site->tag));

    return cw_hash_mix(cw_hash_mix(key, site->id), site->kind);
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Equal keys of one process are several sites, by device. */
static void number_equal(uint64_t *key, size_t count)
{
    uint64_t last = 0, equal = 0;

    qsort(key, count, sizeof(*key), compare_keys);
    for (size_t i = 0; i < count; i++) {
        equal = i > 0 && key[i] == last ? equal + 1 : 0;
        last = key[i];
        key[i] = cw_hash_mix(last, equal);
    }
}

static void add_leak_sites(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    const struct cw_snapshot_list *leaks = &model->snapshot.leaks;
    size_t count = verdict->leak_sites + leaks->count, kept = 0;
    uint64_t *key = reallocarray(verdict->leak_site, count + 1, sizeof(*key));

    if (!key) {
        verdict->is_short = 1;
        return;
    }
    verdict->leak_site = key;
    for (uint32_t i = 0; i < leaks->count; i++)
        key[verdict->leak_sites + i] = key_of(model, &model->snapshot.site[leaks->site[i]]);
    number_equal(key + verdict->leak_sites, leaks->count);
    qsort(key, count, sizeof(*key), compare_keys);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || key[i] != key[kept - 1])
            key[kept++] = key[i];
    verdict->leak_sites = kept;
}

static void add_leaks(struct adding *adding)
{
    const struct cw_snapshot *snapshot = &adding->model->snapshot;

    adding->verdict->leaked_bytes += snapshot->leaks.bytes;
    adding->verdict->leaked_blocks += snapshot->leaks.blocks;
    adding->verdict->all_leaked_bytes += snapshot->summary.leaked_bytes;
    add_leak_sites(adding->verdict, adding->model);
    visit_leaks(adding->model, add_finding, adding);
}

static void add_held(struct adding *adding)
{
    const struct cw_snapshot *snapshot = &adding->model->snapshot;

    adding->verdict->held_bytes += snapshot->summary.held_bytes;
    visit_held(adding->model, add_finding, adding);
}

static void add_tensors(struct cw_run_verdict *verdict, const struct cw_report_tensors *tensors)
{
    if (!tensors->framework)
        return;
    verdict->framework = tensors->framework;
    snprintf(verdict->framework_error, sizeof(verdict->framework_error), "%s",
             tensors->error ? tensors->error : "");
    verdict->has_tensors |= cw_report_tensors_tell(tensors);
    verdict->held_bytes += tensors->exit_bytes;
    for (uint32_t i = 0; i < tensors->rows; i++) {
        const struct cw_report_tensor *row = &tensors->row[i];

        add_line(verdict, CW_FOUND_TENSORS, row, row->peak_bytes, row->peak_tensors);
        add_line(verdict, CW_FOUND_HELD, row, row->exit_bytes, row->exit_tensors);
    }
}

static void add_peak(struct adding *adding, uint32_t device, enum cw_finding_kind holders,
                     struct cw_verdict_peak *peak)
{
    uint64_t bytes = adding->model->snapshot.device[device].peak_bytes;

    if (bytes <= peak->bytes)
        return;
    *peak = (struct cw_verdict_peak){bytes, device};
    cw_findings_drop(&adding->verdict->findings, holders);
    visit_holders(adding->model, device, add_finding, adding);
}

static void add_peaks(struct adding *adding)
{
    const struct cw_snapshot_device *device = adding->model->snapshot.device;
    struct cw_run_verdict *verdict = adding->verdict;
    unsigned gpus = 0;

    for (uint32_t i = 0; i < CW_MAX_DEVICES; i++)
        gpus += device[i].peak_bytes != 0;
    verdict->has_several |= gpus > 1;
    add_peak(adding, peak_gpu(adding->model), CW_FOUND_HOLDER, &verdict->gpu);
    add_peak(adding, CW_DEVICE_HOST, CW_FOUND_HOST_HOLDER, &verdict->host);
}

static void add_caches(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    const struct cw_snapshot_list *caches = &model->snapshot.caches;

    for (uint32_t i = 0; i < caches->count; i++) {
        const struct cw_snapshot_site *site = &model->snapshot.site[caches->site[i]];

        if (site->device != CW_DEVICE_HOST && cw_cache_row(site->cache))
            verdict->cache_bytes[site->cache] += cw_leaked_bytes(site);
    }
}

/* The node of a graph has a site, also where no launch makes a block (core/device/graph.h). */
static void note_graphs(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    for (uint32_t i = 0; i < model->snapshot.sites; i++)
        verdict->has_graphs |= model->snapshot.site[i].kind == CW_KIND_GRAPH;
}

/* One that was refused has had its warning when the process started. */
static void note_audit(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    const struct cw_report_audit *audit = &model->audit;
    const char *why = "CUPTI reports when the process ends";

    if (audit->status == CW_AUDIT_DONE) {
        verdict->audited++;
        verdict->audit_findings += audit->all_findings;
        verdict->audit_dropped += audit->dropped + audit->not_kept;
    } else if (audit->status == CW_AUDIT_CUT || audit->status == CW_AUDIT_RUNNING) {
        verdict->unaudited++;
        if (audit->status == CW_AUDIT_CUT)
            why = audit->why;
        else if (!model->is_alive)
            why = "the process was killed";
        snprintf(verdict->audit_why, sizeof(verdict->audit_why), "%s", why);
    }
}

static void note_unseen(struct cw_run_verdict *verdict, const struct cw_process_facts *process)
{
    if (process->unseen)
        snprintf(verdict->unseen_object, sizeof(verdict->unseen_object), "%s", process->unseen);
}

static void add_process(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    struct adding adding = {verdict, model, grown_line(&model->tensors),
                            calloc((size_t)model->stacks + 1, sizeof(*adding.stack_key))};
    struct cw_snapshot_summary sum = cw_report_summary(model);

    verdict->processes++;
    verdict->running += model->is_alive;
    if (model->is_killed) {
        verdict->killed++;
        verdict->killed_bytes += model->snapshot.summary.leaked_bytes;
    }
    cw_snapshot_summary_add(&verdict->sum, &sum);
    verdict->ooms += cw_report_oom_calls(model);
    verdict->fallback_bytes += model->snapshot.pressure.all.fallback_bytes;
    verdict->has_pool |= model->snapshot.pool.on;
    verdict->unseen += model->process.unseen != NULL;
    note_unseen(verdict, &model->process);
    note_full_device(verdict, model);
    note_graphs(verdict, model);
    note_audit(verdict, model);
    visit_events(model, add_finding, &adding);
    if (!model->is_killed) {
        add_leaks(&adding);
        visit_growth(model, add_finding, &adding);
    }
    add_caches(verdict, model);
    add_held(&adding);
    add_tensors(verdict, &model->tensors);
    add_peaks(&adding);
    if (cw_findings_name(&verdict->findings, model) != 0)
        verdict->is_short = 1;
    free(adding.stack_key);
}

static void add_refused(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    verdict->refused++;
    verdict->init_error = model->process.init_error;
    snprintf(verdict->refused_exe, sizeof(verdict->refused_exe), "%s",
             cw_last_component(model->process.exe));
}

static void add_uncalled(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    verdict->uncalled++;
    note_unseen(verdict, &model->process);
}

int cw_verdict_add(struct cw_run_verdict *verdict, const struct cw_report_model *model)
{
    if (model->process.init_error != 0)
        add_refused(verdict, model);
    else if (model->process.is_uncalled)
        add_uncalled(verdict, model);
    else
        add_process(verdict, model);
    return model->process.init_error == 0 && !model->process.is_uncalled;
}

int cw_verdict_is_bad(const struct cw_run_verdict *verdict)
{
    const struct cw_snapshot_summary *sum = &verdict->sum;
    struct cw_run_finding *growth[CW_FINDINGS_SHOWN];

    if (cw_findings_rank(&verdict->findings, CW_FOUND_GROWTH, growth) != 0)
        return 1;
    return sum->invalid_frees + sum->fatal_errors + sum->leaked_blocks + verdict->ooms > 0;
}

void cw_verdict_free(struct cw_run_verdict *verdict)
{
    cw_findings_free(&verdict->findings);
    free(verdict->leak_site);
    *verdict = (struct cw_run_verdict){.processes = 0};
}
