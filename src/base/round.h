/* SPDX-License-Identifier: MIT */
#ifndef CW_BASE_ROUND_H
#define CW_BASE_ROUND_H

#include <stdint.h>

/* The next multiple of the unit, which need not be a power of two. */
static inline uint64_t cw_round_up(uint64_t number, uint64_t unit)
{
    return (number + unit - 1) / unit * unit;
}

#endif
