/* SPDX-License-Identifier: MIT */
/*
 * The section POOL: requests served, memory held, and requests left to the driver with the reasons.
 * No line exceeds 100 columns.
 */
#include "report/text/text_sections.h"

#include <string.h>

#include "base/compiler.h"
#include "report/snapshot/snapshot_pool.h"
#include "report/text/text_table.h"

#define SIZES_MAX 8 /* buckets shown per device */

#define ALL CW_DEVICES /* a row for all devices together */

static const struct cw_snapshot_pool_device *device_at(const struct cw_text *text, uint32_t index)
{
    const struct cw_snapshot_pool *pool = &text->snapshot->pool;

    return index == ALL ? &pool->all : &pool->device[index];
}

static void format_number(char *cell, uint64_t value)
{
    cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)value);
}

static void format_ordinal(char *cell, uint32_t index)
{
    cw_format(cell, CW_TEXT_CELL_MAX,
              index == CW_DEVICE_HOST ? "host"
              : index == ALL          ? "all"
                                      : "%u",
              index);
}

/* ---- requests served ---- */

static const char *const served_titles[] = {
    "device", "hits", "misses", "hit rate", "calls saved", "idle now",
};

static void format_idle(char *cell, const struct cw_bucket_sums *sums)
{
    char size[24];

    if (sums->idle_blocks == 0) {
        cw_format(cell, CW_TEXT_CELL_MAX, "-");
        return;
    }
    cw_format(cell, CW_TEXT_CELL_MAX,
              sums->idle_blocks == 1 ? "%s in %ju block" : "%s in %ju blocks",
              cw_format_size(size, sizeof(size), sums->idle_bytes), (uintmax_t)sums->idle_blocks);
}

static void format_served(const struct cw_text *text, uint32_t index, unsigned column, char *cell)
{
    const struct cw_snapshot_pool_device *device = device_at(text, index);
    const struct cw_bucket_sums *sums = &device->sums;

    switch (column) {
    case 0:
        format_ordinal(cell, index);
        return;
    case 1:
        format_number(cell, sums->hits);
        return;
    case 2:
        format_number(cell, sums->misses);
        return;
    case 3:
        cw_text_format_share(cell, CW_TEXT_CELL_MAX, sums->hits, sums->hits + sums->misses);
        return;
    case 4:
        format_number(cell, sums->hits + device->saved_frees);
        return;
    default:
        format_idle(cell, sums);
        return;
    }
}

/* ---- memory held ---- */

static const char *const held_titles[] = {
    "device", "held", "peak held", "rounding", "efficiency", "fragmentation now", "of the peaks",
};

/* If nothing is in use, shows the efficiency of all blocks ever served, marked with a star. */
static int is_efficiency_of_all(const struct cw_snapshot_pool_device *device)
{
    return device->allocated_bytes == 0 && device->sums.given_bytes != 0;
}

static void format_efficiency(char *cell, const struct cw_snapshot_pool_device *device)
{
    if (is_efficiency_of_all(device)) {
        cw_text_format_share(cell, CW_TEXT_CELL_MAX - 1, device->sums.asked_bytes,
                             device->sums.given_bytes);
        strcat(cell, "*");
        return;
    }
    cw_text_format_share(cell, CW_TEXT_CELL_MAX, device->requested_bytes, device->allocated_bytes);
}

static void format_held(const struct cw_text *text, uint32_t index, unsigned column, char *cell)
{
    const struct cw_snapshot_pool_device *device = device_at(text, index);

    switch (column) {
    case 0:
        format_ordinal(cell, index);
        return;
    case 1:
        cw_format_size(cell, CW_TEXT_CELL_MAX, device->held_bytes);
        return;
    case 2:
        cw_format_size(cell, CW_TEXT_CELL_MAX, device->peak_held);
        return;
    case 3:
        cw_format_size(cell, CW_TEXT_CELL_MAX, cw_pool_waste(device));
        return;
    case 4:
        format_efficiency(cell, device);
        return;
    case 5:
        cw_text_format_share(cell, CW_TEXT_CELL_MAX, device->spare, device->held_bytes);
        return;
    default:
        cw_text_format_share(cell, CW_TEXT_CELL_MAX, device->peak_spare, device->peak_held);
        return;
    }
}

