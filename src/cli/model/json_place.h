/* SPDX-License-Identifier: MIT */
/*
 * What the reader of reports in JSON (json_read.c) shares with the part that puts records where the
 * model has them (json_place.c): most are appended to the list that their row names; those of
 * devices, steps, tags and growth are read first and then have a place by what is in them.
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
    void ***list;          /* where the pointers to lists are, which are freed at the end */
    size_t lists;
    struct cw_json_numbers number[CW_JSON_TABLES];
    uint32_t *tag_slot; /* open addressing by label: number of a tag, 0: free */
    void *no_list;      /* stays NULL */
    const char *name;   /* of the file */
    int failed;         /* after a message */
};

/* A record as it is before its values are read; NULL: zeroed. */
const void *cw_json_initial(unsigned record);
/* Whether a record is read first and placed then. */
int cw_json_is_placed(unsigned record);
/* A record of that kind is complete; `outer`: the record in which it stands. */
void cw_json_place(struct cw_json_storage *self, unsigned record, void *item, void *outer);
/* At the end of the report: numbers become indices, and what follows from the values is worked
 * out. */
void cw_json_finish(struct cw_json_storage *self);

/* Room for one more in a list of records, at *items; zeroed. NULL after a message. */
void *cw_json_append(struct cw_json_storage *self, void *items, uint32_t *count, size_t size);
/* The number of a tag, a new one where it has none yet; 0: it has no name, or there is no room. */
uint32_t cw_json_tag(struct cw_json_storage *self, const char *label);
/* One message for each report. */
void cw_json_fail(struct cw_json_storage *self, const char *fmt, ...) CW_PRINTF(2, 3);

#endif
