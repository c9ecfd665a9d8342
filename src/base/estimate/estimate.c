/* SPDX-License-Identifier: MIT */
/*
 * How much memory a transformer takes. See estimate.h.
 *
 * Each part is reckoned for one device: what tensor parallelism divides is divided before anything
 * is multiplied, so a number that has stopped at UINT64_MAX stays there until the last check.
 */
#include "base/estimate/estimate.h"

#include "base/compiler.h"
#include "base/device_reserve.h"
#include "base/out.h"

#define MIB             (UINT64_C(1) << 20)
#define PARAMETERS_MOST (UINT64_C(1) << 50)
#define TOKENS_MOST     (UINT64_C(1) << 48)
#define BYTES_MOST      (UINT64_C(1) << 60)

/* ---- names ---- */

const char *cw_optimizer_name(enum cw_optimizer optimizer)
{
    static const char *const names[] = {
#define X(id, name, bits) name,
        CW_OPTIMIZERS(X)
#undef X
    };

    return names[optimizer];
}

const char *cw_estimate_part_name(enum cw_estimate_part part)
{
    static const char *const names[CW_PART_COUNT] = {"weights",   "cache",  "activations",
                                                     "gradients", "master", "optimizer"};

    return names[part];
}

/* ---- what is given ---- */

struct sum {
    const struct cw_shape *shape; /* NULL: not known */
    const struct cw_estimate_load *load;
    struct cw_tensor tensor[CW_TENSORS_MAX];
    unsigned tensors;
    struct cw_estimate *out;
    uint64_t own; /* parameters on each device */
};

/* Bytes of a number that is computed with. */
static uint64_t width_of(const struct cw_estimate_load *load)
{
    return load->weights->bits > 160000 ? 4 : 2;
}

static uint64_t share(uint64_t whole, const struct sum *sum)
{
    return cw_parts(whole, sum->load->devices);
}

static uint64_t on_device(const struct cw_tensor *tensor, const struct sum *sum)
{
    uint64_t parts = sum->load->devices < tensor->parts ? sum->load->devices : tensor->parts;

    return cw_parts(cw_tensor_elements(tensor, tensor->count), parts);
}

static const struct cw_number_format *format_of(const struct cw_tensor *tensor,
                                                const struct cw_estimate_load *load)
{
    int is_stored_so = tensor->kind == CW_TENSOR_EXPERT ||
                       (tensor->kind == CW_TENSOR_LINEAR && !load->weights->is_of_experts);

    return load->weights->is_rest && !is_stored_so ? cw_number_format_find("bf16") : load->weights;
}

/* ---- weights ---- */

/* part/whole of bytes; rounded up. */
static uint64_t scale(uint64_t bytes, uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return bytes;
    return (uint64_t)(((unsigned __int128)bytes * part + whole - 1) / whole);
}

static void sum_tensors(struct sum *sum)
{
    struct cw_estimate *out = sum->out;

    for (unsigned i = 0; i < sum->tensors; i++) {
        const struct cw_tensor *tensor = &sum->tensor[i];
        const struct cw_number_format *format = format_of(tensor, sum->load);
        uint64_t all = cw_tensor_elements(tensor, tensor->count), own = on_device(tensor, sum);

        out->parameters = cw_plus(out->parameters, all);
        out->active_parameters =
            cw_plus(out->active_parameters, cw_tensor_elements(tensor, tensor->active));
        out->weights = cw_plus(out->weights, cw_number_format_bytes(format, all));
        out->part[CW_PART_WEIGHTS] =
            cw_plus(out->part[CW_PART_WEIGHTS], cw_number_format_bytes(format, own));
        sum->own = cw_plus(sum->own, own);
    }
}

