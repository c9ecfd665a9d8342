/* SPDX-License-Identifier: MIT */
/*
 * What a config.json says, before it is put into a shape: facts_json.c reads it, config_shape.c
 * judges it.
 */
#ifndef CW_CLI_CONFIG_JSON_H
#define CW_CLI_CONFIG_JSON_H

#include <string.h>

#include "cli/estimate/config_keys.h"
#include "cli/estimate/facts.h"

#define CW_CONFIG_WORD 48

/* Numbers and truths that are no fields of the shape. X(member, names) */
#define CW_CONFIG_EXTRAS(X)                                                                        \
    X(tie, "tie_word_embeddings")                                                                  \
    X(use_window, "use_sliding_window")                                                            \
    X(window_from, "max_window_layers")                                                            \
    X(window_every, "sliding_window_pattern _sliding_window_pattern")                              \
    X(one_key, "multi_query")                                                                      \
    X(new_keys, "new_decoder_architecture")                                                        \
    X(has_decoder, "is_encoder_decoder")                                                           \
    X(has_cross, "add_cross_attention")                                                            \
    X(moe_every, "decoder_sparse_step")                                                            \
    X(moe_frequency, "moe_layer_freq")                                                             \
    X(moe_step, "interleave_moe_layer_step")                                                       \
    X(moe_interval, "moe_layer_interval")                                                          \
    X(dense_ffn, "intermediate_size_mlp")                                                          \
    X(ffn_factor, "expansion_ratio")                                                               \
    X(keys_are_values, "attention_k_eq_v")                                                         \
    X(embedding, "word_embed_proj_dim")                                                            \
    X(shared_experts, "n_shared_experts moe_num_shared_experts num_shared_experts")

enum cw_config_extra {
#define X(member, names) EXTRA_##member,
    CW_CONFIG_EXTRAS(X)
#undef X
        EXTRAS_COUNT,
};

struct cw_config {
    struct cw_facts *facts;
    uint64_t extra[EXTRAS_COUNT];
    uint8_t has_extra[EXTRAS_COUNT];
    uint8_t is_inner[CW_SHAPE_COUNT + EXTRAS_COUNT];       /* said under text_config */
    char type[CW_CONFIG_WORD], inner_type[CW_CONFIG_WORD]; /* outside, and under text_config */
    char dtype[CW_CONFIG_WORD], quantizer[CW_CONFIG_WORD], activation[CW_CONFIG_WORD];
    char layer_type[CW_CONFIG_WORD]; /* the first of layer_types that is not known */
    double bits;
    uint8_t is_in_4_bits, is_in_8_bits;
    unsigned windows, full;        /* of layer_types */
    unsigned without_experts;      /* of mlp_only_layers */
    unsigned dense, sparse;        /* of mlp_layer_types */
    uint8_t has_index, has_others; /* others: what is not text */
    uint8_t has_inner;             /* something is said under text_config */
    uint8_t has_rms_norm, has_architectures, is_decoder;
    /* Outside and under text_config: texts and truths, then numbers and what is nested. */
    struct cw_unknown_keys unknown[2][2];
};

static inline int cw_config_is_any_of(const char *words, const char *word)
{
    return cw_shape_has_word(words, word, strlen(word));
}

/* Puts it into facts->shape. 0, or 1 with facts->why: the shape cannot be told. */
int cw_config_finish(struct cw_config *config);

#endif
