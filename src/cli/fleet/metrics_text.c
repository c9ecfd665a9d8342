/* SPDX-License-Identifier: MIT */
/*
 * Metrics of a fleet. See metrics_text.h.
 *
 * The memory of a dead process is gone, so it has only `cuwarden_up`, which is 0. No two lines may
 * have the same labels, or Prometheus rejects them all: if processes share host, user and id (a
 * file left by an earlier program of the process, or by an earlier process with this id), only the
 * first one counts, which is running or the newest. There are no metrics by call site, which may
 * number thousands.
 */
#include "cli/fleet/metrics_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/printable.h"
#include "base/utf8.h"

/* The output, and the labels common to all lines of the process. */
struct printing {
    FILE *to;
    const char *metric;
    const struct cw_fleet_process *process;
};

/* As \xNN: two names that differ stay two, where the same series twice would be an error. */
static void print_bytes(FILE *to, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        fprintf(to, "\\\\x%02x", (unsigned char)text[i]);
}

/* Value of a label: `"`, `\` and the end of a line are escaped, and it is printable UTF-8. A `\`
 * that would look like the beginning of \xNN is written as \x5c. */
static void print_value(FILE *to, const char *text)
{
    putc('"', to);
    for (size_t at = 0, len = strlen(text), size; at < len; at += size) {
        int is_printable;

        size = cw_printable_scan(text + at, len - at, &is_printable);
        if (text[at] == '\n')
            fputs("\\n", to);
        else if (text[at] == '\\' && text[at + 1] == 'x')
            print_bytes(to, text + at, 1);
        else if (text[at] == '"' || text[at] == '\\')
            fprintf(to, "\\%c", text[at]);
        else if (is_printable)
            fwrite(text + at, 1, size, to);
        else
            print_bytes(to, text + at, size);
    }
    putc('"', to);
}

static void print_label(FILE *to, const char *name, const char *value)
{
    fprintf(to, ",%s=", name);
    print_value(to, value);
}

static void begin_line(const struct printing *printing)
{
    fprintf(printing->to, "%s{pid=\"%u\",uid=\"%u\"", printing->metric,
            (unsigned)printing->process->pid, (unsigned)printing->process->uid);
    print_label(printing->to, "exe", basename(printing->process->exe));
    print_label(printing->to, "host", printing->process->host);
}

static void begin_device_line(const struct printing *printing, const struct cw_fleet_device *device)
{
    begin_line(printing);
    if (device->ordinal == CW_DEVICE_HOST)
        print_label(printing->to, "device", "host");
    else
        fprintf(printing->to, ",device=\"%u\"", (unsigned)device->ordinal);
    print_label(printing->to, "uuid", device->uuid);
}

static void end_line(const struct printing *printing, uint64_t value)
{
    fprintf(printing->to, "} %llu\n", (unsigned long long)value);
}

/* ---- of a process ---- */

static void print_up(const struct printing *printing)
{
    begin_line(printing);
    end_line(printing, printing->process->state == CW_FLEET_RUNNING);
}

static void print_info(const struct printing *printing)
{
    begin_line(printing);
    print_label(printing->to, "path", printing->process->exe);
    end_line(printing, 1);
}

static void print_start(const struct printing *printing)
{
    uint64_t ns = printing->process->start_realtime_ns;

    begin_line(printing);
    fprintf(printing->to, "} %llu.%03u\n", (unsigned long long)(ns / 1000000000),
            (unsigned)(ns % 1000000000 / 1000000));
}

static void print_invalid_frees(const struct printing *printing)
{
    begin_line(printing);
    end_line(printing, printing->process->invalid_frees);
}

/* ---- of a device ---- */

#define PRINT_FIELD(name, field, condition)                                                        \
    static void print_##name(const struct printing *printing,                                      \
                             const struct cw_fleet_device *device)                                 \
    {                                                                                              \
        if (!(condition))                                                                          \
            return;                                                                                \
        begin_device_line(printing, device);                                                       \
        end_line(printing, device->field);                                                         \
    }

