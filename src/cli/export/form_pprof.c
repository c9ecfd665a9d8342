/* SPDX-License-Identifier: MIT */
/*
 * A profile for pprof: profile.proto, compressed with gzip. Each call site is one sample; its leaf
 * is the function that called CUDA, and the CUDA function is the label "api".
 * https://github.com/google/pprof/blob/main/proto/profile.proto
 *
 * Locations and functions have the numbers of calls (calls.h), mappings those of modules. Each
 * module has its own made-up address range, because real addresses differ between runs, and the
 * same size in every profile, by which pprof recognizes it.
 */
#include "cli/export/form.h"

#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/export/proto.h"
#include "cli/model/calls.h"
#include "cli/ui/strings.h"
#include "cli/ui/message.h"
#include "live/view.h"

#define RANGE          (UINT64_C(1) << 36) /* of a module */
#define FRAME_NAME_MAX 512

/* Field numbers, by message. */
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3, LABEL_UNIT = 4 };
enum {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILES = 8,
    MAPPING_HAS_LINES = 9,
    MAPPING_HAS_INLINED = 10,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
};

/* The order of a sample's values. */
static const struct {
    const char *name, *unit;
} sample_types[] = {
    {"alloc_objects", "count"}, {"alloc_space", "bytes"},   {"peak_objects", "count"},
    {"peak_space", "bytes"},    {"inuse_objects", "count"}, {"inuse_space", "bytes"},
};
#define SAMPLE_TYPES CW_ARRAY_LEN(sample_types)

static const char *const default_types[CW_METRIC_COUNT_OF] = {
    [CW_METRIC_LIVE] = "inuse_space",
    [CW_METRIC_PEAK] = "peak_space",
    [CW_METRIC_TOTAL] = "alloc_space",
    [CW_METRIC_COUNT] = "alloc_objects",
};

struct pprof {
    const struct cw_form_request *request;
    const struct cw_report_model *model;
    struct cw_calls calls;
    struct cw_strings strings;
    struct cw_proto top, inner, innermost;
    struct cw_gzip gzip;
    uint8_t *is_used;     /* by call */
    uint8_t *module_used; /* by module: a sample has a call of it */
    uint8_t *module_bare; /* one of these calls has no name */
};

static uint32_t text(struct pprof *pprof, const char *string)
{
    return cw_strings_add(&pprof->strings, string);
}

/* Writes a field of the profile at once. */
static void flush(struct pprof *pprof)
{
    cw_gzip_write(&pprof->gzip, pprof->top.data, pprof->top.len);
    pprof->top.len = 0;
}

/* Writes `inner` as a field of the profile. */
static void put_record(struct pprof *pprof, unsigned field)
{
    cw_proto_message(&pprof->top, field, &pprof->inner);
    flush(pprof);
}

static void put_value_type(struct pprof *pprof, unsigned field, const char *name, const char *unit)
{
    cw_proto_number(&pprof->inner, VALUE_TYPE, text(pprof, name));
    cw_proto_number(&pprof->inner, VALUE_UNIT, text(pprof, unit));
    put_record(pprof, field);
}

/* ---- samples ---- */

static void put_text_label(struct pprof *pprof, const char *key, const char *value)
{
    if (!value[0])
        return;
    cw_proto_number(&pprof->innermost, LABEL_KEY, text(pprof, key));
    cw_proto_number(&pprof->innermost, LABEL_TEXT, text(pprof, value));
    cw_proto_message(&pprof->inner, SAMPLE_LABEL, &pprof->innermost);
}

/* The block size, as in Go's heap profiles. */
static void put_size_label(struct pprof *pprof, const struct cw_snapshot_site *site)
{
    if (site->allocs == 0)
        return;
    cw_proto_number(&pprof->innermost, LABEL_KEY, text(pprof, "bytes"));
    cw_proto_number(&pprof->innermost, LABEL_NUMBER, site->total_bytes / site->allocs);
    cw_proto_number(&pprof->innermost, LABEL_UNIT, text(pprof, "bytes"));
    cw_proto_message(&pprof->inner, SAMPLE_LABEL, &pprof->innermost);
}

