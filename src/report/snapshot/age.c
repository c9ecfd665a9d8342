/* SPDX-License-Identifier: MIT */
/* Ages of live blocks. See age.h. Linear in the blocks. */
#include "report/snapshot/age.h"

#include "base/mem.h"
#include "base/sort.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void add_block(struct cw_snapshot *snapshot, const struct cw_live_block *block)
{
    uint64_t born = LOAD(block->born_ns);
    uint32_t live_site = LOAD(block->site);
    uint32_t index =
        live_site < snapshot->merged_count ? snapshot->merged[live_site] : CW_SITE_NONE;
    struct cw_snapshot_site *site;

    if (born == 0 || index == CW_SITE_NONE)
        return;
    site = &snapshot->site[index];
    if (site->oldest_ns == 0 || born < site->oldest_ns)
        site->oldest_ns = born;
    if (born > snapshot->now_ns || snapshot->now_ns - born < snapshot->old_ns)
        return;
    site->old_blocks++;
    site->old_bytes += LOAD(block->bytes);
}

static int is_old_before(const void *a, const void *b, const void *arg)
{
    const struct cw_snapshot_site *sites = arg;
    uint32_t i = *(const uint32_t *)a;
    uint32_t k = *(const uint32_t *)b;

    if (sites[i].old_bytes != sites[k].old_bytes)
        return sites[i].old_bytes > sites[k].old_bytes;
    if (sites[i].id != sites[k].id)
        return sites[i].id < sites[k].id;
    return i < k;
}

static void make_list(struct cw_snapshot *snapshot)
{
    struct cw_snapshot_list *list = &snapshot->old;

    list->site = cw_mem_alloc(snapshot->merged_count * sizeof(uint32_t));
    for (uint32_t i = 0; list->site && i < snapshot->sites; i++) {
        const struct cw_snapshot_site *site = &snapshot->site[i];

        if (site->old_blocks == 0 || !cw_leak_is_counted(site->leak))
            continue;
        list->site[list->count++] = i;
        list->bytes += site->old_bytes;
        list->blocks += site->old_blocks;
    }
    cw_sort(list->site, list->count, sizeof(uint32_t), is_old_before, snapshot->site);
}

void cw_snapshot_ages(struct cw_snapshot *snapshot, uint64_t now_ns, uint64_t old_ns)
{
    uint32_t count = cw_view_count(snapshot->view, CW_TABLE_BLOCK);

    snapshot->now_ns = now_ns;
    snapshot->old_ns = old_ns;
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_block *block = cw_view_block(snapshot->view, i);

        if (block && LOAD(block->state) == CW_BLOCK_LIVE)
            add_block(snapshot, block);
    }
    for (uint32_t i = 0; i < snapshot->sites; i++) {
        struct cw_snapshot_site *site = &snapshot->site[i];

        site->has_age = site->live_blocks > 0 && site->oldest_ns != 0;
        if (site->has_age && now_ns > site->oldest_ns)
            site->oldest_age_ns = now_ns - site->oldest_ns;
    }
    make_list(snapshot);
}
