/* SPDX-License-Identifier: MIT */
/*
 * config.json of Hugging Face, and the index of safetensors. See facts.h.
 *
 * The names of fields are those of shape.def; what transformers keeps besides (which layers have a
 * window, or experts) is collected in `struct config` and put into the shape at the end. In a model
 * of several kinds, what is said under "text_config" counts more than what stands outside.
 */
#include "cli/estimate/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "cli/input/json_walk.h"

#define JSON_MAX   ((uint64_t)64 << 20) /* an index has a line for each tensor */
#define DIGITS_MAX 32
#define WORD_MAX   48

/* Numbers and truths that are no fields of the shape. X(member, names) */
#define EXTRAS(X)                                                                                  \
    X(tie, "tie_word_embeddings")                                                                  \
    X(use_window, "use_sliding_window")                                                            \
    X(window_from, "max_window_layers")                                                            \
    X(window_every, "sliding_window_pattern")                                                      \
    X(one_key, "multi_query")                                                                      \
    X(has_decoder, "is_encoder_decoder")                                                           \
    X(moe_every, "decoder_sparse_step")                                                            \
    X(moe_frequency, "moe_layer_freq")                                                             \
    X(moe_step, "interleave_moe_layer_step")                                                       \
    X(shared_experts, "n_shared_experts")                                                          \
    X(shared_too, "moe_num_shared_experts")

enum extra {
#define X(member, names) EXTRA_##member,
    EXTRAS(X)
#undef X
        EXTRAS_COUNT,
};

struct config {
    struct cw_facts *facts;
    uint64_t extra[EXTRAS_COUNT];
    uint8_t has_extra[EXTRAS_COUNT];
    uint8_t is_inner[CW_SHAPE_COUNT + EXTRAS_COUNT]; /* said under text_config */
    char type[WORD_MAX], dtype[WORD_MAX], quantizer[WORD_MAX], inner_type[WORD_MAX];
    char expert[WORD_MAX]; /* a number of what only a model with experts has */
    double bits;
    uint8_t is_in_4_bits, is_in_8_bits;
    unsigned windows, full;        /* of layer_types */
    unsigned without_experts;      /* of mlp_only_layers */
    uint8_t has_index, has_others; /* others: what is not text */
};

static int is_word(const char *word, const char *text, size_t len)
{
    return strlen(word) == len && memcmp(word, text, len) == 0;
}

static void keep_word(char word[WORD_MAX], const char *text, size_t len)
{
    if (len >= WORD_MAX)
        len = WORD_MAX - 1;
    memcpy(word, text, len);
    word[len] = '\0';
    (void)cw_printable_clean_string(word);
}

/* 0 for what is too long for a number. */
static double read_real(const char *text, size_t len)
{
    char digits[DIGITS_MAX];

    if (len >= sizeof(digits))
        return 0;
    memcpy(digits, text, len);
    digits[len] = '\0';
    return strtod(digits, NULL);
}

/* Whole numbers; 1e6 and 4096.0 are some. */
static int read_number(struct config *config, const char *key, const char *text, size_t len,
                       uint64_t *out)
{
    char digits[DIGITS_MAX];
    double real;

    if (len >= sizeof(digits))
        return cw_facts_refuse(config->facts, "has a %s of %zu digits", key, len);
    memcpy(digits, text, len);
    digits[len] = '\0';
    real = strtod(digits, NULL);
    if (real < 0)
        return cw_facts_refuse(config->facts, "has a %s of %s: a size cannot be negative", key,
                               digits);
    if (real >= 0x1p53)
        return cw_facts_refuse(config->facts, "has a %s of %s, which is too large", key, digits);
    *out = (uint64_t)real;
    if ((double)*out != real)
        return cw_facts_refuse(config->facts, "has a %s of %s, which is not a whole number", key,
                               digits);
    return 0;
}

/* ---- the fields of a shape ---- */

static int set_field(struct config *config, enum cw_shape_field field, const char *key,
                     int is_inner, const char *text, size_t len)
{
    uint64_t value;

    if (config->is_inner[field] && !is_inner)
        return 0;
    if (read_number(config, key, text, len, &value) != 0 ||
        cw_facts_set(config->facts, field, key, value) != 0)
        return -1;
    config->is_inner[field] = (uint8_t)is_inner;
    config->facts->has_shape = 1;
    return 0;
}

