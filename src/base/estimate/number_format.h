/* SPDX-License-Identifier: MIT */
/* How weights and caches are stored. See number_format.def. */
#ifndef CW_BASE_NUMBER_FORMAT_H
#define CW_BASE_NUMBER_FORMAT_H

#include <stddef.h>
#include <stdint.h>

struct cw_number_format {
    const char *name;
    uint32_t bits;         /* for one number, in 1/10000 */
    uint8_t is_rest;       /* embeddings and norms have 16 bits */
    uint8_t is_of_experts; /* and so has all but the experts */
};

/* NULL: there is none of this name, in any case of letters. */
const struct cw_number_format *cw_number_format_find(const char *name);
/* The i-th; then NULL. */
const struct cw_number_format *cw_number_format_at(size_t i);
/* 1 for fp32, fp16 and bf16, which programs compute in. */
int cw_number_format_is_plain(const struct cw_number_format *format);
/* How many numbers so many bytes are, rounded down. */
uint64_t cw_number_format_count(const struct cw_number_format *format, uint64_t bytes);
/* Of so many numbers, rounded up; UINT64_MAX if it is more. */
uint64_t cw_number_format_bytes(const struct cw_number_format *format, uint64_t count);

#endif
