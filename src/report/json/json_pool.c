/* SPDX-License-Identifier: MIT */
/* "pool" of the JSON report. See json_pool.h. */
#include "report/json/json_pool.h"

#include "report/snapshot/snapshot_pool.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void put_traffic(struct cw_json *json, const struct cw_bucket_sums *sums)
{
    cw_json_number(json, "hits", sums->hits);
    cw_json_number(json, "misses", sums->misses);
}

static void put_idle(struct cw_json *json, const struct cw_bucket_sums *sums)
{
    cw_json_number(json, "cached_bytes", sums->idle_bytes);
    cw_json_number(json, "cached_blocks", sums->idle_blocks);
}

static void put_fragmentation(struct cw_json *json, const struct cw_snapshot_pool_device *device)
{
    cw_json_share(json, "fragmentation_now", device->spare, device->held_bytes);
    cw_json_share(json, "fragmentation_peak", device->peak_spare, device->peak_held);
}

/* Of all devices together. */
static void put_all(struct cw_json *json, const struct cw_snapshot_pool_device *all)
{
    cw_json_share(json, "efficiency", all->requested_bytes, all->allocated_bytes);
    cw_json_share(json, "efficiency_total", all->sums.asked_bytes, all->sums.given_bytes);
    put_fragmentation(json, all);
}

static void put_bytes(struct cw_json *json, const struct cw_snapshot_pool_device *device)
{
    const struct cw_bucket_sums *sums = &device->sums;

    cw_json_number(json, "requested_bytes", device->requested_bytes);
    cw_json_number(json, "allocated_bytes", device->allocated_bytes);
    cw_json_number(json, "reserved_bytes", device->held_bytes);
    cw_json_number(json, "peak_reserved_bytes", device->peak_held);
    cw_json_number(json, "in_use_bytes", device->live_bytes);
    put_idle(json, sums);
    cw_json_number(json, "waste_bytes", cw_pool_waste(device));
    cw_json_share(json, "efficiency", device->requested_bytes, device->allocated_bytes);
    cw_json_share(json, "efficiency_total", sums->asked_bytes, sums->given_bytes);
    cw_json_number(json, "requested_bytes_total", sums->asked_bytes);
    cw_json_number(json, "allocated_bytes_total", sums->given_bytes);
    cw_json_share(json, "fragmentation", device->peak_spare, device->peak_held);
    put_fragmentation(json, device);
}

static void put_driver_calls(struct cw_json *json, unsigned index)
{
    const struct cw_snapshot_pool_device *device = &json->snapshot->pool.device[index];
    const struct cw_live_pool *live = &cw_view_header(json->view)->device[index].pool;
    uint64_t prewarmed = LOAD(live->prewarmed);

    cw_json_number(json, "num_device_alloc", device->sums.misses + prewarmed);
    cw_json_number(json, "num_device_free", device->sums.released);
    cw_json_open(json, "driver_calls_saved", '{');
    cw_json_number(json, "alloc", device->sums.hits);
    cw_json_number(json, "free", device->saved_frees);
    cw_json_close(json, '}');
    cw_json_number(json, "num_alloc_retries", LOAD(live->oom_retries));
    cw_json_number(json, "num_ooms", json->snapshot->device[index].sums.oom);
    cw_json_number(json, "exact_retries", LOAD(live->exact_retries));
    cw_json_number(json, "prewarmed", prewarmed);
}

static void put_work(struct cw_json *json, const struct cw_live_pool *live)
{
    cw_json_open(json, "harvested", '{');
    cw_json_number(json, "by_sync", LOAD(live->harvested_by_sync));
    cw_json_number(json, "by_event", LOAD(live->harvested_by_event));
    cw_json_close(json, '}');
    cw_json_number(json, "event_records", LOAD(live->event_records));
    cw_json_number(json, "event_queries", LOAD(live->event_queries));
    cw_json_open(json, "trimmed", '{');
    cw_json_number(json, "full", LOAD(live->trimmed_full));
    cw_json_number(json, "idle", LOAD(live->trimmed_idle));
    cw_json_number(json, "oom", LOAD(live->trimmed_oom));
    cw_json_close(json, '}');
    cw_json_number(json, "abandoned", LOAD(live->abandoned));
    cw_json_open(json, "bypassed", '{');
    for (unsigned i = 0; i < CW_BYPASS_COUNT; i++)
        cw_json_number(json, cw_bypass_name(i), LOAD(live->bypassed[i]));
    cw_json_close(json, '}');
}

static void put_bucket(struct cw_json *json, const struct cw_snapshot_bucket *bucket)
{
    cw_json_element(json, '{');
    cw_json_string(json, "kind", cw_kind_name(bucket->kind));
    cw_json_number(json, "size_bytes", bucket->size);
    put_traffic(json, &bucket->sums);
    cw_json_number(json, "kept", bucket->sums.kept);
    cw_json_number(json, "released", bucket->sums.released);
    cw_json_number(json, "released_bytes", bucket->sums.released_bytes);
    put_idle(json, &bucket->sums);
    cw_json_close(json, '}');
}

static void put_device(struct cw_json *json, unsigned index)
{
    const struct cw_snapshot_pool *pool = &json->snapshot->pool;
    const struct cw_snapshot_pool_device *device = &pool->device[index];

    cw_json_element(json, '{');
    cw_json_device(json, index);
    cw_json_device_name(json, index);
    put_traffic(json, &device->sums);
    cw_json_share(json, "hit_rate", device->sums.hits, device->sums.hits + device->sums.misses);
    put_bytes(json, device);
    put_driver_calls(json, index);
    put_work(json, &cw_view_header(json->view)->device[index].pool);
    cw_json_open(json, "buckets", '[');
    for (uint32_t i = 0; i < device->buckets; i++)
        put_bucket(json, &pool->bucket[device->first + i]);
    cw_json_close(json, ']');
    cw_json_close(json, '}');
}

void cw_json_pool(struct cw_json *json)
{
    const struct cw_snapshot_pool *pool = &json->snapshot->pool;

    cw_json_open(json, "pool", '{');
    cw_json_string(json, "mode", pool->on ? "pool" : "track");
    if (pool->on)
        cw_json_string(json, "free_sync", pool->deferred ? "deferred" : "strict");
    if (pool->on)
        put_all(json, &pool->all);
    cw_json_open(json, "devices", '[');
    for (unsigned i = 0; pool->on && i < CW_DEVICES; i++)
        if (pool->device[i].used)
            put_device(json, i);
    cw_json_close(json, ']');
    cw_json_close(json, '}');
}