/* A list has a number for each layer: usable if all are the same. */
static int set_element(struct config *config, enum cw_shape_field field, const char *key,
                       unsigned element, const char *text, size_t len)
{
    uint64_t value;

    if (element > 1) {
        if (read_number(config, key, text, len, &value) != 0)
            return -1;
        if (value != *cw_shape_at(&config->facts->shape, field))
            config->facts->varies |= 1u << field;
        return 0;
    }
    return set_field(config, field, key, 1, text, len);
}

static int find_extra(const char *key)
{
    static const char *const names[] = {
#define X(member, names) names,
        EXTRAS(X)
#undef X
    };
    int i = 0;

    while (i < EXTRAS_COUNT && strcmp(names[i], key) != 0)
        i++;
    return i;
}

static int set_extra(struct config *config, const char *key, int is_inner, enum cw_json_kind kind,
                     const char *text, size_t len)
{
    int i = find_extra(key);
    uint8_t *inner = &config->is_inner[CW_SHAPE_COUNT + i];

    if (i == EXTRAS_COUNT || (*inner && !is_inner))
        return 0;
    *inner = (uint8_t)is_inner;
    config->has_extra[i] = 1;
    config->extra[i] = kind == CW_JSON_IS_TRUTH && is_word("true", text, len);
    return kind == CW_JSON_IS_NUMBER ? read_number(config, key, text, len, &config->extra[i]) : 0;
}

/* ---- where a value stands ---- */

static int set_text(struct config *config, const char *key, int is_inner, const char *text,
                    size_t len)
{
    if (strcmp(key, "model_type") == 0)
        keep_word(is_inner ? config->inner_type : config->type, text, len);
    else if (strcmp(key, "torch_dtype") == 0 || strcmp(key, "dtype") == 0)
        keep_word(config->dtype, text, len);
    return 0;
}

static int set_in_list(struct config *config, const struct cw_json_at *at, const char *key,
                       enum cw_json_kind kind, const char *text, size_t len)
{
    enum cw_shape_field field = cw_shape_find(key, strlen(key));

    if (strcmp(key, "layer_types") == 0 && kind == CW_JSON_IS_STRING) {
        if (is_word("sliding_attention", text, len) || is_word("chunked_attention", text, len))
            config->windows++;
        else if (is_word("full_attention", text, len))
            config->full++;
        else
            return cw_facts_refuse(config->facts,
                                   "has layers of type '%.*s', whose memory is not known here",
                                   len < WORD_MAX ? (int)len : WORD_MAX, text);
    }
    config->without_experts += strcmp(key, "mlp_only_layers") == 0;
    return field != CW_SHAPE_COUNT && kind == CW_JSON_IS_NUMBER
               ? set_element(config, field, key, at->element, text, len)
               : 0;
}

/* Of layers that keep a state, or nothing, in the place of keys and values (the config classes of
 * Mamba, Jamba, Bamba, FalconH1, NemotronH, RecurrentGemma, Qwen3Next, MiniMax, RWKV). */
static int is_of_other_layers(const char *key)
{
    static const char *const beginnings[] = {
        "mamba_",      "ssm_",           "linear_num_",
        "linear_attn", "linear_key_",    "full_attention_interval",
        "attn_layer_", "attn_type_list", "hybrid_override_pattern",
        "block_types", "_block_types",   "attention_hidden_size",
        "state_size"};

    for (size_t i = 0; i < CW_ARRAY_LEN(beginnings); i++)
        if (strncmp(key, beginnings[i], strlen(beginnings[i])) == 0)
            return 1;
    return 0;
}

static int refuse_layers(struct config *config, const char *key)
{
    return cw_facts_refuse(config->facts,
                           "has %s: some of its layers are no attention, and their memory is not "
                           "known here",
                           key);
}

static int set_value(struct config *config, const struct cw_json_at *at, int is_inner,
                     enum cw_json_kind kind, const char *text, size_t len)
{
    const char *key = at->key[at->depth - 1];
    enum cw_shape_field field = cw_shape_find(key, strlen(key));