PRINT_FIELD(cached, idle, 1)
PRINT_FIELD(held, held, 1)
PRINT_FIELD(peak, peak, 1)
PRINT_FIELD(peak_held, peak_held, 1)
PRINT_FIELD(limit, limit, device->limit != 0)
PRINT_FIELD(min_free, min_free, device->min_free != 0)
/* The driver was asked at least once. */
PRINT_FIELD(device_total, driver_total, device->driver_total != 0)
PRINT_FIELD(device_used, driver_used, device->driver_total != 0)
PRINT_FIELD(fallbacks, fallbacks, device->ordinal != CW_DEVICE_HOST)
PRINT_FIELD(fallback_bytes, fallback_bytes, device->ordinal != CW_DEVICE_HOST)
PRINT_FIELD(neighbours_bytes, neighbours_bytes, device->ordinal != CW_DEVICE_HOST)
PRINT_FIELD(hits, hits, 1)
PRINT_FIELD(misses, misses, 1)

#define PRINT_KNOWN(name, field)                                                                   \
    static void print_##name(const struct printing *printing,                                      \
                             const struct cw_fleet_device *device)                                 \
    {                                                                                              \
        if (device->field < 0)                                                                     \
            return;                                                                                \
        begin_device_line(printing, device);                                                       \
        fprintf(printing->to, "} %.6g\n", device->field);                                          \
    }

PRINT_KNOWN(efficiency, efficiency)
PRINT_KNOWN(fragmentation, fragmentation)
PRINT_KNOWN(peak_fragmentation, peak_fragmentation)
PRINT_KNOWN(pressure, pressure)
PRINT_KNOWN(oom_eta, oom_eta)

static void print_ooms(const struct printing *printing, const struct cw_fleet_device *device)
{
    for (unsigned i = 0; i < CW_CAUSE_COUNT; i++) {
        if (device->ordinal == CW_DEVICE_HOST && i != CW_CAUSE_DRIVER && device->ooms[i] == 0)
            continue; /* it has no limit */
        begin_device_line(printing, device);
        print_label(printing->to, "cause", cw_cause_name(i));
        end_line(printing, device->ooms[i]);
    }
}

static void print_trimmed(const struct printing *printing, const struct cw_fleet_device *device)
{
    for (unsigned i = 0; i < CW_RELEASE_COUNT; i++) {
        begin_device_line(printing, device);
        print_label(printing->to, "reason", cw_release_name(i));
        end_line(printing, device->trimmed_bytes[i]);
    }
}

static void print_neighbours(const struct printing *printing, const struct cw_fleet_device *device)
{
    const struct {
        const char *what;
        uint64_t count;
    } of[] = {{"asked", device->neighbours_asked},
              {"silent", device->neighbours_silent},
              {"served", device->neighbours_served}};

    for (unsigned i = 0; i < CW_ARRAY_LEN(of) && device->ordinal != CW_DEVICE_HOST; i++) {
        begin_device_line(printing, device);
        print_label(printing->to, "what", of[i].what);
        end_line(printing, of[i].count);
    }
}

/* A state set: one line per level, exactly one of which is 1. */
static void print_level(const struct printing *printing, const struct cw_fleet_device *device)
{
    if (device->ordinal == CW_DEVICE_HOST)
        return;
    for (unsigned i = 0; i < CW_LEVEL_COUNT; i++) {
        begin_device_line(printing, device);
        print_label(printing->to, "level", cw_level_name(i));
        end_line(printing, device->level == i);
    }
}

/* ---- of a budget ---- */

#define PRINT_BUDGET(name, field)                                                                  \
    static void print_##name(const struct printing *printing)                                      \
    {                                                                                              \
        for (uint32_t i = 0; i < printing->process->budgets; i++) {                                \
            const struct cw_fleet_budget *budget = &printing->process->budget[i];                  \
                                                                                                   \
            if (!budget->is_set)                                                                   \
                continue;                                                                          \
            begin_line(printing);                                                                  \
            print_label(printing->to, "tag", budget->pattern);                                     \
            end_line(printing, budget->field);                                                     \
        }                                                                                          \
    }

PRINT_BUDGET(budget, bytes)
PRINT_BUDGET(budget_live, live)
PRINT_BUDGET(budget_peak, peak)
PRINT_BUDGET(budget_exceeded, exceeded)
PRINT_BUDGET(budget_refused, refused)

/* ---- of a kind of memory on a device ---- */

static int is_used(const struct cw_fleet_kind *kind)
{
    return (kind->allocs | kind->failed) != 0;
}

