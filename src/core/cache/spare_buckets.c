/* SPDX-License-Identifier: MIT */
/* Buckets that no pool has. See spare_buckets.h. */
#include "core/cache/spare_buckets.h"

#include <stddef.h>

#include "base/mem.h"

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_BUCKET);
static struct cw_buckets *spare; /* guarded by lock */

void cw_spare_buckets_reset(void)
{
    cw_lock_reset(&lock);
    spare = NULL;
}

static struct cw_buckets *make(uint8_t device, uint8_t kind)
{
    struct cw_buckets *buckets = cw_mem_alloc(sizeof(*buckets));

    if (buckets == NULL)
        return NULL;
    buckets->device = device;
    buckets->kind = kind;
    for (unsigned i = 0; i < CW_SIZE_CLASSES; i++)
        cw_lock_init(&buckets->bucket[i].lock, CW_RANK_BUCKET);
    return buckets;
}

struct cw_buckets *cw_spare_buckets_take(uint8_t device, uint8_t kind)
{
    struct cw_buckets **at = &spare, *found;

    cw_lock_acquire(&lock);
    while (*at != NULL && ((*at)->device != device || (*at)->kind != kind))
        at = &(*at)->next;
    found = *at;
    if (found != NULL)
        *at = found->next;
    cw_lock_release(&lock);
    return found != NULL ? found : make(device, kind);
}

void cw_spare_buckets_give(struct cw_buckets *buckets)
{
    cw_lock_acquire(&lock);
    buckets->next = spare;
    spare = buckets;
    cw_lock_release(&lock);
}
