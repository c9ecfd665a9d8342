/* SPDX-License-Identifier: MIT */
/* The section DEVICES: a table with a row for each device used, and one for the host. */
#include "report/text/text_sections.h"

#include <string.h>

#include "base/printable.h"
#include "report/text/text_table.h"

enum device_column {
    COLUMN_DEVICE,
    COLUMN_NAME,
    COLUMN_LIVE,
    COLUMN_IDLE,
    COLUMN_PEAK,
    COLUMN_PEAK_TIME,
    COLUMN_ALLOCS,
    COLUMN_FREES,
    COLUMN_FAILED,
    COLUMN_DRIVER_USED,
    COLUMN_UNATTRIBUTED,
    COLUMNS
};

static const char *const column_titles[COLUMNS] = {
    [COLUMN_DEVICE] = "device",
    [COLUMN_NAME] = "name",
    [COLUMN_LIVE] = "live",
    [COLUMN_IDLE] = "idle",
    [COLUMN_PEAK] = "peak",
    [COLUMN_PEAK_TIME] = "@time",
    [COLUMN_ALLOCS] = "allocs",
    [COLUMN_FREES] = "frees",
    [COLUMN_FAILED] = "failed",
    [COLUMN_DRIVER_USED] = "driver used",
    [COLUMN_UNATTRIBUTED] = "unattributed",
};

static void format_name(const struct cw_text *text, unsigned device, char *cell)
{
    const char *name = text->snapshot->device[device].name;

    if (device == CW_DEVICE_HOST)
        cw_format(cell, CW_TEXT_CELL_MAX, "pinned, registered");
    else if (name)
        cw_format(cell, CW_TEXT_CELL_MAX, "%.*s", (int)strnlen(name, CW_DEVICE_NAME), name);
    else
        cw_format(cell, CW_TEXT_CELL_MAX, "-");
    (void)cw_printable_clean_string(cell);
}

/* "-" if unknown. */
static void format_known(char *cell, int known, uint64_t bytes)
{
    if (known)
        cw_format_size(cell, CW_TEXT_CELL_MAX, bytes);
    else
        cw_format(cell, CW_TEXT_CELL_MAX, "-");
}

static void format_cell(const struct cw_text *text, uint32_t index, unsigned column, char *cell)
{
    const struct cw_snapshot_device *device = &text->snapshot->device[index];

    switch (column) {
    case COLUMN_DEVICE:
        cw_format(cell, CW_TEXT_CELL_MAX, index == CW_DEVICE_HOST ? "host" : "%u", index);
        return;
    case COLUMN_NAME:
        format_name(text, index, cell);
        return;
    case COLUMN_LIVE:
        cw_format_size(cell, CW_TEXT_CELL_MAX, device->sums.live_bytes);
        return;
    case COLUMN_IDLE:
        cw_format_size(cell, CW_TEXT_CELL_MAX, text->snapshot->pool.device[index].sums.idle_bytes);
        return;
    case COLUMN_PEAK:
        cw_format_size(cell, CW_TEXT_CELL_MAX, device->peak_bytes);
        return;
    case COLUMN_PEAK_TIME:
        if (device->peak_bytes == 0)
            format_known(cell, 0, 0);
        else
            cw_format_duration(cell, CW_TEXT_CELL_MAX, device->peak_ns);
        return;
    case COLUMN_ALLOCS:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)device->sums.allocs);
        return;
    case COLUMN_FREES:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)device->sums.frees);
        return;
    case COLUMN_FAILED:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)device->sums.failed);
        return;
    case COLUMN_DRIVER_USED:
        format_known(cell, device->sampled, device->driver_used);
        return;
    default:
        format_known(cell, device->sampled, device->unattributed);
        return;
    }
}

static uint32_t list_seen(const struct cw_text *text, uint32_t rows[CW_DEVICES])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < CW_DEVICES; i++)
        if (text->snapshot->device[i].seen)
            rows[count++] = i;
    return count;
}

static int has_sample(const struct cw_text *text)
{
    for (unsigned i = 0; i < CW_DEVICES; i++)
        if (text->snapshot->device[i].seen && text->snapshot->device[i].sampled)
            return 1;
    return 0;
}

/* "  device 0, context 2: 4.0 KiB live in 1 block, 3 allocs, 2 frees" */
static void put_contexts(const struct cw_text *text, const struct cw_snapshot_device *device)
{
    for (uint32_t i = 0; i < device->contexts; i++) {
        const struct cw_snapshot_context *context = &device->context[i];

        cw_text_begin_line(text);
        cw_out_printf(text->out, "  device %u, context %u%s: ", device->ordinal, context->number,
                      context->is_primary ? " (primary)" : "");
        cw_text_size(text, context->sums.live_bytes);
        cw_out_string(text->out, " live in ");
        cw_text_count(text, context->sums.live_blocks, "block");
        cw_out_string(text->out, ", ");
        cw_text_count(text, context->sums.allocs, "alloc");
        cw_out_string(text->out, ", ");
        cw_text_count(text, context->sums.frees, "free");
        cw_text_end_line(text);
    }
}

/* "  device 0 has the host's memory: ..." */
static void put_shared(const struct cw_text *text, const struct cw_snapshot_device *device)
{
    if (!device->shares_host)
        return;
    cw_text_begin_line(text);
    cw_out_printf(text->out, "  device %u has the host's memory; ", device->ordinal);
    cw_out_string(text->out, "caches that the kernel would give up count as free");
    cw_text_end_line(text);
}

void cw_text_devices(const struct cw_text *text)
{
    int pooled = text->snapshot->pool.on;
    struct cw_text_table table = {.title = column_titles,
                                  .columns = COLUMNS,
                                  .left = 1 << COLUMN_DEVICE | 1 << COLUMN_NAME,
                                  .hidden = pooled ? 0 : 1 << COLUMN_IDLE,
                                  .format = format_cell};
    uint32_t rows[CW_DEVICES];
    uint32_t count = list_seen(text, rows);

    if (count == 0) {
        cw_text_heading(text, "DEVICES  none used\n");
        return;
    }
    cw_text_heading(text, "DEVICES\n");
    cw_text_table(text, &table, rows, count);
    for (uint32_t i = 0; i < count; i++)
        put_contexts(text, &text->snapshot->device[rows[i]]);
    for (uint32_t i = 0; i < count; i++)
        put_shared(text, &text->snapshot->device[rows[i]]);
    if (pooled)
        cw_text_line(text,
                     "  idle: freed by the program and kept by the pool, in use for the driver");
    if (!has_sample(text))
        return;
    cw_text_line(text, "  unattributed: in use on the whole device, but not tracked here:");
    cw_text_line(text, "  contexts, modules, memory inside libraries, and other processes");
}
