/* SPDX-License-Identifier: MIT */
/*
 * Freezes and sums up a live layout. See snapshot.h.
 *
 * Every array here is as long as a table of the view was when the array was made; the tables may
 * have grown since, so indices are checked against the array's length, never against the table's
 * count. Linear in the records except for sorting the sites: each frame is visited once, callers
 * first, because a frame's parent has a lower index.
 */
#include "report/snapshot/snapshot.h"

#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"
#include "report/symbols/stack.h"

/* ---- identity of stacks ---- */

struct module_facts {
    uint64_t name_hash;
    uint64_t bias;
    uint8_t is_self, is_cuda;
};

struct frame_facts {
    uint64_t hash;  /* the stack from here outwards */
    uint32_t owner; /* module that owns what is allocated from here */
};

struct facts {
    struct module_facts *module;
    struct frame_facts *frame;
    uint32_t modules, frames;
};

static void learn_module(const struct cw_view *view, uint32_t index, struct module_facts *facts)
{
    const struct cw_live_module *module = cw_view_module(view, index);
    const char *name = cw_module_name(view, module);

    facts->name_hash = cw_hash_text(name);
    if (!module)
        return;
    facts->bias = module->bias;
    facts->is_self = module->role == CW_MODULE_SELF;
    facts->is_cuda = (uint8_t)cw_module_is_cuda(module);
}

/* Covers the visible text of a Python line, without its file's directory. */
static uint64_t hash_code(const struct cw_view *view, uint32_t frame, uint64_t outer)
{
    const struct cw_live_code *code = cw_stack_code(view, frame);
    uint64_t hash = cw_hash_mix(outer, cw_hash_text(cw_source_line_file(view, code)));

    return cw_hash_mix(cw_hash_mix(hash, cw_hash_text(cw_view_text(view, code->function))),
                       code->line);
}

/*
 * The hash covers a module's name and the address within its file, which do not depend on the load
 * address. It ignores our own frames, which change with our version.
 */
static void learn_frame(const struct cw_view *view, uint32_t index, struct facts *facts)
{
    const struct cw_live_frame *frame = cw_view_frame(view, index);
    struct frame_facts *out = &facts->frame[index];
    const struct frame_facts *parent;
    const struct module_facts *module;
    uint32_t caller;
    uint32_t home;
    uint64_t offset;

    if (!frame)
        return;
    caller = frame->parent;
    home = frame->module;
    parent = &facts->frame[caller < index ? caller : 0];
    if (cw_stack_code(view, index)) {
        *out = (struct frame_facts){.hash = hash_code(view, index, parent->hash)};
        return;
    }
    module = &facts->module[home < facts->modules ? home : 0];
    *out = *parent;
    if (!module->is_self) {
        offset = module == &facts->module[0] ? 0 : frame->pc - module->bias;
        out->hash = cw_hash_mix(cw_hash_mix(parent->hash, module->name_hash), offset);
    }
    if (!module->is_cuda)
        out->owner = (uint32_t)(module - facts->module);
}

static void facts_fini(struct facts *facts)
{
    cw_mem_free(facts->module, facts->modules * sizeof(*facts->module));
    cw_mem_free(facts->frame, facts->frames * sizeof(*facts->frame));
}

static int facts_init(struct facts *facts, const struct cw_view *view)
{
    facts->modules = cw_view_count(view, CW_TABLE_MODULE);
    facts->frames = cw_view_count(view, CW_TABLE_FRAME);
    facts->module = cw_mem_alloc(facts->modules * sizeof(*facts->module));
    facts->frame = cw_mem_alloc(facts->frames * sizeof(*facts->frame));
    if (!facts->module || !facts->frame) {
        facts_fini(facts);
        return -1;
    }
    facts->module[0].name_hash = CW_HASH_SEED;
    for (uint32_t i = 1; i < facts->modules; i++)
        learn_module(view, i, &facts->module[i]);
    facts->frame[0].hash = CW_HASH_SEED;
    for (uint32_t i = 1; i < facts->frames; i++)
        learn_frame(view, i, facts);
    return 0;
}

