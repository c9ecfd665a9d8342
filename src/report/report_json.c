/* SPDX-License-Identifier: MIT */
/* The JSON report. See report_json.h. One line per element of the long arrays. */
#include "report/report_json.h"

#include <string.h>

#include "base/mem.h"
#include "report/stack.h"

#define BLOCKS_MAX 10000
#define ARGV_MAX   4096

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* ---- the writer ---- */

struct json {
    const struct cw_report_source *source;
    const struct cw_view *view;
    const struct cw_snapshot *snapshot;
    struct cw_out *out;
    int first; /* nothing written yet in the innermost object or array */
};

static void next(struct json *json)
{
    if (!json->first)
        cw_out_char(json->out, ',');
    json->first = 0;
}

/* Keys are our own words, and need no escapes. */
static void put_key(struct json *json, const char *key)
{
    next(json);
    if (key)
        cw_out_printf(json->out, "\"%s\":", key);
}

/* key NULL: in an array. */
static void put_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    cw_out_char(json->out, bracket);
    json->first = 1;
}

static void put_close(struct json *json, char bracket)
{
    cw_out_char(json->out, bracket);
    json->first = 0;
}

/* Opens an element of a long array, on a line of its own. */
static void put_element(struct json *json, char bracket)
{
    next(json);
    cw_out_char(json->out, '\n');
    cw_out_char(json->out, bracket);
    json->first = 1;
}

static void put_number(struct json *json, const char *key, uint64_t value)
{
    put_key(json, key);
    cw_out_printf(json->out, "%ju", (uintmax_t)value);
}

static void put_string(struct json *json, const char *key, const char *value)
{
    put_key(json, key);
    cw_out_json_string(json->out, value, strlen(value));
}

/* Only what is known. */
static void put_text(struct json *json, const char *key, uint32_t text)
{
    const char *value = cw_view_text(json->view, text);

    if (*value)
        put_string(json, key, value);
}

static void put_time(struct json *json, const char *key, uint64_t ns)
{
    if (ns != 0)
        put_number(json, key, ns);
}

static void put_address(struct json *json, const char *key, uint64_t address)
{
    put_key(json, key);
    cw_out_printf(json->out, "\"0x%jx\"", (uintmax_t)address);
}

static void put_hex(struct json *json, const char *key, const uint8_t *bytes, size_t len)
{
    put_key(json, key);
    cw_out_char(json->out, '"');
    for (size_t i = 0; i < len; i++)
        cw_out_printf(json->out, "%02x", bytes[i]);
    cw_out_char(json->out, '"');
}

static void put_amount(struct json *json, const char *key, uint64_t count, uint64_t bytes)
{
    put_open(json, key, '{');
    put_number(json, "count", count);
    put_number(json, "bytes", bytes);
    put_close(json, '}');
}

static void put_device_number(struct json *json, unsigned device)
{
    if (device == CW_DEVICE_HOST)
        put_string(json, "device", "host");
    else
        put_number(json, "device", device);
}

/* ---- the process ---- */

/* The arguments lie one after the other, each with its NUL. */
static void put_argv(struct json *json)
{
    const struct cw_live_header *header = cw_view_header(json->view);
    uint32_t at = header->argv;
    uint32_t end = cw_view_count(json->view, CW_TABLE_TEXT);
    uint32_t argc = header->argc < ARGV_MAX ? header->argc : ARGV_MAX;

    if (at == 0 || argc == 0)
        return;
    put_open(json, "argv", '[');
    for (uint32_t i = 0; i < argc && at != 0 && at < end; i++) {
        const char *arg = cw_view_text(json->view, at);

        put_string(json, NULL, arg);
        at += (uint32_t)strlen(arg) + 1;
    }
    put_close(json, ']');
}

