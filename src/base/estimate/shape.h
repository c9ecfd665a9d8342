/* SPDX-License-Identifier: MIT */
/*
 * The shape of a transformer: the numbers by which its memory is determined, and the matrices that
 * follow from them. Plain arithmetic, no I/O, no memory of its own. See shape.def.
 */
#ifndef CW_BASE_SHAPE_H
#define CW_BASE_SHAPE_H

#include <stddef.h>
#include <stdint.h>

enum cw_shape_field {
#define X(member, flag, least, most, names, gguf, words) CW_SHAPE_##member,
#include "base/estimate/shape.def"
#undef X
    CW_SHAPE_COUNT,
};

/* 0 in a member: not given. */
struct cw_shape {
#define X(member, flag, least, most, names, gguf, words) uint64_t member;
#include "base/estimate/shape.def"
#undef X
};

struct cw_shape_row {
    const char *name, *flag;
    uint64_t least, most;
    const char *names, *gguf, *words;
};

const struct cw_shape_row *cw_shape_row(enum cw_shape_field field);
uint64_t *cw_shape_at(struct cw_shape *shape, enum cw_shape_field field);
/* The field of this name, among the names of a config.json; CW_SHAPE_COUNT: none. */
enum cw_shape_field cw_shape_find(const char *name, size_t len);
enum cw_shape_field cw_shape_find_gguf(const char *key, size_t len);
/* 1: it is one of these words, which blanks separate. */
int cw_shape_has_word(const char *words, const char *word, size_t len);

/* What a kind of layers has: those with a window, and the others. */
struct cw_shape_attention {
    uint64_t layers, kv_heads, head_dim;
    uint64_t value_matrices; /* 0: the keys are the values */
};

/* Of a complete shape, without MLA. */
struct cw_shape_attention cw_shape_attention(const struct cw_shape *shape, int has_window);

/* Why something cannot be estimated: one line, to follow "'FILE': " or alone. */
struct cw_refusal {
    char why[200];
    enum cw_shape_field missing; /* the field that would help; CW_SHAPE_COUNT: none */
};

/* What is given needs what it is a part of: experts that a token uses need experts. 0, or -1 with
 * the reason. */
int cw_shape_check_partners(struct cw_shape *given, struct cw_shape *shape,
                            struct cw_refusal *refusal);
/* Fills in the defaults, and checks what must hold. 0, or -1. */
int cw_shape_complete(struct cw_shape *shape, struct cw_refusal *refusal);

/* ---- its matrices ---- */

enum cw_tensor_kind {
    CW_TENSOR_LINEAR,
    CW_TENSOR_EXPERT, /* as many as a layer has */
    CW_TENSOR_EMBEDDING,
    CW_TENSOR_SMALL, /* norms, routers */
};

struct cw_tensor {
    enum cw_tensor_kind kind;
    uint64_t rows, columns, count; /* 1 row: a vector */
    uint64_t active;               /* of `count`, those that a token uses */
    uint64_t parts;                /* at most so many devices share one; the others have copies */
};

#define CW_TENSORS_MAX 20

/* Of a complete shape. Returns how many. */
unsigned cw_shape_tensors(const struct cw_shape *shape, struct cw_tensor tensor[CW_TENSORS_MAX]);

/* rows x columns x count, or UINT64_MAX. */
uint64_t cw_tensor_elements(const struct cw_tensor *tensor, uint64_t count);

/* ---- arithmetic that stops at UINT64_MAX ---- */

static inline uint64_t cw_times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint64_t cw_plus(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t cw_parts(uint64_t whole, uint64_t parts)
{
    return whole / parts + (whole % parts != 0);
}

#endif
