/* SPDX-License-Identifier: MIT */
/* The JSON report. See report_json.h. One line per element of the long arrays. */
#include "report/json/report_json.h"

#include <string.h>

#include "base/mem.h"
#include "base/options/options.h"
#include "report/json/json_audit.h"
#include "report/json/json_diagnostic.h"
#include "report/json/json_growth.h"
#include "report/json/json_leak.h"
#include "report/json/json_pool.h"
#include "report/json/json_pressure.h"
#include "report/json/json_put.h"
#include "report/json/json_tag.h"
#include "report/symbols/stack.h"

#define BLOCKS_MAX 10000
#define ARGV_MAX   4096
#define ENV_MAX    16

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* ---- the process ---- */

/* The arguments lie one after the other, each with its NUL. */
static void put_argv(struct cw_json *json)
{
    const struct cw_live_header *header = cw_view_header(json->view);
    uint32_t at = header->argv;
    uint32_t end = cw_view_count(json->view, CW_TABLE_TEXT);
    uint32_t argc = header->argc < ARGV_MAX ? header->argc : ARGV_MAX;

    if (at == 0 || argc == 0)
        return;
    cw_json_open(json, "argv", '[');
    for (uint32_t i = 0; i < argc && at != 0 && at < end; i++) {
        const char *arg = cw_view_text(json->view, at);

        cw_json_string(json, NULL, arg);
        at += (uint32_t)strlen(arg) + 1;
    }
    cw_json_close(json, ']');
}

/* "NAME=VALUE" strings, as the arguments lie. */
static void put_environment(struct cw_json *json)
{
    const struct cw_live_header *header = cw_view_header(json->view);
    uint32_t end = cw_view_count(json->view, CW_TABLE_TEXT);
    uint32_t at = header->env;

    if (at == 0 || header->envc == 0)
        return;
    cw_json_open(json, "env", '{');
    for (uint32_t i = 0; i < header->envc && i < ENV_MAX && at != 0 && at < end; i++) {
        const char *entry = cw_view_text(json->view, at);
        const char *equals = strchr(entry, '=');

        if (equals) {
            cw_json_name(json, entry, (size_t)(equals - entry));
            cw_json_string(json, NULL, equals + 1);
        }
        at += (uint32_t)strlen(entry) + 1;
    }
    cw_json_close(json, '}');
}

static void put_process(struct cw_json *json)
{
    const struct cw_live_header *header = cw_view_header(json->view);
    uint64_t end_ns = LOAD(header->end_ns);

    cw_json_open(json, "process", '{');
    cw_json_number(json, "pid", header->pid);
    cw_json_number(json, "ppid", header->ppid);
    cw_json_text(json, "exe", header->exe);
    put_argv(json);
    cw_json_text(json, "cwd", header->cwd);
    cw_json_text(json, "host", header->host);
    cw_json_text(json, "rank", header->rank);
    put_environment(json);
    if (header->stacks_mode == CW_STACKS_OFF)
        cw_json_truth(json, "stacks_off", 1);
    cw_json_time(json, "start_ns", header->start_realtime_ns);
    if (end_ns != 0)
        cw_json_number(json, "end_ns", header->start_realtime_ns + end_ns);
    cw_json_number(json, "duration_ns", json->snapshot->duration_ns);
    cw_json_open(json, "exit", '{');
    cw_json_string(json, "kind", cw_report_end(json->source));
    if (cw_report_has_exit_code(json->source)) {
        cw_json_key(json, "code");
        cw_out_printf(json->out, "%d", LOAD(header->exit_code));
    }
    cw_json_close(json, '}');
    cw_json_close(json, '}');
}

static void put_head(struct cw_json *json)
{
    const struct cw_live_header *header = cw_view_header(json->view);

    cw_json_string(json, "schema", "cuwarden-report/1");
    cw_json_open(json, "tool", '{');
    cw_json_string(json, "name", "cuwarden");
    if (json->source->version)
        cw_json_string(json, "version", json->source->version);
    cw_json_close(json, '}');
    put_process(json);
    cw_json_open(json, "cuda", '{');
    if (header->driver_version != 0)
        cw_json_number(json, "driver", header->driver_version);
    cw_json_close(json, '}');
}

