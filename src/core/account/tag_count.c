/* SPDX-License-Identifier: MIT */
/* Counters by tag and device. See tag_count.h. */
#include "core/account/tag_count.h"

#include <stdatomic.h>
#include <stddef.h>

#include "core/account/site.h"
#include "core/tags/tag.h"
#include "core/tags/tag_name.h"
#include "live/view.h"

struct row {
    _Atomic uint64_t granted, misses, fallbacks, fallback_bytes, resizes, resized_bytes;
};

static struct row rows[CW_TAGS_MAX + 1][CW_DEVICES];
static _Atomic int has_pool; /* 1: requests are hits or misses */

#define ADD(field, by) atomic_fetch_add_explicit(&(field), by, memory_order_relaxed)
#define LOAD(field)    atomic_load_explicit(&(field), memory_order_relaxed)

/* NULL: of a device or tag that nobody counts. */
static struct row *row_at(uint16_t tag, unsigned device)
{
    return tag <= CW_TAGS_MAX && device < CW_DEVICES ? &rows[tag][device] : NULL;
}

static struct row *row_of(const struct cw_live_site *site)
{
    const struct cw_live_site *own = cw_site_own(site);

    return row_at(own->tag, cw_kind_home(own->kind, own->device));
}

void cw_tag_count_granted(const struct cw_live_site *site, const struct cw_request *request)
{
    struct row *row = atomic_load(&has_pool) ? row_of(site) : NULL;

    if (row == NULL)
        return;
    ADD(row->granted, 1);
    if (request->flags & CW_BLOCK_POOLED)
        ADD(row->misses, 1);
}

void cw_tag_count_fallback(uint8_t device, uint64_t bytes)
{
    struct row *row = row_at(cw_tag_here(), device);

    if (row == NULL)
        return;
    ADD(row->fallbacks, 1);
    ADD(row->fallback_bytes, bytes);
}

void cw_tag_count_resize(const struct cw_live_site *site, uint64_t copied)
{
    struct row *row = row_of(site);

    if (row == NULL)
        return;
    ADD(row->resizes, 1);
    ADD(row->resized_bytes, copied);
}

void cw_tag_count_add(uint16_t tag, uint8_t device, struct cw_tag_sums *sums)
{
    const struct row *row = row_at(tag, device);

    if (row == NULL)
        return;
    sums->granted += LOAD(row->granted);
    sums->misses += LOAD(row->misses);
    sums->fallbacks += LOAD(row->fallbacks);
    sums->fallback_bytes += LOAD(row->fallback_bytes);
    sums->resizes += LOAD(row->resizes);
    sums->resized_bytes += LOAD(row->resized_bytes);
}

static void clear(struct row *row)
{
    _Atomic uint64_t *fields[] = {&row->granted,        &row->misses,  &row->fallbacks,
                                  &row->fallback_bytes, &row->resizes, &row->resized_bytes};

    for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (LOAD(*fields[i]) != 0) /* a page that was never written stays so */
            atomic_store_explicit(fields[i], 0, memory_order_relaxed);
}

void cw_tag_count_init(int is_pool_on)
{
    atomic_store(&has_pool, is_pool_on);
}

void cw_tag_count_reset(void)
{
    atomic_store(&has_pool, 0);
    for (unsigned tag = 0; tag <= CW_TAGS_MAX; tag++)
        for (unsigned device = 0; device < CW_DEVICES; device++)
            clear(&rows[tag][device]);
}