#define PRINT_KIND(name, field)                                                                    \
    static void print_##name(const struct printing *printing,                                      \
                             const struct cw_fleet_device *device)                                 \
    {                                                                                              \
        for (unsigned i = 0; i < CW_KIND_COUNT; i++) {                                             \
            if (!is_used(&device->kind[i]))                                                        \
                continue;                                                                          \
            begin_device_line(printing, device);                                                   \
            print_label(printing->to, "kind", cw_kind_name(i));                                    \
            end_line(printing, device->kind[i].field);                                             \
        }                                                                                          \
    }

PRINT_KIND(live, live_bytes)
PRINT_KIND(live_blocks, live_blocks)
PRINT_KIND(allocs, allocs)
PRINT_KIND(frees, frees)
PRINT_KIND(failed, failed)

/* ---- the table ---- */

static const struct metric {
    const char *name, *type, *help;
    int has_dead; /* processes too */
    void (*print)(const struct printing *printing);
    void (*print_device)(const struct printing *printing, const struct cw_fleet_device *device);
} metrics[] = {
    {"cuwarden_up", "gauge", "1 if the process is running, 0 if it died and left a live file.", 1,
     print_up, NULL},
    {"cuwarden_process_info", "gauge", "The program of the process.", 0, print_info, NULL},
    {"cuwarden_process_start_time_seconds", "gauge",
     "When the process made its first CUDA call, since 1970.", 0, print_start, NULL},
    {"cuwarden_live_bytes", "gauge", "Memory that the program has requested and not freed.", 0,
     NULL, print_live},
    {"cuwarden_live_blocks", "gauge", "Blocks that the program has not freed.", 0, NULL,
     print_live_blocks},
    {"cuwarden_cached_bytes", "gauge", "Freed memory kept by the pool.", 0, NULL, print_cached},
    {"cuwarden_held_bytes", "gauge", "Memory taken from the driver: live, rounding and cached.", 0,
     NULL, print_held},
    {"cuwarden_peak_live_bytes", "gauge", "Peak of live memory.", 0, NULL, print_peak},
    {"cuwarden_peak_held_bytes", "gauge", "Peak of held memory.", 0, NULL, print_peak_held},
    {"cuwarden_efficiency_ratio", "gauge",
     "Share of the memory in use that the program requested; the rest is rounding.", 0, NULL,
     print_efficiency},
    {"cuwarden_fragmentation_ratio", "gauge",
     "Share of the memory held now that is idle or rounding.", 0, NULL, print_fragmentation},
    {"cuwarden_peak_fragmentation_ratio", "gauge",
     "Share of peak held memory that was never live at once.", 0, NULL, print_peak_fragmentation},
    {"cuwarden_limit_bytes", "gauge", "Memory limit of the process, if one is set.", 0, NULL,
     print_limit},
    {"cuwarden_min_free_bytes", "gauge", "Memory to be left free on the device, if set.", 0, NULL,
     print_min_free},
    {"cuwarden_device_total_bytes", "gauge", "Memory of the device, as the driver last said.", 0,
     NULL, print_device_total},
    {"cuwarden_device_used_bytes", "gauge",
     "Memory of the device in use by anybody, as the driver last said.", 0, NULL,
     print_device_used},
    {"cuwarden_pressure_ratio", "gauge",
     "Share in use of the device, the limit or a limit of the platform, the largest, when last "
     "looked at.",
     0, NULL, print_pressure},
    {"cuwarden_pressure_level", "gauge",
     "Memory pressure: 1 for the current level, 0 for the others.", 0, NULL, print_level},
    {"cuwarden_oom_eta_seconds", "gauge",
     "Time until the process finds no memory if it goes on growing; only if that is foreseen.", 0,
     NULL, print_oom_eta},
    {"cuwarden_allocations_total", "counter", "Allocations that succeeded.", 0, NULL, print_allocs},
    {"cuwarden_frees_total", "counter", "Frees.", 0, NULL, print_frees},
    {"cuwarden_failed_allocations_total", "counter", "Allocations that returned an error.", 0, NULL,
     print_failed},
    {"cuwarden_oom_total", "counter", "Calls that returned an out-of-memory error to the program.",
     0, NULL, print_ooms},
    {"cuwarden_fallbacks_total", "counter", "Requests served from managed memory.", 0, NULL,
     print_fallbacks},
    {"cuwarden_fallback_bytes_total", "counter", "Their bytes.", 0, NULL, print_fallback_bytes},
    {"cuwarden_trimmed_bytes_total", "counter",
     "Idle memory that the pool has returned to the driver, by reason.", 0, NULL, print_trimmed},
    {"cuwarden_neighbour_requests_total", "counter",
     "Requests for idle memory to other processes, those without an answer, and those of others "
     "that were carried out.",
     0, NULL, print_neighbours},
    {"cuwarden_neighbour_received_bytes_total", "counter",
     "What other processes gave back when memory had run out.", 0, NULL, print_neighbours_bytes},
    {"cuwarden_pool_hits_total", "counter", "Requests served by the pool.", 0, NULL, print_hits},
    {"cuwarden_pool_misses_total", "counter", "Requests passed to the driver.", 0, NULL,
     print_misses},
    {"cuwarden_invalid_frees_total", "counter", "Frees refused by the driver.", 0,
     print_invalid_frees, NULL},
    {"cuwarden_budget_bytes", "gauge", "Device memory that the tags may have, if that is set.", 0,
     print_budget, NULL},
    {"cuwarden_budget_live_bytes", "gauge", "Device memory that the tags have.", 0,
     print_budget_live, NULL},
    {"cuwarden_budget_peak_live_bytes", "gauge", "Most device memory that the tags had.", 0,
     print_budget_peak, NULL},
    {"cuwarden_budget_exceeded_total", "counter",
     "Times that the tags went from within their budget to beyond.", 0, print_budget_exceeded,
     NULL},
    {"cuwarden_budget_refused_total", "counter",
     "Calls that returned an out-of-memory error for the budget.", 0, print_budget_refused, NULL},
};

