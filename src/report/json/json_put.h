/* SPDX-License-Identifier: MIT */
/*
 * The words of which the JSON report is made: commas, keys, and values of each form.
 *
 * Keys are our own words, and need no escapes. A key of NULL: an element of an array.
 */
#ifndef CW_REPORT_JSON_PUT_H
#define CW_REPORT_JSON_PUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/out.h"

struct cw_json {
    struct cw_out *out;
    int first; /* nothing written yet in the innermost object or array */
};

/* The value follows. */
void cw_json_key(struct cw_json *json, const char *key);
/* A key that is not a word of ours; its value follows, with the key NULL. */
void cw_json_name(struct cw_json *json, const char *name, size_t len);
void cw_json_open(struct cw_json *json, const char *key, char bracket);
/* Opens an element of a long array, on a line of its own. */
void cw_json_element(struct cw_json *json, char bracket);
void cw_json_close(struct cw_json *json, char bracket);

void cw_json_number(struct cw_json *json, const char *key, uint64_t value);
/* Six digits behind the point; beyond 10^15 that; null of what is no number. */
void cw_json_decimal(struct cw_json *json, const char *key, double value);
void cw_json_truth(struct cw_json *json, const char *key, int value);
/* part/whole as a number from 0 to 1, null without a whole. */
void cw_json_share(struct cw_json *json, const char *key, uint64_t part, uint64_t whole);
void cw_json_string(struct cw_json *json, const char *key, const char *value);
void cw_json_address(struct cw_json *json, const char *key, uint64_t address);
/* {"count":N,"bytes":N} */
void cw_json_amount(struct cw_json *json, const char *key, uint64_t count, uint64_t bytes);
/* Its ordinal, or "host". */
void cw_json_device(struct cw_json *json, const char *key, unsigned device);

#endif
