/* SPDX-License-Identifier: MIT */
/*
 * Numbers as users write them: decimals, and sizes with a unit. For the parsers of option values.
 *
 * Owns nothing; no lock. A read function parses text at `at` and returns the position after it, or
 * NULL if the text does not match; the caller checks what follows. Values that do not fit in 64
 * bits are rejected.
 */
#ifndef CW_BASE_NUMBER_H
#define CW_BASE_NUMBER_H

#include <stdint.h>

#include "base/out.h"

#define CW_DECIMAL_ONE UINT64_C(1000000000000000000) /* 18 decimals */

struct cw_decimal {
    uint64_t whole;
    uint64_t fraction; /* of CW_DECIMAL_ONE */
    int has_point;
};

const char *cw_number_read_digits(const char *at, uint64_t *out);
const char *cw_number_read_decimal(const char *at, struct cw_decimal *out);
/* The unit of a size, or none. A fraction of bytes is rejected: the unit was forgotten. */
const char *cw_number_read_bytes(const char *at, const struct cw_decimal *number, uint64_t *bytes);

/* number times unit, rounded down; -1 if that takes more than 64 bits. */
int cw_number_scale(const struct cw_decimal *number, uint64_t unit, uint64_t *out);

/* A letter of a unit, in either case; `lower` is in lower case. */
static inline int cw_number_is_letter(char c, char lower)
{
    return (c | 0x20) == lower;
}

/* ".25" of 25 with 2 decimals, without trailing zeros; "" for 0. */
void cw_number_print_fraction(uint64_t fraction, int decimals, struct cw_out *out);
/* In whole or half units, "8G" and "1.5G"; otherwise in a smaller unit. */
void cw_number_print_bytes(uint64_t bytes, struct cw_out *out);

#endif
