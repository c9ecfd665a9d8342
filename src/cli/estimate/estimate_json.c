/* SPDX-License-Identifier: MIT */
/* An estimate as JSON. See estimate_print.h. */
#include "cli/estimate/estimate_print.h"

#include <errno.h>
#include <string.h>

#include "report/json/json_put.h"

#define BUFFER_SIZE 4096

static void put_load(struct cw_json *json, const struct cw_model_answer *answer)
{
    const struct cw_estimate_load *load = &answer->load;

    cw_json_string(json, "mode", load->is_training ? "training" : "inference");
    cw_json_number(json, "batch", load->batch);
    cw_json_number(json, "context", load->context);
    cw_json_number(json, "devices_sharing", load->devices);
    cw_json_string(json, "dtype",
                   answer->is_stored && answer->facts.is_gguf ? "stored" : load->weights->name);
    if (load->is_training) {
        cw_json_string(json, "optimizer", cw_optimizer_name(load->optimizer));
        cw_json_truth(json, "checkpointing", load->is_checkpointed);
    } else {
        cw_json_string(json, "kv_dtype", load->cache->name);
        cw_json_number(json, "chunk", load->chunk);
    }
}

static void put_shape(struct cw_json *json, const struct cw_model_answer *answer)
{
    struct cw_shape shape = answer->facts.shape;

    cw_json_open(json, "shape", '{');
    for (unsigned field = 0; field < CW_SHAPE_COUNT; field++) {
        uint64_t value = *cw_shape_at(&shape, (enum cw_shape_field)field);

        if (value != 0)
            cw_json_number(json, cw_shape_row((enum cw_shape_field)field)->name, value);
    }
    cw_json_close(json, '}');
}

static void put_parts(struct cw_json *json, const struct cw_estimate *estimate)
{
    static const char *const keys[CW_PART_COUNT] = {"weights_bytes",     "kv_cache_bytes",
                                                    "activations_bytes", "gradients_bytes",
                                                    "master_bytes",      "optimizer_bytes"};

    for (unsigned i = 0; i < CW_PART_COUNT; i++)
        cw_json_number(json, keys[i], estimate->part[i]);
    cw_json_number(json, "total_bytes", estimate->total);
    cw_json_number(json, "reserve_bytes", estimate->reserve);
    cw_json_number(json, "kv_bytes_per_token", estimate->token_bytes);
    cw_json_number(json, "model_bytes", estimate->weights);
    cw_json_number(json, "parameters", estimate->parameters);
    if (estimate->active_parameters != 0)
        cw_json_number(json, "active_parameters", estimate->active_parameters);
    cw_json_truth(json, "is_partial", estimate->is_partial);
}

/* Nobody is told that it fits of which only a part is known. */
static void put_verdict(struct cw_json *json, const struct cw_model_answer *answer, uint64_t memory)
{
    const struct cw_estimate *estimate = &answer->estimate;
    int fits = estimate->total + estimate->reserve <= memory;

    if (fits && estimate->is_partial) {
        cw_json_key(json, "fits");
        cw_out_string(json->out, "null");
        cw_json_key(json, "longest_context");
        cw_out_string(json->out, "null");
        return;
    }
    cw_json_truth(json, "fits", fits);
    cw_json_number(json, "longest_context", cw_model_longest(answer, memory));
}

static void put_fit(struct cw_json *json, const struct cw_model_answer *answer, uint64_t memory,
                    const struct cw_device_memory *device)
{
    cw_json_element(json, '{');
    if (device) {
        cw_json_number(json, "index", device->index);
        cw_json_string(json, "uuid", device->uuid);
        cw_json_string(json, "name", device->name);
    }
    cw_json_number(json, device ? "free_bytes" : "memory_bytes", memory);
    put_verdict(json, answer, memory);
    cw_json_close(json, '}');
}

int cw_estimate_print_json(FILE *to, const struct cw_model_request *request,
                           const struct cw_model_answer *answer,
                           const struct cw_estimate_against *against)
{
    char buffer[BUFFER_SIZE];
    struct cw_out out;
    struct cw_json json = {.out = &out, .first = 1};

    if (fflush(to) != 0)
        return -1;
    cw_out_init(&out, fileno(to), buffer, sizeof(buffer));
    cw_json_open(&json, NULL, '{');
    cw_json_string(&json, "schema", "cuwarden-estimate/1");
    cw_json_string(&json, "version", PACKAGE_VERSION);
    if (request->path)
        cw_json_string(&json, "file", request->path);
    if (answer->facts.name[0])
        cw_json_string(&json, "architecture", answer->facts.name);
    put_load(&json, answer);
    put_parts(&json, &answer->estimate);
    put_shape(&json, answer);
    cw_json_open(&json, "sizes", '[');
    for (unsigned i = 0; i < against->memories; i++)
        put_fit(&json, answer, against->memory[i], NULL);
    cw_json_close(&json, ']');
    cw_json_open(&json, "gpus", '[');
    for (unsigned i = 0; against->devices && i < against->devices->count; i++)
        put_fit(&json, answer, against->devices->device[i].free, &against->devices->device[i]);
    cw_json_close(&json, ']');
    cw_json_close(&json, '}');
    cw_out_char(&out, '\n');
    if (cw_out_flush(&out) == 0)
        return 0;
    errno = out.error;
    return -1;
}