static void put_process(struct json *json)
{
    const struct cw_live_header *header = cw_view_header(json->view);
    uint64_t end_ns = LOAD(header->end_ns);

    put_open(json, "process", '{');
    put_number(json, "pid", header->pid);
    put_number(json, "ppid", header->ppid);
    put_text(json, "exe", header->exe);
    put_argv(json);
    put_text(json, "cwd", header->cwd);
    put_text(json, "host", header->host);
    put_time(json, "start_ns", header->start_realtime_ns);
    if (end_ns != 0)
        put_number(json, "end_ns", header->start_realtime_ns + end_ns);
    put_number(json, "duration_ns", json->snapshot->duration_ns);
    put_open(json, "exit", '{');
    put_string(json, "kind", cw_report_end(json->source));
    if (cw_report_has_exit_code(json->source)) {
        put_key(json, "code");
        cw_out_printf(json->out, "%d", LOAD(header->exit_code));
    }
    put_close(json, '}');
    put_close(json, '}');
}

static void put_head(struct json *json)
{
    const struct cw_live_header *header = cw_view_header(json->view);

    put_string(json, "schema", "cuwarden-report/1");
    put_open(json, "tool", '{');
    put_string(json, "name", "cuwarden");
    if (json->source->version)
        put_string(json, "version", json->source->version);
    put_close(json, '}');
    put_process(json);
    put_open(json, "cuda", '{');
    if (header->driver_version != 0)
        put_number(json, "driver", header->driver_version);
    put_close(json, '}');
}

/* ---- sums ---- */

static void put_sums(struct json *json, const struct cw_snapshot_sums *sums)
{
    put_amount(json, "live", sums->live_blocks, sums->live_bytes);
    put_number(json, "held", sums->live_held);
    put_number(json, "allocs", sums->allocs);
    put_number(json, "frees", sums->frees);
    put_number(json, "failed", sums->failed);
    put_amount(json, "reclaimed", sums->reclaimed, sums->reclaimed_bytes);
    put_number(json, "total_bytes", sums->total_bytes);
}

static void put_uuid(struct json *json, const uint8_t *uuid)
{
    put_key(json, "uuid");
    cw_out_string(json->out, "\"GPU-");
    for (unsigned i = 0; i < 16; i++)
        cw_out_printf(json->out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
    cw_out_char(json->out, '"');
}

static void put_device_facts(struct json *json, unsigned index)
{
    const struct cw_live_device *live = &cw_view_header(json->view)->device[index];

    put_number(json, "ordinal", index);
    if (!LOAD(live->known))
        return;
    put_uuid(json, live->uuid);
    put_key(json, "name");
    cw_out_json_string(json->out, live->name, strnlen(live->name, sizeof(live->name)));
    put_number(json, "total", live->total);
}

static void put_device_sums(struct json *json, const struct cw_snapshot_device *device)
{
    put_sums(json, &device->sums);
    put_open(json, "peak", '{');
    put_number(json, "bytes", device->peak_bytes);
    put_time(json, "t_ns", device->peak_ns);
    put_close(json, '}');
    if (!device->sampled)
        return;
    put_number(json, "driver_used", device->driver_used);
    put_number(json, "unattributed", device->unattributed);
}

static void put_devices(struct json *json)
{
    const struct cw_snapshot_device *device = json->snapshot->device;

    put_open(json, "devices", '[');
    for (unsigned i = 0; i < CW_DEVICE_HOST; i++) {
        if (!device[i].seen)
            continue;
        put_element(json, '{');
        put_device_facts(json, i);
        put_device_sums(json, &device[i]);
        put_close(json, '}');
    }
    put_close(json, ']');
    if (!device[CW_DEVICE_HOST].seen)
        return;
    put_open(json, "host", '{');
    put_device_sums(json, &device[CW_DEVICE_HOST]);
    put_close(json, '}');
}

static void put_kinds(struct json *json)
{
    put_open(json, "kinds", '{');
    for (unsigned i = 0; i < CW_KIND_COUNT; i++) {
        const struct cw_snapshot_sums *sums = &json->snapshot->kind[i];

        if (sums->allocs == 0 && sums->failed == 0 && sums->live_blocks == 0)
            continue;
        put_open(json, cw_kind_name(i), '{');
        put_sums(json, sums);
        put_close(json, '}');
    }
    put_close(json, '}');
}

/* ---- modules, frames, stacks ---- */

static void put_modules(struct json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_MODULE);

    put_open(json, "modules", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_module *module = cw_view_module(json->view, i);
        size_t len;

        if (!module)
            continue;
        put_element(json, '{');
        put_number(json, "id", i);
        put_string(json, "path", cw_view_text(json->view, module->path));
        put_address(json, "base", module->base);
        len = module->build_id_len;
        if (len > 0 && len <= sizeof(module->build_id))
            put_hex(json, "build_id", module->build_id, len);
        put_number(json, "gen", module->generation);
        put_close(json, '}');
    }
    put_close(json, ']');
}