static void put_labels(struct pprof *pprof, const struct cw_snapshot_site *site)
{
    char device[16] = "host";

    if (site->device != CW_DEVICE_HOST)
        snprintf(device, sizeof(device), "%u", site->device);
    put_text_label(pprof, "device", device);
    put_text_label(pprof, "kind", cw_kind_name(site->kind));
    put_text_label(pprof, "api", site->api);
    put_text_label(pprof, "tag", cw_report_tag_label(pprof->model, site->tag));
    put_text_label(pprof, "class", cw_leak_name(site));
    put_size_label(pprof, site);
}

/* Inlined calls are lines of their caller's location. */
static void put_locations(struct pprof *pprof, const struct cw_call_stack *stack)
{
    for (uint32_t i = 0; i < stack->count; i++) {
        uint32_t at = pprof->calls.stack_call[stack->first + i];
        const struct cw_call *call = &pprof->calls.call[at];

        pprof->is_used[at] = 1;
        if (call->is_inlined)
            continue;
        if (call->module < pprof->model->modules) {
            pprof->module_used[call->module] = 1;
            if (!call->function[0])
                pprof->module_bare[call->module] = 1;
        }
        cw_proto_number(&pprof->inner, SAMPLE_LOCATION, at + 1);
    }
}

static void put_sample(struct pprof *pprof, const struct cw_snapshot_site *site)
{
    const uint64_t values[SAMPLE_TYPES] = {
        site->allocs,        site->total_bytes,      site->at_peak_blocks,
        site->at_peak_bytes, cw_leaked_blocks(site), cw_leaked_bytes(site),
    };

    if (site->allocs == 0) /* only failed calls, or frees */
        return;
    put_locations(pprof, cw_calls_stack(&pprof->calls, site->stack));
    for (size_t i = 0; i < SAMPLE_TYPES; i++)
        cw_proto_number(&pprof->inner, SAMPLE_VALUE, values[i]);
    put_labels(pprof, site);
    put_record(pprof, PROFILE_SAMPLE);
}

/* ---- referenced records ---- */

static void put_mapping(struct pprof *pprof, uint32_t index)
{
    const struct cw_report_module *module = &pprof->model->module[index];
    int has_names = !pprof->module_bare[index];

    cw_proto_number(&pprof->inner, MAPPING_ID, index + 1);
    cw_proto_number(&pprof->inner, MAPPING_START, (index + 1) * RANGE);
    cw_proto_number(&pprof->inner, MAPPING_LIMIT, (index + 2) * RANGE);
    cw_proto_number(&pprof->inner, MAPPING_FILE, text(pprof, module->path));
    cw_proto_number(&pprof->inner, MAPPING_BUILD_ID, text(pprof, module->build_id));
    /* These keep pprof from looking up names itself. */
    cw_proto_number(&pprof->inner, MAPPING_HAS_FUNCTIONS, (uint64_t)has_names);
    cw_proto_number(&pprof->inner, MAPPING_HAS_FILES, (uint64_t)has_names);
    cw_proto_number(&pprof->inner, MAPPING_HAS_LINES, (uint64_t)has_names);
    cw_proto_number(&pprof->inner, MAPPING_HAS_INLINED, (uint64_t)has_names);
    put_record(pprof, PROFILE_MAPPING);
}

/* Readers take the first mapping for the program. */
static void put_mappings(struct pprof *pprof)
{
    const struct cw_report_model *model = pprof->model;
    uint32_t program = 0;

    while (program < model->modules && strcmp(model->module[program].path, model->process.exe) != 0)
        program++;
    if (program < model->modules)
        put_mapping(pprof, program);
    for (uint32_t i = 0; i < model->modules; i++)
        if (pprof->module_used[i] && i != program)
            put_mapping(pprof, i);
}

static void put_line(struct pprof *pprof, uint32_t at)
{
    cw_proto_number(&pprof->innermost, LINE_FUNCTION, at + 1);
    cw_proto_number(&pprof->innermost, LINE_NUMBER, pprof->calls.call[at].line);
    cw_proto_message(&pprof->inner, LOCATION_LINE, &pprof->innermost);
}

static void put_location(struct pprof *pprof, uint32_t index)
{
    const struct cw_call *call = &pprof->calls.call[index];

    cw_proto_number(&pprof->inner, LOCATION_ID, index + 1);
    if (call->module < pprof->model->modules) {
        cw_proto_number(&pprof->inner, LOCATION_MAPPING, call->module + 1);
        cw_proto_number(&pprof->inner, LOCATION_ADDRESS,
                        (call->module + 1) * RANGE + call->offset % RANGE);
    }
    for (uint32_t at = cw_calls_first_inlined(&pprof->calls, index); at <= index; at++)
        put_line(pprof, at);
    put_record(pprof, PROFILE_LOCATION);
}

