/* SPDX-License-Identifier: MIT */
/* See estimates.h. */
#include "api/estimates.h"

#include <string.h>

#include "api/placements.h"
#include "base/estimate/estimate.h"

#define FLAGS (uint32_t)(CUWARDEN_TRAINING | CUWARDEN_CHECKPOINTING | CUWARDEN_MASTERLESS)

static struct cw_shape shape_of(const struct cuwarden_model *model)
{
    return (struct cw_shape){
#define X(member, flag, least, most, names, gguf, words) .member = model->member,
#include "base/estimate/shape.def"
#undef X
    };
}

/* ---- what it is to do ---- */

static int set_format(const char *name, const char *usual, const struct cw_number_format **out)
{
    *out = cw_number_format_find(name != NULL ? name : usual);
    return *out != NULL
               ? CUWARDEN_OK
               : cw_api_fail(CUWARDEN_INVALID,
                             "'%.40s' is no format of numbers; bf16, int8 and q4_k_m are some",
                             name);
}

static int set_optimizer(const char *name, enum cw_optimizer *out)
{
    unsigned i = 0;

    while (name != NULL && i < CW_OPTIMIZER_COUNT &&
           strcmp(cw_optimizer_name((enum cw_optimizer)i), name) != 0)
        i++;
    if (i == CW_OPTIMIZER_COUNT)
        return cw_api_fail(CUWARDEN_INVALID,
                           "'%.40s' is no optimizer: adam, adamw8bit, sgd, sgd-momentum and "
                           "adafactor are",
                           name);
    *out = (enum cw_optimizer)i;
    return CUWARDEN_OK;
}

static int check_flags(const struct cuwarden_model *model, const struct cw_estimate_load *load)
{
    if ((model->flags & ~FLAGS) != 0)
        return cw_api_fail(CUWARDEN_INVALID, "a model cannot have flags %u: %u are all that are",
                           model->flags, FLAGS);
    if (!load->is_training && (model->flags != 0 || model->optimizer != NULL))
        return cw_api_fail(CUWARDEN_INVALID, "checkpointing, masterless and an optimizer are of "
                                             "training: add CUWARDEN_TRAINING");
    if (load->is_training && !cw_number_format_is_plain(load->weights))
        return cw_api_fail(CUWARDEN_INVALID,
                           "weights in %s are not trained: bf16, fp16 and fp32 are",
                           load->weights->name);
    return CUWARDEN_OK;
}

/* The defaults are those of the command (cli/estimate/model_request.c). */
static int read_load(const struct cuwarden_model *model, struct cw_estimate_load *out)
{
    uint64_t longest = model->positions != 0 && model->positions < 4096 ? model->positions : 4096;
    int error;

    *out =
        (struct cw_estimate_load){.batch = model->batch != 0 ? model->batch : 1,
                                  .context = model->context != 0 ? model->context : longest,
                                  .chunk = model->chunk != 0 ? model->chunk : 2048,
                                  .devices = model->devices != 0 ? model->devices : 1,
                                  .is_training = (model->flags & CUWARDEN_TRAINING) != 0,
                                  .is_checkpointed = (model->flags & CUWARDEN_CHECKPOINTING) != 0,
                                  .has_no_master = (model->flags & CUWARDEN_MASTERLESS) != 0};
    error = set_format(model->weights, "bf16", &out->weights);
    if (error == CUWARDEN_OK)
        error =
            set_format(model->cache, out->weights->bits > 160000 ? "fp32" : "bf16", &out->cache);
    if (error == CUWARDEN_OK)
        error = set_optimizer(model->optimizer, &out->optimizer);
    return error == CUWARDEN_OK ? check_flags(model, out) : error;
}

/* ---- the answer ---- */

static int make(const struct cuwarden_model *model, const struct cw_estimate_load *load,
                struct cw_estimate *out)
{
    struct cw_shape shape = shape_of(model);
    struct cw_estimate_stored stored = {model->parameters, model->stored_bytes};
    struct cw_refusal refusal;
    int has_stored = stored.parameters != 0 || stored.bytes != 0;
    int has_shape = shape.layers != 0 || shape.hidden != 0 || shape.heads != 0 || shape.vocab != 0;

    if (!has_shape && !has_stored)
        return cw_api_fail(CUWARDEN_INVALID,
                           "a model needs a shape (layers, hidden, heads, vocab and more), its "
                           "number of parameters, or the bytes that are stored of them");
    if (!has_shape && stored.parameters == 0)
        stored.parameters = cw_number_format_count(load->weights, stored.bytes);
    if ((has_shape && (cw_shape_check_partners(&shape, &shape, &refusal) != 0 ||
                       cw_shape_complete(&shape, &refusal) != 0)) ||
        cw_estimate_make(has_shape ? &shape : NULL, has_stored ? &stored : NULL, load, out,
                         &refusal) != 0)
        return cw_api_fail(CUWARDEN_INVALID, "no such model: %s", refusal.why);
    return CUWARDEN_OK;
}

/* Where it fits now; -1: nowhere, or it is not known. */
static int32_t device_for(uint64_t bytes)
{
    int32_t device = CUWARDEN_ALL_DEVICES;

    return cw_session_is_armed() && cw_api_device_pick(NULL, bytes, &device) == CUWARDEN_OK
               ? device
               : CUWARDEN_ALL_DEVICES;
}

int cw_api_estimate(const struct cuwarden_model *model, size_t model_size,
                    struct cuwarden_estimate *out, size_t size)
{
    struct cuwarden_model own;
    struct cuwarden_estimate told;
    struct cw_estimate_load load;
    struct cw_estimate made;
    int error = cw_api_check_active();

    if (error != CUWARDEN_OK)
        return error;
    if (model == NULL || out == NULL)
        return cw_api_fail(CUWARDEN_INVALID, "an estimate needs a model, and a place for the "
                                             "answer; one of these is NULL");
    cw_api_give(&own, sizeof(own), model, model_size);
    error = read_load(&own, &load);
    if (error == CUWARDEN_OK)
        error = make(&own, &load, &made);
    if (error != CUWARDEN_OK)
        return error;
    told = (struct cuwarden_estimate){.parameters = made.parameters,
                                      .active_parameters = made.active_parameters,
                                      .weights_bytes = made.part[CW_PART_WEIGHTS],
                                      .cache_bytes = made.part[CW_PART_CACHE],
                                      .activations_bytes = made.part[CW_PART_ACTIVATIONS],
                                      .gradients_bytes = made.part[CW_PART_GRADIENTS],
                                      .master_bytes = made.part[CW_PART_MASTER],
                                      .optimizer_bytes = made.part[CW_PART_OPTIMIZER],
                                      .total_bytes = made.total,
                                      .reserve_bytes = made.reserve,
                                      .token_bytes = made.token_bytes,
                                      .device = made.is_partial ? CUWARDEN_ALL_DEVICES
                                                                : device_for(made.total),
                                      .is_partial = made.is_partial};
    cw_api_give(out, size, &told, sizeof(told));
    return CUWARDEN_OK;
}
