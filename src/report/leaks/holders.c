/* SPDX-License-Identifier: MIT */
/*
 * Sums of held memory by place. See holders.h.
 *
 * Two passes over the sites: the first counts those that hold something, to size the hash table of
 * places; the second fills it. A site that starts to hold something in between may find the table
 * full, and is added to the rest.
 */
#include "report/leaks/holders.h"

#include <string.h>

#include "base/mem.h"

struct places {
    struct cw_report_holder *slot; /* site 0: empty; NULL: out of memory, no merging */
    uint32_t mask;
    uint32_t used;
};

struct ranking {
    struct cw_report_holder *top;
    unsigned count;
    uint64_t rest_bytes, rest_blocks;
};

/* The site's live memory on the device; bytes 0: none. */
static struct cw_report_holder look(const struct cw_view *view, uint32_t index, unsigned device)
{
    const struct cw_live_site *site = cw_view_site(view, index);
    struct cw_report_holder holder = {.site = index};
    struct cw_site_sums sums;

    if (!site || cw_kind_home(site->kind, site->device) != device)
        return holder;
    cw_view_site_sums(site, &sums);
    holder.bytes = sums.live_bytes;
    holder.blocks = sums.live_blocks;
    return holder;
}

static uint32_t count_holding(const struct cw_view *view, unsigned device, uint32_t limit)
{
    uint32_t count = 0;

    for (uint32_t i = 1; i < limit; i++)
        count += look(view, i, device).bytes != 0;
    return count;
}

static int is_same_place(const struct cw_view *view, uint32_t one, uint32_t other)
{
    const struct cw_live_site *a = cw_view_site(view, one);
    const struct cw_live_site *b = cw_view_site(view, other);

    return a->stack == b->stack && a->kind == b->kind && a->device == b->device &&
           (a->api == b->api ||
            strcmp(cw_view_text(view, a->api), cw_view_text(view, b->api)) == 0);
}

/* The slot of the site's place, or NULL if the table is full. */
static struct cw_report_holder *find_slot(const struct cw_view *view, struct places *places,
                                          uint32_t site)
{
    const struct cw_live_site *record = cw_view_site(view, site);
    uint64_t hash = (record->stack * UINT64_C(64) + record->kind) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 32) & places->mask;

    while (places->slot[at].site != 0) {
        if (is_same_place(view, places->slot[at].site, site))
            return &places->slot[at];
        at = (at + 1) & places->mask;
    }
    if (places->used == places->mask)
        return NULL;
    places->used++;
    places->slot[at].site = site;
    return &places->slot[at];
}

static void add_rest(struct ranking *ranking, const struct cw_report_holder *holder)
{
    ranking->rest_bytes += holder->bytes;
    ranking->rest_blocks += holder->blocks;
}

/* Keeps the largest, by insertion; among equals the older site comes first. */
static void rank(struct ranking *ranking, const struct cw_report_holder *holder)
{
    unsigned at = ranking->count;

    while (at > 0 && (ranking->top[at - 1].bytes < holder->bytes ||
                      (ranking->top[at - 1].bytes == holder->bytes &&
                       ranking->top[at - 1].site > holder->site)))
        at--;
    if (at == CW_OOM_HOLDERS) {
        add_rest(ranking, holder);
        return;
    }
    if (ranking->count == CW_OOM_HOLDERS)
        add_rest(ranking, &ranking->top[--ranking->count]);
    memmove(&ranking->top[at + 1], &ranking->top[at],
            (ranking->count - at) * sizeof(ranking->top[0]));
    ranking->top[at] = *holder;
    ranking->count++;
}

static void merge(const struct cw_view *view, struct places *places, struct ranking *ranking,
                  const struct cw_report_holder *holder)
{
    struct cw_report_holder *slot = find_slot(view, places, holder->site);

    if (!slot) {
        add_rest(ranking, holder);
        return;
    }
    slot->bytes += holder->bytes;
    slot->blocks += holder->blocks;
}

unsigned cw_report_holders(const struct cw_view *view, unsigned device,
                           struct cw_report_holder out[CW_OOM_HOLDERS], uint64_t *out_rest_bytes,
                           uint64_t *out_rest_blocks)
{
    uint32_t limit = cw_view_count(view, CW_TABLE_SITE);
    uint32_t holding = count_holding(view, device, limit);
    struct ranking ranking = {.top = out};
    struct places places = {.mask = 15};
    size_t size;

    while (places.mask / 2 < holding)
        places.mask = places.mask * 2 + 1;
    size = ((size_t)places.mask + 1) * sizeof(*places.slot);
    places.slot = cw_mem_alloc(size);
    for (uint32_t i = 1; i < limit; i++) {
        struct cw_report_holder holder = look(view, i, device);

        if (holder.bytes == 0)
            continue;
        if (places.slot)
            merge(view, &places, &ranking, &holder);
        else /* each site is its own place */
            rank(&ranking, &holder);
    }
    for (uint32_t i = 0; places.slot && i <= places.mask; i++)
        if (places.slot[i].site != 0)
            rank(&ranking, &places.slot[i]);
    cw_mem_free(places.slot, size);
    *out_rest_bytes = ranking.rest_bytes;
    *out_rest_blocks = ranking.rest_blocks;
    return ranking.count;
}