/* The file knows better: it has what is beside the layers, too. */
static void take_stored(struct sum *sum, const struct cw_estimate_stored *stored)
{
    struct cw_estimate *out = sum->out;
    uint64_t parameters = out->parameters, bytes = stored->bytes;

    if (stored->parameters != 0) {
        sum->own = parameters != 0 ? scale(stored->parameters, sum->own, parameters)
                                   : share(stored->parameters, sum);
        out->parameters = stored->parameters;
        if (out->active_parameters > out->parameters)
            out->active_parameters = out->parameters;
    }
    if (bytes == 0)
        bytes = parameters != 0 ? scale(out->weights, stored->parameters, parameters)
                                : cw_number_format_bytes(sum->load->weights, stored->parameters);
    if (bytes == 0)
        return;
    out->part[CW_PART_WEIGHTS] = out->weights != 0
                                     ? scale(bytes, out->part[CW_PART_WEIGHTS], out->weights)
                                     : share(bytes, sum);
    out->weights = bytes;
}

/* ---- the cache of keys and values ---- */

/* Numbers that a layer keeps of a token. With MLA the latent vector and the rotary part of the key,
 * on each device (arXiv 2405.04434, section 2.1.3). */
static uint64_t kept_of_token(const struct sum *sum, int has_window)
{
    const struct cw_shape *shape = sum->shape;
    struct cw_shape_attention of = cw_shape_attention(shape, has_window);

    if (shape->kv_rank != 0)
        return shape->kv_rank + shape->rope_dim;
    return 2 * share(of.kv_heads, sum) * of.head_dim;
}

static void sum_cache(const struct sum *sum)
{
    const struct cw_shape *shape = sum->shape;
    const struct cw_estimate_load *load = sum->load;
    uint64_t window = shape->window < load->context ? shape->window : load->context;
    uint64_t full = (shape->layers - shape->window_layers) * kept_of_token(sum, 0);
    uint64_t windowed = shape->window_layers * kept_of_token(sum, 1);
    uint64_t kept = cw_plus(cw_times(full, load->context), cw_times(windowed, window));

    sum->out->token_bytes = cw_number_format_bytes(load->cache, full + windowed);
    sum->out->part[CW_PART_CACHE] =
        cw_number_format_bytes(load->cache, cw_times(kept, load->batch));
}

/* ---- activations ---- */

/* Numbers that attention has of a token in a layer: queries, keys, values, what comes out. The
 * wider kind of layers counts. */
static uint64_t attention_of_token(const struct sum *sum)
{
    const struct cw_shape *shape = sum->shape;
    uint64_t heads = share(shape->heads, sum), most = 0;

    if (shape->kv_rank != 0)
        return shape->q_rank + shape->kv_rank +
               heads * (2 * (shape->nope_dim + shape->rope_dim) + 2 * shape->value_dim);
    for (int has_window = 0; has_window <= 1; has_window++) {
        struct cw_shape_attention of = cw_shape_attention(shape, has_window);
        uint64_t numbers = (2 * heads + 2 * share(of.kv_heads, sum)) * of.head_dim;

        if (of.layers != 0 && numbers > most)
            most = numbers;
    }
    return most;
}

/* How wide the feed-forward networks are that a token goes through. */
static uint64_t ffn_of_token(const struct sum *sum, int has_experts)
{
    const struct cw_shape *shape = sum->shape;

    if (!has_experts)
        return share(shape->ffn, sum);
    return share(cw_times(shape->experts_used, shape->expert_ffn) + shape->shared_ffn, sum);
}

/* What a token brings along to its experts: copies of it, and what the router says. */
static uint64_t routing_of_token(const struct sum *sum, int has_experts)
{
    return has_experts ? sum->shape->experts_used * sum->shape->hidden + sum->shape->experts : 0;
}

/* Inference: one layer at a time, in chunks, and the logits of the last token of each sequence, as
 * they are and in 32 bits. */
static uint64_t live_activations(const struct sum *sum)
{
    const struct cw_shape *shape = sum->shape;
    const struct cw_estimate_load *load = sum->load;
    uint64_t tokens = cw_times(load->batch, load->context), width = width_of(load);
    uint64_t widest = attention_of_token(sum), logits;

    for (int has_experts = 0; has_experts <= (shape->experts != 0); has_experts++) {
        uint64_t ffn = (shape->plain_ffn ? 2 : 3) * ffn_of_token(sum, has_experts) +
                       routing_of_token(sum, has_experts);

        if (ffn > widest && (has_experts || shape->dense_layers != 0))
            widest = ffn;
    }
    if (tokens > load->chunk)
        tokens = load->chunk;
    logits = cw_times(cw_times(load->batch, share(shape->vocab, sum)), width + 4);
    return cw_plus(cw_times(tokens, (2 * shape->hidden + widest) * width), logits);
}

