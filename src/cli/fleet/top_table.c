/* SPDX-License-Identifier: MIT */
/* Rows and columns of `top`. See top_table.h. */
#include "cli/fleet/top_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/options/option_values.h"
#include "cli/ui/truncate.h"

#define CELL_MAX    64
#define COMMAND_MIN 10 /* columns, before others are dropped */
#define COMMAND_ALL 40 /* before columns for wide terminals are added */
#define RANK_WIDE   12 /* theirs, and higher */

static const struct {
    const char *heading;
    unsigned width, rank;
} columns_of[CW_TOP_COLUMN_COUNT] = {
#define X(id, heading, width, rank) [CW_TOP_##id] = {heading, width, rank},
    CW_TOP_COLUMNS(X)
#undef X
};

const char *cw_top_column_name(enum cw_top_column column)
{
    return columns_of[column].heading;
}

int cw_top_parse_sort(const char *text, enum cw_top_column *out)
{
    for (unsigned i = 0; i < CW_TOP_COLUMN_COUNT; i++) {
        if (strcasecmp(text, columns_of[i].heading) != 0)
            continue;
        *out = (enum cw_top_column)i;
        return 0;
    }
    return -1;
}

int cw_top_parse_device(const char *text, uint32_t *out)
{
    uint64_t number;

    if (strcmp(text, "host") == 0) {
        *out = CW_DEVICE_HOST;
        return 0;
    }
    if (cw_count_parse(text, &number) != 0 || number >= CW_MAX_DEVICES)
        return -1;
    *out = (uint32_t)number;
    return 0;
}

/* ---- cells ---- */

const char *cw_top_size(char *buf, size_t cap, uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    unsigned unit = 0;
    double size = (double)bytes;

    /* 1023.5 would be printed as 1024. */
    while (size >= 1023.5 && unit + 2 < sizeof(units)) {
        size /= 1024;
        unit++;
    }
    /* 99.95 would be printed as 100.0. */
    snprintf(buf, cap, unit == 0 || size >= 99.95 ? "%.0f%c" : "%.1f%c", size, units[unit]);
    return buf;
}

static const char *print_rate(char *buf, size_t cap, double rate)
{
    static const char units[] = " kMG";
    unsigned unit = 0;

    while (rate >= 99999.5 && unit + 2 < sizeof(units)) {
        rate /= 1000;
        unit++;
    }
    snprintf(buf, cap, rate > 0 && rate < 9.95 ? "%.1f%.1s" : "%.0f%.1s", rate,
             unit ? &units[unit] : "");
    return buf;
}

/* "45s", "12m", "1.5h", "3.2d"; "-": it is not foreseen. */
static const char *print_eta(char *buf, size_t cap, double seconds)
{
    if (seconds < 0)
        return "-";
    if (seconds < 6000)
        snprintf(buf, cap, "%.0f%c", seconds < 100 ? seconds : seconds / 60,
                 seconds < 100 ? 's' : 'm');
    else
        snprintf(buf, cap, "%.1f%c", seconds / (seconds < 360000 ? 3600 : 86400),
                 seconds < 360000 ? 'h' : 'd');
    return buf;
}

/* In percent. */
static const char *print_share(char *buf, size_t cap, double share)
{
    if (share < 0)
        return "-";
    snprintf(buf, cap, "%.0f", share * 100);
    return buf;
}

static const char *print_device(char *buf, size_t cap, const struct cw_fleet_device *device)
{
    if (device->ordinal == CW_DEVICE_HOST)
        return "host";
    snprintf(buf, cap, "%u", (unsigned)device->ordinal);
    return buf;
}

static const char *name_of(const struct cw_fleet_process *process)
{
    return process->command[0] ? process->command : process->exe;
}

/* Without the program's directory if space is short. */
static const char *short_name_of(const struct cw_fleet_process *process)
{
    const char *name = name_of(process), *end = name + strcspn(name, " "), *at = end;

    while (at > name && at[-1] != '/')
        at--;
    return at < end ? at : name;
}

/* Of all devices together, so on each of them the same. */
static double budget_of(const struct cw_top_row *row)
{
    return row->device->ordinal == CW_DEVICE_HOST ? -1 : cw_fleet_fullest_budget(row->process);
}

static const char *print_device_cell(char *buf, size_t cap, const struct cw_top_row *row,
                                     enum cw_top_column column)
{
    const struct cw_fleet_device *device = row->device;

