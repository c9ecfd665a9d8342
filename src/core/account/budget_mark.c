/* SPDX-License-Identifier: MIT */
/* The bytes in which blocks say who counts them. See budget_mark.h. */
#include "core/account/budget_mark.h"

#include "base/mem.h"

_Atomic(_Atomic uint8_t *) cw_budget_marks[CW_BUDGET_MARK_CHUNKS];

void cw_budget_mark_make(uint32_t chunk)
{
    _Atomic uint8_t *made, *none = NULL;

    if (chunk >= CW_BUDGET_MARK_CHUNKS)
        return;
    made = cw_mem_alloc(CW_BUDGET_MARKS);
    if (made != NULL && !atomic_compare_exchange_strong(&cw_budget_marks[chunk], &none, made))
        cw_mem_free((void *)made, CW_BUDGET_MARKS);
}

void cw_budget_mark_expect(uint32_t block)
{
    _Atomic uint8_t *mark = cw_budget_mark_made(block);

    if (mark != NULL)
        atomic_store_explicit(mark, CW_BUDGET_EXPECTED, memory_order_relaxed);
}

void cw_budget_mark_clear(uint32_t block)
{
    _Atomic uint8_t *mark = cw_budget_mark_at(block);

    if (mark != NULL)
        atomic_store_explicit(mark, 0, memory_order_relaxed);
}

void cw_budget_mark_reset(void)
{
    for (unsigned i = 0; i < CW_BUDGET_MARK_CHUNKS; i++)
        atomic_store(&cw_budget_marks[i], NULL);
}