/*
 * Training: the bytes of a token in a layer that the backward pass reads again, after Korthikanti
 * et al. (arXiv 2205.05198, section 4.1), with attention that keeps no matrix of scores (arXiv
 * 2205.14135) but a number per head, and without dropout: the inputs of two norms and of what
 * follows them, which all devices have, and what is divided among them.
 */
static uint64_t saved_of_token(const struct sum *sum, int has_experts)
{
    const struct cw_shape *shape = sum->shape;
    uint64_t numbers = 4 * shape->hidden + attention_of_token(sum) +
                       (shape->plain_ffn ? 2 : 4) * ffn_of_token(sum, has_experts) +
                       routing_of_token(sum, has_experts);

    return numbers * width_of(sum->load) + 4 * share(shape->heads, sum);
}

static uint64_t saved_activations(const struct sum *sum)
{
    const struct cw_shape *shape = sum->shape;
    const struct cw_estimate_load *load = sum->load;
    uint64_t tokens = cw_times(load->batch, load->context), width = width_of(load);
    uint64_t dense = shape->dense_layers != 0 ? saved_of_token(sum, 0) : 0;
    uint64_t experts = shape->experts != 0 ? saved_of_token(sum, 1) : 0;
    uint64_t layers, logits;

    if (load->is_checkpointed) /* each layer's input, and one layer that is computed again */
        layers = shape->layers * shape->hidden * width + (dense > experts ? dense : experts);
    else
        layers = shape->dense_layers * dense + (shape->layers - shape->dense_layers) * experts;
    /* As they are, in 32 bits, and their gradient. */
    logits = share(shape->vocab, sum) * (width == 4 ? 8 : width + 8);
    return cw_times(tokens, layers + 2 * shape->hidden * width + logits);
}

/* ---- training ---- */

static const uint32_t state_bits[] = {
#define X(id, name, bits) bits,
    CW_OPTIMIZERS(X)
#undef X
};

static uint64_t bytes_of_bits(uint64_t count, uint64_t bits)
{
    const struct cw_number_format format = {.bits = (uint32_t)bits};

    return cw_number_format_bytes(&format, count);
}

/* Sums over the rows and the columns of each matrix, without momentum (arXiv 1804.04235). */
static uint64_t factors(const struct sum *sum)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < sum->tensors; i++) {
        const struct cw_tensor *tensor = &sum->tensor[i];
        uint64_t each = tensor->rows > 1 ? tensor->rows + tensor->columns : tensor->columns;

        bytes = cw_plus(bytes, cw_times(cw_times(each, tensor->count), 4));
    }
    return share(bytes, sum);
}

/* Mixed precision as in ZeRO (arXiv 1910.02054, section 3.1): gradients in the format of the
 * weights, and for 16 bits a copy of the weights in 32. */
static void sum_training(const struct sum *sum)
{
    const struct cw_estimate_load *load = sum->load;
    struct cw_estimate *out = sum->out;
    uint64_t bits = state_bits[load->optimizer], width = width_of(load);

    out->part[CW_PART_GRADIENTS] = cw_times(sum->own, width);
    if (width < 4 && !load->has_no_master)
        out->part[CW_PART_MASTER] = cw_times(sum->own, 4);
    else if (width < 4 && load->optimizer != CW_OPTIMIZER_ADAMW8BIT)
        bits /= 2; /* states are as wide as what they belong to */
    out->part[CW_PART_OPTIMIZER] =
        load->optimizer == CW_OPTIMIZER_ADAFACTOR ? factors(sum) : bytes_of_bits(sum->own, bits);
}

/* ---- the sum ---- */

