/* SPDX-License-Identifier: MIT */
/*
 * DEVICES, POOL and PRESSURE from the model, in the words of the report layer: it gets a snapshot
 * with the model's numbers, and a live layout that has nothing but the process's id, the names of
 * devices and the pool's counters.
 */
#include "cli/text/form_whole.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "cli/cli.h"
#include "cli/text/form.h"
#include "live/view.h"
#include "report/snapshot/snapshot.h"
#include "report/text/text_devices.h"
#include "report/text/text_pool.h"
#include "report/text/text_pressure.h"

#define BUFFER_SIZE 16384
#define SHARE_ONE   10000 /* of a snapshot's shares */

struct whole {
    struct cw_live_header header;
    struct cw_snapshot snapshot;
};

static uint64_t to_share(double part)
{
    return part > 0 && part < 1e6 ? (uint64_t)llround(part * SHARE_ONE) : 0;
}

/* ---- the pool ---- */

static void fill_counters(struct cw_live_pool *live, const struct cw_model_pool *pool)
{
    atomic_store(&live->exact_retries, pool->exact_retries);
    atomic_store(&live->oom_retries, pool->oom_retries);
    atomic_store(&live->trimmed_full, pool->trimmed_full);
    atomic_store(&live->trimmed_idle, pool->trimmed_idle);
    atomic_store(&live->trimmed_oom, pool->trimmed_oom);
    atomic_store(&live->abandoned, pool->abandoned);
    for (unsigned i = 0; i < CW_BYPASS_COUNT; i++)
        atomic_store(&live->bypassed[i], pool->bypassed[i]);
}

static void fill_pool_device(struct cw_snapshot_pool_device *to,
                             const struct cw_model_device *device)
{
    const struct cw_model_pool *pool = &device->pool;

    to->used = pool->is_there;
    to->sums.hits = device->pool_hits;
    to->sums.misses = device->pool_misses;
    to->sums.idle_blocks = pool->idle.count;
    to->sums.idle_bytes = pool->is_there ? pool->idle.bytes : device->idle.bytes;
    to->sums.asked_bytes = pool->requested_ever;
    to->sums.given_bytes = pool->allocated_ever;
    if (to->sums.given_bytes == 0 && pool->efficiency_total > 0) {
        to->sums.asked_bytes = to_share(pool->efficiency_total);
        to->sums.given_bytes = SHARE_ONE;
    }
    to->requested_bytes = pool->requested;
    to->allocated_bytes = pool->allocated;
    to->live_bytes = device->live.bytes;
    to->held_bytes = pool->held;
    to->peak_held = pool->peak_held;
    to->saved_frees = pool->saved_frees;
}

static uint8_t kind_of(const char *name)
{
    uint8_t kind = 0;

    while (kind < CW_KIND_COUNT && strcmp(name, cw_kind_name(kind)) != 0)
        kind++;
    return kind;
}

static void fill_bucket(struct cw_snapshot_bucket *to, const struct cw_model_bucket *bucket)
{
    *to = (struct cw_snapshot_bucket){.size = bucket->size, .kind = kind_of(bucket->kind)};
    to->sums.hits = bucket->hits;
    to->sums.misses = bucket->misses;
    to->sums.kept = bucket->kept;
    to->sums.released = bucket->released;
    to->sums.idle_blocks = bucket->idle_blocks;
    to->sums.idle_bytes = bucket->idle_bytes;
}

static void fill_pool(struct whole *whole, const struct cw_model *model)
{
    struct cw_snapshot_pool *pool = &whole->snapshot.pool;
    uint64_t peak_live[CW_DEVICES] = {0};

    pool->on = strcmp(model->process.mode, "pool") == 0;
    pool->deferred = strcmp(model->process.free_sync, "deferred") == 0;
    for (uint32_t i = 0; i < model->buckets; i++)
        fill_bucket(&pool->bucket[i], &model->bucket[i]);
    for (uint32_t i = 0; i < model->devices; i++) {
        const struct cw_model_device *device = &model->device[i];

        if (device->ordinal >= CW_DEVICES)
            continue;
        fill_pool_device(&pool->device[device->ordinal], device);
        pool->device[device->ordinal].first = device->first_bucket;
        pool->device[device->ordinal].buckets = device->buckets;
        fill_counters(&whole->header.device[device->ordinal].pool, &device->pool);
        peak_live[device->ordinal] = device->peak_bytes;
    }
    cw_snapshot_pool_add_up(pool, peak_live);
}

/* ---- devices ---- */

static void fill_name(struct cw_live_device *live, const char *name)
{
    snprintf(live->name, sizeof(live->name), "%s", name);
    atomic_store(&live->known, name[0] != '\0');
}

