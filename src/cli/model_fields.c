/* SPDX-License-Identifier: MIT */
/* Where each value of a report in JSON belongs: one row each. See model_reader.h. */
#include "cli/model_reader.h"

#include <string.h>

#include "base/compiler.h"

/* Base and offset. */
#define NOW(field)     OF_READER, offsetof(struct cw_reader, now.field)
#define DEVICE(field)  OF_READER, offsetof(struct cw_reader, now.device.field)
#define MODEL(field)   OF_MODEL, offsetof(struct cw_model, field)
#define AMOUNT(field)  OF_OBJECT, offsetof(struct cw_model_amount, field)
#define PEAK(field)    OF_OBJECT, offsetof(struct cw_model_device, field)
#define GROWTH(field)  OF_OBJECT, offsetof(struct cw_model_growth, field)
#define SUMMARY(field) OF_OBJECT, offsetof(struct cw_model_summary, field)
#define NOWHERE        OF_READER, 0

static const struct cw_reader_row rows[] = {
    {IN_TOP, NULL, INTO, NOWHERE, IN_REPORT},
    {IN_REPORT, "schema", TEXT, NOW(schema), 0},
    {IN_REPORT, "tool", INTO, NOWHERE, IN_TOOL},
    {IN_TOOL, "version", TEXT, MODEL(process.version), 0},
    {IN_REPORT, "process", INTO, NOWHERE, IN_PROCESS},
    {IN_PROCESS, "pid", U32, MODEL(process.pid), 0},
    {IN_PROCESS, "ppid", U32, MODEL(process.ppid), 0},
    {IN_PROCESS, "exe", TEXT, MODEL(process.exe), 0},
    {IN_PROCESS, "argv", INTO, NOWHERE, IN_ARGV},
    {IN_ARGV, NULL, TEXT, NOW(argument), 0},
    {IN_PROCESS, "cwd", TEXT, MODEL(process.cwd), 0},
    {IN_PROCESS, "host", TEXT, MODEL(process.host), 0},
    {IN_PROCESS, "rank", TEXT, MODEL(process.rank), 0},
    {IN_PROCESS, "start_ns", U64, MODEL(process.start_realtime_ns), 0},
    {IN_PROCESS, "duration_ns", U64, MODEL(process.duration_ns), 0},
    {IN_PROCESS, "exit", INTO, NOWHERE, IN_EXIT},
    {IN_EXIT, "kind", TEXT, MODEL(process.end), 0},
    {IN_EXIT, "code", I32, MODEL(process.exit_code), 0},
    {IN_REPORT, "cuda", INTO, NOWHERE, IN_CUDA},
    {IN_CUDA, "driver", U32, MODEL(process.driver_version), 0},
    {IN_REPORT, "devices", INTO, NOWHERE, IN_DEVICES},
    {IN_DEVICES, NULL, INTO, NOWHERE, IN_DEVICE},
    {IN_REPORT, "host", INTO, NOWHERE, IN_DEVICE},
    {IN_DEVICE, "ordinal", U32, DEVICE(device.ordinal), 0},
    {IN_DEVICE, "name", TEXT, DEVICE(device.name), 0},
    {IN_DEVICE, "uuid", TEXT, DEVICE(device.uuid), 0},
    {IN_DEVICE, "total", U64, DEVICE(device.total), 0},
    {IN_DEVICE, "live", INTO, DEVICE(device.live), IN_AMOUNT},
    {IN_DEVICE, "idle", INTO, DEVICE(device.idle), IN_AMOUNT},
    {IN_DEVICE, "held", U64, DEVICE(device.held), 0},
    {IN_DEVICE, "allocs", U64, DEVICE(device.allocs), 0},
    {IN_DEVICE, "frees", U64, DEVICE(device.frees), 0},
    {IN_DEVICE, "failed", U64, DEVICE(device.failed), 0},
    {IN_DEVICE, "total_bytes", U64, DEVICE(device.total_allocated.bytes), 0},
    {IN_DEVICE, "peak", INTO, DEVICE(device), IN_PEAK},
    {IN_PEAK, "bytes", U64, PEAK(peak_bytes), 0},
    {IN_PEAK, "t_ns", U64, PEAK(peak_ns), 0},
    {IN_DEVICE, "driver_used", U64, DEVICE(device.driver_used), 0},
    {IN_DEVICE, "unattributed", U64, DEVICE(device.unattributed), 0},
    {IN_REPORT, "pool", INTO, NOWHERE, IN_POOL},
    {IN_POOL, "mode", TEXT, MODEL(process.mode), 0},
    {IN_POOL, "devices", INTO, NOWHERE, IN_POOL_DEVICES},
    {IN_POOL_DEVICES, NULL, INTO, NOWHERE, IN_POOL_DEVICE},
    {IN_POOL_DEVICE, "device", U32, NOW(pool.device), 0},
    {IN_POOL_DEVICE, "hits", U64, NOW(pool.hits), 0},
    {IN_POOL_DEVICE, "misses", U64, NOW(pool.misses), 0},
    {IN_POOL_DEVICE, "num_ooms", U64, NOW(pool.ooms), 0},
    {IN_POOL_DEVICE, "buckets", INTO, NOWHERE, IN_BUCKETS},
    {IN_BUCKETS, NULL, INTO, NOWHERE, IN_BUCKET},
    {IN_BUCKET, "kind", TEXT, NOW(bucket.kind), 0},
    {IN_BUCKET, "size_bytes", U64, NOW(bucket.size), 0},
    {IN_BUCKET, "hits", U64, NOW(bucket.hits), 0},
    {IN_BUCKET, "misses", U64, NOW(bucket.misses), 0},
    {IN_BUCKET, "cached_blocks", U64, NOW(bucket.idle_blocks), 0},
    {IN_BUCKET, "cached_bytes", U64, NOW(bucket.idle_bytes), 0},
    {IN_REPORT, "pressure", INTO, NOWHERE, IN_PRESSURE},
    {IN_PRESSURE, "devices", INTO, NOWHERE, IN_PRESSURE_DEVICES},
    {IN_PRESSURE_DEVICES, NULL, INTO, NOWHERE, IN_PRESSURE_DEVICE},
    {IN_PRESSURE_DEVICE, "device", U32, NOW(pressure.device), 0},
    {IN_PRESSURE_DEVICE, "level", TEXT, NOW(pressure.level), 0},
    {IN_PRESSURE_DEVICE, "limit", U64, NOW(pressure.limit), 0},
    {IN_PRESSURE_DEVICE, "min_free", U64, NOW(pressure.min_free), 0},
    {IN_REPORT, "modules", INTO, NOWHERE, IN_MODULES},
    {IN_MODULES, NULL, INTO, NOWHERE, IN_MODULE},
    {IN_MODULE, "id", U32, NOW(module_id), 0},
    {IN_MODULE, "path", TEXT, NOW(module.path), 0},
    {IN_MODULE, "build_id", TEXT, NOW(module.build_id), 0},
    {IN_REPORT, "frames", INTO, NOWHERE, IN_FRAMES},
    {IN_FRAMES, NULL, INTO, NOWHERE, IN_FRAME},
    {IN_FRAME, "id", U32, NOW(frame.id), 0},
    {IN_FRAME, "module", U32, NOW(frame.module), 0},
    {IN_FRAME, "offset", U64, NOW(frame.frame.offset), 0},
    {IN_FRAME, "func", TEXT, NOW(frame.frame.function), 0},
    {IN_FRAME, "file", TEXT, NOW(frame.frame.file), 0},
    {IN_FRAME, "line", U32, NOW(frame.frame.line), 0},
    {IN_FRAME, "lang", TEXT, NOW(frame.lang), 0},
    {IN_FRAME, "inlined", INTO, NOWHERE, IN_INLINED},
    {IN_INLINED, NULL, INTO, NOWHERE, IN_INLINED_FRAME},
    {IN_INLINED_FRAME, "func", TEXT, NOW(inlined.frame.function), 0},
    {IN_INLINED_FRAME, "file", TEXT, NOW(inlined.frame.file), 0},
    {IN_INLINED_FRAME, "line", U32, NOW(inlined.frame.line), 0},
    {IN_REPORT, "stacks", INTO, NOWHERE, IN_STACKS},
    {IN_STACKS, NULL, INTO, NOWHERE, IN_STACK},
    {IN_STACK, "id", U32, NOW(stack_number), 0},
    {IN_STACK, "frames", INTO, NOWHERE, IN_STACK_FRAMES},
    {IN_STACK_FRAMES, NULL, U32, NOW(frame.id), 0},
    {IN_STACK, "shown", INTO, NOWHERE, IN_STACK_SHOWN},
    {IN_STACK_SHOWN, NULL, U32, NOW(shown_number), 0},
    {IN_REPORT, "sites", INTO, NOWHERE, IN_SITES},
    {IN_SITES, NULL, INTO, NOWHERE, IN_SITE},
    {IN_SITE, "id", U32, NOW(site_id), 0},
    {IN_SITE, "key", TEXT, NOW(site_key), 0},
    {IN_SITE, "stack", U32, NOW(site_stack), 0},
    {IN_SITE, "api", TEXT, NOW(site.api), 0},
    {IN_SITE, "kind", TEXT, NOW(site.kind), 0},
    {IN_SITE, "device", U32, NOW(site.device), 0},
    {IN_SITE, "tag", TEXT, NOW(site.tag), 0},
    {IN_SITE, "class", TEXT, NOW(site.leak), 0},
    {IN_SITE, "live", INTO, NOW(site.live), IN_AMOUNT},
    {IN_SITE, "total", INTO, NOW(site.total), IN_AMOUNT},
    {IN_SITE, "peak", INTO, NOW(site.peak), IN_AMOUNT},
    {IN_SITE, "at_device_peak", INTO, NOW(site.at_peak), IN_AMOUNT},
    {IN_SITE, "reclaimed", INTO, NOW(site.reclaimed), IN_AMOUNT},
    {IN_SITE, "held", U64, NOW(site.held), 0},
    {IN_SITE, "frees", U64, NOW(site.frees), 0},
    {IN_SITE, "failed", U64, NOW(site.failed), 0},
    {IN_SITE, "oom", U64, NOW(site.oom), 0},
    {IN_SITE, "first_ns", U64, NOW(site.first_ns), 0},
    {IN_SITE, "last_ns", U64, NOW(site.last_ns), 0},
    {IN_SITE, "oldest_age_ns", U64, NOW(oldest_age_ns), 0},
    {IN_SITE, "growth", INTO, NOW(site.growth), IN_GROWTH},
    {IN_GROWTH, "slope_bps", REAL, GROWTH(slope_bytes_per_s), 0},
    {IN_GROWTH, "r2", REAL, GROWTH(r2), 0},
    {IN_GROWTH, "n", U32, GROWTH(samples), 0},
    {IN_GROWTH, "bytes", INTO, NOWHERE, IN_GROWTH_BYTES},
    {IN_GROWTH_BYTES, NULL, U64, NOW(moment_bytes), 0},
    {IN_GROWTH, "suspect", TRUTH, GROWTH(is_suspect), 0},
    {IN_REPORT, "leaks", INTO, NOWHERE, IN_LEAKS},
    {IN_REPORT, "leaks_truncated", U64, MODEL(blocks_left_out), 0},
    {IN_LEAKS, NULL, INTO, NOWHERE, IN_LEAK},
    {IN_LEAK, "site", U32, NOW(block_site), 0},
    {IN_LEAK, "ptr", TEXT, NOW(block_address), 0},
    {IN_LEAK, "bytes", U64, NOW(block.bytes), 0},
    {IN_LEAK, "held", U64, NOW(block.held), 0},
    {IN_LEAK, "t_ns", U64, NOW(block.born_ns), 0},
    {IN_LEAK, "tid", U32, NOW(block.tid), 0},
    {IN_REPORT, "events", INTO, NOWHERE, IN_EVENTS},
    {IN_EVENTS, NULL, INTO, NOWHERE, IN_EVENT},
    {IN_EVENT, "type", TEXT, NOW(event.type), 0},
    {IN_EVENT, "t_ns", U64, NOW(event.t_ns), 0},
    {IN_EVENT, "device", U32, NOW(event.device), 0},
    {IN_EVENT, "site", U32, NOW(event_site), 0},
    {IN_EVENT, "bytes", U64, NOW(event.bytes), 0},
    {IN_EVENT, "level", TEXT, NOW(event.level), 0},
    {IN_EVENT, "level_before", TEXT, NOW(event.level_before), 0},
    {IN_EVENT, "cause", TEXT, NOW(event.cause), 0},
    {IN_EVENT, "count", U32, NOW(event.count), 0},
    {IN_REPORT, "diagnostics", INTO, NOWHERE, IN_DIAGNOSTICS},
    {IN_DIAGNOSTICS, NULL, INTO, NOWHERE, IN_DIAGNOSTIC},
    {IN_DIAGNOSTIC, "text", TEXT, NOW(diagnostic), 0},
    {IN_REPORT, "growth", INTO, NOWHERE, IN_MOMENTS},
    {IN_MOMENTS, "t_ns", INTO, NOWHERE, IN_MOMENTS_NS},
    {IN_MOMENTS_NS, NULL, U64, NOW(moment_ns), 0},
    {IN_REPORT, "timeline", INTO, NOWHERE, IN_TIMELINE},
    {IN_TIMELINE, "series", INTO, NOWHERE, IN_TIMELINE_SERIES},
    {IN_TIMELINE_SERIES, NULL, INTO, NOWHERE, IN_TIMELINE_DEVICE},
    {IN_TIMELINE_DEVICE, "device", U32, NOW(timeline_device), 0},
    {IN_TIMELINE_DEVICE, "points", INTO, NOWHERE, IN_POINTS},
    {IN_POINTS, NULL, INTO, NOWHERE, IN_POINT},
    {IN_POINT, NULL, U64, NOW(moment_ns), 0},
    {IN_REPORT, "tags", INTO, NOWHERE, IN_STEPS},
    {IN_STEPS, NULL, INTO, NOWHERE, IN_STEP},
    {IN_STEP, "tag", TEXT, NOW(step.name), 0},
    {IN_STEP, "steps", U64, NOW(step.steps), 0},
    {IN_STEP, "first_ns", U64, NOW(step.first_ns), 0},
    {IN_STEP, "last_ns", U64, NOW(step.last_ns), 0},
    {IN_STEP, "first_bytes", U64, NOW(step.first_bytes), 0},
    {IN_STEP, "last_bytes", U64, NOW(step.last_bytes), 0},
    {IN_STEP, "slope_bytes", REAL, NOW(step.slope_bytes), 0},
    {IN_STEP, "r2", REAL, NOW(step.r2), 0},
    {IN_STEP, "rising", TRUTH, NOW(step.is_rising), 0},
    {IN_REPORT, "regrowth", INTO, NOWHERE, IN_REGROWTHS},
    {IN_REGROWTHS, NULL, INTO, NOWHERE, IN_REGROWTH},
    {IN_REGROWTH, "site", U32, NOW(regrowth_site), 0},
    {IN_REGROWTH, "resizes", U64, NOW(regrowth.resizes), 0},
    {IN_REGROWTH, "factor", REAL, NOW(regrowth.factor), 0},
    {IN_REGROWTH, "copied_bytes", U64, NOW(regrowth.copied_bytes), 0},
    {IN_REGROWTH, "capacity_bytes", U64, NOW(regrowth.capacity_bytes), 0},
    {IN_REPORT, "summary", INTO, MODEL(summary), IN_SUMMARY},
    {IN_SUMMARY, "leaked_bytes", U64, SUMMARY(leaked_bytes), 0},
    {IN_SUMMARY, "leaked_blocks", U64, SUMMARY(leaked_blocks), 0},
    {IN_SUMMARY, "leak_sites", U64, SUMMARY(leak_sites), 0},
    {IN_SUMMARY, "peak_bytes", U64, SUMMARY(peak_bytes), 0},
    {IN_SUMMARY, "allocs", U64, SUMMARY(allocs), 0},
    {IN_SUMMARY, "frees", U64, SUMMARY(frees), 0},
    {IN_SUMMARY, "failed", U64, SUMMARY(failed), 0},
    {IN_SUMMARY, "pool_hits", U64, SUMMARY(pool_hits), 0},
    {IN_SUMMARY, "pool_misses", U64, SUMMARY(pool_misses), 0},
    {IN_AMOUNT, "count", U64, AMOUNT(count), 0},
    {IN_AMOUNT, "bytes", U64, AMOUNT(bytes), 0},
};

#define ROWS_MAX 32 /* of one context */

/* By context; filled once. */
static const struct cw_reader_row *row_of[IN_CONTEXTS][ROWS_MAX];

void cw_reader_index_rows(void)
{
    unsigned count[IN_CONTEXTS] = {0};

    if (row_of[IN_TOP][0])
        return;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        row_of[rows[i].in][count[rows[i].in]++] = &rows[i];
}

const struct cw_reader_row *cw_reader_find_row(const struct cw_reader *self)
{
    const struct cw_reader_row *const *row = row_of[self->level[self->depth].context];

    if (self->ignored)
        return NULL;
    for (; *row; row++)
        if (!(*row)->key || strcmp((*row)->key, self->key) == 0)
            return *row;
    return NULL;
}

void *cw_reader_field(struct cw_reader *self, const struct cw_reader_row *row)
{
    switch (row->base) {
    case OF_READER:
        return (char *)self + row->offset;
    case OF_MODEL:
        return (char *)self->model + row->offset;
    default:
        return (char *)self->level[self->depth].base + row->offset;
    }
}