static void put_frames(struct json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_FRAME);

    put_open(json, "frames", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_frame *frame = cw_view_frame(json->view, i);
        const struct cw_live_module *module = cw_stack_module(json->view, i);
        const char *function = cw_symbols_name(json->source->symbols, i);

        if (!frame)
            continue;
        put_element(json, '{');
        put_number(json, "id", i);
        if (module) {
            put_number(json, "module", frame->module);
            put_number(json, "offset", cw_frame_offset(frame, module));
        }
        put_address(json, "addr", frame->pc);
        if (function)
            put_string(json, "func", function);
        put_close(json, '}');
    }
    put_close(json, ']');
}

/* Sites are sorted by stack, so each stack comes once. A stack's id is its innermost frame's. */
static void put_stacks(struct json *json)
{
    const struct cw_snapshot *snapshot = json->snapshot;
    struct cw_stack stack;

    put_open(json, "stacks", '[');
    for (uint32_t i = 0; i < snapshot->sites; i++) {
        uint32_t innermost = snapshot->site[i].stack;

        if (innermost == 0 || (i > 0 && snapshot->site[i - 1].stack == innermost))
            continue;
        cw_stack_walk(json->view, innermost, &stack);
        put_element(json, '{');
        put_number(json, "id", innermost);
        put_open(json, "frames", '[');
        for (unsigned k = 0; k < stack.count; k++)
            put_number(json, NULL, stack.frame[k]);
        put_close(json, ']');
        put_close(json, '}');
    }
    put_close(json, ']');
}

/* ---- sites ---- */

static void put_site_facts(struct json *json, const struct cw_snapshot_site *site)
{
    char key[16];

    cw_format(key, sizeof(key), "%08x", site->id);
    put_string(json, "key", key);
    if (site->stack != 0)
        put_number(json, "stack", site->stack);
    put_string(json, "api", site->api);
    put_string(json, "kind", cw_kind_name(site->kind));
    put_device_number(json, site->device);
}

static void put_site(struct json *json, uint32_t index)
{
    const struct cw_snapshot_site *site = &json->snapshot->site[index];

    put_element(json, '{');
    put_number(json, "id", index);
    put_site_facts(json, site);
    put_amount(json, "live", site->live_blocks, site->live_bytes);
    put_number(json, "held", site->live_held);
    put_amount(json, "total", site->allocs, site->total_bytes);
    put_amount(json, "peak", site->peak_blocks, site->peak_bytes);
    put_amount(json, "at_device_peak", site->at_peak_blocks, site->at_peak_bytes);
    put_amount(json, "reclaimed", site->reclaimed, site->reclaimed_bytes);
    put_number(json, "frees", site->frees);
    put_number(json, "failed", site->failed);
    put_number(json, "oom", site->oom);
    put_time(json, "first_ns", site->first_ns);
    put_time(json, "last_ns", site->last_ns);
    if (site->leak != CW_LEAK_NONE)
        put_string(json, "class", cw_leak_name(site));
    put_close(json, '}');
}

static void put_sites(struct json *json)
{
    put_open(json, "sites", '[');
    for (uint32_t i = 0; i < json->snapshot->sites; i++)
        put_site(json, i);
    put_close(json, ']');
}

/* ---- blocks ---- */

static int is_leaked(const struct cw_snapshot_site *site)
{
    return site->leak == CW_LEAK_LOST || site->leak == CW_LEAK_CONTEXT;
}

static void put_block(struct json *json, const struct cw_live_block *block, uint32_t site)
{
    put_element(json, '{');
    put_number(json, "site", site);
    put_address(json, "ptr", LOAD(block->key));
    put_number(json, "bytes", LOAD(block->bytes));
    put_number(json, "held", LOAD(block->held));
    put_time(json, "t_ns", LOAD(block->born_ns));
    put_number(json, "tid", block->tid);
    put_close(json, '}');
}