static void put_function(struct pprof *pprof, uint32_t index)
{
    char buf[FRAME_NAME_MAX];
    uint32_t name = text(pprof, cw_call_name(&pprof->calls, index, buf, sizeof(buf)));

    cw_proto_number(&pprof->inner, FUNCTION_ID, index + 1);
    cw_proto_number(&pprof->inner, FUNCTION_NAME, name);
    cw_proto_number(&pprof->inner, FUNCTION_SYSTEM_NAME, name);
    cw_proto_number(&pprof->inner, FUNCTION_FILE, text(pprof, pprof->calls.call[index].file));
    put_record(pprof, PROFILE_FUNCTION);
}

static void put_calls(struct pprof *pprof)
{
    for (uint32_t i = 0; i < pprof->calls.count; i++) {
        if (!pprof->is_used[i])
            continue;
        put_function(pprof, i);
        if (!pprof->calls.call[i].is_inlined)
            put_location(pprof, i);
    }
}

/* ---- the profile ---- */

static void put_head(struct pprof *pprof)
{
    const struct cw_process_facts *process = &pprof->model->process;
    const char *type = default_types[pprof->request->selection->metric];

    for (size_t i = 0; i < SAMPLE_TYPES; i++)
        put_value_type(pprof, PROFILE_SAMPLE_TYPE, sample_types[i].name, sample_types[i].unit);
    put_value_type(pprof, PROFILE_PERIOD_TYPE, "space", "bytes");
    cw_proto_number(&pprof->top, PROFILE_PERIOD, 1);
    cw_proto_number(&pprof->top, PROFILE_TIME, process->start_realtime_ns);
    cw_proto_number(&pprof->top, PROFILE_DURATION, pprof->model->snapshot.duration_ns);
    cw_proto_number(&pprof->top, PROFILE_COMMENT, text(pprof, process->command));
    cw_proto_number(&pprof->top, PROFILE_DEFAULT_TYPE, text(pprof, type));
    flush(pprof);
}

/* Last, when all strings are known. */
static void put_strings(struct pprof *pprof)
{
    for (uint32_t i = 0; i < pprof->strings.count; i++) {
        const char *string = pprof->strings.text[i];

        cw_proto_bytes(&pprof->top, PROFILE_STRING, string, strlen(string));
        flush(pprof);
    }
}

static void put_all(struct pprof *pprof)
{
    text(pprof, ""); /* the format requires "" as string 0 */
    put_head(pprof);
    for (uint32_t i = 0; i < pprof->request->sites; i++)
        put_sample(pprof, &pprof->model->snapshot.site[pprof->request->site[i]]);
    put_mappings(pprof);
    put_calls(pprof);
    put_strings(pprof);
}

int cw_form_pprof(const struct cw_form_request *request)
{
    const struct cw_report_model *model = request->model;
    struct pprof pprof = {.request = request, .model = model};
    int rc = -1;

    if (cw_calls_init(&pprof.calls, model) != 0)
        return CW_FORM_TOLD;
    pprof.is_used = calloc((size_t)pprof.calls.count + 1, 1);
    pprof.module_used = calloc(model->modules + 1, 1);
    pprof.module_bare = calloc(model->modules + 1, 1);
    if (pprof.is_used && pprof.module_used && pprof.module_bare &&
        cw_gzip_begin(&pprof.gzip, request->out) == 0) {
        put_all(&pprof);
        rc = cw_gzip_end(&pprof.gzip);
    } else {
        cw_cli_error("'%s': out of memory", model->source);
        rc = CW_FORM_TOLD;
    }
    if (pprof.top.failed)
        cw_cli_error("'%s': out of memory", model->source);
    if (pprof.strings.failed || pprof.top.failed)
        rc = CW_FORM_TOLD;
    cw_strings_free(&pprof.strings);
    cw_proto_free(&pprof.top);
    cw_proto_free(&pprof.inner);
    cw_proto_free(&pprof.innermost);
    cw_calls_free(&pprof.calls);
    free(pprof.is_used);
    free(pprof.module_used);
    free(pprof.module_bare);
    return rc;
}
