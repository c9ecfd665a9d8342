/* SPDX-License-Identifier: MIT */
/* What number of a report in JSON is which record: numbers may be sparse, and in any order. */
#ifndef CW_CLI_JSON_NUMBERS_H
#define CW_CLI_JSON_NUMBERS_H

#include <stdint.h>

#define CW_JSON_NUMBERS  (1u << 28) /* a larger one is no number of a record */
#define CW_JSON_NO_PLACE UINT32_MAX

/* Zeroed: empty. Takes no more room than the file has numbers, whatever they are. */
struct cw_json_numbers {
    uint32_t *page[CW_JSON_NUMBERS / 4096]; /* place + 1; 0: there is none */
};

/* 0, or -1: no memory, or the number is out of range. */
int cw_json_numbers_insert(struct cw_json_numbers *numbers, uint32_t number, uint32_t place);
/* CW_JSON_NO_PLACE: there is none. */
uint32_t cw_json_numbers_find(const struct cw_json_numbers *numbers, uint32_t number);
void cw_json_numbers_free(struct cw_json_numbers *numbers);

#endif
