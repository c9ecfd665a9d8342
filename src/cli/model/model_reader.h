/* SPDX-License-Identifier: MIT */
/*
 * What the files of the JSON reader share: where it stands in a report (enum cw_in), what is known
 * of the record that it is in, and what it has gathered so far.
 */
#ifndef CW_CLI_MODEL_READER_H
#define CW_CLI_MODEL_READER_H

#include <stddef.h>
#include <stdint.h>

#include "cli/model/model.h"

#define SCHEMA     "cuwarden-report/1"
#define DEPTH_MAX  16
#define KEY_MAX    32
#define ID_MAX     (1u << 28) /* a larger number is no index of a table */
#define TEXT_CACHE 64

enum cw_reader_in {
    IN_NOTHING, /* of which no row speaks */
    IN_TOP,
    IN_REPORT,
    IN_TOOL,
    IN_PROCESS,
    IN_ARGV,
    IN_EXIT,
    IN_CUDA,
    IN_DEVICES,
    IN_DEVICE,
    IN_POOL,
    IN_POOL_DEVICES,
    IN_POOL_DEVICE,
    IN_BUCKETS,
    IN_BUCKET,
    IN_PRESSURE,
    IN_PRESSURE_DEVICES,
    IN_PRESSURE_DEVICE,
    IN_MODULES,
    IN_MODULE,
    IN_FRAMES,
    IN_FRAME,
    IN_INLINED,
    IN_INLINED_FRAME,
    IN_STACKS,
    IN_STACK,
    IN_STACK_FRAMES,
    IN_STACK_SHOWN,
    IN_SITES,
    IN_SITE,
    IN_LEAKS,
    IN_LEAK,
    IN_EVENTS,
    IN_EVENT,
    IN_DIAGNOSTICS,
    IN_DIAGNOSTIC,
    IN_SUMMARY,
    IN_AMOUNT,
    IN_PEAK,
    IN_GROWTH,
    IN_GROWTH_BYTES,
    IN_MOMENTS,
    IN_MOMENTS_NS,
    IN_TIMELINE,
    IN_TIMELINE_SERIES,
    IN_TIMELINE_DEVICE,
    IN_POINTS,
    IN_POINT,
    IN_STEPS,
    IN_STEP,
    IN_REGROWTHS,
    IN_REGROWTH,
    IN_SELECTION,
    IN_TRIMMED,
    IN_SAVED,
    IN_BYPASSED,
    IN_LEVELS,
    IN_LEVEL,
    IN_RELEASED,
    IN_LADDER,
    IN_RUNG,
    IN_REFUSED,
    IN_FIRST_FREED,
    IN_OLD,
    IN_OLD_SITES,
    IN_OLD_SITE,
    IN_OOMS,
    IN_OOM,
    IN_HOLDERS,
    IN_HOLDER,
    IN_FLOORS,
    IN_PER_STEP,
    IN_SUSPECTS,
    IN_GROWTH_DEVICES,
    IN_GROWTH_DEVICE,
    IN_RULES,
    IN_RULE,
    IN_AUDIT,
    IN_AUDIT_KINDS,
    IN_AUDIT_KIND,
    IN_AUDIT_ROW,
    IN_FINDINGS,
    IN_FINDING,
    IN_VARIABLES,
    IN_VARIABLE,
    IN_CONTEXTS,
};

/* Whose the field is: the reader's, the model's, or that of the object that it stands in. */
enum cw_reader_base { OF_READER, OF_MODEL, OF_OBJECT };

enum cw_reader_action { TEXT, U8, U32, U64, I32, REAL, TRUTH, INTO };

/* Pages that are there where an id was met: a damaged file's ids take no more room than the file.
 */
#define ID_PAGE 4096u

struct by_id {
    uint32_t *page[ID_MAX / ID_PAGE]; /* index + 1 by id; 0: there is none */
};

struct frame_now {
    struct cw_model_frame frame;
    uint32_t id, module;
    const char *lang;
};

struct device_now {
    struct cw_model_device device;
};

struct pressure_now {
    uint32_t device;
    const char *level;
    uint64_t limit, min_free;
    struct cw_model_pressure of;
};

struct pool_now {
    uint32_t device;
    uint64_t hits, misses, ooms;
    uint32_t first_bucket, buckets;
    struct cw_model_pool of;
};

struct finding_now {
    struct cw_live_audit_finding of;
    const char *side, *kind, *operation, *address, *source;
};

struct variable_now {
    struct cw_live_audit_variable of;
    const char *name;
};

/* What the parts "pool", "pressure", "growth" and "timeline" have of a device. */
struct cw_reader_device {
    uint8_t is_there;
    struct cw_model_rise rise;
    struct pool_now pool;
    struct pressure_now pressure;
    uint32_t first_point, points;
};

#define NO_SAMPLE UINT64_MAX /* of a device of whose driver nothing is known */
#define NO_AGE    UINT64_MAX /* of a site in whose oldest_ns its oldest block's age waits */

