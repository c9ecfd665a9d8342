/* SPDX-License-Identifier: MIT */
/* Maps the numbers of a report in JSON to records; they may be sparse, and in any order. */
#ifndef CW_CLI_JSON_NUMBERS_H
#define CW_CLI_JSON_NUMBERS_H

#include <stdint.h>

#define CW_JSON_NUMBERS  (1u << 28) /* larger numbers are invalid */
#define CW_JSON_NO_PLACE UINT32_MAX

/* Zero-initialized: empty. Memory use is bounded by the count of numbers, not by their values. */
struct cw_json_numbers {
    uint32_t *page[CW_JSON_NUMBERS / 4096]; /* place + 1; 0: none */
};

/* 0, or -1: out of memory, or the number is out of range. */
int cw_json_numbers_insert(struct cw_json_numbers *numbers, uint32_t number, uint32_t place);
/* CW_JSON_NO_PLACE: none. */
uint32_t cw_json_numbers_find(const struct cw_json_numbers *numbers, uint32_t number);
void cw_json_numbers_free(struct cw_json_numbers *numbers);

#endif