static void print_head(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_process(const struct metric *metric, const struct printing *printing)
{
    const struct cw_fleet_process *process = printing->process;

    if (process->state != CW_FLEET_RUNNING && !metric->has_dead)
        return;
    if (metric->print) {
        metric->print(printing);
        return;
    }
    for (uint32_t i = 0; i < process->devices; i++)
        metric->print_device(printing, &process->device[i]);
}

static int is_repeated(const struct cw_fleet *fleet, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (fleet->process[i]->pid == fleet->process[at]->pid &&
            fleet->process[i]->uid == fleet->process[at]->uid &&
            strcmp(fleet->process[i]->host, fleet->process[at]->host) == 0)
            return 1;
    }
    return 0;
}

static void print_metric(FILE *to, const struct metric *metric, const struct cw_fleet *fleet)
{
    print_head(to, metric->name, metric->type, metric->help);
    for (size_t i = 0; i < fleet->count; i++) {
        struct printing printing = {.to = to, .metric = metric->name, .process = fleet->process[i]};

        /* Processes that ended in an orderly way are omitted. */
        if (fleet->process[i]->state != CW_FLEET_ENDED && !is_repeated(fleet, i))
            print_process(metric, &printing);
    }
}

static void print_totals(FILE *to, const struct cw_fleet *fleet)
{
    size_t count[3] = {0};

    for (size_t i = 0; i < fleet->count; i++)
        count[fleet->process[i]->state]++;
    print_head(to, "cuwarden_build_info", "gauge", "Version of the command that wrote this.");
    fprintf(to, "cuwarden_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
    print_head(to, "cuwarden_processes", "gauge", "Processes with a live file, by state.");
    for (unsigned i = 0; i < CW_ARRAY_LEN(count); i++)
        fprintf(to, "cuwarden_processes{state=\"%s\"} %zu\n",
                cw_fleet_state_name((enum cw_fleet_state)i), count[i]);
    print_head(to, "cuwarden_unreadable_files", "gauge",
               "Live files that could not be read, for example because of another version, and "
               "directories of them.");
    fprintf(to, "cuwarden_unreadable_files %zu\n", fleet->unreadable);
}

void cw_metrics_print(FILE *to, const struct cw_fleet *fleet)
{
    print_totals(to, fleet);
    for (size_t i = 0; i < CW_ARRAY_LEN(metrics); i++)
        print_metric(to, &metrics[i], fleet);
}