static void put_devices(const struct cw_text *text, const uint32_t *rows, unsigned count)
{
    static const struct cw_text_table served = {.title = served_titles,
                                                .columns = CW_ARRAY_LEN(served_titles),
                                                .left = 1,
                                                .format = format_served};
    static const struct cw_text_table held = {.title = held_titles,
                                              .columns = CW_ARRAY_LEN(held_titles),
                                              .left = 1,
                                              .format = format_held};
    uint32_t with_all[CW_DEVICES + 1];
    int starred = 0;

    for (unsigned i = 0; i < count; i++)
        starred |= is_efficiency_of_all(device_at(text, rows[i]));
    memcpy(with_all, rows, count * sizeof(*rows));
    with_all[count] = ALL;
    cw_text_table(text, &served, rows, count);
    cw_text_blank(text);
    cw_text_table(text, &held, with_all, count + (text->snapshot->pool.devices > 1));
    cw_text_line(text, "  held: what this process has from the driver, in use or idle");
    cw_text_line(text, "  rounding: memory in use beyond the requested sizes");
    cw_text_line(text, "  efficiency: the requested share of blocks in use%s",
                 starred ? " (*: of all served)" : "");
    cw_text_line(text, "  fragmentation now: the share of held that is idle or rounding");
    cw_text_line(text, "  of the peaks: the share of peak held that was never in use at once");
}

/* ---- sizes ---- */

static const char *const size_titles[] = {
    "size from", "kind", "hits", "misses", "kept", "released", "idle",
};

static void format_size(const struct cw_text *text, uint32_t index, unsigned column, char *cell)
{
    const struct cw_snapshot_bucket *bucket = &text->snapshot->pool.bucket[index];
    const struct cw_bucket_sums *sums = &bucket->sums;
    const uint64_t counts[] = {sums->hits, sums->misses, sums->kept, sums->released,
                               sums->idle_blocks};

    if (column == 0)
        cw_format_size(cell, CW_TEXT_CELL_MAX, bucket->size);
    else if (column == 1)
        cw_format(cell, CW_TEXT_CELL_MAX, "%s", cw_kind_name(bucket->kind));
    else
        format_number(cell, counts[column - 2]);
}

static uint64_t use_of(const struct cw_text *text, uint32_t bucket)
{
    const struct cw_bucket_sums *sums = &text->snapshot->pool.bucket[bucket].sums;

    return sums->hits + sums->misses;
}

/* The most used buckets of the device, by insertion. Returns the number of used buckets. */
static unsigned find_most_used(const struct cw_text *text,
                               const struct cw_snapshot_pool_device *device,
                               uint32_t most[SIZES_MAX])
{
    unsigned used = 0;

    for (uint32_t i = device->first; i < device->first + device->buckets; i++) {
        unsigned at = used < SIZES_MAX ? used : SIZES_MAX;
        unsigned kept = at;

        if (use_of(text, i) == 0)
            continue;
        used++;
        while (at > 0 && use_of(text, most[at - 1]) < use_of(text, i))
            at--;
        if (at == SIZES_MAX)
            continue;
        if (kept == SIZES_MAX)
            kept--;
        memmove(&most[at + 1], &most[at], (kept - at) * sizeof(most[0]));
        most[at] = i;
    }
    return used;
}

static void put_sizes(const struct cw_text *text, uint32_t index)
{
    static const struct cw_text_table table = {.title = size_titles,
                                               .columns = CW_ARRAY_LEN(size_titles),
                                               .left = 1 << 1,
                                               .indent = 2,
                                               .format = format_size};
    uint32_t most[SIZES_MAX];
    unsigned used = find_most_used(text, device_at(text, index), most);
    unsigned shown = used < SIZES_MAX ? used : SIZES_MAX;

    if (shown == 0)
        return;
    cw_text_blank(text);
    cw_text_begin_line(text);
    cw_out_string(text->out, "  most used sizes, ");
    cw_text_device(text, index);
    if (used > shown)
        cw_out_printf(text->out, " (%u of %u)", shown, used);
    cw_text_end_line(text);
    cw_text_table(text, &table, most, shown);
}

/* ---- left to the driver ---- */

struct reason {
    uint64_t count;
    const char *label;
};

static void put_reasons(const struct cw_text *text, const char *heading,
                        const struct reason *reasons, unsigned count)
{
    size_t width = 0;

    for (unsigned i = 0; i < count; i++) {
        size_t len = cw_format(NULL, 0, "%ju", (uintmax_t)reasons[i].count);

        if (reasons[i].count != 0 && len > width)
            width = len;
    }
    if (width == 0)
        return;
    cw_text_blank(text);
    cw_text_line(text, "  %s", heading);
    for (unsigned i = 0; i < count; i++)
        if (reasons[i].count != 0)
            cw_text_line(text, "    %*ju  %s", (int)width, (uintmax_t)reasons[i].count,
                         reasons[i].label);
}

