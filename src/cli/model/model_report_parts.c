/* SPDX-License-Identifier: MIT */
/* Devices, the pool, pressure and growth for the model of the report layer. See model_report.h. */
#include <math.h>
#include <string.h>

#include "cli/model/model_report_parts.h"
#include "live/view.h"

#define SHARE_ONE 10000 /* of a snapshot's shares */

static uint64_t to_share(double part)
{
    return part > 0 && part < 1e6 ? (uint64_t)llround(part * SHARE_ONE) : 0;
}

/* ---- the pool ---- */

static void fill_counters(struct cw_snapshot_pool_device *to, const struct cw_model_pool *pool)
{
    to->exact_retries = pool->exact_retries;
    to->oom_retries = pool->oom_retries;
    to->trimmed_full = pool->trimmed_full;
    to->trimmed_idle = pool->trimmed_idle;
    to->trimmed_oom = pool->trimmed_oom;
    to->abandoned = pool->abandoned;
    memcpy(to->bypassed, pool->bypassed, sizeof(to->bypassed));
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
    to->live_bytes =
        !pool->is_there || pool->in_use == UINT64_MAX ? device->live.bytes : pool->in_use;
    to->held_bytes = pool->held;
    to->peak_held = pool->peak_held;
    to->saved_frees = pool->saved_frees;
}

static void fill_bucket(struct cw_snapshot_bucket *to, const struct cw_model_bucket *bucket)
{
    *to = (struct cw_snapshot_bucket){
        .size = bucket->size,
        .kind = (uint8_t)cw_model_report_find(bucket->kind, cw_kind_name, CW_KIND_COUNT)};
    to->sums.hits = bucket->hits;
    to->sums.misses = bucket->misses;
    to->sums.kept = bucket->kept;
    to->sums.released = bucket->released;
    to->sums.idle_blocks = bucket->idle_blocks;
    to->sums.idle_bytes = bucket->idle_bytes;
}

static void fill_pool(struct cw_model_report *self)
{
    struct cw_snapshot_pool *pool = &self->snapshot.pool;
    const struct cw_model *model = self->from;
    uint64_t peak_live[CW_DEVICES] = {0};

    pool->on = strcmp(model->process.mode, "pool") == 0;
    pool->deferred = strcmp(model->process.free_sync, "deferred") == 0;
    pool->bucket = cw_model_report_take(self, model->buckets, sizeof(*pool->bucket));
    for (uint32_t i = 0; pool->bucket && i < model->buckets; i++)
        fill_bucket(&pool->bucket[i], &model->bucket[i]);
    for (uint32_t i = 0; i < model->devices; i++) {
        const struct cw_model_device *device = &model->device[i];
        struct cw_snapshot_pool_device *to;

        if (device->ordinal >= CW_DEVICES)
            continue;
        to = &pool->device[device->ordinal];
        fill_pool_device(to, device);
        fill_counters(to, &device->pool);
        to->first = device->first_bucket;
        to->buckets = pool->bucket ? device->buckets : 0;
        peak_live[device->ordinal] = device->peak_bytes;
    }
    cw_snapshot_pool_add_up(pool, peak_live);
}

/* ---- devices ---- */

