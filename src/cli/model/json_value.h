/* SPDX-License-Identifier: MIT */
/* How a text or a number of JSON becomes the value of a row (report/json/fields.h): a number that
 * is too large the largest, a word of a later version the number behind the last. */
#ifndef CW_CLI_JSON_VALUE_H
#define CW_CLI_JSON_VALUE_H

#include "cli/model/json_place.h"

/* Which types of rows take a text; the others but truths take a number, a device both. */
#define CW_JSON_TEXTS                                                                              \
    (1u << CW_JSON_TEXT | 1u << CW_JSON_ADDRESS | 1u << CW_JSON_KEY | 1u << CW_JSON_WORD |         \
     1u << CW_JSON_TAG | 1u << CW_JSON_DEVICE)
#define CW_JSON_NUMERIC                                                                            \
    (1u << CW_JSON_UINT | 1u << CW_JSON_INT | 1u << CW_JSON_REAL | 1u << CW_JSON_SHARE |           \
     1u << CW_JSON_ID | 1u << CW_JSON_REF | 1u << CW_JSON_DEVICE)

/* `type`: of the row, or of the elements of its list. The text stays. */
void cw_json_put_text(struct cw_json_storage *self, const struct cw_json_field *row, unsigned type,
                      void *to, const char *text);
void cw_json_put_number(const struct cw_json_field *row, unsigned type, void *to,
                        const char *digits);
/* As a whole number; programs that rewrite JSON may put 1e3 for 1000. */
uint64_t cw_json_to_whole(const char *digits);

#endif