static const struct frame_facts *stack_facts(const struct facts *facts, uint32_t stack)
{
    return &facts->frame[stack < facts->frames ? stack : 0];
}

/* ---- merging of live sites ---- */

struct merge_key {
    uint64_t api_hash;
    uint32_t stack;
    uint32_t live_site;
    uint16_t tag;
    uint8_t kind, device, context;
};

static int compare_keys(const struct merge_key *a, const struct merge_key *b)
{
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    if (a->api_hash != b->api_hash)
        return a->api_hash < b->api_hash ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->context != b->context)
        return a->context < b->context ? -1 : 1;
    return a->tag == b->tag ? 0 : a->tag < b->tag ? -1 : 1;
}

static int is_key_before(const void *a, const void *b, const void *arg)
{
    const struct merge_key *left = a;
    const struct merge_key *right = b;
    int order = compare_keys(left, right);

    (void)arg;
    return order != 0 ? order < 0 : left->live_site < right->live_site;
}

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* Whether the process was killed while it wrote the record. */
static int is_incomplete(const struct cw_live_site *site)
{
    return site->api == 0 && LOAD(site->allocs) == 0 && LOAD(site->failed) == 0;
}

/* Memory that ends with a context: stream-ordered and virtual memory belong to a device, and host
 * memory to no device's contexts. */
static int has_context(const struct cw_live_site *site)
{
    switch (site->kind) {
    case CW_KIND_ASYNC:
    case CW_KIND_GRAPH:
    case CW_KIND_VMM:
    case CW_KIND_VMM_HOST:
    case CW_KIND_IMPORTED:
    case CW_KIND_RESERVATION:
    case CW_KIND_MULTICAST:
    case CW_KIND_POOL:
        return 0;
    default:
        return site->device < CW_DEVICE_HOST && site->context < CW_CONTEXT_NUMBERS;
    }
}

static uint32_t collect_keys(const struct cw_view *view, struct merge_key *keys, uint32_t limit)
{
    uint32_t count = 0;

    for (uint32_t i = 1; i < limit; i++) {
        const struct cw_live_site *site = cw_view_site(view, i);
        struct merge_key *key = &keys[count];

        if (!site || is_incomplete(site))
            continue;
        *key = (struct merge_key){.api_hash = cw_hash_text(cw_view_text(view, site->api)),
                                  .stack = site->stack,
                                  .live_site = i,
                                  .tag = site->tag,
                                  .kind = site->kind,
                                  .device = site->device,
                                  .context = has_context(site) ? site->context + 1 : 0};
        if (key->device < CW_DEVICES && key->kind < CW_KIND_COUNT)
            count++;
    }
    return count;
}

static void add_times(struct cw_snapshot_site *to, uint64_t first_ns, uint64_t last_ns)
{
    if (first_ns != 0 && (to->first_ns == 0 || first_ns < to->first_ns))
        to->first_ns = first_ns;
    if (last_ns > to->last_ns)
        to->last_ns = last_ns;
}

static void add_live_site(const struct cw_view *view, struct cw_snapshot_site *to,
                          const struct cw_live_site *from)
{
    struct cw_site_sums sums;
    uint64_t blocks;
    uint64_t bytes;

    cw_view_site_sums(from, &sums);
    add_times(to, LOAD(from->first_ns), LOAD(from->last_ns));
    to->allocs += sums.allocs;
    to->frees += sums.frees;
    to->failed += sums.failed;
    to->oom += sums.oom;
    to->total_bytes += sums.total_bytes;
    to->reclaimed += sums.reclaimed;
    to->reclaimed_bytes += sums.reclaimed_bytes;
    to->live_blocks += sums.live_blocks;
    to->live_bytes += sums.live_bytes;
    to->live_held += sums.live_held;
    to->peak_blocks += sums.peak_blocks;
    to->peak_bytes += sums.peak_bytes;
    to->held_until_exit += sums.ended_bytes;
    cw_view_site_at_peak(view, from, &blocks, &bytes);
    to->at_peak_blocks += blocks;
    to->at_peak_bytes += bytes;
}

static uint32_t site_id(const struct merge_key *key, const struct frame_facts *stack)
{
    uint64_t hash =
        cw_hash_mix(cw_hash_mix(stack->hash, key->api_hash), cw_hash_text(cw_kind_name(key->kind)));

    return (uint32_t)(hash ^ (hash >> 32));
}