/* ---- sums ---- */

static void put_sums(struct cw_json *json, const struct cw_snapshot_sums *sums)
{
    cw_json_amount(json, "live", sums->live_blocks, sums->live_bytes);
    cw_json_number(json, "held", sums->live_held);
    cw_json_number(json, "allocs", sums->allocs);
    cw_json_number(json, "frees", sums->frees);
    cw_json_number(json, "failed", sums->failed);
    cw_json_amount(json, "reclaimed", sums->reclaimed, sums->reclaimed_bytes);
    cw_json_number(json, "total_bytes", sums->total_bytes);
}

static void put_uuid(struct cw_json *json, const uint8_t *uuid)
{
    cw_json_key(json, "uuid");
    cw_out_string(json->out, "\"GPU-");
    for (unsigned i = 0; i < 16; i++)
        cw_out_printf(json->out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
    cw_out_char(json->out, '"');
}

static void put_device_facts(struct cw_json *json, unsigned index)
{
    const struct cw_live_device *live = &cw_view_header(json->view)->device[index];

    cw_json_number(json, "ordinal", index);
    if (!LOAD(live->known))
        return;
    put_uuid(json, live->uuid);
    cw_json_device_name(json, index);
    cw_json_number(json, "total", live->total);
}

static void put_device_sums(struct cw_json *json, unsigned index)
{
    const struct cw_snapshot_device *device = &json->snapshot->device[index];
    const struct cw_snapshot_pool_device *pool = &json->snapshot->pool.device[index];

    put_sums(json, &device->sums);
    cw_json_open(json, "peak", '{');
    cw_json_number(json, "bytes", device->peak_bytes);
    cw_json_time(json, "t_ns", device->peak_ns);
    cw_json_close(json, '}');
    if (json->snapshot->pool.on)
        cw_json_amount(json, "idle", pool->sums.idle_blocks, pool->sums.idle_bytes);
    if (!device->sampled)
        return;
    cw_json_number(json, "driver_used", device->driver_used);
    cw_json_number(json, "unattributed", device->unattributed);
}

static void put_devices(struct cw_json *json)
{
    const struct cw_snapshot_device *device = json->snapshot->device;

    cw_json_open(json, "devices", '[');
    for (unsigned i = 0; i < CW_DEVICE_HOST; i++) {
        if (!device[i].seen)
            continue;
        cw_json_element(json, '{');
        put_device_facts(json, i);
        put_device_sums(json, i);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
    if (!device[CW_DEVICE_HOST].seen)
        return;
    cw_json_open(json, "host", '{');
    put_device_sums(json, CW_DEVICE_HOST);
    cw_json_close(json, '}');
}

static void put_kinds(struct cw_json *json)
{
    cw_json_open(json, "kinds", '{');
    for (unsigned i = 0; i < CW_KIND_COUNT; i++) {
        const struct cw_snapshot_sums *sums = &json->snapshot->kind[i];

        if (sums->allocs == 0 && sums->failed == 0 && sums->live_blocks == 0)
            continue;
        cw_json_open(json, cw_kind_name(i), '{');
        put_sums(json, sums);
        cw_json_close(json, '}');
    }
    cw_json_close(json, '}');
}

/* ---- modules, frames, stacks ---- */

static void put_modules(struct cw_json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_MODULE);

    cw_json_open(json, "modules", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_module *module = cw_view_module(json->view, i);
        size_t len;

        if (!module)
            continue;
        cw_json_element(json, '{');
        cw_json_number(json, "id", i);
        cw_json_string(json, "path", cw_view_text(json->view, module->path));
        cw_json_address(json, "base", module->base);
        len = module->build_id_len;
        if (len > 0 && len <= sizeof(module->build_id))
            cw_json_hex(json, "build_id", module->build_id, len);
        cw_json_number(json, "gen", module->generation);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}

static void put_address_or_line(struct cw_json *json, uint32_t index,
                                const struct cw_live_frame *frame)
{
    const struct cw_live_code *code = cw_stack_code(json->view, index);

    if (frame->module != CW_MODULE_PYTHON) {
        cw_json_address(json, "addr", frame->pc);
        return;
    }
    cw_json_string(json, "lang", "python");
    if (!code)
        return;
    cw_json_string(json, "file", cw_view_text(json->view, code->file));
    if (code->line != 0)
        cw_json_number(json, "line", code->line);
}

/* Where the debug information says that it is; only what is known. */
static void put_place(struct cw_json *json, const struct cw_symbol_place *place)
{
    if (place->file)
        cw_json_string(json, "file", place->file);
    if (place->line != 0)
        cw_json_number(json, "line", place->line);
}

/* The frame's own line, then what was inlined there, innermost first. */
static void put_places(struct cw_json *json, uint32_t frame)
{
    unsigned count = cw_symbols_places(json->source->symbols, frame);
    struct cw_symbol_place place;

    if (count == 0)
        return;
    place = cw_symbols_place(json->source->symbols, frame, count - 1);
    put_place(json, &place);
    if (count == 1)
        return;
    cw_json_open(json, "inlined", '[');
    for (unsigned i = 0; i + 1 < count; i++) {
        place = cw_symbols_place(json->source->symbols, frame, i);
        cw_json_open(json, NULL, '{');
        if (place.function)
            cw_json_string(json, "func", place.function);
        put_place(json, &place);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}

/* Frames that are in a stack of a site, by index: in others lie the native ones that Python's have
 * taken the place of. NULL: no memory to find out. */
static uint8_t *find_used(const struct cw_json *json, uint32_t count)
{
    const struct cw_snapshot *snapshot = json->snapshot;
    uint8_t *used = cw_mem_alloc(count);

    for (uint32_t i = 0; used && i < snapshot->sites; i++) {
        uint32_t at = snapshot->site[i].stack;

        while (at != 0 && at < count && !used[at]) {
            const struct cw_live_frame *frame = cw_view_frame(json->view, at);
            uint32_t parent = frame ? frame->parent : 0;

            used[at] = 1;
            at = parent < at ? parent : 0;
        }
    }
    return used;
}

static void put_frames(struct cw_json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_FRAME);
    uint8_t *used = find_used(json, count);

    cw_json_open(json, "frames", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_frame *frame = cw_view_frame(json->view, i);
        const struct cw_live_module *module = cw_stack_module(json->view, i);
        const char *function = cw_stack_function(json->source->symbols, json->view, i);

        if (!frame || (used && !used[i]))
            continue;
        cw_json_element(json, '{');
        cw_json_number(json, "id", i);
        if (module) {
            cw_json_number(json, "module", frame->module);
            cw_json_number(json, "offset", cw_frame_offset(frame, module));
        }
        put_address_or_line(json, i, frame);
        if (function)
            cw_json_string(json, "func", function);
        put_places(json, i);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
    cw_mem_free(used, count);
}

/* The part that a reader wants to see: where it begins in the stack, and how many frames it has. */
static void put_shown(struct cw_json *json, uint32_t innermost, const struct cw_stack *all)
{
    struct cw_stack shown;
    unsigned begin = 0;

    cw_stack_visible(json->source->symbols, json->view, innermost, &shown);
    while (begin < all->count && shown.count > 0 && all->frame[begin] != shown.frame[0])
        begin++;
    cw_json_open(json, "shown", '[');
    cw_json_number(json, NULL, begin);
    cw_json_number(json, NULL, shown.count);
    cw_json_close(json, ']');
}

/* Sites are sorted by stack, so each stack comes once. A stack's id is its innermost frame's. */
static void put_stacks(struct cw_json *json)
{
    const struct cw_snapshot *snapshot = json->snapshot;
    struct cw_stack stack;

    cw_json_open(json, "stacks", '[');
    for (uint32_t i = 0; i < snapshot->sites; i++) {
        uint32_t innermost = snapshot->site[i].stack;

        if (innermost == 0 || (i > 0 && snapshot->site[i - 1].stack == innermost))
            continue;
        cw_stack_walk(json->view, innermost, &stack);
        cw_json_element(json, '{');
        cw_json_number(json, "id", innermost);
        cw_json_open(json, "frames", '[');
        for (unsigned k = 0; k < stack.count; k++)
            cw_json_number(json, NULL, stack.frame[k]);
        cw_json_close(json, ']');
        put_shown(json, innermost, &stack);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}

/* ---- sites ---- */

static void put_site_facts(struct cw_json *json, const struct cw_snapshot_site *site)
{
    char key[16];

    cw_format(key, sizeof(key), "%08x", site->id);
    cw_json_string(json, "key", key);
    if (site->stack != 0)
        cw_json_number(json, "stack", site->stack);
    cw_json_string(json, "api", site->api);
    cw_json_string(json, "kind", cw_kind_name(site->kind));
    cw_json_device(json, site->device);
    cw_json_site_tag(json, site);
}

static void put_site(struct cw_json *json, uint32_t index)
{
    const struct cw_snapshot_site *site = &json->snapshot->site[index];

    cw_json_element(json, '{');
    cw_json_number(json, "id", index);
    put_site_facts(json, site);
    cw_json_amount(json, "live", site->live_blocks, site->live_bytes);
    cw_json_number(json, "held", site->live_held);
    cw_json_amount(json, "total", site->allocs, site->total_bytes);
    cw_json_amount(json, "peak", site->peak_blocks, site->peak_bytes);
    cw_json_amount(json, "at_device_peak", site->at_peak_blocks, site->at_peak_bytes);
    cw_json_amount(json, "reclaimed", site->reclaimed, site->reclaimed_bytes);
    cw_json_number(json, "frees", site->frees);
    cw_json_number(json, "failed", site->failed);
    cw_json_number(json, "oom", site->oom);
    cw_json_time(json, "first_ns", site->first_ns);
    cw_json_time(json, "last_ns", site->last_ns);
    cw_json_leak_facts(json, site);
    cw_json_site_growth(json, index);
    cw_json_close(json, '}');
}

static void put_sites(struct cw_json *json)
{
    cw_json_open(json, "sites", '[');
    for (uint32_t i = 0; i < json->snapshot->sites; i++)
        put_site(json, i);
    cw_json_close(json, ']');
}

/* ---- blocks ---- */

static void put_block(struct cw_json *json, const struct cw_live_block *block, uint32_t site)
{
    cw_json_element(json, '{');
    cw_json_number(json, "site", site);
    cw_json_address(json, "ptr", LOAD(block->key));
    cw_json_number(json, "bytes", LOAD(block->bytes));
    cw_json_number(json, "held", LOAD(block->held));
    cw_json_time(json, "t_ns", LOAD(block->born_ns));
    cw_json_number(json, "tid", block->tid);
    cw_json_close(json, '}');
}

static void put_leaks(struct cw_json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_BLOCK);
    uint64_t leaked = 0;

    cw_json_open(json, "leaks", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_block *block = cw_view_block(json->view, i);
        const struct cw_snapshot_site *site;

        if (!block || LOAD(block->state) != CW_BLOCK_LIVE)
            continue;
        site = cw_snapshot_find(json->snapshot, LOAD(block->site));
        if (!site || !cw_leak_is_counted(site->leak))
            continue;
        if (leaked++ < BLOCKS_MAX)
            put_block(json, block, (uint32_t)(site - json->snapshot->site));
    }
    cw_json_close(json, ']');
    if (leaked > BLOCKS_MAX)
        cw_json_number(json, "leaks_truncated", leaked - BLOCKS_MAX);
}

/* ---- events, the end ---- */

/* Of a second free of the same block. */
static void put_first_free(struct cw_json *json, const struct cw_live_event *event)
{
    const struct cw_snapshot_site *site = cw_snapshot_find(json->snapshot, event->other_site);

    if (!site)
        return;
    cw_json_open(json, "first_freed", '{');
    cw_json_number(json, "site", (uint64_t)(site - json->snapshot->site));
    cw_json_string(json, "api", site->api);
    if (site->stack != 0)
        cw_json_number(json, "stack", site->stack);
    cw_json_close(json, '}');
}

/* Of an event without a call. */
static int has_device(const struct cw_live_event *event)
{
    return event->type != CW_EVENT_INVALID_FREE && event->type != CW_EVENT_FATAL;
}

static void put_event(struct cw_json *json, const struct cw_live_event *event)
{
    const struct cw_snapshot_site *site = cw_snapshot_find(json->snapshot, event->site);

    cw_json_element(json, '{');
    cw_json_string(json, "type", cw_event_name(event->type));
    cw_json_number(json, "t_ns", event->t_ns);
    cw_json_key(json, "code");
    cw_out_printf(json->out, "%d", event->code);
    if (site) {
        cw_json_number(json, "site", (uint64_t)(site - json->snapshot->site));
        cw_json_string(json, "api", site->api);
    }
    if (site || has_device(event))
        cw_json_device(json, site ? site->device : event->device);
    if (event->key != 0)
        cw_json_address(json, "ptr", event->key);
    if (event->bytes != 0)
        cw_json_number(json, "bytes", event->bytes);
    if (event->total_bytes != 0) {
        cw_json_number(json, "free", event->free_bytes);
        cw_json_number(json, "total", event->total_bytes);
    }
    if (event->type == CW_EVENT_INVALID_FREE)
        put_first_free(json, event);
    cw_json_event_pressure(json, event);
    cw_json_close(json, '}');
}

static void put_events(struct cw_json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_EVENT);

    cw_json_open(json, "events", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_event *event = cw_view_event(json->view, i);

        if (event)
            put_event(json, event);
    }
    cw_json_close(json, ']');
}

static void put_summary(struct cw_json *json)
{
    const struct cw_snapshot_summary *summary = &json->snapshot->summary;

    cw_json_open(json, "summary", '{');
    cw_json_number(json, "leaked_bytes", summary->leaked_bytes);
    cw_json_number(json, "leaked_blocks", summary->leaked_blocks);
    cw_json_number(json, "leak_sites", summary->leak_sites);
    cw_json_number(json, "peak_bytes", summary->peak_bytes);
    cw_json_number(json, "allocs", summary->allocs);
    cw_json_number(json, "frees", summary->frees);
    cw_json_number(json, "failed", summary->failed);
    cw_json_number(json, "pool_hits", summary->pool_hits);
    cw_json_number(json, "pool_misses", summary->pool_misses);
    cw_json_close(json, '}');
}

void cw_report_json_write(const struct cw_report_source *source, struct cw_out *out)
{
    struct cw_json json = {.source = source,
                           .view = source->view,
                           .snapshot = source->snapshot,
                           .out = out,
                           .first = 1};

    cw_out_char(out, '{');
    put_head(&json);
    put_devices(&json);
    put_kinds(&json);
    cw_json_pool(&json);
    cw_json_pressure(&json);
    put_modules(&json);
    put_frames(&json);
    put_stacks(&json);
    put_sites(&json);
    cw_json_tags(&json);
    put_leaks(&json);
    cw_json_old(&json);
    cw_json_growth(&json);
    cw_json_audit(&json);
    cw_json_suppressions(&json);
    put_events(&json);
    cw_json_oom_accounts(&json);
    cw_json_diagnostics(&json);
    put_summary(&json);
    cw_out_string(out, "}\n");
}