static void put_leaks(struct json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_BLOCK);
    uint64_t leaked = 0;

    put_open(json, "leaks", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_block *block = cw_view_block(json->view, i);
        const struct cw_snapshot_site *site;

        if (!block || LOAD(block->state) != CW_BLOCK_LIVE)
            continue;
        site = cw_snapshot_find(json->snapshot, LOAD(block->site));
        if (!site || !is_leaked(site))
            continue;
        if (leaked++ < BLOCKS_MAX)
            put_block(json, block, (uint32_t)(site - json->snapshot->site));
    }
    put_close(json, ']');
    if (leaked > BLOCKS_MAX)
        put_number(json, "leaks_truncated", leaked - BLOCKS_MAX);
}

/* ---- events, the end ---- */

static const char *event_name(unsigned type)
{
    switch (type) {
    case CW_EVENT_OOM:
        return "oom";
    case CW_EVENT_INVALID_FREE:
        return "invalid-free";
    case CW_EVENT_FATAL:
        return "fatal";
    default:
        return "unknown";
    }
}

static void put_event(struct json *json, const struct cw_live_event *event)
{
    const struct cw_snapshot_site *site = cw_snapshot_find(json->snapshot, event->site);

    put_element(json, '{');
    put_string(json, "type", event_name(event->type));
    put_number(json, "t_ns", event->t_ns);
    put_key(json, "code");
    cw_out_printf(json->out, "%d", event->code);
    if (site) {
        put_number(json, "site", (uint64_t)(site - json->snapshot->site));
        put_string(json, "api", site->api);
        put_device_number(json, site->device);
    }
    if (event->key != 0)
        put_address(json, "ptr", event->key);
    if (event->bytes != 0)
        put_number(json, "bytes", event->bytes);
    if (event->total_bytes != 0) {
        put_number(json, "free", event->free_bytes);
        put_number(json, "total", event->total_bytes);
    }
    put_close(json, '}');
}

static void put_events(struct json *json)
{
    uint32_t count = cw_view_count(json->view, CW_TABLE_EVENT);

    put_open(json, "events", '[');
    for (uint32_t i = 1; i < count; i++) {
        const struct cw_live_event *event = cw_view_event(json->view, i);

        if (event)
            put_event(json, event);
    }
    put_close(json, ']');
}

static void put_diagnostics(struct json *json)
{
    char sentence[256];

    put_open(json, "diagnostics", '[');
    for (unsigned i = 0; i < CW_DIAGNOSTICS; i++) {
        if (cw_report_diagnostic(json->source, i, sentence, sizeof(sentence)) == 0)
            continue;
        put_element(json, '{');
        put_string(json, "level", "warning");
        put_string(json, "text", sentence);
        put_close(json, '}');
    }
    put_close(json, ']');
}

static void put_summary(struct json *json)
{
    const struct cw_snapshot_summary *summary = &json->snapshot->summary;

    put_open(json, "summary", '{');
    put_number(json, "leaked_bytes", summary->leaked_bytes);
    put_number(json, "leaked_blocks", summary->leaked_blocks);
    put_number(json, "leak_sites", summary->leak_sites);
    put_number(json, "peak_bytes", summary->peak_bytes);
    put_number(json, "allocs", summary->allocs);
    put_number(json, "frees", summary->frees);
    put_number(json, "failed", summary->failed);
    put_number(json, "pool_hits", summary->pool_hits);
    put_number(json, "pool_misses", summary->pool_misses);
    put_close(json, '}');
}

void cw_report_json_write(const struct cw_report_source *source, struct cw_out *out)
{
    struct json json = {.source = source,
                        .view = source->view,
                        .snapshot = source->snapshot,
                        .out = out,
                        .first = 1};

    cw_out_char(out, '{');
    put_head(&json);
    put_devices(&json);
    put_kinds(&json);
    put_modules(&json);
    put_frames(&json);
    put_stacks(&json);
    put_sites(&json);
    put_leaks(&json);
    put_events(&json);
    put_diagnostics(&json);
    put_summary(&json);
    cw_out_string(out, "}\n");
}
