/* SPDX-License-Identifier: MIT */
/* Checked reading of a live layout. See view.h. */
#include "live/view.h"

#include <string.h>

#define RECORD(type)                                                                               \
    {                                                                                              \
        sizeof(struct type), _Alignof(struct type)                                                 \
    }

static const struct {
    uint32_t size, align;
} records[CW_TABLE_COUNT] = {
    [CW_TABLE_TEXT] = {1, 1},
    [CW_TABLE_MODULE] = RECORD(cw_live_module),
    [CW_TABLE_FRAME] = RECORD(cw_live_frame),
    [CW_TABLE_SITE] = RECORD(cw_live_site),
    [CW_TABLE_BLOCK] = RECORD(cw_live_block),
    [CW_TABLE_CONTEXT] = RECORD(cw_live_context),
    [CW_TABLE_EVENT] = RECORD(cw_live_event),
    [CW_TABLE_BUCKET] = RECORD(cw_live_bucket),
    [CW_TABLE_OOM] = RECORD(cw_live_oom),
    [CW_TABLE_CODE] = RECORD(cw_live_code),
    [CW_TABLE_TAG] = RECORD(cw_live_tag),
    [CW_TABLE_SERIES] = RECORD(cw_live_series),
    [CW_TABLE_TIMELINE] = RECORD(cw_live_timeline),
    [CW_TABLE_REGROWTH] = RECORD(cw_live_regrowth),
    [CW_TABLE_OWNER] = RECORD(cw_live_owner),
};

#undef RECORD

int cw_view_open(struct cw_view *view, const void *base, size_t size)
{
    const struct cw_live_header *header = base;

    if (base == NULL || size < sizeof(*header) || header->magic != CW_LIVE_MAGIC ||
        header->version != CW_LIVE_VERSION || header->header_size < sizeof(*header))
        return -1;
    view->base = base;
    view->size = size;
    view->table = header->table;
    view->own = NULL;
    view->self = header;
    return 0;
}

static int is_table_sane(const struct cw_live_table *table, enum cw_table which)
{
    return table->first != 0 && (table->first & (table->first - 1)) == 0 &&
           table->elem_size >= records[which].size && table->elem_size <= CW_ELEM_MAX &&
           table->elem_size % records[which].align == 0;
}

/* Where the chunk of `index` lies: its start, its number of records, and the index within it. */
static const char *find_chunk(const struct cw_view *view, enum cw_table which, uint32_t index,
                              uint64_t *out_records, uint64_t *out_within)
{
    const struct cw_live_table *table = &view->table[which];
    uint64_t first = table->first, slot = index + first, offset, bytes;
    unsigned k;

    if (!is_table_sane(table, which) || index == 0 ||
        index >= atomic_load_explicit(&table->count, memory_order_acquire))
        return NULL;
    k = (unsigned)(__builtin_clzll(first) - __builtin_clzll(slot));
    if (k >= CW_CHUNKS)
        return NULL;
    offset = atomic_load_explicit(&table->chunk[k], memory_order_acquire);
    bytes = (first << k) * table->elem_size;
    if (offset < sizeof(struct cw_live_header) || offset > view->size ||
        bytes > view->size - offset || offset % records[which].align != 0)
        return NULL;
    *out_records = first << k;
    *out_within = slot - (first << k);
    return view->base + offset + (view->own != NULL ? view->own[which] : 0);
}

uint32_t cw_view_count(const struct cw_view *view, enum cw_table which)
{
    const struct cw_live_table *table = &view->table[which];
    uint32_t count = atomic_load_explicit(&table->count, memory_order_acquire);

    /* No table has more records than the view has bytes: a bad count must not cost a long loop. */
    if (!is_table_sane(table, which) || count > view->size / records[which].size)
        return 1;
    return count == 0 ? 1 : count;
}

const void *cw_view_at(const struct cw_view *view, enum cw_table which, uint32_t index)
{
    uint64_t records, within;
    const char *chunk = find_chunk(view, which, index, &records, &within);

    return chunk ? chunk + within * view->table[which].elem_size : NULL;
}