static void put_bypasses(const struct cw_text *text)
{
    struct reason reasons[CW_BYPASS_COUNT];

    for (unsigned i = 0; i < CW_BYPASS_COUNT; i++) {
        reasons[i] = (struct reason){.label = cw_bypass_label(i)};
        for (unsigned device = 0; device < CW_DEVICES; device++)
            reasons[i].count += device_at(text, device)->bypassed[i];
    }
    put_reasons(text, "left to the driver, because", reasons, CW_BYPASS_COUNT);
}

static void put_waits(const struct cw_text *text)
{
    struct reason reasons[] = {
        {.label = "did not wait: the device was at work for 20 ms, and the driver's"},
        {.label = "found that the driver refuses events of a context"},
    };

    for (unsigned i = 0; i < CW_DEVICES; i++) {
        reasons[0].count += device_at(text, i)->put_off;
        reasons[1].count += device_at(text, i)->events_refused;
    }
    put_reasons(text, "frees that", reasons, CW_ARRAY_LEN(reasons));
    if (reasons[0].count != 0)
        cw_text_line(text,
                     "    own free does not wait; the blocks serve again when that work is done");
}

static void put_releases(const struct cw_text *text)
{
    struct reason retries[] = {
        {.label = "for the exact size, without rounding"},
        {.label = "after releasing idle blocks"},
    };
    /* The last: in a capture, when nothing could be waited for. */
    struct reason trims[CW_RELEASE_COUNT + 1] = {
#define X(id, name, its_label) [CW_RELEASE_##id] = {.label = (its_label)},
        CW_RELEASES(X)
#undef X
            [CW_RELEASE_COUNT] =
                {.label = "with a context that ended during a capture, without waiting"},
    };

    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct cw_snapshot_pool_device *device = device_at(text, i);

        retries[0].count += device->exact_retries;
        retries[1].count += device->oom_retries;
        for (unsigned why = 0; why < CW_RELEASE_COUNT; why++)
            if (why != CW_RELEASE_PRESSURE) /* that is said with the levels */
                trims[why].count += device->released[why].blocks;
        trims[CW_RELEASE_COUNT].count += device->abandoned;
    }
    put_reasons(text, "driver calls retried when out of memory", retries, CW_ARRAY_LEN(retries));
    put_reasons(text, "idle blocks released to the driver", trims, CW_ARRAY_LEN(trims));
}

/* ---- fragmentation ---- */

static void put_warnings(const struct cw_text *text, const uint32_t *rows, unsigned count)
{
    int warned = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct cw_snapshot_pool_device *device = device_at(text, rows[i]);

        if (!cw_pool_is_fragmented(device))
            continue;
        warned = 1;
        cw_text_begin_line(text);
        cw_out_string(text->out, "  warning: ");
        cw_text_size(text, device->held_bytes);
        cw_out_string(text->out, " held on ");
        cw_text_device(text, rows[i]);
        cw_out_string(text->out, ", but only ");
        cw_text_size(text, device->held_bytes - device->spare);
        cw_out_string(text->out, " of it in use");
        cw_text_end_line(text);
    }
    if (!warned)
        return;
    cw_text_line(text, "  The rest is idle blocks and rounding. To keep less, lower one of");
    cw_text_line(text, "    CUWARDEN_POOL_MAX         total idle memory");
    cw_text_line(text, "    CUWARDEN_POOL_BUCKET_MAX  idle blocks of each size");
    cw_text_line(text, "    CUWARDEN_POOL_IDLE        how long unused idle memory is kept");
}

/* ---- the section ---- */

void cw_text_pool(const struct cw_text *text)
{
    uint32_t rows[CW_DEVICES];
    unsigned count = 0;

    for (uint32_t i = 0; i < CW_DEVICES; i++)
        if (device_at(text, i)->used)
            rows[count++] = i;
    if (!text->snapshot->pool.on || count == 0)
        return;
    cw_text_heading(text, "POOL  ");
    if (text->snapshot->pool.deferred)
        cw_out_string(text->out,
                      "FREE_SYNC=deferred: a block is ready when the work with it is done\n");
    else
        cw_out_string(text->out, "FREE_SYNC=strict: a free waits for the device\n");
    put_devices(text, rows, count);
    put_warnings(text, rows, count);
    for (unsigned i = 0; i < count; i++)
        put_sizes(text, rows[i]);
    put_bypasses(text);
    put_waits(text);
    put_releases(text);
}
