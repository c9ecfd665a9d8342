/* SPDX-License-Identifier: MIT */
/*
 * Which budget counts a block: a byte for each block, its number or 0: none, under the block's
 * index, in private memory that is made as blocks come that count. What guards it:
 * core/account/budget.h.
 */
#ifndef CW_CORE_BUDGET_MARK_H
#define CW_CORE_BUDGET_MARK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* The block is not live yet, or its claim is still pending (core/account/budget.h). */
#define CW_BUDGET_EXPECTED 255u

#define CW_BUDGET_MARKS       (1u << 16) /* blocks of a chunk */
#define CW_BUDGET_MARK_CHUNKS (1u << 12)

extern CW_HIDDEN _Atomic(_Atomic uint8_t *) cw_budget_marks[CW_BUDGET_MARK_CHUNKS];

CW_NOINLINE void cw_budget_mark_make(uint32_t chunk);

/* NULL: there is none. */
static inline _Atomic uint8_t *cw_budget_mark_at(uint32_t block)
{
    _Atomic uint8_t *chunk =
        CW_LIKELY(block / CW_BUDGET_MARKS < CW_BUDGET_MARK_CHUNKS)
            ? atomic_load_explicit(&cw_budget_marks[block / CW_BUDGET_MARKS], memory_order_acquire)
            : NULL;

    return CW_LIKELY(chunk != NULL) ? &chunk[block % CW_BUDGET_MARKS] : NULL;
}

/* The same, made if there was none. */
static inline _Atomic uint8_t *cw_budget_mark_made(uint32_t block)
{
    if (CW_UNLIKELY(cw_budget_mark_at(block) == NULL))
        cw_budget_mark_make(block / CW_BUDGET_MARKS);
    return cw_budget_mark_at(block);
}

/* Of a record that the caller owns. */
void cw_budget_mark_expect(uint32_t block);
void cw_budget_mark_clear(uint32_t block);

/* In a forked child. */
void cw_budget_mark_reset(void);

#endif
