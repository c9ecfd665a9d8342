/* SPDX-License-Identifier: MIT */
/* The shape of a transformer. See shape.h. */
#include "base/estimate/shape.h"

#include <string.h>

#include "base/compiler.h"
#include "base/out.h"

#define ALL UINT64_MAX

static const struct cw_shape_row rows[CW_SHAPE_COUNT] = {
#define X(member, flag, least, most, names, gguf, words)                                           \
    {#member, flag, least, most, names, gguf, words},
#include "base/estimate/shape.def"
#undef X
};

const struct cw_shape_row *cw_shape_row(enum cw_shape_field field)
{
    return &rows[field];
}

uint64_t *cw_shape_at(struct cw_shape *shape, enum cw_shape_field field)
{
    static const size_t offset[CW_SHAPE_COUNT] = {
#define X(member, flag, least, most, names, gguf, words) offsetof(struct cw_shape, member),
#include "base/estimate/shape.def"
#undef X
    };

    return (uint64_t *)((char *)shape + offset[field]);
}

int cw_shape_has_word(const char *words, const char *word, size_t len)
{
    for (size_t n; *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (n == len && strncmp(words, word, n) == 0)
            return 1;
    }
    return 0;
}

enum cw_shape_field cw_shape_find(const char *name, size_t len)
{
    unsigned field = 0;

    while (field < CW_SHAPE_COUNT && !cw_shape_has_word(rows[field].names, name, len))
        field++;
    return (enum cw_shape_field)field;
}

enum cw_shape_field cw_shape_find_gguf(const char *key, size_t len)
{
    unsigned field = 0;

    while (field < CW_SHAPE_COUNT && !cw_shape_has_word(rows[field].gguf, key, len))
        field++;
    return (enum cw_shape_field)field;
}

/* ---- what must hold ---- */

static int miss(struct cw_refusal *refusal, enum cw_shape_field field)
{
    refusal->missing = field;
    cw_format(refusal->why, sizeof(refusal->why), "%s is missing (%s)", rows[field].name,
              rows[field].words);
    return -1;
}

/* A bound that one number sets to another. */
static int refuse(struct cw_refusal *refusal, enum cw_shape_field field, uint64_t value,
                  const char *rule, uint64_t than)
{
    refusal->missing = field;
    cw_format(refusal->why, sizeof(refusal->why), "%s is %llu, %s %llu", rows[field].name,
              (unsigned long long)value, rule, (unsigned long long)than);
    return -1;
}

static int check_ranges(struct cw_shape *shape, struct cw_refusal *refusal)
{
    for (unsigned field = 0; field < CW_SHAPE_COUNT; field++) {
        uint64_t value = *cw_shape_at(shape, (enum cw_shape_field)field);

        if (value > rows[field].most)
            return refuse(refusal, (enum cw_shape_field)field, value, "more than the possible",
                          rows[field].most);
    }
    return 0;
}

static int check_needed(struct cw_shape *shape, struct cw_refusal *refusal)
{
    static const enum cw_shape_field always[] = {CW_SHAPE_layers, CW_SHAPE_hidden, CW_SHAPE_heads,
                                                 CW_SHAPE_vocab};
    static const enum cw_shape_field mla[] = {CW_SHAPE_rope_dim, CW_SHAPE_nope_dim,
                                              CW_SHAPE_value_dim};

    for (unsigned i = 0; i < CW_ARRAY_LEN(always); i++)
        if (*cw_shape_at(shape, always[i]) == 0)
            return miss(refusal, always[i]);
    for (unsigned i = 0; shape->kv_rank != 0 && i < CW_ARRAY_LEN(mla); i++)
        if (*cw_shape_at(shape, mla[i]) == 0)
            return miss(refusal, mla[i]);
    if (shape->experts != 0 && shape->experts_used == 0)
        return miss(refusal, CW_SHAPE_experts_used);
    return 0;
}

/* Keys and values without MLA. */
static int complete_heads(struct cw_shape *shape, struct cw_refusal *refusal)
{
    if (shape->kv_heads == 0)
        shape->kv_heads = shape->heads;
    if (shape->kv_heads > shape->heads)
        return refuse(refusal, CW_SHAPE_kv_heads, shape->kv_heads, "more than heads, which is",
                      shape->heads);
    if (shape->heads % shape->kv_heads != 0)
        return refuse(refusal, CW_SHAPE_kv_heads, shape->kv_heads, "which does not divide heads,",
                      shape->heads);
    if (shape->full_kv_heads > shape->heads)
        return refuse(refusal, CW_SHAPE_full_kv_heads, shape->full_kv_heads,
                      "more than heads, which is", shape->heads);
    if (shape->head_dim != 0 || shape->kv_rank != 0)
        return 0;
    if (shape->hidden % shape->heads != 0) {
        refuse(refusal, CW_SHAPE_heads, shape->heads,
               "without a head_dim, and does not divide hidden,", shape->hidden);
        refusal->missing = CW_SHAPE_head_dim;
        return -1;
    }
    shape->head_dim = shape->hidden / shape->heads;
    return 0;
}

static int complete_ffn(struct cw_shape *shape, struct cw_refusal *refusal)
{
    if (shape->experts == 0) {
        shape->dense_layers = shape->layers;
    } else {
        if (shape->dense_layers > shape->layers)
            return refuse(refusal, CW_SHAPE_dense_layers, shape->dense_layers,
                          "more than layers, which is", shape->layers);
        if (shape->experts_used > shape->experts)
            return refuse(refusal, CW_SHAPE_experts_used, shape->experts_used,
                          "more than experts, which is", shape->experts);
        if (shape->expert_ffn == 0)
            shape->expert_ffn = shape->ffn;
        if (shape->expert_ffn == 0)
            return miss(refusal, CW_SHAPE_expert_ffn);
    }
    return shape->dense_layers != 0 && shape->ffn == 0 ? miss(refusal, CW_SHAPE_ffn) : 0;
}

static int complete_window(struct cw_shape *shape, struct cw_refusal *refusal)
{
    if (shape->window == 0)
        shape->window_layers = 0;
    else if (shape->window_layers == 0)
        shape->window_layers = shape->layers;
    if (shape->window_layers > shape->layers)
        return refuse(refusal, CW_SHAPE_window_layers, shape->window_layers,
                      "more than layers, which is", shape->layers);
    return 0;
}

int cw_shape_check_partners(struct cw_shape *given, struct cw_shape *shape,
                            struct cw_refusal *refusal)
{
    static const struct {
        enum cw_shape_field field, needs;
    } rules[] = {
        {CW_SHAPE_window_layers, CW_SHAPE_window}, {CW_SHAPE_experts_used, CW_SHAPE_experts},
        {CW_SHAPE_expert_ffn, CW_SHAPE_experts},   {CW_SHAPE_shared_ffn, CW_SHAPE_experts},
        {CW_SHAPE_q_rank, CW_SHAPE_kv_rank},       {CW_SHAPE_nope_dim, CW_SHAPE_kv_rank},
        {CW_SHAPE_value_dim, CW_SHAPE_kv_rank},
    };

    for (unsigned i = 0; i < CW_ARRAY_LEN(rules); i++) {
        if (*cw_shape_at(given, rules[i].field) == 0 || *cw_shape_at(shape, rules[i].needs) != 0)
            continue;
        refusal->missing = rules[i].needs;
        cw_format(refusal->why, sizeof(refusal->why), "%s says nothing without %s (%s)",
                  rows[rules[i].field].name, rows[rules[i].needs].name, rows[rules[i].needs].words);
        return -1;
    }
    return 0;
}

int cw_shape_complete(struct cw_shape *shape, struct cw_refusal *refusal)
{
    *refusal = (struct cw_refusal){.missing = CW_SHAPE_COUNT};
    return check_ranges(shape, refusal) != 0 || check_needed(shape, refusal) != 0 ||
                   complete_heads(shape, refusal) != 0 || complete_ffn(shape, refusal) != 0 ||
                   complete_window(shape, refusal) != 0
               ? -1
               : 0;
}

/* ---- its matrices ---- */

struct list {
    struct cw_tensor *tensor;
    unsigned count;
};

static void add(struct list *list, enum cw_tensor_kind kind, uint64_t rows_of, uint64_t columns,
                uint64_t count, uint64_t parts)
{
    if (rows_of == 0 || columns == 0 || count == 0)
        return;
    list->tensor[list->count++] = (struct cw_tensor){.kind = kind,
                                                     .rows = rows_of,
                                                     .columns = columns,
                                                     .count = count,
                                                     .active = count,
                                                     .parts = parts};
}

static void add_linear(struct list *list, uint64_t from, uint64_t to, uint64_t count,
                       uint64_t parts)
{
    add(list, CW_TENSOR_LINEAR, to, from, count, parts);
}

/* Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, keys and
 * values go through matrices of low rank, which are not divided among devices. */
static void add_latent_attention(struct list *list, const struct cw_shape *shape)
{
    uint64_t head = shape->nope_dim + shape->rope_dim, layers = shape->layers;
    uint64_t queries = cw_times(shape->heads, head);

    add_linear(list, shape->hidden, shape->q_rank, layers, 1);
    add_linear(list, shape->q_rank != 0 ? shape->q_rank : shape->hidden, queries, layers, ALL);
    add_linear(list, shape->hidden, shape->kv_rank + shape->rope_dim, layers, 1);
    add_linear(list, shape->kv_rank, cw_times(shape->heads, shape->nope_dim + shape->value_dim),
               layers, ALL);
    add_linear(list, cw_times(shape->heads, shape->value_dim), shape->hidden, layers, ALL);
}

struct cw_shape_attention cw_shape_attention(const struct cw_shape *shape, int has_window)
{
    struct cw_shape_attention out = {.layers = shape->window_layers,
                                     .kv_heads = shape->kv_heads,
                                     .head_dim = shape->head_dim,
                                     .value_matrices = 1};

    if (has_window)
        return out;
    out.layers = shape->layers - shape->window_layers;
    if (shape->full_kv_heads != 0)
        out.kv_heads = shape->full_kv_heads;
    if (shape->full_head_dim != 0)
        out.head_dim = shape->full_head_dim;
    out.value_matrices = !shape->full_keys_are_values;
    return out;
}

static void add_attention(struct list *list, const struct cw_shape *shape, int has_window)
{
    struct cw_shape_attention of = cw_shape_attention(shape, has_window);
    uint64_t queries = cw_times(shape->heads, of.head_dim);

    add_linear(list, shape->hidden, queries, of.layers, ALL);
    add_linear(list, shape->hidden, cw_times(of.kv_heads, of.head_dim),
               (1 + of.value_matrices) * of.layers, of.kv_heads);
    add_linear(list, queries, shape->hidden, of.layers, ALL);
}

static void add_experts(struct list *list, const struct cw_shape *shape, uint64_t matrices)
{
    uint64_t layers = shape->layers - shape->dense_layers;

    if (shape->experts == 0 || layers == 0)
        return;
    add(list, CW_TENSOR_EXPERT, shape->hidden, shape->expert_ffn,
        cw_times(matrices * layers, shape->experts), ALL);
    list->tensor[list->count - 1].active = cw_times(matrices * layers, shape->experts_used);
    add_linear(list, shape->hidden, shape->shared_ffn, matrices * layers, ALL);
    add(list, CW_TENSOR_SMALL, shape->experts, shape->hidden, layers, 1);
}

unsigned cw_shape_tensors(const struct cw_shape *shape, struct cw_tensor tensor[CW_TENSORS_MAX])
{
    struct list list = {.tensor = tensor};
    uint64_t matrices = shape->plain_ffn ? 2 : 3;

    add(&list, CW_TENSOR_EMBEDDING, shape->vocab, shape->hidden, shape->tied ? 1 : 2, ALL);
    add(&list, CW_TENSOR_EMBEDDING, shape->learned_positions, shape->hidden, 1, 1);
    if (shape->kv_rank != 0)
        add_latent_attention(&list, shape);
    for (int has_window = 0; shape->kv_rank == 0 && has_window <= 1; has_window++)
        add_attention(&list, shape, has_window);
    add_linear(&list, shape->hidden, shape->ffn, matrices * shape->dense_layers, ALL);
    add_experts(&list, shape, matrices);
    add(&list, CW_TENSOR_SMALL, 1, shape->hidden, 2 * shape->layers + 1, 1);
    return list.count;
}

uint64_t cw_tensor_elements(const struct cw_tensor *tensor, uint64_t count)
{
    return cw_times(cw_times(tensor->rows, tensor->columns), count);
}