static void start_site(struct cw_snapshot *snapshot, const struct facts *facts,
                       const struct merge_key *key, uint32_t index)
{
    const struct frame_facts *stack = stack_facts(facts, key->stack);
    const struct cw_live_site *live = cw_view_site(snapshot->view, key->live_site);
    struct cw_snapshot_site *site = &snapshot->site[index];

    site->number = index;
    site->stack = key->stack;
    site->id = site_id(key, stack);
    site->owner = stack->owner;
    site->kind = key->kind;
    site->device = key->device;
    site->context = snapshot->device[key->device].contexts > 0 ? key->context : 0;
    site->tag = key->tag;
    site->api = live ? cw_view_text(snapshot->view, live->api) : "";
}

static void merge_sites(struct cw_snapshot *snapshot, const struct facts *facts,
                        const struct merge_key *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_live_site *live = cw_view_site(snapshot->view, keys[i].live_site);

        if (i == 0 || compare_keys(&keys[i - 1], &keys[i]) != 0)
            start_site(snapshot, facts, &keys[i], snapshot->sites++);
        if (live)
            add_live_site(snapshot->view, &snapshot->site[snapshot->sites - 1], live);
        snapshot->merged[keys[i].live_site] = snapshot->sites - 1;
    }
}

/* ---- contexts ---- */

static void learn_contexts(struct cw_snapshot *snapshot)
{
    uint32_t records = cw_view_count(snapshot->view, CW_TABLE_CONTEXT);

    for (uint32_t i = 1; i < records; i++) {
        const struct cw_live_context *live = cw_view_context(snapshot->view, i);
        struct cw_snapshot_context *context;

        if (!live || live->device >= CW_MAX_DEVICES || live->number >= CW_CONTEXT_NUMBERS)
            continue;
        context = &snapshot->device[live->device].context[live->number];
        context->number = live->number + 1;
        context->is_primary |= live->primary != 0;
        context->made++;
        if (live->number > 0 && snapshot->device[live->device].contexts <= live->number)
            snapshot->device[live->device].contexts = live->number + 1u;
    }
}

/* ---- sums ---- */

static void add_site(struct cw_snapshot_sums *sums, const struct cw_snapshot_site *site)
{
    sums->live_blocks += site->live_blocks;
    sums->live_bytes += site->live_bytes;
    sums->live_held += site->live_held;
    sums->allocs += site->allocs;
    sums->frees += site->frees;
    sums->failed += site->failed;
    sums->oom += site->oom;
    sums->reclaimed += site->reclaimed;
    sums->reclaimed_bytes += site->reclaimed_bytes;
    sums->total_bytes += site->total_bytes;
}

/* Keeps the largest CW_PEAK_SITES, by insertion. */
static void note_at_peak(const struct cw_snapshot *snapshot, struct cw_snapshot_device *device,
                         uint32_t index)
{
    const struct cw_snapshot_site *sites = snapshot->site;
    uint32_t kept = device->peak_sites < CW_PEAK_SITES ? device->peak_sites : CW_PEAK_SITES;
    uint32_t at = kept;

    if (sites[index].at_peak_bytes == 0)
        return;
    device->peak_sites++;
    while (at > 0 && sites[device->peak[at - 1]].at_peak_bytes < sites[index].at_peak_bytes)
        at--;
    if (kept == CW_PEAK_SITES) {
        uint32_t loser = at == CW_PEAK_SITES ? index : device->peak[CW_PEAK_SITES - 1];

        device->peak_rest += sites[loser].at_peak_bytes;
        if (loser == index)
            return;
        kept--;
    }
    memmove(&device->peak[at + 1], &device->peak[at], (kept - at) * sizeof(uint32_t));
    device->peak[at] = index;
}

/* The device that a counted site's bytes belong to, or NULL. */
static struct cw_snapshot_device *device_of(struct cw_snapshot *snapshot,
                                            const struct cw_snapshot_site *site)
{
    unsigned home = cw_kind_home(site->kind, site->device);

    return home < CW_DEVICES ? &snapshot->device[home] : NULL;
}

