/* SPDX-License-Identifier: MIT */
/*
 * A live layout at one moment, summed up: the source of every form of the report.
 *
 * Glossary
 *   site     here: all live sites of equal stack, API, kind, device, context and tag, merged.
 *   leaked   never freed by the program: live at the end, or reclaimed with its context.
 *   owner    the module that asked for the memory: that of the innermost frame which lies outside
 *            our library, the driver and the runtime.
 *   counted  in the sums: kinds whose memory is this process's own (CW_COUNTED_DEVICE and _HOST).
 *
 * The view must stay mapped for as long as the snapshot is used; its bytes may change meanwhile and
 * are not trusted.
 */
#ifndef CW_REPORT_SNAPSHOT_H
#define CW_REPORT_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include "base/device_properties.h"
#include "live/view.h"
#include "report/snapshot/leak.h"
#include "report/snapshot/snapshot_growth.h"
#include "report/snapshot/snapshot_pool.h"
#include "report/snapshot/snapshot_pressure.h"

struct cw_snapshot_site {
    uint32_t stack;  /* innermost frame, 0: no stack */
    uint32_t number; /* in a report in JSON: its index, unless it was read from a selection */
    uint32_t id;     /* equal in every run of the same binaries; independent of device and tag */
    uint32_t owner;  /* module, 0: none known */
    uint8_t kind;
    uint8_t device;
    uint8_t context;  /* from 1, of a device that had several at a time; 0: it had one, or none has
                         the memory */
    uint8_t leak;     /* enum cw_leak_class */
    uint8_t cache;    /* enum cw_cache_id: the framework's cache that it took memory for */
    uint8_t past_cap; /* it exceeds the cap of its rule, so no rule applies */
    uint16_t tag;     /* index, for cw_tag_label; 0: none */
    uint16_t rule;    /* that decided the class (cw_rules_at), or CW_RULE_NONE: its kind did */
    const char *api;
    uint64_t first_ns, last_ns;
    uint64_t allocs, frees, failed, oom;
    uint64_t total_bytes;
    uint64_t reclaimed, reclaimed_bytes;
    uint64_t live_blocks, live_bytes, live_held;
    uint64_t peak_blocks, peak_bytes; /* an upper bound where several live sites were merged */
    uint64_t at_peak_blocks, at_peak_bytes;
    uint64_t oldest_ns;     /* when the oldest live block was allocated, 0: there is none */
    uint64_t oldest_age_ns; /* its age when the report was made, if has_age */
    uint64_t old_blocks, old_bytes;
    uint64_t held_until_exit; /* bytes that Python freed only as it ended */
    uint32_t growth;          /* its row in the snapshot's growth, counted from 1; 0: none */
    uint8_t grows;            /* that row is a suspect */
    uint8_t has_age;
    uint8_t is_empty; /* it asked for nothing, and no error names it: it was called to free */
};

struct cw_snapshot_sums {
    uint64_t live_blocks, live_bytes, live_held;
    uint64_t allocs, frees, failed, oom;
    uint64_t reclaimed, reclaimed_bytes;
    uint64_t total_bytes;
};

/* The contexts of one device that had the same number, one after the other. */
struct cw_snapshot_context {
    uint8_t number;     /* from 1 */
    uint8_t is_primary; /* one of them was */
    uint32_t made;
    struct cw_snapshot_sums sums; /* of memory that goes with its context */
};

#define CW_PEAK_SITES  10
#define CW_DEVICE_NAME 24 /* bytes of a name that are shown */

struct cw_snapshot_device {
    uint8_t ordinal;
    uint8_t seen;        /* the program used it, or its name is known */
    uint8_t sampled;     /* the last two are valid */
    uint8_t shares_host; /* its memory is the host's, or a NUMA node */
    uint8_t has_properties;
    const char *name; /* may lack its NUL, but not within CW_DEVICE_NAME; NULL: none */
    const char *uuid; /* NULL: unknown */
    uint64_t total;   /* of memory, 0: not known */
    struct cw_device_properties properties;
    uint64_t idle_blocks, idle_bytes;
    struct cw_snapshot_sums sums; /* counted kinds */
    uint64_t peak_bytes, peak_ns;
    uint64_t peak_blocks;               /* at one time, maybe another */
    uint64_t driver_used, unattributed; /* when sampled */
    uint32_t peak_sites;                /* sites that held memory at the peak */
    uint64_t peak_rest;                 /* bytes held by sites not in `peak` */
    uint32_t peak[CW_PEAK_SITES];       /* indexes of sites, largest first */
    struct cw_snapshot_context context[CW_CONTEXT_NUMBERS];
    uint32_t contexts; /* that it had at a time; 0: one at most */
};

