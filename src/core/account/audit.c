/* SPDX-License-Identifier: MIT */
/* Settles what two sides have seen. See audit.h. */
#include "core/account/audit.h"

#include <string.h>

#include "base/lock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/account/site.h"
#include "live/view.h"

#define ENTRIES_MAX   ((size_t)1 << 20) /* of each table: 128 MiB */
#define SOURCES_MAX   64u
#define MIPMAP_LEVELS 18 /* at most, of 131072 texels */
#define WHY_CUT       "the process ended without its exit handlers, and records were not delivered"

_Atomic int cw_audit_on;

struct side {
    uint64_t count, bytes;
};

/* The unsettled counts of one address. */
struct entry {
    struct cw_map_entry map; /* first */
    uint64_t address;
    struct side ours, tool;
    uint64_t excused;  /* frees with the end of a context, which the tool may tell of */
    uint64_t optional; /* reports of what we do not count */
    uint64_t doubtful; /* reports that may be repetitions (speakers) */
    uint32_t source;   /* text, of the tool's last record */
    uint8_t class, op;
    uint8_t is_mixed; /* optional reports were among them: sizes tell nothing */
};

/* Who speaks for the memory at an address. */
struct speaker {
    struct cw_map_entry map; /* first */
    uint32_t context;
    uint32_t holders; /* contexts that told that it was taken, and not that it was given back */
    int is_taken;     /* that was the last that the speaker told */
};

static struct {
    struct cw_lock lock;
    struct cw_arena *arena;
    struct cw_map entries;
    struct cw_map speakers;       /* of what was ever told of a context: addresses come back */
    uint32_t source[SOURCES_MAX]; /* text; those that were named so far */
    unsigned sources;
    unsigned findings, variables; /* as shown */
    uint32_t why_cut;             /* text */
    int is_open;                  /* the tool may tell */
} self = {.lock = CW_LOCK_INIT(CW_RANK_AUDIT)};

static const uint8_t is_addressed[CW_AUDIT_CLASS_COUNT] = {
#define X(id, name, label, addressed) [CW_AUDIT_##id] = (addressed),
    CW_AUDIT_CLASSES(X)
#undef X
};

static struct cw_live_audit *audit(void)
{
    return &self.arena->header->audit;
}

/* ---- entries: under the lock ---- */

/* Addresses of programs have at most 57 bits. */
static uint64_t key_of(enum cw_audit_op op, enum cw_audit_class class, uint64_t address)
{
    return address ^ (uint64_t) class << 58 ^ (uint64_t)op << 63;
}

/* A new one, zero but for its key; NULL, and counted, where there is no room. */
static void *insert(struct cw_map *map, size_t size, uint64_t key)
{
    struct cw_map_entry *entry = cw_map_count(map) < ENTRIES_MAX ? cw_mem_alloc(size) : NULL;

    if (entry != NULL && cw_map_insert(map, entry, key) == 0)
        return entry;
    if (entry != NULL)
        cw_mem_free(entry, size);
    audit()->not_kept++;
    return NULL;
}

static struct entry *entry_at(enum cw_audit_op op, enum cw_audit_class class, uint64_t address)
{
    uint64_t key;
    struct entry *entry;

    if (!is_addressed[class])
        address = 0;
    key = key_of(op, class, address);
    entry = (struct entry *)cw_map_find(&self.entries, key);
    if (entry != NULL)
        return entry;
    entry = insert(&self.entries, sizeof(*entry), key);
    if (entry == NULL)
        return NULL;
    entry->address = address;
    entry->class = (uint8_t) class;
    entry->op = (uint8_t)op;
    return entry;
}

static void forget(struct entry *entry)
{
    cw_map_remove(&self.entries, &entry->map);
    cw_mem_free(entry, sizeof(*entry));
}

static void note_finding(enum cw_audit_side side, const struct entry *entry, struct side amount)
{
    struct cw_live_audit_finding *finding;

    audit()->all_findings++;
    if (self.findings == CW_AUDIT_FINDINGS)
        return;
    finding = &audit()->finding[self.findings++];
    audit()->findings = self.findings;
    finding->address = entry->address;
    finding->count = amount.count;
    finding->bytes = amount.bytes;
    finding->tool_bytes = side == CW_AUDIT_SIZES ? entry->tool.bytes : 0;
    finding->source = entry->source;
    finding->side = (uint8_t)side;
    finding->class = entry->class;
    finding->op = entry->op;
}