const char *cw_view_text(const struct cw_view *view, uint32_t index)
{
    uint64_t records, within;
    const char *chunk = find_chunk(view, CW_TABLE_TEXT, index, &records, &within);

    if (chunk == NULL || view->table[CW_TABLE_TEXT].elem_size != 1 ||
        memchr(chunk + within, 0, records - within) == NULL)
        return "";
    return chunk + within;
}

static const struct {
    const char *name, *label;
} kinds[CW_KIND_COUNT] = {
#define X(id, name, counted, label) [CW_KIND_##id] = {name, label},
    CW_KINDS(X)
#undef X
};

const char *cw_kind_name(unsigned kind)
{
    return kind < CW_KIND_COUNT ? kinds[kind].name : "unknown";
}

const char *cw_kind_label(unsigned kind)
{
    return kind < CW_KIND_COUNT ? kinds[kind].label : "unknown kind";
}

static const char *const events[CW_EVENT_COUNT] = {
#define X(id, name) [CW_EVENT_##id] = name,
    CW_EVENTS(X)
#undef X
};

const char *cw_event_name(unsigned type)
{
    return type < CW_EVENT_COUNT ? events[type] : "unknown";
}

static const char *const levels[CW_LEVEL_COUNT] = {
#define X(id, name) [CW_LEVEL_##id] = name,
    CW_LEVELS(X)
#undef X
};

const char *cw_level_name(unsigned level)
{
    return level < CW_LEVEL_COUNT ? levels[level] : "unknown";
}

static const struct {
    const char *name, *label;
} causes[CW_CAUSE_COUNT] = {
#define X(id, name, label) [CW_CAUSE_##id] = {name, label},
    CW_CAUSES(X)
#undef X
};

const char *cw_cause_name(unsigned cause)
{
    return cause < CW_CAUSE_COUNT ? causes[cause].name : "unknown";
}

const char *cw_cause_label(unsigned cause)
{
    return cause < CW_CAUSE_COUNT ? causes[cause].label : "unknown cause";
}

static const struct {
    const char *name, *label;
} unserveds[CW_UNSERVED_COUNT] = {
#define X(id, name, label) [CW_UNSERVED_##id] = {name, label},
    CW_UNSERVEDS(X)
#undef X
};

const char *cw_unserved_name(unsigned unserved)
{
    return unserved < CW_UNSERVED_COUNT ? unserveds[unserved].name : "unknown";
}

const char *cw_unserved_label(unsigned unserved)
{
    return unserved < CW_UNSERVED_COUNT ? unserveds[unserved].label : "unknown reason";
}

static const struct {
    const char *name, *label;
} rungs[CW_RUNG_COUNT] = {
#define X(id, name, label) [CW_RUNG_##id] = {name, label},
    CW_RUNGS(X)
#undef X
};

const char *cw_release_name(unsigned why)
{
    static const char *const names[] = {
#define X(id, name, label) [CW_RELEASE_##id] = (name),
        CW_RELEASES(X)
#undef X
    };

    return why < CW_RELEASE_COUNT ? names[why] : "unknown";
}

const char *cw_bound_name(unsigned bound)
{
    return bound < CW_BOUND_COUNT ? cw_bound_kind((enum cw_bound)bound)->name : "unknown";
}

const char *cw_rung_name(unsigned rung)
{
    return rung < CW_RUNG_COUNT ? rungs[rung].name : "unknown";
}

const char *cw_rung_label(unsigned rung)
{
    return rung < CW_RUNG_COUNT ? rungs[rung].label : "unknown step";
}

static const struct {
    const char *name, *label;
} misuses[CW_MISUSE_COUNT] = {
#define X(id, name, label) [CW_MISUSE_##id] = {name, label},
    CW_MISUSES(X)
#undef X
};

const char *cw_misuse_name(unsigned misuse)
{
    return misuse < CW_MISUSE_COUNT ? misuses[misuse].name : "unknown";
}

const char *cw_misuse_label(unsigned misuse)
{
    return misuse < CW_MISUSE_COUNT ? misuses[misuse].label : "invalid free";
}