static void add_up(struct cw_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->sites; i++) {
        struct cw_snapshot_site *site = &snapshot->site[i];
        struct cw_snapshot_device *device = device_of(snapshot, site);

        add_site(&snapshot->kind[site->kind], site);
        if (!device)
            continue;
        device->seen = 1;
        snapshot->summary.held_bytes += site->held_until_exit;
        add_site(&device->sums, site);
        if (site->context != 0)
            add_site(&device->context[site->context - 1].sums, site);
        note_at_peak(snapshot, device, i);
    }
}

static void finish_device(struct cw_snapshot *snapshot, unsigned index)
{
    const struct cw_live_device *live = &cw_view_header(snapshot->view)->device[index];
    struct cw_snapshot_device *device = &snapshot->device[index];
    uint64_t held = LOAD(live->sample_held);

    device->ordinal = (uint8_t)index;
    device->idle_blocks = snapshot->pool.device[index].sums.idle_blocks;
    device->idle_bytes = snapshot->pool.device[index].sums.idle_bytes;
    device->peak_bytes = LOAD(live->peak_bytes);
    device->peak_blocks = LOAD(live->peak_blocks);
    device->peak_ns = LOAD(live->peak_ns);
    device->name = LOAD(live->known) && live->name[0] != '\0' ? live->name : NULL;
    if (LOAD(live->known) || device->peak_bytes > 0 || snapshot->pool.device[index].used)
        device->seen = 1;
    if (LOAD(live->driver_total) != 0) {
        device->seen = 1;
        device->sampled = 1;
        device->driver_used = LOAD(live->driver_used);
        device->unattributed = device->driver_used > held ? device->driver_used - held : 0;
    }
    if (device->seen && index < CW_DEVICE_HOST)
        snapshot->devices++;
}

static void sum_up(struct cw_snapshot *snapshot)
{
    struct cw_snapshot_summary *summary = &snapshot->summary;

    for (unsigned i = 0; i < CW_DEVICES; i++) {
        finish_device(snapshot, i);
        summary->allocs += snapshot->device[i].sums.allocs;
        summary->frees += snapshot->device[i].sums.frees;
        summary->failed += snapshot->device[i].sums.failed;
    }
    for (unsigned i = 0; i < CW_DEVICES; i++)
        snapshot->pool.device[i].ooms = snapshot->device[i].sums.oom;
    summary->peak_bytes = LOAD(cw_view_header(snapshot->view)->peak_bytes);
    summary->pool_hits = snapshot->pool.hits;
    summary->pool_misses = snapshot->pool.misses;
    summary->invalid_frees = LOAD(cw_view_header(snapshot->view)->invalid_frees);
    summary->fatal_errors = cw_view_fatal_errors(snapshot->view);
}

/* Of a process that was killed: up to the last moment of which anything is known. */
static void find_duration(struct cw_snapshot *snapshot, uint64_t now_ns)
{
    const struct cw_live_header *header = cw_view_header(snapshot->view);
    uint32_t events = cw_view_count(snapshot->view, CW_TABLE_EVENT);

    snapshot->duration_ns = LOAD(header->end_ns);
    if (snapshot->duration_ns != 0)
        return;
    snapshot->duration_ns = now_ns;
    if (LOAD(header->growth.worked_ns) > snapshot->duration_ns)
        snapshot->duration_ns = LOAD(header->growth.worked_ns);
    for (uint32_t i = 0; i < CW_SAMPLES; i++)
        if (LOAD(header->growth.t_ns[i]) > snapshot->duration_ns)
            snapshot->duration_ns = LOAD(header->growth.t_ns[i]);
    for (uint32_t i = 0; i < snapshot->sites; i++)
        if (snapshot->site[i].last_ns > snapshot->duration_ns)
            snapshot->duration_ns = snapshot->site[i].last_ns;
    for (uint32_t i = 1; i < events; i++) {
        const struct cw_live_event *event = cw_view_event(snapshot->view, i);

        if (event && event->t_ns > snapshot->duration_ns)
            snapshot->duration_ns = event->t_ns;
    }
}

/* ---- by blocks ---- */