    if (!device)
        return "-";
    switch (column) {
    case CW_TOP_DEVICE:
        return print_device(buf, cap, device);
    case CW_TOP_LIVE:
        return cw_top_size(buf, cap, device->live);
    case CW_TOP_IDLE:
        return cw_top_size(buf, cap, device->idle);
    case CW_TOP_HELD:
        return cw_top_size(buf, cap, device->held);
    case CW_TOP_PEAK:
        return cw_top_size(buf, cap, device->peak);
    case CW_TOP_LIMIT:
        return device->limit ? cw_top_size(buf, cap, device->limit) : "-";
    case CW_TOP_LEVEL:
        return device->ordinal == CW_DEVICE_HOST ? "-" : cw_level_name(device->level);
    case CW_TOP_RATE:
        return print_rate(buf, cap, device->alloc_rate);
    case CW_TOP_HIT:
        return print_share(buf, cap, device->hit_share);
    case CW_TOP_EFFICIENCY:
        return print_share(buf, cap, device->efficiency);
    case CW_TOP_FRAGMENTATION:
        return print_share(buf, cap, device->fragmentation);
    case CW_TOP_PEAK_FRAGMENTATION:
        return print_share(buf, cap, device->peak_fragmentation);
    case CW_TOP_USE:
        return print_share(buf, cap, device->pressure);
    case CW_TOP_BLOCKS:
        snprintf(buf, cap, "%llu", (unsigned long long)device->live_blocks);
        return buf;
    case CW_TOP_FALLBACK:
        return cw_top_size(buf, cap, device->fallback_bytes);
    case CW_TOP_TRIMMED:
        return cw_top_size(buf, cap, device->all_trimmed_bytes);
    case CW_TOP_LENT:
        return cw_top_size(buf, cap, device->trimmed_bytes[CW_RELEASE_NEIGHBOUR]);
    case CW_TOP_OOM:
        return print_eta(buf, cap, device->oom_eta);
    case CW_TOP_BUDGET:
        return print_share(buf, cap, budget_of(row));
    default:
        snprintf(buf, cap, "%llu", (unsigned long long)device->failed);
        return buf;
    }
}

static const char *print_user(char *buf, size_t cap, const char *user)
{
    unsigned width = columns_of[CW_TOP_USER].width;

    if (strlen(user) <= width)
        return user;
    snprintf(buf, cap, "%.*s+", (int)width - 1, user);
    return buf;
}

static const char *print_cell(char *buf, size_t cap, const struct cw_top_row *row,
                              enum cw_top_column column)
{
    if (column == CW_TOP_PID) {
        snprintf(buf, cap, "%u%s", (unsigned)row->process->pid,
                 row->process->is_in_other_pid_namespace ? "*" : "");
        return buf;
    }
    if (column == CW_TOP_USER)
        return print_user(buf, cap, row->process->user);
    /* A dead process has no rates. */
    if (row->process->state != CW_FLEET_RUNNING && column == CW_TOP_LEVEL)
        return cw_fleet_state_name(row->process->state);
    if (row->process->state != CW_FLEET_RUNNING && column == CW_TOP_RATE)
        return "-";
    return print_device_cell(buf, cap, row, column);
}

/* ---- lines ---- */

static int has_others(const struct cw_fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->process[i]->uid != geteuid())
            return 1;
    }
    return 0;
}

void cw_top_fit(struct cw_top_layout *layout, const struct cw_fleet *fleet, size_t columns)
{
    unsigned rank_of_user = has_others(fleet) ? 1 : columns_of[CW_TOP_USER].rank;
    size_t used = 0;

    for (unsigned i = 0; i < CW_TOP_COLUMN_COUNT; i++)
        layout->is_shown[i] = i == CW_TOP_COMMAND;
    for (unsigned rank = 1; rank < CW_TOP_COLUMN_COUNT; rank++) {
        size_t command = rank < RANK_WIDE ? COMMAND_MIN : COMMAND_ALL;

        for (unsigned i = 0; i < CW_TOP_COLUMN_COUNT; i++) {
            size_t takes = columns_of[i].width + 1;

            if ((i == CW_TOP_USER ? rank_of_user : columns_of[i].rank) != rank ||
                columns < used + takes || columns - used - takes < command)
                continue;
            layout->is_shown[i] = 1;
            used += takes;
        }
    }
    layout->command = columns == SIZE_MAX ? SIZE_MAX : columns - used;
}

static size_t append(char *buf, size_t cap, size_t at, const char *text, unsigned width)
{
    int len = snprintf(buf + at, cap - at, "%*s ", (int)width, text);

    return len < 0 || (size_t)len >= cap - at ? cap - 1 : at + (size_t)len;
}

void cw_top_print_heading(char *buf, size_t cap, const struct cw_top_layout *layout,
                          const struct cw_top_choice *choice)
{
    char cell[CELL_MAX];
    size_t at = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < CW_TOP_COLUMN_COUNT; i++) {
        if (!layout->is_shown[i])
            continue;
        snprintf(cell, sizeof(cell), "%s%s", choice && i == choice->sort ? "*" : "",
                 columns_of[i].heading);
        if (i == CW_TOP_COMMAND)
            cw_truncate(buf + at, cap - at, cell, layout->command);
        else
            at = append(buf, cap, at, cell, columns_of[i].width);
    }
}

