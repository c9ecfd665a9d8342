/* SPDX-License-Identifier: MIT */
/* Converts JSON texts and numbers to values of rows (report/json/fields.h): too large a number
 * becomes the largest, and an unknown word the number after the last. */
#ifndef CW_CLI_JSON_VALUE_H
#define CW_CLI_JSON_VALUE_H

#include "cli/model/json_place.h"

/* The types of rows that take a text; all others except truths take a number, devices take both. */
#define CW_JSON_TEXTS                                                                              \
    (1u << CW_JSON_TEXT | 1u << CW_JSON_ADDRESS | 1u << CW_JSON_KEY | 1u << CW_JSON_WORD |         \
     1u << CW_JSON_TAG | 1u << CW_JSON_DEVICE)
#define CW_JSON_NUMERIC                                                                            \
    (1u << CW_JSON_UINT | 1u << CW_JSON_INT | 1u << CW_JSON_REAL | 1u << CW_JSON_SHARE |           \
     1u << CW_JSON_ID | 1u << CW_JSON_REF | 1u << CW_JSON_DEVICE)

/* `type`: of the row, or of its list's elements. The text must stay valid. */
void cw_json_put_text(struct cw_json_storage *self, const struct cw_json_field *row, unsigned type,
                      void *to, const char *text);
void cw_json_put_number(const struct cw_json_field *row, unsigned type, void *to,
                        const char *digits);
/* An integer; programs that rewrite JSON may write 1e3 for 1000. */
uint64_t cw_json_to_whole(const char *digits);

#endif