    if (kind == CW_JSON_IS_NULL)
        return 0;
    if (is_of_other_layers(key))
        return refuse_layers(config, key);
    if (at->element != 0)
        return set_in_list(config, at, key, kind, text, len);
    if (kind == CW_JSON_IS_NUMBER && strstr(key, "expert") != NULL && read_real(text, len) > 0)
        keep_word(config->expert, key, strlen(key));
    if (kind == CW_JSON_IS_STRING)
        return field == CW_SHAPE_COUNT
                   ? set_text(config, key, is_inner, text, len)
                   : cw_facts_refuse(config->facts, "has a text for %s, not a number", key);
    if (field != CW_SHAPE_COUNT && kind == CW_JSON_IS_NUMBER)
        return set_field(config, field, key, is_inner, text, len);
    return set_extra(config, key, is_inner, kind, text, len);
}

static int set_quantization(struct config *config, const char *key, enum cw_json_kind kind,
                            const char *text, size_t len)
{
    int is_true = kind == CW_JSON_IS_TRUTH && is_word("true", text, len);

    if (kind == CW_JSON_IS_STRING && strcmp(key, "quant_method") == 0)
        keep_word(config->quantizer, text, len);
    else if (kind == CW_JSON_IS_NUMBER && strcmp(key, "bits") == 0)
        config->bits = read_real(text, len); /* 4.25 is one */
    else if (strcmp(key, "load_in_4bit") == 0)
        config->is_in_4_bits = (uint8_t)is_true;
    else if (strcmp(key, "load_in_8bit") == 0)
        config->is_in_8_bits = (uint8_t)is_true;
    return 0;
}

static int set_index(struct config *config, const char *key, enum cw_json_kind kind,
                     const char *text, size_t len)
{
    struct cw_estimate_stored *stored = &config->facts->stored;

    if (kind != CW_JSON_IS_NUMBER)
        return 0;
    if (strcmp(key, "total_size") == 0)
        return read_number(config, key, text, len, &stored->bytes);
    return strcmp(key, "total_parameters") == 0
               ? read_number(config, key, text, len, &stored->parameters)
               : 0;
}

static int on_value(void *arg, const struct cw_json_at *at, enum cw_json_kind kind,
                    const char *text, size_t len)
{
    static const char *const inner[] = {"text_config", "llm_config", "language_config"};
    struct config *config = arg;

    if (at->depth == 1)
        return set_value(config, at, 0, kind, text, len);
    if (at->depth != 2)
        return 0;
    if (is_of_other_layers(at->key[0]))
        return refuse_layers(config, at->key[0]);
    if (strcmp(at->key[0], "quantization_config") == 0)
        return set_quantization(config, at->key[1], kind, text, len);
    config->has_index |= strcmp(at->key[0], "weight_map") == 0;
    config->has_others |=
        strcmp(at->key[0], "vision_config") == 0 || strcmp(at->key[0], "audio_config") == 0;
    if (strcmp(at->key[0], "metadata") == 0)
        return set_index(config, at->key[1], kind, text, len);
    for (size_t i = 0; i < CW_ARRAY_LEN(inner); i++)
        if (strcmp(at->key[0], inner[i]) == 0)
            return set_value(config, at, 1, kind, text, len);
    return 0;
}

/* ---- at the end ---- */

static const char *format_of(const struct config *config)
{
    static const struct {
        const char *word, *format;
    } words[] = {{"float32", "fp32"},
                 {"float16", "fp16"},
                 {"bfloat16", "bf16"},
                 {"fp8", "fp8"},
                 {"fbgemm_fp8", "fp8"}};
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
static void put_window(struct config *config, const struct cw_family *family)
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
    if (every != 0)
        shape->window_layers = shape->layers - shape->layers / every;
    else if (config->extra[EXTRA_use_window] && config->extra[EXTRA_window_from] < shape->layers)
        shape->window_layers = shape->layers - config->extra[EXTRA_window_from];
    else if (config->extra[EXTRA_use_window])
        shape->window = 0;
}

/* Every n-th layer has experts, the others none. */
static void put_experts(struct config *config, const struct cw_family *family)
{
    static const enum extra steps[] = {EXTRA_moe_every, EXTRA_moe_frequency, EXTRA_moe_step};
    struct cw_shape *shape = &config->facts->shape;
    uint64_t shared = config->extra[EXTRA_shared_experts] + config->extra[EXTRA_shared_too];
    uint64_t rest =
        shape->layers - (shape->dense_layers < shape->layers ? shape->dense_layers : shape->layers);

    if (shape->experts == 0)
        return;
    for (size_t i = 0; i < CW_ARRAY_LEN(steps); i++)
        if (config->extra[steps[i]] > 1)
            rest = rest / config->extra[steps[i]];
    rest -= config->without_experts < rest ? config->without_experts : rest;
    shape->dense_layers = shape->layers - rest;
    if (shape->shared_ffn == 0 && shared != 0)
        shape->shared_ffn = cw_times(shared, shape->expert_ffn);
    if (shape->shared_ffn == 0 && family->shares_ffn)
        shape->shared_ffn = shape->ffn;
}