static int refuse(struct cw_refusal *refusal, const char *words, uint64_t value, const char *more,
                  uint64_t than)
{
    refusal->missing = CW_SHAPE_COUNT;
    cw_format(refusal->why, sizeof(refusal->why), "%s %llu %s %llu", words,
              (unsigned long long)value, more, (unsigned long long)than);
    return -1;
}

/* Heads are whole, and so are the groups of heads that share a key. */
static int check_devices(const struct cw_shape *shape, const struct cw_estimate_load *load,
                         struct cw_refusal *refusal)
{
    uint64_t n = load->devices;

    if (shape->heads % n != 0)
        return refuse(refusal, "tensor parallelism over", n, "devices cannot divide heads,",
                      shape->heads);
    for (int has_window = 0; shape->kv_rank == 0 && has_window <= 1; has_window++) {
        struct cw_shape_attention of = cw_shape_attention(shape, has_window);

        if (of.layers != 0 && of.kv_heads % n != 0 && n % of.kv_heads != 0)
            return refuse(refusal, "tensor parallelism over", n, "devices cannot divide kv_heads,",
                          of.kv_heads);
    }
    return 0;
}

static int check_size(const struct cw_estimate *out, struct cw_refusal *refusal)
{
    static const char words[] = "larger than any machine:";

    if (out->parameters > PARAMETERS_MOST)
        return refuse(refusal, words, out->parameters, "parameters are more than", PARAMETERS_MOST);
    if (out->total > BYTES_MOST)
        return refuse(refusal, words, out->total, "bytes are more than", BYTES_MOST);
    return 0;
}

static int check_load(const struct cw_estimate_load *load, struct cw_refusal *refusal)
{
    uint64_t tokens = cw_times(load->batch, load->context);

    if (tokens > TOKENS_MOST)
        return refuse(refusal, "larger than any machine:", tokens, "tokens are more than",
                      TOKENS_MOST);
    return 0;
}

static void sum_parts(struct sum *sum)
{
    const struct cw_estimate_load *load = sum->load;
    struct cw_estimate *out = sum->out;

    if (sum->shape && !load->is_training)
        sum_cache(sum);
    if (sum->shape)
        out->part[CW_PART_ACTIVATIONS] =
            load->is_training ? saved_activations(sum) : live_activations(sum);
    if (load->is_training)
        sum_training(sum);
    for (unsigned i = 0; i < CW_PART_COUNT; i++)
        out->total = cw_plus(out->total, out->part[i]);
    out->reserve = cw_device_reserve(out->total);
}

int cw_estimate_make(const struct cw_shape *shape, const struct cw_estimate_stored *stored,
                     const struct cw_estimate_load *load, struct cw_estimate *out,
                     struct cw_refusal *refusal)
{
    struct sum sum = {.shape = shape, .load = load, .out = out};

    *out = (struct cw_estimate){.is_partial = !shape};
    *refusal = (struct cw_refusal){.missing = CW_SHAPE_COUNT};
    if (check_load(load, refusal) != 0 || (shape && check_devices(shape, load, refusal) != 0))
        return -1;
    if (shape)
        sum.tensors = cw_shape_tensors(shape, sum.tensor);
    sum_tensors(&sum);
    out->reckoned = out->weights;
    if (stored)
        take_stored(&sum, stored);
    sum_parts(&sum);
    return check_size(out, refusal);
}

uint64_t cw_estimate_longest(const struct cw_shape *shape, const struct cw_estimate_stored *stored,
                             const struct cw_estimate_load *load, uint64_t memory, uint64_t most)
{
    struct cw_estimate_load trial = *load;
    struct cw_estimate estimate;
    struct cw_refusal refusal;
    uint64_t fits = 0;

    while (fits < most) {
        trial.context = fits + (most - fits + 1) / 2;
        if (cw_estimate_make(shape, stored, &trial, &estimate, &refusal) == 0 &&
            estimate.total + estimate.reserve <= memory)
            fits = trial.context;
        else
            most = trial.context - 1;
    }
    return fits;
}
