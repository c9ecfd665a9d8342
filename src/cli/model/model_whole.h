/* SPDX-License-Identifier: MIT */
/*
 * What a model knows of a process as a whole, beyond its sites: the pool and the pressure of a
 * device by the library's own reasons, causes and rungs, old blocks, and accounts of out of memory.
 * Words as in live/layout.h; strings as in model.h.
 */
#ifndef CW_CLI_MODEL_WHOLE_H
#define CW_CLI_MODEL_WHOLE_H

#include <stdint.h>

#include "live/layout.h"

struct cw_model_amount {
    uint64_t count, bytes;
};

struct cw_model_pool {
    uint8_t is_there; /* the pool had something to do with the device */
    uint64_t requested, allocated, held, peak_held;
    uint64_t in_use; /* of what is held; UINT64_MAX: not known, as of older reports */
    struct cw_model_amount idle;
    uint64_t requested_ever, allocated_ever; /* of all that was ever served */
    double efficiency_total; /* the same as a share, which older reports have alone */
    uint64_t saved_frees, exact_retries, oom_retries;
    uint64_t trimmed_full, trimmed_idle, trimmed_oom, abandoned;
    uint64_t bypassed[CW_BYPASS_COUNT];
};

struct cw_model_time {
    uint64_t entered, ns;
};

struct cw_model_rung {
    uint64_t tried, helped, released;
};

struct cw_model_pressure {
    uint8_t is_there;
    uint64_t held, peak_held, spare;
    double highest_use; /* 0..1 */
    uint64_t changes;
    struct cw_model_time at[CW_LEVEL_COUNT];
    uint64_t refused[CW_CAUSE_COUNT], limited;
    struct cw_model_rung rung[CW_RUNG_COUNT];
    struct cw_model_amount fallbacks, scarce;
};

struct cw_model_old {
    uint32_t site; /* index */
    struct cw_model_amount old;
    uint64_t age_ns; /* of the oldest */
};

struct cw_model_holder {
    uint32_t site; /* index, or CW_MODEL_NONE */
    const char *api;
    struct cw_model_amount held;
};

struct cw_model_oom {
    uint64_t t_ns;
    int code;
    uint32_t event;               /* index, or CW_MODEL_NONE */
    uint32_t device, site;        /* index, or CW_MODEL_NONE */
    const char *cause, *fallback; /* "": nothing is said of it */
    uint64_t bytes, fits, limit, min_free;
    uint64_t live, held, idle, spare, free, total, others;
    uint8_t is_fragmented;
    struct cw_model_amount rest; /* of those that are not among the holders */
    uint32_t first_holder, holders;
};

/* What CUPTI has seen, as in live/layout_audit.h; texts are here. */
struct cw_model_audit {
    struct cw_live_audit of;
    const char *why;
    const char *source[CW_AUDIT_FINDINGS];
    const char *name[CW_AUDIT_VARIABLES];
};

/* A rule of suppressions, and what it was used for. */
struct cw_model_rule {
    uint32_t id;
    uint32_t line; /* of the file; 0: it is built in */
    const char *pattern, *source, *owner, *leak;
    uint64_t sites, past_cap;
    struct cw_model_amount kept;
};

struct cw_model_diagnostic {
    const char *text;
    uint8_t is_loss; /* the account is incomplete; else only its stacks are */
};

#endif
