/* SPDX-License-Identifier: MIT */
/*
 * Selects sites of a model, their metric and their order: the flags that `report`, `diff` and
 * `merge` share (--device, --kind, --tag, --site, --class, --min-age, --min-size, --sort, --top,
 * --metric).
 */
#ifndef CW_CLI_SELECT_H
#define CW_CLI_SELECT_H

#include <stdint.h>

#include "cli/model/model.h"
#include "cli/ui/flags.h"

/* X(ID, "name", help): the metrics of a site. */
#define CW_METRICS(X)                                                                              \
    X(LIVE, "live", "bytes that were never freed")                                                 \
    X(PEAK, "peak", "bytes held when the device was fullest")                                      \
    X(TOTAL, "total", "bytes of all allocations")                                                  \
    X(COUNT, "count", "number of allocations")

enum cw_metric {
#define X(id, name, help) CW_METRIC_##id,
    CW_METRICS(X)
#undef X
        CW_METRIC_COUNT_OF
};

/* Zero-initialized: everything, by live bytes. */
struct cw_selection {
    enum cw_metric metric; /* shown */
    int has_sort;
    enum cw_metric sort; /* if has_sort; else by `metric` */
    uint32_t top;        /* maximum number; 0: all */
    int has_device;
    uint32_t device;               /* ordinal, or CW_DEVICE_HOST */
    const char *kind, *tag, *leak; /* patterns as in suppressions; NULL: any */
    int has_site;
    uint32_t site; /* id */
    uint64_t min_age_ns, min_bytes;
};

/* Flags of a command line; ids begin at CW_SELECT_FLAG. */
#define CW_SELECT_FLAG  0x300
#define CW_SELECT_FLAGS 10
extern const struct cw_flag cw_select_flags[CW_SELECT_FLAGS];

int cw_select_has_flag(int flag);
/* 0, or -1 after a message that names the flag and the accepted form. */
int cw_select_set(struct cw_selection *selection, int flag, const char *value);

/* A site, or a row of sites, and its sort key: largest first, with a deterministic order. */
struct cw_ranked {
    uint64_t value;
    uint32_t id, site;
};
void cw_ranked_sort(struct cw_ranked *ranked, uint32_t count);

/* Whether it leaves out sites by what they are, not by their number. */
int cw_select_filters(const struct cw_selection *selection);

/* The indices of the selected sites, largest first, to be freed; NULL after an out-of-memory
 * message.
 */
uint32_t *cw_select_sites(const struct cw_report_model *model, const struct cw_selection *selection,
                          uint32_t *out_count);

/* Of a site. */
uint64_t cw_metric_of(const struct cw_snapshot_site *site, enum cw_metric metric);
const char *cw_metric_name(enum cw_metric metric);
const char *cw_metric_unit(enum cw_metric metric); /* "bytes" or "count" */

#endif