/* What would give a wrong sum, and no refusal later. */
static int check_config(struct config *config, const char *type)
{
    struct cw_facts *facts = config->facts;
    const struct cw_shape *shape = &facts->shape;
    uint64_t listed = config->windows + config->full;

    if (config->extra[EXTRA_has_decoder])
        return cw_facts_refuse(facts,
                               "is of an encoder with a decoder (%s): only decoders can be "
                               "estimated",
                               type);
    if (cw_family_of(type)->is_no_decoder)
        return cw_facts_refuse(facts, "is of %s: only decoders can be estimated", type);
    if (shape->experts == 0 && *config->expert)
        return cw_facts_refuse(facts,
                               "has %s, but no number of experts under a name that is known here: "
                               "describe the model by --layers, --experts and more",
                               config->expert);
    if (shape->layers != 0 && listed != 0 && listed != shape->layers)
        return cw_facts_refuse(facts, "has layer_types for %ju layers, and %ju layers",
                               (uintmax_t)listed, (uintmax_t)shape->layers);
    if (shape->layers != 0 &&
        (shape->dense_layers > shape->layers || config->without_experts > shape->layers))
        return cw_facts_refuse(facts, "has %ju layers without experts, of %ju layers",
                               (uintmax_t)(shape->dense_layers > shape->layers
                                               ? shape->dense_layers
                                               : config->without_experts),
                               (uintmax_t)shape->layers);
    return 0;
}

static int finish_config(struct config *config)
{
    struct cw_facts *facts = config->facts;
    struct cw_shape *shape = &facts->shape;
    const char *type = *config->inner_type ? config->inner_type : config->type;
    const char *format = format_of(config);
    const struct cw_family *family = cw_family_of(type);

    if (check_config(config, type) != 0)
        return -1;
    memcpy(facts->name, type, sizeof(facts->name));
    facts->weights = format ? cw_number_format_find(format) : NULL;
    if (!format)
        memcpy(facts->quantizer, config->quantizer, sizeof(facts->quantizer));
    if (shape->head_dim == 0)
        shape->head_dim = family->head_dim;
    if (shape->vocab == 0)
        shape->vocab = family->vocab;
    facts->is_part = config->has_others;
    shape->plain_ffn = family->plain_ffn;
    if (family->has_table)
        shape->learned_positions = shape->positions;
    if (shape->ffn == 0 && family->four_hidden)
        shape->ffn = 4 * shape->hidden;
    if (shape->kv_heads == 0 &&
        (config->has_extra[EXTRA_one_key] ? config->extra[EXTRA_one_key] : family->one_key))
        shape->kv_heads = 1;
    /* PretrainedConfig's default, which files leave out. */
    shape->tied = config->has_extra[EXTRA_tie] ? config->extra[EXTRA_tie] != 0 : 1;
    put_window(config, family);
    put_experts(config, family);
    return 0;
}

static int finish_index(struct config *config)
{
    if (config->facts->stored.bytes == 0 && config->facts->has_shape)
        return 0;
    if (config->facts->stored.bytes == 0)
        return cw_facts_refuse(config->facts,
                               "is an index without a metadata.total_size: name config.json");
    config->facts->has_weights = 1;
    return 0;
}

int cw_facts_read_json(struct cw_facts *facts, int fd, uint64_t size)
{
    struct config config = {.facts = facts};
    struct cw_estimate_stored stored = facts->stored;
    int rc;

    if (size > JSON_MAX)
        return cw_facts_refuse(facts,
                               "is larger than %ju MiB, so it is no config.json and no index",
                               (uintmax_t)(JSON_MAX >> 20));
    rc = cw_json_walk(fd, 0, size, on_value, &config, facts->why, sizeof(facts->why));
    if (rc != 0)
        return rc;
    if (config.has_index)
        return finish_index(&config);
    facts->stored = stored; /* not an index: what "metadata" says here is something else */
    if (facts->has_shape)
        return finish_config(&config);
    return cw_facts_refuse(facts, "has no field of a transformer, as num_hidden_layers or "
                                  "hidden_size, and is no index of safetensors");
}
