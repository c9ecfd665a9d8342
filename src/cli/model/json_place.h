/* SPDX-License-Identifier: MIT */
/*
 * Shared by the reader of reports in JSON (json_read.c) and the part that places records in the
 * model (json_place.c): most records are appended to the list that their row names; those of
 * devices, steps, tags and growth are read first, then placed by their content.
 */
#ifndef CW_CLI_JSON_PLACE_H
#define CW_CLI_JSON_PLACE_H

#include "base/compiler.h"
#include "base/pages.h"
#include "cli/model/json_numbers.h"
#include "report/json/fields.h"

#define CW_JSON_TEMP_MAX 1536 /* bytes of a record that is placed */

struct cw_json_storage {
    struct cw_report_model model;
    struct cw_pages pages; /* strings */
    void ***list;          /* addresses of the pointers to lists, which are freed at the end */
    size_t lists;
    struct cw_json_numbers number[CW_JSON_TABLES];
    uint32_t *tag_slot;  /* open addressing by label: number of a tag, 0: free */
    uint32_t *tag_order; /* numbers of the tags as their own list has them */
    uint32_t tag_orders;
    void *no_list;    /* stays NULL */
    const char *name; /* of the file */
    uint64_t bytes;   /* that it has */
    /* A key that must be there, and the record in the report that lacks it; or NULL. */
    const char *lacking, *lacking_in;
    int failed; /* after a message */
};

/* The initial state of a record; NULL: zeros. */
const void *cw_json_initial(unsigned record);
/* Whether a record is read first, then placed. */
int cw_json_is_placed(unsigned record);
/* Places a complete record; `outer` is the record that contains it. */
void cw_json_place(struct cw_json_storage *self, unsigned record, void *item, void *outer);
/* At the end of the report: converts numbers to indices, and computes derived values. */
void cw_json_finish(struct cw_json_storage *self);

/* Appends a zeroed record to the list at *items. NULL after a message. */
void *cw_json_append(struct cw_json_storage *self, void *items, uint32_t *count, size_t size);
/* The number of a tag, allocated if it is new; 0: it has no name, or there is no room. */
uint32_t cw_json_tag(struct cw_json_storage *self, const char *label);
/* Prints at most one message for each report. */
void cw_json_fail(struct cw_json_storage *self, const char *fmt, ...) CW_PRINTF(2, 3);

#endif