static struct cw_live_audit_row *row_of(const struct entry *entry)
{
    return &audit()->row[entry->class][entry->op];
}

/* Both sides have told equally often. */
static void settle(struct entry *entry)
{
    struct cw_live_audit_row *row = row_of(entry);

    row->both.count += entry->ours.count;
    row->both.bytes += entry->ours.bytes;
    row->tool_bytes += entry->tool.bytes;
    if (is_addressed[entry->class] && !entry->is_mixed && entry->ours.bytes != entry->tool.bytes) {
        row->differing++;
        note_finding(CW_AUDIT_SIZES, entry, entry->ours);
    }
    entry->ours = entry->tool = (struct side){0};
    if (entry->excused == 0 && entry->optional == 0 && entry->doubtful == 0)
        forget(entry);
}

static void add_to(struct side *side, uint64_t bytes)
{
    side->count++;
    side->bytes += bytes;
}

static void drop_reports(struct entry *entry, uint64_t count)
{
    if (count == 0)
        return;
    entry->tool.bytes -= count == entry->tool.count ? entry->tool.bytes
                                                    : entry->tool.bytes / entry->tool.count * count;
    entry->tool.count -= count;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Classes without addresses are settled at the end, when both sides have reported everything. */
static void settle_if_even(struct entry *entry)
{
    if (!is_addressed[entry->class])
        return;
    while (entry->optional > 0 && entry->tool.count > entry->ours.count) {
        drop_reports(entry, 1);
        entry->optional--;
    }
    if (entry->ours.count == entry->tool.count)
        settle(entry);
}

/* ---- the end: under the lock ---- */

/* Takes the surplus of the side that reported more often, with its bytes as far as they are
 * known. */
static struct side split_off(struct side *more, const struct side *less)
{
    struct side rest = {more->count - less->count,
                        less->count == 0 ? more->bytes
                                         : more->bytes - least(more->bytes, less->bytes)};

    more->count -= rest.count;
    more->bytes -= rest.bytes;
    return rest;
}

static uint64_t extra_of(const struct entry *entry)
{
    return entry->tool.count - least(entry->tool.count, entry->ours.count);
}

/* Of what has no address: parts of what we count once, such as the levels of a mipmapped array,
 * whose bytes add up to its own. */
static void join_parts(struct entry *entry)
{
    if (entry->tool.bytes <= entry->ours.bytes)
        entry->tool.count -= least(extra_of(entry), entry->optional);
}

static void excuse(struct entry *entry)
{
    uint64_t excused;

    if (is_addressed[entry->class])
        drop_reports(entry, least(extra_of(entry), entry->optional));
    else
        join_parts(entry);
    drop_reports(entry, least(extra_of(entry), entry->doubtful));
    excused = least(extra_of(entry), entry->excused);
    audit()->excused += excused;
    drop_reports(entry, excused);
    entry->excused = entry->optional = entry->doubtful = 0;
}

static void close_entry(struct cw_map_entry *map, void *arg)
{
    struct entry *entry = (struct entry *)map;
    struct cw_live_audit_row *row = row_of(entry);
    struct side rest;

    (void)arg;
    excuse(entry);
    if (entry->tool.count > entry->ours.count) {
        rest = split_off(&entry->tool, &entry->ours);
        row->tool.count += rest.count;
        row->tool.bytes += rest.bytes;
        note_finding(CW_AUDIT_TOOL_ALONE, entry, rest);
    } else if (entry->ours.count > entry->tool.count) {
        rest = split_off(&entry->ours, &entry->tool);
        row->ours.count += rest.count;
        row->ours.bytes += rest.bytes;
        note_finding(CW_AUDIT_OURS_ALONE, entry, rest);
    }
    settle(entry);
}

static void drop_speaker(struct cw_map_entry *map, void *arg)
{
    (void)arg;
    cw_map_remove(&self.speakers, map);
    cw_mem_free(map, sizeof(struct speaker));
}

void cw_audit_end(void)
{
    cw_lock_acquire(&self.lock);
    if (self.is_open) {
        self.is_open = 0;
        cw_map_visit(&self.entries, close_entry, NULL);
        cw_map_visit(&self.speakers, drop_speaker, NULL);
        atomic_store_explicit(&audit()->status, CW_AUDIT_DONE, memory_order_release);
    }
    cw_lock_release(&self.lock);
}

void cw_audit_cut(void)
{
    if (self.arena == NULL || atomic_load(&audit()->status) != CW_AUDIT_RUNNING)
        return;
    atomic_store(&cw_audit_on, 0);
    audit()->why = self.why_cut;
    atomic_store_explicit(&audit()->status, CW_AUDIT_CUT, memory_order_release);
}

/* ---- our side ---- */

static unsigned kind_of(const struct cw_live_block *block)
{
    return cw_site_own(cw_site_at(block->site))->kind;
}

/* CW_AUDIT_CLASS_COUNT: the tool does not report this kind. */
static enum cw_audit_class class_of(const struct cw_live_block *block)
{
    static const uint8_t class[CW_KIND_COUNT] = {
        [CW_KIND_DEVICE] = 1 + CW_AUDIT_DEVICE,     [CW_KIND_PITCHED] = 1 + CW_AUDIT_DEVICE,
        [CW_KIND_MANAGED] = 1 + CW_AUDIT_MANAGED,   [CW_KIND_ARRAY] = 1 + CW_AUDIT_ARRAY,
        [CW_KIND_MIPMAP] = 1 + CW_AUDIT_ARRAY,      [CW_KIND_ASYNC] = 1 + CW_AUDIT_ASYNC,
        [CW_KIND_PINNED] = 1 + CW_AUDIT_PINNED,     [CW_KIND_POOL] = 1 + CW_AUDIT_POOL,
        [CW_KIND_REGISTERED] = 1 + CW_AUDIT_PINNED,
    };
    unsigned kind = kind_of(block);

    if ((block->flags & CW_BLOCK_FALLBACK) != 0)
        return CW_AUDIT_MANAGED;
    return class[kind] != 0 ? (enum cw_audit_class)(class[kind] - 1) : CW_AUDIT_CLASS_COUNT;
}

static int has_ended(uint32_t context)
{
    const struct cw_live_context *record;

    if (context == 0)
        return 0;
    record = cw_arena_at(self.arena, CW_TABLE_CONTEXT, context);
    return atomic_load(&record->state) != CW_CONTEXT_LIVE;
}

void cw_audit_block(const struct cw_live_block *block, enum cw_audit_op op, int with_context)
{
    enum cw_audit_class class = class_of(block);
    struct entry *entry;

    if (class == CW_AUDIT_CLASS_COUNT)
        return;
    if (op == CW_AUDIT_GIVEN && has_ended(block->context))
        with_context = 1;
    cw_lock_acquire(&self.lock);
    entry = self.is_open ? entry_at(op, class, block->key) : NULL;
    if (entry != NULL && kind_of(block) == CW_KIND_MIPMAP)
        entry->optional += MIPMAP_LEVELS - 1; /* each is one, or all are */
    if (entry != NULL && kind_of(block) == CW_KIND_REGISTERED) {
        entry->optional++; /* as pinned memory; older tools do not tell of it */
        entry->is_mixed = 1;
        settle_if_even(entry);
    } else if (entry != NULL && with_context)
        entry->excused++;
    else if (entry != NULL) {
        add_to(&entry->ours, block->held);
        settle_if_even(entry);
    }
    cw_lock_release(&self.lock);
}

/* ---- the tool's side ---- */

static uint32_t text_of(const char *s)
{
    if (s == NULL || *s == '\0')
        return 0;
    for (unsigned i = 0; i < self.sources; i++)
        if (strcmp(cw_arena_text_at(self.arena, self.source[i]), s) == 0)
            return self.source[i];
    if (self.sources == SOURCES_MAX)
        return 0;
    self.source[self.sources] = cw_arena_text(self.arena, s, strlen(s));
    return self.source[self.sources++];
}

static struct speaker *speaker_of(const struct cw_audit_record *record)
{
    uint64_t key = key_of(CW_AUDIT_TAKEN, record->class, record->address);
    struct speaker *speaker = (struct speaker *)cw_map_find(&self.speakers, key);

    if (speaker != NULL)
        return speaker;
    speaker = insert(&self.speakers, sizeof(*speaker), key);
    if (speaker != NULL)
        speaker->context = record->context;
    return speaker;
}

static void doubt(const struct cw_audit_record *record)
{
    struct entry *entry = entry_at(record->op, record->class, record->address);

    if (entry != NULL)
        entry->doubtful++;
}

/* What is new where others have it still may be a block that we know: a context was made. */
static int is_repeated_take(struct speaker *speaker, const struct cw_audit_record *record)
{
    if (!speaker->is_taken) {
        if (speaker->holders > 0)
            doubt(record);
        speaker->context = record->context;
        speaker->is_taken = 1;
    }
    speaker->holders++;
    return speaker->context != record->context;
}

/* As long as others have it: its end, or that of the speaker's context alone. */
static int is_repeated_give(struct speaker *speaker, const struct cw_audit_record *record)
{
    struct entry *entry;

    speaker->holders -= speaker->holders > 0;
    if (speaker->context == record->context) {
        speaker->is_taken = 0;
        if (speaker->holders > 0)
            doubt(record);
        return 0;
    }
    if (speaker->holders == 0 && !speaker->is_taken) {
        entry = entry_at(record->op, record->class, record->address);
        if (entry != NULL && entry->doubtful > 0)
            entry->doubtful--;
        if (entry != NULL)
            settle_if_even(entry);
    }
    return 1;
}

/* Of a call that is counted already, or of no call: a context was made, or ended. Stream-ordered
 * memory is told of once, of whichever context it was used in. */
static int is_repeated(const struct cw_audit_record *record)
{
    struct speaker *speaker;

    if (record->context == 0 || record->address == 0 || record->class == CW_AUDIT_ASYNC)
        return 0;
    speaker = speaker_of(record);
    if (speaker == NULL)
        return 0;
    return record->op == CW_AUDIT_TAKEN ? is_repeated_take(speaker, record)
                                        : is_repeated_give(speaker, record);
}

void cw_audit_excuse(enum cw_audit_op op, enum cw_audit_class class)
{
    struct entry *entry;

    cw_lock_acquire(&self.lock);
    entry = self.is_open ? entry_at(op, class, 0) : NULL;
    if (entry != NULL)
        entry->optional++;
    cw_lock_release(&self.lock);
}

void cw_audit_seen(const struct cw_audit_record *record)
{
    struct entry *entry;

    cw_lock_acquire(&self.lock);
    entry = self.is_open && !is_repeated(record)
                ? entry_at(record->op, record->class, record->address)
                : NULL;
    if (entry != NULL) {
        entry->source = text_of(record->source);
        add_to(&entry->tool, record->bytes);
        settle_if_even(entry);
    }
    cw_lock_release(&self.lock);
}

void cw_audit_variable(const char *name, uint64_t bytes, int is_managed)
{
    cw_lock_acquire(&self.lock);
    if (self.is_open) {
        audit()->fixed.count++;
        audit()->fixed.bytes += bytes;
        if (self.variables < CW_AUDIT_VARIABLES) {
            struct cw_live_audit_variable *variable = &audit()->variable[self.variables++];

            if (name != NULL && *name != '\0')
                variable->name = cw_arena_text(self.arena, name, strlen(name));
            variable->bytes = bytes;
            variable->is_managed = is_managed != 0;
            audit()->variables = self.variables;
        }
    }
    cw_lock_release(&self.lock);
}

void cw_audit_dropped(uint64_t records)
{
    cw_lock_acquire(&self.lock);
    if (self.is_open)
        audit()->dropped += records;
    cw_lock_release(&self.lock);
}

/* ---- begin and reset ---- */

void cw_audit_begin(struct cw_arena *arena, uint32_t tool_version)
{
    cw_lock_acquire(&self.lock);
    self.arena = arena;
    self.is_open = 1;
    self.why_cut = cw_arena_text(arena, WHY_CUT, sizeof(WHY_CUT) - 1);
    audit()->version = tool_version;
    atomic_store_explicit(&audit()->status, CW_AUDIT_RUNNING, memory_order_release);
    cw_lock_release(&self.lock);
    atomic_store(&cw_audit_on, 1);
}

void cw_audit_refuse(struct cw_arena *arena, const char *why)
{
    struct cw_live_audit *refused = &arena->header->audit;

    refused->why = cw_arena_text(arena, why, strlen(why));
    atomic_store_explicit(&refused->status, CW_AUDIT_REFUSED, memory_order_release);
}

void cw_audit_close(void)
{
    atomic_store(&cw_audit_on, 0);
}

void cw_audit_reset(void)
{
    cw_lock_reset(&self.lock);
    atomic_store(&cw_audit_on, 0);
    cw_map_clear(&self.entries);
    cw_map_clear(&self.speakers);
    self.arena = NULL;
    self.sources = 0;
    self.findings = self.variables = 0;
    self.is_open = 0;
}