static uint64_t load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Counters are read one after the other while threads are at work: a difference may be short by a
 * call in flight, and must not wrap. `gone` may be negative: a block that grew counts as less
 * freed. */
static uint64_t rest(uint64_t total, uint64_t gone)
{
    int64_t left = (int64_t)(total - gone);

    return left > 0 ? (uint64_t)left : 0;
}

/* What was freed is read before what was allocated. */
uint64_t cw_view_site_live(const struct cw_live_site *site)
{
    uint64_t gone =
        load(&site->freed_bytes) + load(&site->far_bytes) + load(&site->reclaimed_bytes);

    return rest(load(&site->total_bytes), gone);
}

void cw_view_site_sums(const struct cw_live_site *site, struct cw_site_sums *out)
{
    out->frees = load(&site->frees) + load(&site->far_frees);
    out->reclaimed = load(&site->reclaimed);
    out->reclaimed_bytes = load(&site->reclaimed_bytes);
    out->live_bytes = load(&site->freed_bytes) + load(&site->far_bytes) + out->reclaimed_bytes;
    out->allocs = load(&site->allocs);
    out->total_bytes = load(&site->total_bytes);
    out->live_blocks = rest(out->allocs, out->frees + out->reclaimed);
    out->live_bytes = rest(out->total_bytes, out->live_bytes);
    out->live_held = out->live_bytes + rest(load(&site->extra_bytes),
                                            load(&site->freed_extra) + load(&site->far_extra));
    out->failed = load(&site->failed);
    out->oom = load(&site->oom);
    out->peak_blocks = load(&site->peak_blocks);
    out->peak_bytes = load(&site->peak_bytes);
    out->ended_bytes = load(&site->ended_bytes);
}

void cw_view_site_at_peak(const struct cw_view *view, const struct cw_live_site *site,
                          uint64_t *out_blocks, uint64_t *out_bytes)
{
    struct cw_site_sums sums;

    *out_blocks = 0;
    *out_bytes = 0;
    if (site->device >= CW_DEVICES)
        return;
    if (load(&site->at_peak_version) ==
        load(&cw_view_header(view)->device[site->device].peak_version)) {
        *out_blocks = load(&site->at_peak_blocks);
        *out_bytes = load(&site->at_peak_bytes);
        return;
    }
    cw_view_site_sums(site, &sums);
    *out_blocks = sums.live_blocks;
    *out_bytes = sums.live_bytes;
}

/* The slack of all threads on the device, or on all devices. */
static struct cw_live_sums slack_on(const struct cw_live_header *header, unsigned device)
{
    struct cw_live_sums slack = {0};

    for (int i = 1; i < CW_SLOTS; i++) {
        const struct cw_live_slot *slot = &header->slot[i];

        if (device != CW_DEVICES &&
            atomic_load_explicit(&slot->device, memory_order_relaxed) != device)
            continue;
        slack.live += load(&slot->slack_live);
        slack.held += load(&slot->slack_held);
    }
    return slack;
}

uint64_t cw_view_fatal_errors(const struct cw_view *view)
{
    uint32_t contexts = cw_view_count(view, CW_TABLE_CONTEXT);
    uint64_t count = 0;

    for (uint32_t i = 1; i < contexts; i++) {
        const struct cw_live_context *context = cw_view_context(view, i);

        count += context && atomic_load_explicit(&context->fatal, memory_order_relaxed) != 0;
    }
    return count;
}

struct cw_live_sums cw_view_device_live(const struct cw_view *view, unsigned device)
{
    const struct cw_live_header *header = cw_view_header(view);
    struct cw_live_sums slack = {0};

    if (device >= CW_DEVICES)
        return slack;
    slack = slack_on(header, device);
    return (struct cw_live_sums){
        .live = rest(load(&header->device[device].live_bytes), slack.live),
        .held = rest(load(&header->device[device].held_bytes), slack.held),
    };
}

uint64_t cw_view_live(const struct cw_view *view)
{
    const struct cw_live_header *header = cw_view_header(view);

    return rest(load(&header->live_bytes), slack_on(header, CW_DEVICES).live);
}
