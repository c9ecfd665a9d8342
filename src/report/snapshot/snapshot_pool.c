/* SPDX-License-Identifier: MIT */
/*
 * Adding up the pool's part of a live layout. See snapshot_pool.h.
 *
 * `bucket` is as long as the table was when it was made. Sums of idle blocks wrap on purpose while
 * they are added up: a single record may be below zero.
 */
#include "report/snapshot/snapshot_pool.h"

#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

#define WORTH_A_WARNING (UINT64_C(1) << 20) /* less than this is not called fragmented */
#define MUCH            0.3

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* ---- names ---- */

const char *cw_bypass_label(unsigned reason)
{
    static const char *const labels[CW_BYPASS_COUNT] = {
#define X(id, name, label) [CW_BYPASS_##id] = (label),
        CW_BYPASSES(X)
#undef X
    };

    return reason < CW_BYPASS_COUNT ? labels[reason] : "unknown reason";
}

/* ---- buckets ---- */

struct bucket_key {
    uint64_t size;
    uint32_t record;
    uint8_t device, kind;
};

static int compare_keys(const struct bucket_key *a, const struct bucket_key *b)
{
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->size == b->size ? 0 : a->size < b->size ? -1 : 1;
}

static int is_key_before(const void *a, const void *b, const void *arg)
{
    const struct bucket_key *left = a;
    const struct bucket_key *right = b;
    int order = compare_keys(left, right);

    (void)arg;
    return order != 0 ? order < 0 : left->record < right->record;
}

static uint32_t collect_keys(const struct cw_view *view, struct bucket_key *keys, uint32_t limit)
{
    uint32_t count = 0;

    for (uint32_t i = 1; i < limit; i++) {
        const struct cw_live_bucket *record = cw_view_bucket(view, i);
        struct bucket_key *key = &keys[count];

        if (!record)
            continue;
        *key = (struct bucket_key){
            .size = record->size, .record = i, .device = record->device, .kind = record->kind};
        if (key->device < CW_DEVICES && key->kind < CW_KIND_COUNT)
            count++;
    }
    return count;
}

static void add_record(struct cw_bucket_sums *sums, const struct cw_live_bucket *record)
{
    sums->hits += LOAD(record->hits);
    sums->misses += LOAD(record->misses);
    sums->asked_bytes += LOAD(record->asked_bytes);
    sums->given_bytes += LOAD(record->given_bytes);
    sums->kept += LOAD(record->kept);
    sums->released += LOAD(record->released);
    sums->released_bytes += LOAD(record->released_bytes);
    sums->idle_blocks += LOAD(record->idle_blocks);
    sums->idle_bytes += LOAD(record->idle_bytes);
}

static void add_sums(struct cw_bucket_sums *to, const struct cw_bucket_sums *from)
{
    to->hits += from->hits;
    to->misses += from->misses;
    to->asked_bytes += from->asked_bytes;
    to->given_bytes += from->given_bytes;
    to->kept += from->kept;
    to->released += from->released;
    to->released_bytes += from->released_bytes;
    to->idle_blocks += from->idle_blocks;
    to->idle_bytes += from->idle_bytes;
}

/* The records are read while threads are at work: a sum may be short by a call in flight. */
static void settle_idle(struct cw_bucket_sums *sums)
{
    if ((int64_t)sums->idle_blocks <= 0 || (int64_t)sums->idle_bytes <= 0) {
        sums->idle_blocks = 0;
        sums->idle_bytes = 0;
    }
}

static void merge_records(struct cw_snapshot_pool *pool, const struct cw_view *view,
                          const struct bucket_key *keys, uint32_t count)
{
    struct cw_snapshot_bucket *bucket = NULL;

    for (uint32_t i = 0; i < count; i++) {
        const struct cw_live_bucket *record = cw_view_bucket(view, keys[i].record);

        if (!bucket || compare_keys(&keys[i - 1], &keys[i]) != 0) {
            bucket = &pool->bucket[pool->buckets++];
            bucket->size = keys[i].size;
            bucket->kind = keys[i].kind;
            bucket->device = keys[i].device;
        }
        if (record)
            add_record(&bucket->sums, record);
    }
}

static void add_up_devices(struct cw_snapshot_pool *pool)
{
    for (uint32_t i = 0; i < pool->buckets; i++) {
        struct cw_snapshot_bucket *bucket = &pool->bucket[i];
        struct cw_snapshot_pool_device *device = &pool->device[bucket->device];

        if (device->buckets++ == 0)
            device->first = i;
        add_sums(&device->sums, &bucket->sums);
        settle_idle(&bucket->sums);
    }
}

static int read_buckets(struct cw_snapshot_pool *pool, const struct cw_view *view)
{
    uint32_t limit = cw_view_count(view, CW_TABLE_BUCKET);
    struct bucket_key *keys = cw_mem_alloc(limit * sizeof(*keys));

    pool->limit = limit;
    pool->bucket = cw_mem_alloc(limit * sizeof(*pool->bucket));
    if (keys && pool->bucket) {
        uint32_t count = collect_keys(view, keys, limit);

        cw_sort(keys, count, sizeof(*keys), is_key_before, NULL);
        merge_records(pool, view, keys, count);
        add_up_devices(pool);
    }
    cw_mem_free(keys, limit * sizeof(*keys));
    return keys && pool->bucket ? 0 : -1;
}

/* ---- blocks ---- */

