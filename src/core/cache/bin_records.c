/* SPDX-License-Identifier: MIT */
/* What a thread counts of its own idle blocks. See bin_records.h. */
#include "core/cache/bin_records.h"

#include <stddef.h>

#include "base/mem.h"

static struct cw_bin_records *of_slot[CW_SLOTS];

void cw_bin_records_reset(void)
{
    for (unsigned i = 0; i < CW_SLOTS; i++)
        of_slot[i] = NULL;
}

struct cw_bin_records *cw_bin_records_for(unsigned slot, const struct cw_pool *pool)
{
    struct cw_bin_records *records = of_slot[slot];

    while (records != NULL && (records->device != pool->device || records->kind != pool->kind))
        records = records->next;
    if (records != NULL)
        return records;
    records = cw_mem_alloc(sizeof(*records));
    if (records == NULL)
        return NULL;
    records->device = pool->device;
    records->kind = pool->kind;
    records->next = of_slot[slot];
    of_slot[slot] = records;
    return records;
}

struct cw_live_bucket *cw_bin_records_at(struct cw_bin_records *records, unsigned slot,
                                         const struct cw_pool *pool, unsigned bin)
{
    if (records->bin[bin] == NULL)
        records->bin[bin] = cw_bucket_record(pool, bin, (uint8_t)slot);
    return records->bin[bin];
}