void cw_top_print_row(char *buf, size_t cap, const struct cw_top_layout *layout,
                      const struct cw_top_row *row)
{
    char cell[CELL_MAX];
    size_t at = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < CW_TOP_COMMAND; i++) {
        if (layout->is_shown[i])
            at = append(buf, cap, at, print_cell(cell, sizeof(cell), row, (enum cw_top_column)i),
                        columns_of[i].width);
    }
    cw_truncate(buf + at, cap - at,
                layout->command == SIZE_MAX ? name_of(row->process) : short_name_of(row->process),
                layout->command);
}

/* ---- rows ---- */

static int is_match(const struct cw_top_row *row, const char *filter)
{
    char cell[CELL_MAX];

    for (unsigned i = 0; i < CW_TOP_COMMAND; i++) {
        if ((i == CW_TOP_PID || i == CW_TOP_LEVEL) &&
            strcasestr(print_cell(cell, sizeof(cell), row, (enum cw_top_column)i), filter))
            return 1;
    }
    return strcasestr(name_of(row->process), filter) || strcasestr(row->process->user, filter) ||
           (row->device && strcasestr(row->device->name, filter));
}

static int is_chosen(const struct cw_top_row *row, const struct cw_top_choice *choice)
{
    if (row->process->state != CW_FLEET_RUNNING && !choice->shows_dead)
        return 0;
    if (choice->device != CW_TOP_ANY_DEVICE &&
        (!row->device || row->device->ordinal != choice->device))
        return 0;
    return choice->filter[0] == '\0' || is_match(row, choice->filter);
}

/* Sort order of a column: largest first, but smallest first for ids and names. */
static double measure(const struct cw_top_row *row, enum cw_top_column column)
{
    const struct cw_fleet_device *device = row->device;

    if (column == CW_TOP_PID)
        return -(double)row->process->pid;
    if (!device)
        return -1;
    switch (column) {
    case CW_TOP_DEVICE:
        return -(double)device->ordinal;
    case CW_TOP_LIVE:
        return (double)device->live;
    case CW_TOP_IDLE:
        return (double)device->idle;
    case CW_TOP_HELD:
        return (double)device->held;
    case CW_TOP_PEAK:
        return (double)device->peak;
    case CW_TOP_LIMIT:
        return (double)device->limit;
    case CW_TOP_LEVEL:
        return (double)device->level;
    case CW_TOP_RATE:
        return device->alloc_rate;
    case CW_TOP_HIT:
        return device->hit_share;
    case CW_TOP_EFFICIENCY:
        return device->efficiency;
    case CW_TOP_FRAGMENTATION:
        return device->fragmentation;
    case CW_TOP_PEAK_FRAGMENTATION:
        return device->peak_fragmentation;
    case CW_TOP_USE:
        return device->pressure;
    case CW_TOP_BLOCKS:
        return (double)device->live_blocks;
    case CW_TOP_FALLBACK:
        return (double)device->fallback_bytes;
    case CW_TOP_TRIMMED:
        return (double)device->all_trimmed_bytes;
    case CW_TOP_LENT:
        return (double)device->trimmed_bytes[CW_RELEASE_NEIGHBOUR];
    case CW_TOP_OOM: /* the soonest first */
        return device->oom_eta < 0 ? -1 : 1 / (1 + device->oom_eta);
    case CW_TOP_BUDGET:
        return budget_of(row);
    case CW_TOP_FAILED:
        return (double)device->failed;
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct cw_top_row *x = a, *y = b;
    const struct cw_top_choice *choice = arg;
    double left = measure(x, choice->sort), right = measure(y, choice->sort);
    int order = left < right ? 1 : left > right ? -1 : 0;

    if (choice->sort == CW_TOP_COMMAND)
        order = strcmp(name_of(x->process), name_of(y->process));
    else if (choice->sort == CW_TOP_USER)
        order = strcmp(x->process->user, y->process->user);
    if (order != 0)
        return choice->is_reversed ? -order : order;
    /* Equal rows keep their order across refreshes. */
    if (x->process != y->process)
        return strcmp(x->process->path, y->process->path);
    return x->device < y->device ? -1 : x->device > y->device;
}

struct cw_top_row *cw_top_rows(const struct cw_fleet *fleet, const struct cw_top_choice *choice,
                               long *out_count)
{
    struct cw_top_row *rows;
    size_t most = 0, count = 0;

    for (size_t i = 0; i < fleet->count; i++)
        most += fleet->process[i]->devices + 1;
    rows = calloc(most + 1, sizeof(*rows));
    *out_count = -1;
    if (!rows)
        return NULL;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct cw_fleet_process *process = fleet->process[i];

        for (uint32_t k = 0; k < process->devices || k == 0; k++) {
            rows[count].process = process;
            rows[count].device = k < process->devices ? &process->device[k] : NULL;
            count += (size_t)is_chosen(&rows[count], choice);
        }
    }
    qsort_r(rows, count, sizeof(*rows), compare, (void *)choice);
    *out_count = (long)count;
    return rows;
}
