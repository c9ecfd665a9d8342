/* SPDX-License-Identifier: MIT */
/* What the files share that fill the model of the report layer. See model_report.h. */
#ifndef CW_CLI_MODEL_REPORT_PARTS_H
#define CW_CLI_MODEL_REPORT_PARTS_H

#include "cli/model/model_report.h"

#define TAGS_MAX  65535u
#define TAG_SLOTS 131072u

struct cw_model_report {
    const struct cw_model *from;
    const uint32_t *site; /* those to show, most first */
    uint32_t sites;
    uint8_t *is_shown; /* by index */
    struct cw_report_model model;
    struct cw_snapshot snapshot;
    struct cw_report_selection selection;
    uint32_t *tag_slot; /* by the hash of a name: its number */
    char *words;        /* of rules */
    size_t words_used;
    uint32_t *wanted; /* numbers of stacks */
    uint32_t wants;
    void *array[32]; /* what it owns */
    unsigned arrays;
    int failed; /* there was no memory */
};

/* Zeroed, one more than is asked for; it lives as long as the model. */
void *cw_model_report_take(struct cw_model_report *self, size_t count, size_t size);
/* The number of a word in its table, or `count`. */
unsigned cw_model_report_find(const char *name, const char *(*name_of)(unsigned), unsigned count);
/* The number of a tag. */
uint32_t cw_model_report_tag(struct cw_model_report *self, const char *name);

/* DEVICES, POOL and PRESSURE, and GROWTH. */
void cw_model_report_fill_devices(struct cw_model_report *self);
void cw_model_report_fill_growth(struct cw_model_report *self);

/* Stacks: room for all, which are wanted (a cw_report_want_fn), and the frames of these. */
int cw_model_report_begin_stacks(struct cw_model_report *self);
void cw_model_report_want(void *self, uint32_t stack);
void cw_model_report_fill_stacks(struct cw_model_report *self);

#endif
