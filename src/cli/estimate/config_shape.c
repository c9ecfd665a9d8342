/* SPDX-License-Identifier: MIT */
/*
 * From what a config.json says to a shape, and what refuses one: layers, keys and types whose
 * memory is not known here. See config_json.h.
 */
#include "cli/estimate/config_json.h"

static const char *format_of(const struct cw_config *config)
{
    static const struct {
        const char *word, *format;
    } words[] = {{"float32", "fp32"},      {"float16", "fp16"}, {"bfloat16", "bf16"},
                 {"float8_e4m3fn", "fp8"}, {"fp8", "fp8"},      {"fbgemm_fp8", "fp8"}};
    const char *quantizer = config->quantizer;

    if (config->is_in_4_bits)
        return "nf4";
    if (config->is_in_8_bits || config->bits == 8)
        return "int8";
    if (config->bits == 4 || strcmp(quantizer, "awq") == 0)
        return "int4";
    if (strcmp(quantizer, "mxfp4") == 0)
        return "mxfp4";
    for (size_t i = 0; i < CW_ARRAY_LEN(words); i++)
        if (strcmp(words[i].word, *quantizer ? quantizer : config->dtype) == 0)
            return words[i].format;
    return NULL;
}

/* As the masks of transformers are chosen: by a list, else by the architecture's rule. */
static void put_window(struct cw_config *config, const struct cw_family *family)
{
    struct cw_shape *shape = &config->facts->shape;
    uint64_t every = config->extra[EXTRA_window_every];

    if (config->windows + config->full > 0) {
        shape->window_layers = config->windows;
        if (config->windows == 0)
            shape->window = 0;
        return;
    }
    if (config->has_extra[EXTRA_use_window] && !config->extra[EXTRA_use_window])
        shape->window = 0;
    if (every == 0)
        every = family->every;
    if (every > 1)
        shape->window_layers = shape->layers - shape->layers / every;
    else if (config->extra[EXTRA_use_window] && config->extra[EXTRA_window_from] < shape->layers)
        shape->window_layers = shape->layers - config->extra[EXTRA_window_from];
    else if (every == 0 || config->extra[EXTRA_use_window])
        shape->window = 0;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* Every n-th layer has experts, the others none. */
static uint64_t layers_with_experts(const struct cw_config *config)
{
    static const enum cw_config_extra steps[] = {EXTRA_moe_every, EXTRA_moe_frequency,
                                                 EXTRA_moe_step, EXTRA_moe_interval};
    const struct cw_shape *shape = &config->facts->shape;
    uint64_t rest = shape->layers - at_most(shape->dense_layers, shape->layers);

    if (config->dense + config->sparse != 0)
        return at_most(config->sparse, shape->layers);
    for (size_t i = 0; i < CW_ARRAY_LEN(steps); i++)
        if (config->extra[steps[i]] > 1)
            rest = rest / config->extra[steps[i]];
    return rest - at_most(config->without_experts, rest);
}

static void put_experts(struct cw_config *config, const struct cw_family *family)
{
    struct cw_shape *shape = &config->facts->shape;
    uint64_t shared = config->extra[EXTRA_shared_experts];

    if (shape->experts == 0 && shape->shared_ffn != 0) {
        shape->ffn = shape->shared_ffn; /* all that is left of the feed-forward network */
        shape->shared_ffn = 0;
    }
    if (shape->experts == 0)
        return;
    shape->dense_layers = shape->layers - layers_with_experts(config);
    if (shape->shared_ffn == 0 && shared != 0)
        shape->shared_ffn =
            cw_times(shared, shape->expert_ffn != 0 ? shape->expert_ffn : shape->ffn);
    if (shape->shared_ffn == 0 && family->shares_ffn)
        shape->shared_ffn = shape->ffn;
    if (config->extra[EXTRA_dense_ffn] != 0) {
        shape->expert_ffn = shape->ffn;
        shape->ffn = at_most(config->extra[EXTRA_dense_ffn], cw_shape_row(CW_SHAPE_ffn)->most);
    }
}

/* ---- what would give a wrong sum, and no refusal later ---- */

static int check_layers(struct cw_config *config)
{
    struct cw_facts *facts = config->facts;
    const struct cw_shape *shape = &facts->shape;
    struct cw_shape latent = {
        .q_rank = shape->q_rank, .nope_dim = shape->nope_dim, .value_dim = shape->value_dim};
    struct cw_refusal refusal;
    uint64_t listed = config->windows + config->full;
    uint64_t dense =
        shape->dense_layers > shape->layers ? shape->dense_layers : config->without_experts;

    if (cw_shape_check_partners(&latent, &facts->shape, &refusal) != 0)
        return cw_facts_refuse(facts, "has an attention that is not known here: %s", refusal.why);
    if (*config->layer_type)
        return cw_facts_refuse(facts, "has layers of type '%s', whose memory is not known here",
                               config->layer_type);
    if (shape->layers != 0 && listed != 0 && listed != shape->layers)
        return cw_facts_refuse(facts, "has layer_types for %ju layers, and %ju layers",
                               (uintmax_t)listed, (uintmax_t)shape->layers);
    if (shape->layers != 0 && dense > shape->layers)
        return cw_facts_refuse(facts, "has %ju layers without experts, of %ju layers",
                               (uintmax_t)dense, (uintmax_t)shape->layers);
    if (config->has_extra[EXTRA_embedding] && config->extra[EXTRA_embedding] != shape->hidden)
        return cw_facts_refuse(facts, "has a word_embed_proj_dim of %ju, and a hidden_size of %ju",
                               (uintmax_t)config->extra[EXTRA_embedding], (uintmax_t)shape->hidden);
    return 0;
}

#define WAY_OUT "; describe the model by --layers and more, or name its weights"

/* In a known family, texts and truths without a meaning here are its own affair. */
static int check_keys(struct cw_config *config, const struct cw_family *family)
{
    struct cw_unknown_keys *unknown = config->unknown[config->has_inner];
    const char *harmless =
        family->keys && (!family->by_list || config->full != 0) ? family->keys : "";
    char names[160] = "";
    unsigned count = cw_unknown_keys_list(&unknown[1], harmless, names, sizeof(names));

    if (!*family->names)
        count += cw_unknown_keys_list(&unknown[0], "", names, sizeof(names));
    if (count == 0)
        return 0;
    return cw_facts_refuse(config->facts,
                           "has %s: whether that takes memory is not known here" WAY_OUT, names);
}

/* A type that no family has is of Llama's kind, or is refused. */
static int check_type(struct cw_config *config, const struct cw_family *family, const char *type)
{
    const struct cw_shape *shape = &config->facts->shape;

    if (config->extra[EXTRA_has_decoder] || config->extra[EXTRA_has_cross])
        return cw_facts_refuse(config->facts,
                               "is of an encoder with a decoder (%s): only decoders can be "
                               "estimated",
                               type);
    if (check_keys(config, family) != 0)
        return -1;
    if (*family->names || !*type)
        return 0;
    if (shape->experts != 0 && shape->expert_ffn == 0)
        return cw_facts_refuse(config->facts,
                               "has no moe_intermediate_size: how large experts of %s are is not "
                               "known here" WAY_OUT,
                               type);
    if (cw_config_is_any_of("silu swish swiglu", config->activation) && config->has_rms_norm &&
        (config->is_decoder || !config->has_architectures))
        return 0;
    return cw_facts_refuse(config->facts,
                           "is of %s: only decoders can be estimated, and nothing shows that it "
                           "is one" WAY_OUT,
                           type);
}

/* ---- the whole ---- */

/* Beside a text_config with a shape, sizes are those of other parts. */
static void drop_outer(struct cw_config *config)
{
    for (unsigned field = 0; config->is_inner[CW_SHAPE_hidden] && field < CW_SHAPE_COUNT; field++)
        if (!config->is_inner[field] && field != CW_SHAPE_vocab)
            *cw_shape_at(&config->facts->shape, (enum cw_shape_field)field) = 0;
}

static void put_family(struct cw_config *config, const struct cw_family *family)
{
    struct cw_shape *shape = &config->facts->shape;

    if (shape->head_dim == 0)
        shape->head_dim = family->head_dim;
    if (shape->vocab == 0)
        shape->vocab = family->vocab;
    shape->plain_ffn = family->plain_ffn;
    if (family->has_table)
        shape->learned_positions = shape->positions;
    if (shape->ffn == 0 && family->four_hidden)
        shape->ffn =
            cw_times(shape->hidden,
                     config->has_extra[EXTRA_ffn_factor] ? config->extra[EXTRA_ffn_factor] : 4);
    shape->full_keys_are_values = config->extra[EXTRA_keys_are_values] != 0;
    if (!config->extra[EXTRA_new_keys] && config->has_extra[EXTRA_one_key]) {
        if (config->extra[EXTRA_one_key])
            shape->kv_heads = 1;
    } else if (shape->kv_heads == 0 && family->one_key) {
        shape->kv_heads = 1;
    }
    /* Files leave out what their class has by default. */
    shape->tied = config->has_extra[EXTRA_tie] ? config->extra[EXTRA_tie] != 0 : family->is_tied;
}

int cw_config_finish(struct cw_config *config)
{
    struct cw_facts *facts = config->facts;
    const char *type = *config->inner_type ? config->inner_type : config->type;
    const char *format = format_of(config);
    static const struct cw_family untyped = {.names = "", .every = 1};
    const struct cw_family *family = *type ? cw_family_of(type, 0) : &untyped;

    memcpy(facts->name, type, sizeof(facts->name));
    facts->weights = format ? cw_number_format_find(format) : NULL;
    if (!format)
        memcpy(facts->quantizer, *config->quantizer ? config->quantizer : config->dtype,
               sizeof(facts->quantizer));
    /* Beside a text_config, what is not known may be another model. */
    facts->is_part = config->has_others || (config->has_inner && *config->unknown[0][1].text);
    drop_outer(config);
    if (check_type(config, family, type) != 0 || check_layers(config) != 0)
        return cw_facts_drop_shape(facts);
    put_family(config, family);
    put_window(config, family);
    put_experts(config, family);
    return 0;
}