/* What is being read, by kind. */
struct now {
    const char *schema;
    const char *argument;
    struct device_now device;
    struct pressure_now pressure;
    struct pool_now pool;
    struct cw_model_bucket bucket;
    struct cw_model_module module;
    uint32_t module_id;
    struct frame_now frame, inlined;
    uint32_t first_inlined;
    uint32_t stack_number, first_id;
    uint32_t shown_number, shown[2]; /* begin and count, among those numbers */
    unsigned shown_numbers;
    struct cw_model_site site;
    uint32_t site_id, site_stack, site_owner;
    const char *frame_address;
    const char *site_key;
    struct cw_model_block block;
    uint32_t block_site;
    const char *block_address;
    struct cw_model_event event;
    uint32_t event_site;
    const char *rung_name;
    struct cw_model_rung rung;
    struct cw_model_old old;
    struct cw_model_oom oom;
    struct cw_model_holder holder;
    struct cw_model_diagnostic diagnostic;
    unsigned floors;
    uint32_t suspect, growth_device;
    struct cw_model_rise rise;
    struct cw_model_rule rule;
    const char *audit_status;
    struct finding_now finding;
    struct variable_now variable;
    uint64_t moment_ns, moment_bytes;
    uint32_t timeline_device, first_point;
    uint64_t point[5];
    unsigned point_numbers;
    struct cw_model_step step;
    struct cw_model_regrowth regrowth;
    uint32_t regrowth_site;
};

struct vector {
    size_t count, cap;
};

struct cw_reader {
    struct cw_model *model;
    const char *name;
    struct now now;
    struct {
        enum cw_reader_in context;
        void *base; /* of the offsets of rows */
    } level[DEPTH_MAX];
    unsigned depth;
    unsigned ignored; /* levels of IN_NOTHING on top of those, which are not kept */
    char key[KEY_MAX];
    char *command;
    size_t command_len;
    struct vector device, point, bucket, module, frame, stack_frame, stack, site, block, event,
        diagnostic, sample, series, step, regrowth, old, oom, holder, suspect, rule;
    struct by_id modules, frames, stacks, sites; /* these are large */
    uint32_t *inlined_of; /* by model frame: how many inlined ones stand right before it */
    struct vector inlined_ofs;
    uint32_t *stack_id; /* the frames of all stacks, by the report's numbers */
    struct vector stack_ids;
    struct cw_reader_device about[CW_MODEL_HOST + 1]; /* by ordinal */
    const char *recent[TEXT_CACHE]; /* texts seen lately: names of APIs and kinds repeat */
    int failed;                     /* after a message */
};

struct cw_reader_row {
    enum cw_reader_in in;
    const char *key; /* NULL: whatever is in the array */
    enum cw_reader_action action;
    enum cw_reader_base base;
    size_t offset;
    enum cw_reader_in into;
};

/* Once, before the others. */
void cw_reader_index_rows(void);
/* The row for a value under the present key, or NULL: it is passed over. */
const struct cw_reader_row *cw_reader_find_row(const struct cw_reader *self);
void *cw_reader_field(struct cw_reader *self, const struct cw_reader_row *row);

/* The record with this number is `index` of its array. */
void cw_reader_put_id(struct cw_reader *self, struct by_id *map, uint32_t id, size_t index);
void cw_reader_free_ids(struct by_id *map);
/* At the end of the report: numbers become indices, ages become times. */
void cw_reader_link(struct cw_reader *self);

/* Records of the parts "pressure", "old" and "oom_accounts" (model_account.c). */
void cw_reader_begin_rung(struct cw_reader *self);
void cw_reader_end_rung(struct cw_reader *self);
void cw_reader_begin_old(struct cw_reader *self);
void cw_reader_end_old(struct cw_reader *self);
void cw_reader_begin_oom(struct cw_reader *self);
void cw_reader_end_oom(struct cw_reader *self);
void cw_reader_begin_holder(struct cw_reader *self);
void cw_reader_end_holder(struct cw_reader *self);

/* Records of "growth" beyond those of sites, and of "suppressions" (model_growth.c). */
void cw_reader_begin_floors(struct cw_reader *self);
void cw_reader_end_floor(struct cw_reader *self);
void cw_reader_end_suspect(struct cw_reader *self);
void cw_reader_begin_growth_device(struct cw_reader *self);
void cw_reader_end_growth_device(struct cw_reader *self);
void cw_reader_begin_rule(struct cw_reader *self);
void cw_reader_end_rule(struct cw_reader *self);

/* Records of "audit" (model_audit.c). */
void cw_reader_begin_audit(struct cw_reader *self);
void cw_reader_end_audit(struct cw_reader *self);
void cw_reader_begin_finding(struct cw_reader *self);
void cw_reader_end_finding(struct cw_reader *self);
void cw_reader_begin_variable(struct cw_reader *self);
void cw_reader_end_variable(struct cw_reader *self);

/* What the report has of a device beyond its entry; NULL: of none that there can be. */
struct cw_reader_device *cw_reader_about(struct cw_reader *self, uint32_t ordinal);

/* Room for one more, zeroed; NULL after a message. */
void *cw_reader_append(struct cw_reader *self, void *array, struct vector *vector, size_t size);

/* One message for each report. */
void cw_reader_fail(struct cw_reader *self, const char *why);
/* At the beginning and the end of an object, and after a plain value in an array. */
void cw_reader_begin(struct cw_reader *self, enum cw_reader_in context);
void cw_reader_end(struct cw_reader *self, enum cw_reader_in context);
void cw_reader_after_element(struct cw_reader *self);

#endif
