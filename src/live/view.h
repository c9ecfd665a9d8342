/* SPDX-License-Identifier: MIT */
/*
 * Reading a live layout: our own, another process's, or a dead one's. The bytes are not trusted:
 * every offset and index is checked, and what does not fit reads as absent (NULL, "").
 */
#ifndef CW_LIVE_VIEW_H
#define CW_LIVE_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "live/layout.h"

struct cw_view {
    const char *base;
    size_t size; /* bytes that may be read */
    /* Where the records lie: for the writer its own tables (arena.h), for others the header's. */
    const struct cw_live_table *table;
    /* Of the writer: how far from there the private records of each table lie; NULL: nowhere. */
    const ptrdiff_t *own;
    /* What the process is (name, arguments, host, start): of the writer in private memory. */
    const struct cw_live_header *self;
};

/* 0, or -1 when the bytes are no live layout of a version that this code reads. */
int cw_view_open(struct cw_view *view, const void *base, size_t size);

static inline const struct cw_live_header *cw_view_header(const struct cw_view *view)
{
    return (const struct cw_live_header *)view->base;
}

/* Number of valid indexes + 1; loop with for (i = 1; i < count; i++). */
uint32_t cw_view_count(const struct cw_view *view, enum cw_table table);
/* Record `index` of the table, or NULL. */
const void *cw_view_at(const struct cw_view *view, enum cw_table table, uint32_t index);
/* A string of the text table; "" for index 0 or a bad one. Always terminated inside the view. */
const char *cw_view_text(const struct cw_view *view, uint32_t index);

static inline const struct cw_live_site *cw_view_site(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_SITE, i);
}
static inline const struct cw_live_frame *cw_view_frame(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_FRAME, i);
}
static inline const struct cw_live_module *cw_view_module(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_MODULE, i);
}
static inline const struct cw_live_block *cw_view_block(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_BLOCK, i);
}
static inline const struct cw_live_context *cw_view_context(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_CONTEXT, i);
}
static inline const struct cw_live_event *cw_view_event(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_EVENT, i);
}

/* NULL also for one that is not complete yet. */
static inline const struct cw_live_bucket *cw_view_bucket(const struct cw_view *v, uint32_t i)
{
    const struct cw_live_bucket *bucket = cw_view_at(v, CW_TABLE_BUCKET, i);

    return bucket != NULL && atomic_load_explicit(&bucket->size, memory_order_acquire) != 0 ? bucket
                                                                                            : NULL;
}
static inline const struct cw_live_oom *cw_view_oom(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_OOM, i);
}
static inline const struct cw_live_code *cw_view_code(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_CODE, i);
}

static inline const struct cw_live_tag *cw_view_tag(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_TAG, i);
}
static inline const struct cw_live_series *cw_view_series(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_SERIES, i);
}
static inline const struct cw_live_timeline *cw_view_timeline(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_TIMELINE, i);
}
static inline const struct cw_live_regrowth *cw_view_regrowth(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_REGROWTH, i);
}

/* Of the block with this index; NULL: it has no id. */
static inline const struct cw_live_owner *cw_view_owner(const struct cw_view *v, uint32_t i)
{
    return cw_view_at(v, CW_TABLE_OWNER, i);
}

/* Bytes of the counted kinds on the device (CW_DEVICE_HOST: of the host). */
struct cw_live_sums {
    uint64_t live; /* asked for, and not freed */
    uint64_t held; /* taken from the driver: live, rounding, and idle */
};
/* Contexts that an error made unusable. */
uint64_t cw_view_fatal_errors(const struct cw_view *view);
struct cw_live_sums cw_view_device_live(const struct cw_view *view, unsigned device);
/* Live bytes on all devices and the host. */
uint64_t cw_view_live(const struct cw_view *view);

/* Counted-as class of a kind (CW_COUNTED_*), its JSON name and its label for people. */
static inline int cw_kind_counted(unsigned kind)
{
    static const uint8_t counted_as[CW_KIND_COUNT] = {
#define X(id, name, counted, label) [CW_KIND_##id] = CW_COUNTED_##counted,
        CW_KINDS(X)
#undef X
    };

    return kind < CW_KIND_COUNT ? counted_as[kind] : CW_COUNTED_NONE;
}

/* Where a site's bytes are counted: its device (CW_DEVICE_HOST too: managed memory in the place of
 * device memory), the host, or CW_DEVICES for nowhere. */
static inline unsigned cw_kind_home(unsigned kind, unsigned device)
{
    int counted = cw_kind_counted(kind);

    if (counted == CW_COUNTED_NONE || device >= CW_DEVICES)
        return CW_DEVICES;
    return counted == CW_COUNTED_HOST ? CW_DEVICE_HOST : device;
}

const char *cw_kind_name(unsigned kind);
const char *cw_kind_label(unsigned kind);

/* JSON names and labels of the rows of CW_EVENTS, CW_LEVELS, CW_CAUSES, CW_UNSERVEDS, CW_RUNGS,
 * CW_MISUSES. */
const char *cw_event_name(unsigned type);
const char *cw_level_name(unsigned level);
const char *cw_cause_name(unsigned cause);
const char *cw_cause_label(unsigned cause);
const char *cw_unserved_name(unsigned unserved);
const char *cw_unserved_label(unsigned unserved);
const char *cw_release_name(unsigned why);
const char *cw_bound_name(unsigned bound);
const char *cw_rung_name(unsigned rung);
const char *cw_rung_label(unsigned rung);
const char *cw_misuse_name(unsigned misuse);
const char *cw_misuse_label(unsigned misuse);

/* The counters of one site record, added up as layout.h says. */
struct cw_site_sums {
    uint64_t allocs, frees, failed, oom;
    uint64_t reclaimed, reclaimed_bytes;
    uint64_t total_bytes;
    uint64_t live_blocks, live_bytes, live_held;
    uint64_t peak_blocks, peak_bytes;
    uint64_t ended_bytes;
};
void cw_view_site_sums(const struct cw_live_site *site, struct cw_site_sums *out);
/* Its live bytes alone, which is cheaper. */
uint64_t cw_view_site_live(const struct cw_live_site *site);

/* What the site held when its device reached its peak. */
void cw_view_site_at_peak(const struct cw_view *view, const struct cw_live_site *site,
                          uint64_t *out_blocks, uint64_t *out_bytes);

#endif
