/* SPDX-License-Identifier: MIT */
/* Selects the growth worth reporting. See snapshot_growth.h. */
#include "report/snapshot/snapshot_growth.h"

#include "base/mem.h"

#define RESIZES    3 /* fewer are not worth a line */
#define COPIED_MIN UINT64_C(65536)

void cw_snapshot_growth_fini(struct cw_snapshot_growth *growth)
{
    uint32_t rows = growth->rows_limit;

    cw_mem_free(growth->row, rows * sizeof(*growth->row));
    cw_mem_free(growth->bytes, (size_t)rows * CW_SAMPLE_TIMES * sizeof(*growth->bytes));
    cw_mem_free(growth->suspect, rows * sizeof(*growth->suspect));
    cw_mem_free(growth->step, growth->steps_limit * sizeof(*growth->step));
    cw_mem_free(growth->regrowth, growth->regrowths_limit * sizeof(*growth->regrowth));
    for (unsigned i = 0; i < CW_DEVICES; i++)
        cw_mem_free(growth->timeline[i].point,
                    growth->timeline[i].points_limit * sizeof(struct cw_growth_point));
}

int cw_snapshot_growth_was_watched(const struct cw_snapshot_growth *growth)
{
    return growth->end_ns >= CW_TREND_SPAN_MIN && growth->moments >= CW_TREND_POINTS_MIN;
}

int cw_snapshot_regrowth_is_large(const struct cw_growth_regrowth *regrowth)
{
    return regrowth->resizes >= RESIZES && regrowth->copied_bytes >= COPIED_MIN;
}

/* Keeps the CW_STEPS_SHOWN that grew most, by insertion. */
void cw_snapshot_note_rising(struct cw_snapshot_growth *growth, uint32_t index)
{
    uint32_t at = growth->risings;

    while (at > 0 && growth->step[growth->rising[at - 1]].growth < growth->step[index].growth)
        at--;
    if (at == CW_STEPS_SHOWN)
        return;
    if (growth->risings < CW_STEPS_SHOWN)
        growth->risings++;
    for (uint32_t i = growth->risings - 1; i > at; i--)
        growth->rising[i] = growth->rising[i - 1];
    growth->rising[at] = index;
}