static void fill_device(struct cw_snapshot_device *to, const struct cw_model_device *device)
{
    to->seen = device->is_listed;
    to->name = device->name[0] != '\0' ? device->name : NULL;
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

static void fill_devices(struct cw_model_report *self)
{
    for (uint32_t i = 0; i < self->from->devices; i++) {
        const struct cw_model_device *device = &self->from->device[i];

        if (device->ordinal < CW_DEVICES)
            fill_device(&self->snapshot.device[device->ordinal], device);
        self->snapshot.devices += device->is_listed && device->ordinal != CW_MODEL_HOST;
    }
}

/* ---- pressure ---- */

static void fill_levels(struct cw_snapshot_pressure_device *to,
                        const struct cw_model_device *device)
{
    const struct cw_model_pressure *pressure = &device->pressure;

    to->level = cw_model_report_find(device->level, cw_level_name, CW_LEVEL_COUNT);
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

static void fill_pressure(struct cw_model_report *self)
{
    struct cw_snapshot_pressure *to = &self->snapshot.pressure;

    for (uint32_t i = 0; i < self->from->devices; i++) {
        const struct cw_model_device *device = &self->from->device[i];

        if (device->ordinal < CW_DEVICES)
            fill_pressure_device(&to->device[device->ordinal], device);
        add_pressure(&to->all, &device->pressure);
    }
}

void cw_model_report_fill_devices(struct cw_model_report *self)
{
    fill_devices(self);
    fill_pool(self);
    fill_pressure(self);
}

/* ---- growth ---- */

static void fill_trend(const struct cw_model_growth *from, struct cw_trend *to)
{
    to->slope = from->slope_bytes_per_s;
    to->r2 = from->r2;
    to->n = from->samples;
    to->is_steady = from->is_suspect;
    memcpy(to->floor, from->floor, sizeof(to->floor));
}

/* Of what is shown as growing. */
static void fill_rows(struct cw_model_report *self)
{
    struct cw_snapshot_growth *to = &self->snapshot.growth;

    to->row = cw_model_report_take(self, self->snapshot.sites, sizeof(*to->row));
    for (uint32_t i = 0; to->row && i < self->snapshot.sites; i++) {
        const struct cw_model_growth *from = &self->from->site[i].growth;
        struct cw_growth_row *row;

        if (!from->is_suspect && self->snapshot.site[i].leak != CW_LEAK_GROWING)
            continue;
        row = &to->row[to->rows++];
        row->site = i;
        row->tag = cw_model_report_tag(self, from->step);
        row->per_step = from->step_bytes;
        fill_trend(from, &row->trend);
        self->snapshot.site[i].growth = to->rows;
        self->snapshot.site[i].grows = from->is_suspect;
    }
}

static int is_shown(const struct cw_model_report *self, uint32_t site)
{
    return site < self->snapshot.sites && self->is_shown[site];
}

static void fill_suspects(struct cw_model_report *self)
{
    struct cw_snapshot_growth *to = &self->snapshot.growth;

    to->suspect = cw_model_report_take(self, self->from->suspects, sizeof(*to->suspect));
    for (uint32_t i = 0; to->suspect && i < self->from->suspects; i++) {
        uint32_t site = self->from->suspect[i];

        if (is_shown(self, site) && self->snapshot.site[site].growth != 0)
            to->suspect[to->suspects++] = self->snapshot.site[site].growth - 1;
    }
}

static void fill_steps(struct cw_model_report *self)
{
    struct cw_snapshot_growth *to = &self->snapshot.growth;

    to->step = cw_model_report_take(self, self->from->steps, sizeof(*to->step));
    for (uint32_t i = 0; to->step && i < self->from->steps; i++) {
        const struct cw_model_step *from = &self->from->step[i];

        to->step[i] =
            (struct cw_growth_step){.tag = cw_model_report_tag(self, from->name),
                                    .is_rising = from->is_rising,
                                    .steps = from->steps,
                                    .slope = from->slope_bytes,
                                    .r2 = from->r2,
                                    .growth = from->slope_bytes * ((double)from->steps - 1),
                                    .first_bytes = from->first_bytes,
                                    .last_bytes = from->last_bytes};
        to->steps++;
        if (from->is_rising)
            cw_snapshot_note_rising(to, i);
    }
}

static void fill_regrowths(struct cw_model_report *self)
{
    struct cw_snapshot_growth *to = &self->snapshot.growth;

    to->regrowth = cw_model_report_take(self, self->from->regrowths, sizeof(*to->regrowth));
    for (uint32_t i = 0; to->regrowth && i < self->from->regrowths; i++) {
        const struct cw_model_regrowth *from = &self->from->regrowth[i];

        if (is_shown(self, from->site))
            to->regrowth[to->regrowths++] =
                (struct cw_growth_regrowth){.site = from->site,
                                            .resizes = from->resizes,
                                            .copied_bytes = from->copied_bytes,
                                            .chains = from->chains,
                                            .factor = from->factor,
                                            .largest_bytes = from->capacity_bytes};
    }
}

static void fill_rises(struct cw_model_report *self)
{
    for (uint32_t i = 0; i < self->from->devices; i++) {
        const struct cw_model_device *from = &self->from->device[i];
        struct cw_growth_timeline *to;

        if (from->ordinal >= CW_DEVICES)
            continue;
        to = &self->snapshot.growth.timeline[from->ordinal];
        memcpy(to->peak, from->rise.peak, sizeof(to->peak));
        to->peak_rose = from->rise.peak_rose;
        fill_trend(&from->rise.idle, &to->idle);
    }
}

void cw_model_report_fill_growth(struct cw_model_report *self)
{
    self->snapshot.growth.end_ns = self->from->growth_end_ns;
    self->snapshot.growth.moments = self->from->samples;
    fill_rows(self);
    fill_suspects(self);
    fill_steps(self);
    fill_regrowths(self);
    fill_rises(self);
}