static void read_block(struct cw_snapshot_pool *pool, const struct cw_view *view,
                       const struct cw_live_block *block)
{
    const struct cw_live_site *site;
    unsigned device;

    if (LOAD(block->state) != CW_BLOCK_LIVE || !(LOAD(block->flags) & CW_BLOCK_POOLED))
        return;
    site = cw_view_site(view, LOAD(block->site));
    device = site ? site->device : CW_DEVICES;
    if (device >= CW_DEVICES)
        return;
    pool->device[device].requested_bytes += LOAD(block->bytes);
    pool->device[device].allocated_bytes += LOAD(block->held);
}

static void read_blocks(struct cw_snapshot_pool *pool, const struct cw_view *view)
{
    uint32_t count = cw_view_count(view, CW_TABLE_BLOCK);

    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_block *block = cw_view_block(view, i);

        if (block)
            read_block(pool, view, block);
    }
}

/* ---- devices ---- */

static int is_used(const struct cw_bucket_sums *sums, const struct cw_live_pool *live)
{
    uint64_t sum = sums->hits | sums->misses | sums->kept | sums->idle_blocks;

    for (unsigned i = 0; i < CW_BYPASS_COUNT; i++)
        sum |= LOAD(live->bypassed[i]);
    return (sum | LOAD(live->prewarmed) | LOAD(live->events_refused)) != 0;
}

static void read_counters(struct cw_snapshot_pool_device *device, const struct cw_live_pool *live)
{
    for (unsigned i = 0; i < CW_BYPASS_COUNT; i++)
        device->bypassed[i] = LOAD(live->bypassed[i]);
    device->exact_retries = LOAD(live->exact_retries);
    device->oom_retries = LOAD(live->oom_retries);
    for (unsigned i = 0; i < CW_RELEASE_COUNT; i++) {
        device->released[i].blocks = LOAD(live->released[i].blocks);
        device->released[i].bytes = LOAD(live->released[i].bytes);
    }
    device->abandoned = LOAD(live->abandoned);
    device->put_off = LOAD(live->put_off);
    device->events_refused = LOAD(live->events_refused);
    device->harvested_by_sync = LOAD(live->harvested_by_sync);
    device->harvested_by_event = LOAD(live->harvested_by_event);
    device->event_records = LOAD(live->event_records);
    device->event_queries = LOAD(live->event_queries);
    device->prewarmed = LOAD(live->prewarmed);
}

static void finish_device(struct cw_snapshot_pool *pool, const struct cw_view *view, unsigned index)
{
    const struct cw_live_device *live = &cw_view_header(view)->device[index];
    struct cw_snapshot_pool_device *device = &pool->device[index];
    struct cw_bucket_sums *sums = &device->sums;
    struct cw_live_sums now = cw_view_device_live(view, index);

    settle_idle(sums);
    read_counters(device, &live->pool);
    device->ordinal = (uint8_t)index;
    device->used = (uint8_t)is_used(sums, &live->pool);
    device->live_bytes = now.live;
    device->held_bytes = now.held;
    device->peak_held = LOAD(live->peak_held);
    device->saved_frees = sums->kept > sums->released ? sums->kept - sums->released : 0;
    pool->hits += sums->hits;
    pool->misses += sums->misses;
}

/* ---- fragmentation ---- */

static void add_device(struct cw_snapshot_pool_device *all,
                       const struct cw_snapshot_pool_device *device)
{
    add_sums(&all->sums, &device->sums);
    all->used = 1;
    all->requested_bytes += device->requested_bytes;
    all->allocated_bytes += device->allocated_bytes;
    all->live_bytes += device->live_bytes;
    all->held_bytes += device->held_bytes;
    all->peak_held += device->peak_held;
    all->spare += device->spare;
    all->peak_spare += device->peak_spare;
    all->saved_frees += device->saved_frees;
}

void cw_snapshot_pool_add_up(struct cw_snapshot_pool *pool, const uint64_t peak_live[CW_DEVICES])
{
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        struct cw_snapshot_pool_device *device = &pool->device[i];

        if (device->held_bytes > device->live_bytes)
            device->spare = device->held_bytes - device->live_bytes;
        if (device->peak_held > peak_live[i])
            device->peak_spare = device->peak_held - peak_live[i];
        if (i == CW_DEVICE_HOST || !device->used)
            continue;
        add_device(&pool->all, device);
        pool->devices++;
    }
}

int cw_pool_is_fragmented(const struct cw_snapshot_pool_device *device)
{
    return device->live_bytes > 0 && device->spare >= WORTH_A_WARNING &&
           (double)device->spare > MUCH * (double)device->held_bytes;
}

/* ---- the whole ---- */

int cw_snapshot_pool_init(struct cw_snapshot_pool *pool, const struct cw_view *view)
{
    uint64_t peak_live[CW_DEVICES];

    memset(pool, 0, sizeof(*pool));
    pool->on = cw_view_header(view)->pool_mode == 1;
    pool->deferred = cw_view_header(view)->free_sync != 0;
    if (read_buckets(pool, view) != 0) {
        cw_snapshot_pool_fini(pool);
        return -1;
    }
    if (pool->on)
        read_blocks(pool, view);
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        finish_device(pool, view, i);
        peak_live[i] = LOAD(cw_view_header(view)->device[i].peak_bytes);
    }
    cw_snapshot_pool_add_up(pool, peak_live);
    return 0;
}

void cw_snapshot_pool_fini(struct cw_snapshot_pool *pool)
{
    cw_mem_free(pool->bucket, pool->limit * sizeof(*pool->bucket));
    memset(pool, 0, sizeof(*pool));
}
