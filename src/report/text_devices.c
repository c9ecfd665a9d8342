/* SPDX-License-Identifier: MIT */
/* The section DEVICES: a table with a row for each device that was used, and one for the host. */
#include "report/text_devices.h"

#include <stdatomic.h>
#include <string.h>

#include "report/snapshot.h"
#include "report/source.h"

#define LOAD(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define NAME_MAX_WIDTH 24 /* of a device */

enum device_column {
    COLUMN_DEVICE,
    COLUMN_NAME,
    COLUMN_LIVE,
    COLUMN_PEAK,
    COLUMN_PEAK_TIME,
    COLUMN_ALLOCS,
    COLUMN_FREES,
    COLUMN_FAILED,
    COLUMN_DRIVER_USED,
    COLUMN_UNATTRIBUTED,
    COLUMNS
};

#define CELL_MAX 40

static const char *const column_titles[COLUMNS] = {
    [COLUMN_DEVICE] = "device",
    [COLUMN_NAME] = "name",
    [COLUMN_LIVE] = "live",
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
    const struct cw_live_device *live = &cw_view_header(text->view)->device[device];

    if (device == CW_DEVICE_HOST)
        cw_format(cell, CELL_MAX, "pinned, registered");
    else if (LOAD(live->known))
        cw_format(cell, CELL_MAX, "%.*s", (int)strnlen(live->name, NAME_MAX_WIDTH), live->name);
    else
        cw_format(cell, CELL_MAX, "-");
    for (char *at = cell; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
}

/* "-" where there is nothing to be known. */
static void format_known(char *cell, int known, uint64_t bytes)
{
    if (known)
        cw_format_size(cell, CELL_MAX, bytes);
    else
        cw_format(cell, CELL_MAX, "-");
}

static void format_cell(const struct cw_text *text, unsigned index, enum device_column column,
                        char *cell)
{
    const struct cw_snapshot_device *device = &text->snapshot->device[index];

    switch (column) {
    case COLUMN_DEVICE:
        cw_format(cell, CELL_MAX, index == CW_DEVICE_HOST ? "host" : "%u", index);
        return;
    case COLUMN_NAME:
        format_name(text, index, cell);
        return;
    case COLUMN_LIVE:
        cw_format_size(cell, CELL_MAX, device->sums.live_bytes);
        return;
    case COLUMN_PEAK:
        cw_format_size(cell, CELL_MAX, device->peak_bytes);
        return;
    case COLUMN_PEAK_TIME:
        if (device->peak_bytes == 0)
            format_known(cell, 0, 0);
        else
            cw_format_duration(cell, CELL_MAX, device->peak_ns);
        return;
    case COLUMN_ALLOCS:
        cw_format(cell, CELL_MAX, "%ju", (uintmax_t)device->sums.allocs);
        return;
    case COLUMN_FREES:
        cw_format(cell, CELL_MAX, "%ju", (uintmax_t)device->sums.frees);
        return;
    case COLUMN_FAILED:
        cw_format(cell, CELL_MAX, "%ju", (uintmax_t)device->sums.failed);
        return;
    case COLUMN_DRIVER_USED:
        format_known(cell, device->sampled, device->driver_used);
        return;
    default:
        format_known(cell, device->sampled, device->unattributed);
        return;
    }
}

static void measure_columns(const struct cw_text *text, size_t widths[COLUMNS])
{
    char cell[CELL_MAX];

    for (unsigned column = 0; column < COLUMNS; column++) {
        widths[column] = strlen(column_titles[column]);
        for (unsigned i = 0; i < CW_DEVICES; i++) {
            if (!text->snapshot->device[i].seen)
                continue;
            format_cell(text, i, column, cell);
            if (strlen(cell) > widths[column])
                widths[column] = strlen(cell);
        }
    }
}

static void put_cell(const struct cw_text *text, enum device_column column, size_t width,
                     const char *cell)
{
    int left = column == COLUMN_DEVICE || column == COLUMN_NAME;

    cw_out_printf(text->out, "  %*s", left ? -(int)width : (int)width, cell);
}

static int any_seen(const struct cw_text *text)
{
    for (unsigned i = 0; i < CW_DEVICES; i++)
        if (text->snapshot->device[i].seen)
            return 1;
    return 0;
}

void cw_text_devices(const struct cw_text *text)
{
    size_t widths[COLUMNS];
    char cell[CELL_MAX];
    int sampled = 0;

    if (!any_seen(text)) {
        cw_text_heading(text, "DEVICES  none used\n");
        return;
    }
    cw_text_heading(text, "DEVICES\n");
    measure_columns(text, widths);
    cw_text_begin_line(text);
    for (unsigned column = 0; column < COLUMNS; column++)
        put_cell(text, column, widths[column], column_titles[column]);
    cw_text_end_line(text);
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        if (!text->snapshot->device[i].seen)
            continue;
        cw_text_begin_line(text);
        for (unsigned column = 0; column < COLUMNS; column++) {
            format_cell(text, i, column, cell);
            put_cell(text, column, widths[column], cell);
        }
        cw_text_end_line(text);
        sampled |= text->snapshot->device[i].sampled;
    }
    if (!sampled)
        return;
    cw_text_line(text,
                 "  unattributed: what the driver saw in use on the whole device, less what is "
                 "tracked here:");
    cw_text_line(text, "  contexts, loaded modules, memory inside libraries, and other processes");
}
