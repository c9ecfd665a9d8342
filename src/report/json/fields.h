/* SPDX-License-Identifier: MIT */
/*
 * What a report in JSON consists of: one row for each key (fields.def), which the writer
 * (json_write.h) and the command's reader (cli/model/json_read.h) both go by, and of which
 * docs/report-json.md and the JSON Schema are made. A row says where in a record of the model
 * (report/model/report_model.h) the value lies, and how it is put.
 *
 * A record is an array of rows that ends with one without a key.
 */
#ifndef CW_REPORT_JSON_FIELDS_H
#define CW_REPORT_JSON_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "report/model/report_model.h"

enum cw_json_type {
    CW_JSON_UINT,    /* an unsigned member of 1, 2, 4 or 8 bytes */
    CW_JSON_INT,     /* int32_t */
    CW_JSON_REAL,    /* double; null if it is no number */
    CW_JSON_TRUTH,   /* uint8_t */
    CW_JSON_TEXT,    /* const char * */
    CW_JSON_ADDRESS, /* uint64_t: "0x7f00" */
    CW_JSON_KEY,     /* uint32_t: "0000beef" */
    CW_JSON_SHARE,   /* unsigned, in 1/10000: 0.950000 */
    CW_JSON_WORD,    /* unsigned: one of `words`; left out where that is "" */
    CW_JSON_DEVICE,  /* unsigned: its ordinal, or "host" */
    CW_JSON_TAG,     /* unsigned: the tag's label */
    CW_JSON_REF,     /* uint32_t: the number of a record of `table` */
    CW_JSON_ID,      /* the number of this record of `table`, by its place */
    CW_JSON_AMOUNT,  /* two uint64_t, a count and `other` bytes: {"count":2,"bytes":30} */
    CW_JSON_MAP,     /* a list of struct cw_report_variable: {"NAME":"value"} */
    CW_JSON_OBJECT,  /* of `of`, in the record at `offset`, or where `each` finds it */
    CW_JSON_LIST, /* of `of`, or of plain `plain` values, behind a pointer; `other`: their number */
    CW_JSON_ARRAY, /* the same in the record itself; `most`: room for so many */
    CW_JSON_SLICE, /* the same: a part of the model's list at `pool`; offset: uint32_t first, count
                    */
    CW_JSON_EACH,  /* what `each` goes through */
    CW_JSON_MADE,  /* worked out from other values by `make`; only written */
};

/* When a value is there. */
enum cw_json_when {
    CW_JSON_ALWAYS,
    CW_JSON_KNOWN, /* it is not 0, "" or NULL */
    CW_JSON_HAS,   /* the uint8_t at `has` is set; set when it was read */
    CW_JSON_IF,    /* is_there says so */
};

/* Tables whose records are named by number: those of modules and stacks in the model begin at 1. */
enum cw_json_table {
    CW_JSON_SITES,
    CW_JSON_STACKS,
    CW_JSON_FRAMES,
    CW_JSON_MODULES,
    CW_JSON_TABLES,
};

/* Where the writer stands. */
struct cw_json_at {
    const struct cw_report_model *model;
    const void *record;
};

struct cw_json_words {
    const char *(*name)(unsigned word);
    unsigned count;
};

struct cw_json_each {
    uint32_t (*count)(const struct cw_json_at *at);
    /* NULL: it is left out. */
    const void *(*item)(const struct cw_json_at *at, uint32_t index);
};

enum cw_json_form {
    CW_JSON_MADE_NONE, /* it is left out */
    CW_JSON_MADE_UINT,
    CW_JSON_MADE_SHARE, /* part/whole, null without a whole */
    CW_JSON_MADE_TEXT,
    CW_JSON_MADE_TRUE,
};

struct cw_json_made {
    enum cw_json_form form;
    uint64_t part, whole;
    const char *text;
};

struct cw_json_field {
    const char *key;
    uint8_t type, when, plain, table;
    uint8_t is_tuple;     /* an object that is put as an array of its values */
    uint8_t breaks_lines; /* each element on a line of its own */
    uint16_t size;        /* of the member, or of an element */
    uint32_t offset, other, has, most;
    uint32_t pool, pools; /* in the model: of a slice the list, and how many it has */
    uint8_t of;           /* enum cw_json_record_id */
    const struct cw_json_words *words;
    const struct cw_json_each *each;
    /* `value`: the member of the record at `offset`. */
    void (*make)(const struct cw_json_at *at, const void *value, struct cw_json_made *out);
    uint8_t form; /* enum cw_json_form of what it makes */
    int (*is_there)(const struct cw_json_at *at, const void *value);
};

/* By their names in fields.def. */
enum cw_json_record_id {
    CW_JSON_RECORD_NONE,
#define RECORD(name, doc) CW_JSON_RECORD_##name,
#include "report/json/fields_none.h"
#include "report/json/fields.def"
    CW_JSON_RECORDS
};

struct cw_json_record {
    const char *name;
    const struct cw_json_field *field;
};

/* All records, the report itself last; in the order of fields.def. */
extern const struct cw_json_record cw_json_record[CW_JSON_RECORDS];

#endif
