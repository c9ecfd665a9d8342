/* SPDX-License-Identifier: MIT */
/*
 * Reads config.json of Hugging Face, and the index of safetensors. See facts.h.
 *
 * The names of fields are those of shape.def; what transformers keeps besides (which layers have a
 * window, or experts) is collected in `struct cw_config` and put into the shape at the end. In a
 * model of several kinds, what is said under "text_config" counts more than what stands outside.
 */
#include "cli/estimate/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "cli/estimate/config_json.h"
#include "cli/input/json_walk.h"

#define JSON_MAX   ((uint64_t)64 << 20) /* an index has a line for each tensor */
#define DIGITS_MAX 32

static int is_word(const char *word, const char *text, size_t len)
{
    return strlen(word) == len && memcmp(word, text, len) == 0;
}

static void keep_word(char word[CW_CONFIG_WORD], const char *text, size_t len)
{
    if (len >= CW_CONFIG_WORD)
        len = CW_CONFIG_WORD - 1;
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
static int read_number(struct cw_config *config, const char *key, const char *text, size_t len,
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

static int set_field(struct cw_config *config, enum cw_shape_field field, const char *key,
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
static int set_element(struct cw_config *config, enum cw_shape_field field, const char *key,
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
        CW_CONFIG_EXTRAS(X)
#undef X
    };
    int i = 0;

    while (i < EXTRAS_COUNT && !cw_config_is_any_of(names[i], key))
        i++;
    return i;
}

/* What is 0 or not there has no memory. */
static int note_unknown(struct cw_config *config, const char *key, int is_inner,
                        enum cw_json_kind kind, const char *text, size_t len)
{
    int is_word_like = kind == CW_JSON_IS_STRING || kind == CW_JSON_IS_TRUTH;

    if (kind == CW_JSON_IS_NULL || (kind == CW_JSON_IS_NUMBER && read_real(text, len) == 0))
        return 0;
    cw_unknown_keys_add(&config->unknown[is_inner][!is_word_like], key);
    return 0;
}

static int set_extra(struct cw_config *config, const char *key, int is_inner,
                     enum cw_json_kind kind, const char *text, size_t len)
{
    int i = find_extra(key);
    uint8_t *inner = &config->is_inner[CW_SHAPE_COUNT + i];

    if (i == EXTRAS_COUNT)
        return note_unknown(config, key, is_inner, kind, text, len);
    if (*inner && !is_inner)
        return 0;
    *inner = (uint8_t)is_inner;
    config->has_extra[i] = 1;
    config->extra[i] = kind == CW_JSON_IS_TRUTH && is_word("true", text, len);
    return kind == CW_JSON_IS_NUMBER ? read_number(config, key, text, len, &config->extra[i]) : 0;
}

/* ---- where a value stands ---- */

static int set_text(struct cw_config *config, const char *key, int is_inner, const char *text,
                    size_t len)
{
    if (strcmp(key, "model_type") == 0)
        keep_word(is_inner ? config->inner_type : config->type, text, len);
    else if (strcmp(key, "torch_dtype") == 0 || strcmp(key, "dtype") == 0)
        keep_word(config->dtype, text, len);
    else if (cw_config_is_any_of("hidden_act hidden_activation activation_function", key))
        keep_word(config->activation, text, len);
    else
        return set_extra(config, key, is_inner, CW_JSON_IS_STRING, text, len);
    return 0;
}

static void count_layer(struct cw_config *config, const char *text, size_t len)
{
    if (cw_shape_has_word("sliding_attention chunked_attention", text, len))
        config->windows++;
    else if (cw_shape_has_word("full_attention attention", text, len))
        config->full++;
    else if (!*config->layer_type)
        keep_word(config->layer_type, text, len);
}

static int set_in_list(struct cw_config *config, const struct cw_json_at *at, const char *key,
                       int is_inner, enum cw_json_kind kind, const char *text, size_t len)
{
    enum cw_shape_field field = cw_shape_find(key, strlen(key));

    if (field != CW_SHAPE_COUNT)
        return kind == CW_JSON_IS_NUMBER ? set_element(config, field, key, at->element, text, len)
                                         : 0;
    if (strcmp(key, "layer_types") == 0 && kind == CW_JSON_IS_STRING) {
        count_layer(config, text, len);
    } else if (strcmp(key, "mlp_only_layers") == 0) {
        config->without_experts++;
    } else if (strcmp(key, "mlp_layer_types") == 0) {
        config->dense += is_word("dense", text, len);
        config->sparse += !is_word("dense", text, len);
    } else if (strcmp(key, "architectures") == 0 && kind == CW_JSON_IS_STRING) {
        config->has_architectures = 1;
        config->is_decoder |= memmem(text, len, "ForCausalLM", 11) ||
                              memmem(text, len, "LMHeadModel", 11) ||
                              memmem(text, len, "ForConditionalGeneration", 24);
    } else {
        return note_unknown(config, key, is_inner, kind, text, len);
    }
    return 0;
}

static int set_value(struct cw_config *config, const struct cw_json_at *at, int is_inner,
                     enum cw_json_kind kind, const char *text, size_t len)
{
    const char *key = at->key[at->depth - 1];
    enum cw_shape_field field = cw_shape_find(key, strlen(key));

    if (kind == CW_JSON_IS_NULL)
        return 0;
    if (at->element != 0)
        return set_in_list(config, at, key, is_inner, kind, text, len);
    config->has_rms_norm |= strcmp(key, "rms_norm_eps") == 0;
    if (kind == CW_JSON_IS_STRING)
        return field == CW_SHAPE_COUNT
                   ? set_text(config, key, is_inner, text, len)
                   : cw_facts_refuse(config->facts, "has a text for %s, not a number", key);
    if (field != CW_SHAPE_COUNT && kind == CW_JSON_IS_NUMBER)
        return set_field(config, field, key, is_inner, text, len);
    return set_extra(config, key, is_inner, kind, text, len);
}

static int set_quantization(struct cw_config *config, const char *key, enum cw_json_kind kind,
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

static int set_index(struct cw_config *config, const char *key, enum cw_json_kind kind,
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

static int is_of_text(const char *key)
{
    return cw_config_is_any_of("text_config llm_config language_config", key);
}

/* vision_config, audio_config, speech_encoder_config and their like. */
static int is_of_others(const char *key)
{
    return strstr(key, "vision") || strstr(key, "visual") || strstr(key, "audio") ||
           strstr(key, "speech") || strstr(key, "image");
}

/* What transformers writes of each layer without a window, under its number. */
static int set_of_layer(struct cw_config *config, const char *key, int is_inner,
                        enum cw_json_kind kind, const char *text, size_t len)
{
    enum cw_shape_field field = strcmp(key, "head_dim") == 0              ? CW_SHAPE_full_head_dim
                                : strcmp(key, "num_key_value_heads") == 0 ? CW_SHAPE_full_kv_heads
                                                                          : CW_SHAPE_COUNT;
    uint64_t *at;

    if (field == CW_SHAPE_COUNT || kind != CW_JSON_IS_NUMBER)
        return note_unknown(config, key, is_inner, kind, text, len);
    at = cw_shape_at(&config->facts->shape, field);
    if (*at != 0 && (double)*at != read_real(text, len))
        config->facts->varies |= 1u << field;
    return set_field(config, field, key, is_inner, text, len);
}

/* Inside an object, which stands outside or under text_config. */
static int set_inside(struct cw_config *config, const struct cw_json_at *at, unsigned outer,
                      enum cw_json_kind kind, const char *text, size_t len)
{
    const char *object = at->key[outer];

    if (cw_config_is_any_of("quantization_config quantization compression_config", object)) {
        if (!*config->quantizer)
            keep_word(config->quantizer, object, strlen(object));
        return set_quantization(config, at->key[outer + 1], kind, text, len);
    }
    if (strcmp(object, "per_layer_config") == 0 && at->depth == outer + 3 &&
        set_of_layer(config, at->key[outer + 2], (int)outer, kind, text, len) != 0)
        return -1;
    if (is_of_others(object)) {
        config->has_others = 1;
        return 0;
    }
    return note_unknown(config, object, (int)outer, kind, text, len);
}

static int on_value(void *arg, const struct cw_json_at *at, enum cw_json_kind kind,
                    const char *text, size_t len)
{
    struct cw_config *config = arg;

    if (at->depth == 1)
        return set_value(config, at, 0, kind, text, len);
    if (at->depth == 0)
        return 0;
    if (is_of_text(at->key[0])) {
        config->has_inner = 1;
        return at->depth == 2 ? set_value(config, at, 1, kind, text, len)
                              : set_inside(config, at, 1, kind, text, len);
    }
    if (strcmp(at->key[0], "weight_map") == 0) {
        config->has_index = 1;
        return 0;
    }
    if (strcmp(at->key[0], "metadata") == 0)
        return set_index(config, at->key[1], kind, text, len);
    return set_inside(config, at, 0, kind, text, len);
}

/* ---- the whole ---- */

static int finish_index(struct cw_config *config)
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
    struct cw_config config = {.facts = facts};
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
        return cw_config_finish(&config);
    return cw_facts_refuse(facts, "has no field of a transformer, as num_hidden_layers or "
                                  "hidden_size, and is no index of safetensors");
}