static void count_block(struct cw_snapshot *snapshot, const struct cw_live_block *block)
{
    uint32_t live_site = LOAD(block->site);
    uint32_t index =
        live_site < snapshot->merged_count ? snapshot->merged[live_site] : CW_SITE_NONE;

    if (index == CW_SITE_NONE)
        return;
    snapshot->site[index].live_blocks++;
    snapshot->site[index].live_bytes += LOAD(block->bytes);
    snapshot->site[index].live_held += LOAD(block->held);
}

void cw_snapshot_count_blocks(struct cw_snapshot *snapshot)
{
    uint32_t count = cw_view_count(snapshot->view, CW_TABLE_BLOCK);

    for (uint32_t i = 0; i < snapshot->sites; i++) {
        struct cw_snapshot_site *site = &snapshot->site[i];

        site->live_blocks = site->live_bytes = site->live_held = 0;
        site->reclaimed = site->reclaimed_bytes = 0;
    }
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_block *block = cw_view_block(snapshot->view, i);

        if (block && LOAD(block->state) == CW_BLOCK_LIVE)
            count_block(snapshot, block);
    }
}

/* ---- the snapshot ---- */

static int fill(struct cw_snapshot *snapshot, struct merge_key *keys, uint32_t count,
                uint64_t now_ns)
{
    struct facts facts;

    if (cw_snapshot_pool_init(&snapshot->pool, snapshot->view) != 0 ||
        facts_init(&facts, snapshot->view) != 0)
        return -1;
    learn_contexts(snapshot);
    cw_sort(keys, count, sizeof(*keys), is_key_before, NULL);
    merge_sites(snapshot, &facts, keys, count);
    add_up(snapshot);
    sum_up(snapshot);
    find_duration(snapshot, now_ns);
    cw_snapshot_pressure_init(&snapshot->pressure, snapshot->view, snapshot->duration_ns);
    snapshot->summary.fallbacks = snapshot->pressure.all.fallbacks;
    facts_fini(&facts);
    return 0;
}

int cw_snapshot_init(struct cw_snapshot *snapshot, const struct cw_view *view, uint64_t now_ns)
{
    uint32_t limit = cw_view_count(view, CW_TABLE_SITE);
    struct merge_key *keys = cw_mem_alloc(limit * sizeof(*keys));
    int result = -1;

    memset(snapshot, 0, sizeof(*snapshot));
    snapshot->view = view;
    snapshot->merged_count = limit;
    snapshot->site = cw_mem_alloc(limit * sizeof(*snapshot->site));
    snapshot->merged = cw_mem_alloc(limit * sizeof(uint32_t));
    snapshot->list_storage = cw_mem_alloc(limit * sizeof(uint32_t));
    if (keys && snapshot->site && snapshot->merged && snapshot->list_storage) {
        memset(snapshot->merged, 0xff, limit * sizeof(uint32_t)); /* CW_SITE_NONE */
        result = fill(snapshot, keys, collect_keys(view, keys, limit), now_ns);
    }
    cw_mem_free(keys, limit * sizeof(*keys));
    if (result != 0)
        cw_snapshot_fini(snapshot);
    return result;
}

void cw_snapshot_fini(struct cw_snapshot *snapshot)
{
    uint32_t limit = snapshot->merged_count;

    cw_snapshot_pool_fini(&snapshot->pool);
    cw_snapshot_growth_fini(&snapshot->growth);
    cw_mem_free(snapshot->site, limit * sizeof(*snapshot->site));
    cw_mem_free(snapshot->merged, limit * sizeof(uint32_t));
    cw_mem_free(snapshot->list_storage, limit * sizeof(uint32_t));
    cw_mem_free(snapshot->old.site, limit * sizeof(uint32_t));
    memset(snapshot, 0, sizeof(*snapshot));
}

const struct cw_snapshot_site *cw_snapshot_find(const struct cw_snapshot *snapshot,
                                                uint32_t live_site)
{
    uint32_t index =
        live_site < snapshot->merged_count ? snapshot->merged[live_site] : CW_SITE_NONE;

    return index != CW_SITE_NONE ? &snapshot->site[index] : NULL;
}