/* Indices of sites, most bytes first. */
struct cw_snapshot_list {
    uint32_t *site;
    uint32_t count;
    uint64_t bytes, blocks;
};

/* The SUMMARY line: X("key", member, "unit", meaning). */
#define CW_SUMMARY_KEYS(X)                                                                         \
    X("leaked_bytes", leaked_bytes, "bytes", "never freed and counted as leaked")                  \
    X("leaked_blocks", leaked_blocks, "", "blocks of those")                                       \
    X("leak_sites", leak_sites, "", "call sites of those")                                         \
    X("peak_bytes", peak_bytes, "bytes", "most that was live at one time, over all devices")       \
    X("allocs", allocs, "", "successful allocations")                                              \
    X("frees", frees, "", "frees")                                                                 \
    X("failed", failed, "", "allocating calls that returned an error")                             \
    X("pool_hits", pool_hits, "", "requests that an idle block of the pool served")                \
    X("pool_misses", pool_misses, "", "requests of the pool that went to the driver")              \
    X("invalid_frees", invalid_frees, "", "frees that the driver refused")                         \
    X("fatal_errors", fatal_errors, "", "contexts that an error made unusable")                    \
    X("fallbacks", fallbacks, "", "requests served from managed memory (FALLBACK)")                \
    X("held_bytes", held_bytes, "bytes", "held until exit: freed by Python only as it ended")

struct cw_snapshot_summary {
#define X(key, member, unit, meaning) uint64_t member;
    CW_SUMMARY_KEYS(X)
#undef X
};

/* Adds the sums of another process; peaks at different times have no sum, so `to` keeps its own. */
static inline void cw_snapshot_summary_add(struct cw_snapshot_summary *to,
                                           const struct cw_snapshot_summary *from)
{
    uint64_t peak_bytes = to->peak_bytes;

#define X(key, member, unit, meaning) to->member += from->member;
    CW_SUMMARY_KEYS(X)
#undef X
    to->peak_bytes = peak_bytes;
}

struct cw_snapshot {
    const struct cw_view *view;
    struct cw_snapshot_site *site;
    uint32_t sites;
    uint32_t *merged;       /* of a live site's index: the index in `site`, or CW_SITE_NONE */
    uint32_t merged_count;  /* entries in `merged` */
    uint32_t *list_storage; /* `sites` entries, which the lists share */
    struct cw_snapshot_list leaks, library, caches, imports, suppressed;
    struct cw_snapshot_list old; /* leaked sites with old blocks (age.h); its storage is its own */
    uint64_t now_ns, old_ns;     /* the moment of the report, and from which age a block is old */
    struct cw_snapshot_device device[CW_DEVICES];
    struct cw_snapshot_sums kind[CW_KIND_COUNT];
    struct cw_snapshot_pool pool;
    struct cw_snapshot_pressure pressure;
    struct cw_snapshot_growth growth; /* empty until cw_snapshot_growth_read */
    struct cw_snapshot_summary summary;
    uint32_t devices;     /* seen, without the host */
    uint64_t duration_ns; /* to the end, else to now, else to the last thing that was seen */
};

#define CW_SITE_NONE UINT32_MAX

/* now_ns: the present, since the start of a process that runs; 0: it does not, or nobody knows. 0,
 * or -1 if out of memory. Large: allocate it with cw_mem_alloc, not on the stack. */
int cw_snapshot_init(struct cw_snapshot *snapshot, const struct cw_view *view, uint64_t now_ns);
/* What is live at each site from now on by the blocks that are, not by the counters of sites, which
 * anybody may write who may open the file. Nothing has gone with its context then. The sums stay.
 */
void cw_snapshot_count_blocks(struct cw_snapshot *snapshot);
void cw_snapshot_fini(struct cw_snapshot *snapshot);

/* The merged site of a live site, or NULL. */
const struct cw_snapshot_site *cw_snapshot_find(const struct cw_snapshot *snapshot,
                                                uint32_t live_site);

/* The bytes that a site held over time, or NULL. */
static inline const struct cw_growth_row *cw_snapshot_growth_row(const struct cw_snapshot *snapshot,
                                                                 uint32_t site)
{
    uint32_t row = site < snapshot->sites ? snapshot->site[site].growth : 0;

    return row != 0 ? &snapshot->growth.row[row - 1] : NULL;
}

static inline const char *cw_leak_name(const struct cw_snapshot_site *site)
{
    return cw_leak_class_name(site->leak);
}

static inline uint64_t cw_leaked_bytes(const struct cw_snapshot_site *site)
{
    return site->live_bytes + site->reclaimed_bytes;
}

static inline uint64_t cw_leaked_blocks(const struct cw_snapshot_site *site)
{
    return site->live_blocks + site->reclaimed;
}

#endif