static void fill_device(struct cw_snapshot_device *to, const struct cw_model_device *device)
{
    to->seen = device->is_listed;
    to->sums.live_bytes = device->live.bytes;
    to->sums.allocs = device->allocs;
    to->sums.frees = device->frees;
    to->sums.failed = device->failed;
    to->peak_bytes = device->peak_bytes;
    to->peak_ns = device->peak_ns;
    to->sampled = device->has_sample;
    to->driver_used = device->driver_used;
    to->unattributed = device->unattributed;
}

static void fill_devices(struct whole *whole, const struct cw_model *model)
{
    for (uint32_t i = 0; i < model->devices; i++) {
        const struct cw_model_device *device = &model->device[i];

        if (device->ordinal >= CW_DEVICES)
            continue;
        fill_device(&whole->snapshot.device[device->ordinal], device);
        fill_name(&whole->header.device[device->ordinal], device->name);
    }
}

/* ---- pressure ---- */

static unsigned level_of(const char *name)
{
    for (unsigned i = 0; i < CW_LEVEL_COUNT; i++)
        if (strcmp(name, cw_level_name(i)) == 0)
            return i;
    return CW_LEVEL_LOW;
}

static void fill_levels(struct cw_snapshot_pressure_device *to,
                        const struct cw_model_device *device)
{
    const struct cw_model_pressure *pressure = &device->pressure;

    to->level = level_of(device->level);
    to->highest_use = to_share(pressure->highest_use);
    to->changes = pressure->changes;
    for (unsigned i = 0; i < CW_LEVEL_COUNT; i++) {
        to->level_entered[i] = pressure->at[i].entered;
        to->level_ns[i] = pressure->at[i].ns;
        to->time_ns += pressure->at[i].ns;
    }
}

static void fill_pressure_device(struct cw_snapshot_pressure_device *to,
                                 const struct cw_model_device *device)
{
    const struct cw_model_pressure *pressure = &device->pressure;

    to->used = pressure->is_there;
    to->limit = device->limit;
    to->min_free = device->min_free;
    to->held = pressure->held;
    to->peak_held = pressure->peak_held;
    to->spare = pressure->spare;
    fill_levels(to, device);
}

/* What the section says of all devices together. */
static void add_pressure(struct cw_snapshot_pressure_device *all,
                         const struct cw_model_pressure *pressure)
{
    all->used |= pressure->is_there;
    all->limited += pressure->limited;
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++)
        all->refused[i] += pressure->refused[i];
    for (unsigned i = 0; i < CW_RUNG_COUNT; i++) {
        all->rung[i].tried += pressure->rung[i].tried;
        all->rung[i].helped += pressure->rung[i].helped;
        all->rung[i].released += pressure->rung[i].released;
    }
    all->fallbacks += pressure->fallbacks.count;
    all->fallback_bytes += pressure->fallbacks.bytes;
    all->pressure_blocks += pressure->scarce.count;
    all->pressure_bytes += pressure->scarce.bytes;
}

static void fill_pressure(struct whole *whole, const struct cw_model *model)
{
    struct cw_snapshot_pressure *to = &whole->snapshot.pressure;

    for (uint32_t i = 0; i < model->devices; i++) {
        const struct cw_model_device *device = &model->device[i];

        if (device->ordinal < CW_DEVICES)
            fill_pressure_device(&to->device[device->ordinal], device);
        add_pressure(&to->all, &device->pressure);
    }
}

/* ---- the whole ---- */

int cw_form_borrow(const struct cw_say *to, struct cw_text *text,
                   void (*write)(const struct cw_text *text))
{
    char buffer[BUFFER_SIZE];
    struct cw_out out;

    if (fflush(to->out) != 0)
        return -1;
    cw_out_init(&out, fileno(to->out), buffer, sizeof(buffer));
    text->out = &out;
    write(text);
    text->out = NULL;
    return cw_out_flush(&out) == 0 ? 0 : -1;
}

static void write_sections(const struct cw_text *text)
{
    cw_text_devices(text);
    cw_text_pool(text);
    cw_text_pressure(text);
}

static int write_whole(const struct cw_say *to, struct whole *whole)
{
    struct cw_view view = {.base = (const char *)&whole->header, .size = sizeof(whole->header)};
    struct cw_text text = {.view = &view, .snapshot = &whole->snapshot, .form = CW_TEXT_FULL};

    return cw_form_borrow(to, &text, write_sections);
}

int cw_form_whole(const struct cw_say *to)
{
    struct whole *whole = calloc(1, sizeof(*whole));
    struct cw_snapshot_bucket *bucket = calloc(to->model->buckets + 1u, sizeof(*bucket));
    int rc = -1;

    if (whole && bucket) {
        whole->header.pid = to->model->process.pid;
        whole->snapshot.pool.bucket = bucket;
        fill_devices(whole, to->model);
        fill_pool(whole, to->model);
        fill_pressure(whole, to->model);
        rc = write_whole(to, whole);
        if (rc == 0)
            cw_form_changes(to);
    } else {
        cw_cli_error("'%s': out of memory", to->model->source);
        rc = CW_FORM_TOLD;
    }
    free(bucket);
    free(whole);
    return rc;
}
