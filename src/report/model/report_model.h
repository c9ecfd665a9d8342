/* SPDX-License-Identifier: MIT */
/*
 * All that the text of a report is written from. There are two fillers: model_live.c, of a live
 * layout, and cli/model/model_report.c, of a report in JSON. Equal models give equal bytes.
 *
 * Sites, devices, the pool, pressure and growth are those of a snapshot, whose view nobody looks
 * at: of a report in JSON there is none. Strings are never NULL unless it is said; they belong to
 * the filler.
 */
#ifndef CW_REPORT_MODEL_H
#define CW_REPORT_MODEL_H

#include <stdint.h>

#include "live/layout.h"
#include "report/leaks/suppress.h"
#include "report/snapshot/snapshot.h"
#include "report/snapshot/tag.h"

/* A function that was inlined into a frame's. */
struct cw_report_place {
    const char *function, *file; /* NULL: not known */
    uint32_t line;               /* 0: not known */
};

struct cw_report_frame {
    const char *function; /* NULL: not known */
    const char *file;     /* of the source; of Python with its directory; NULL: not known */
    uint32_t line;        /* 0: not known */
    uint32_t module;      /* a number, 0: in none */
    const char *module_name;
    uint64_t offset;           /* of the call in the module's file */
    uint64_t address;          /* where it returns to; 0: not known */
    uint32_t inlined, inlines; /* its part of the places, innermost first */
    uint8_t is_python;
};

/* The frames that a reader wants to see, innermost first; at most CW_DEPTH_MAX. */
struct cw_report_stack {
    uint32_t first, count;
};

struct cw_report_event {
    uint64_t t_ns; /* 0: the record is empty */
    uint64_t key, bytes, free_bytes, total_bytes, released;
    uint32_t site;       /* index, or CW_SITE_NONE */
    uint32_t first_site; /* of a second free: that of the first */
    int32_t code;
    uint32_t count;
    uint16_t share; /* in 1/10000 */
    uint8_t type, device, cause, level, level_before, rung;
};

struct cw_report_oom {
    uint64_t t_ns;
    uint32_t event; /* index, or CW_SITE_NONE */
    uint32_t site;  /* index, or CW_SITE_NONE */
    int32_t code;
    uint8_t device, cause, unserved, is_fragmented;
    uint64_t bytes, fits, limit, min_free;
    uint64_t live, held, idle, spare, free_bytes, total_bytes, others;
    uint64_t rest_bytes, rest_blocks;
    struct {
        uint32_t site;
        uint64_t bytes, blocks;
    } holder[CW_OOM_HOLDERS];
    unsigned holders;
};

/* A rule of suppressions, and what it was used for. */
struct cw_report_rule {
    uint32_t id; /* as sites name it */
    uint32_t line;
    const char *owner;          /* of a built-in one; NULL: it is of the user's file */
    const struct cw_rule *rule; /* NULL: `words` say it */
    const char *words;
    struct cw_rule_use use;
};

struct cw_report_tag {
    const char *name, *domain;
};

struct cw_report_peak {
    const uint32_t *site; /* those that are shown, largest first */
    uint32_t shown, count;
    uint64_t rest; /* bytes of the others */
};

struct cw_report_rank {
    uint32_t site;
    uint64_t value;
};

/* Of a report on some of the call sites, or by another measure. The lists of the snapshot are those
 * of the selection then. */
struct cw_report_selection {
    uint32_t sites, of;
    int shows_all;                 /* lists are not cut */
    const char *metric;            /* NULL: what was never freed, as always */
    int is_count;                  /* the metric is no number of bytes */
    struct cw_snapshot_list apart; /* what else does not count */
    const struct cw_report_rank *rank;
    uint32_t ranks;
};

#define CW_REPORT_DIAGNOSTICS 8

struct cw_report_diagnostic {
    char text[256];
    uint8_t is_loss; /* the account is incomplete */
};

struct cw_report_model {
    const struct cw_snapshot *snapshot;
    uint32_t pid;
    const char *version, *command;
    const char *end; /* "exit", "_exit", "quick_exit", "running", "died" or "unknown" */
    int has_exit_code, exit_code;
    uint8_t has_no_stacks; /* they were switched off */
    uint8_t has_no_ids;    /* of sites, while the process runs (report_oom.h) */
    struct cw_report_diagnostic diagnostic[CW_REPORT_DIAGNOSTICS];
    unsigned diagnostics;
    uint64_t invalid_frees; /* at least those that have an event */
    struct cw_report_event *event;
    uint32_t events;
    struct cw_report_oom *oom;
    uint32_t ooms;
    struct cw_report_rule *rule; /* those of the file, and built-in ones that were used */
    uint32_t rules;
    const char *rules_path; /* of the file, "" for none */
    struct cw_report_tag *tag;
    uint32_t tags;
    const struct cw_live_audit *audit;
    const char *audit_why;
    const char *audit_source[CW_AUDIT_FINDINGS]; /* of findings */
    const char *audit_name[CW_AUDIT_VARIABLES];  /* of variables */
    struct cw_report_stack *stack;               /* by number; 0 is none */
    uint32_t stacks;
    struct cw_report_frame *frame;
    uint32_t frames;
    struct cw_report_place *place;
    uint32_t places;
    struct cw_report_peak peak[CW_DEVICES];
    const struct cw_report_selection *selection; /* NULL: of everything */
};

/* "forward", "forward@domain"; "" for none. Returns buf. */
const char *cw_report_tag_label(const struct cw_report_model *model, uint32_t tag, char *buf,
                                size_t cap);
/* The rule that sites know by this number, or NULL. */
const struct cw_report_rule *cw_report_rule_at(const struct cw_report_model *model, uint32_t id);

static inline const struct cw_snapshot_site *cw_report_site(const struct cw_report_model *model,
                                                            uint32_t site)
{
    return site < model->snapshot->sites ? &model->snapshot->site[site] : NULL;
}

#endif
