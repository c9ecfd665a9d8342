/* SPDX-License-Identifier: MIT */
/*
 * How much memory a transformer takes: weights, KV cache, activations, gradients, optimiser. Plain
 * arithmetic on numbers; no I/O, no memory of its own, no state. docs/estimate.md has the rules and
 * their sources.
 */
#ifndef CW_BASE_ESTIMATE_H
#define CW_BASE_ESTIMATE_H

#include <stdint.h>

#include "base/estimate/number_format.h"
#include "base/estimate/shape.h"

/* X(id, name, bits of state for a weight in 1/10000 beside fp32) */
#define CW_OPTIMIZERS(X)                                                                           \
    X(ADAM, "adam", 640000)                                                                        \
    X(ADAMW8BIT, "adamw8bit", 162500)                                                              \
    X(SGD, "sgd", 0)                                                                               \
    X(MOMENTUM, "sgd-momentum", 320000)                                                            \
    X(ADAFACTOR, "adafactor", 0)

enum cw_optimizer {
#define X(id, name, bits) CW_OPTIMIZER_##id,
    CW_OPTIMIZERS(X)
#undef X
        CW_OPTIMIZER_COUNT,
};

struct cw_estimate_load {
    uint64_t batch, context; /* sequences at a time, and tokens in each */
    uint64_t chunk;          /* inference: tokens that are computed at a time */
    uint64_t devices;        /* that share the model, by tensor parallelism */
    const struct cw_number_format *weights, *cache;
    uint8_t is_training, is_checkpointed;
    uint8_t has_no_master; /* training in 16 bits without a copy of the weights in 32 */
    enum cw_optimizer optimizer;
};

/* What the file with the weights says; 0: not known. */
struct cw_estimate_stored {
    uint64_t parameters, bytes;
};

enum cw_estimate_part {
    CW_PART_WEIGHTS,
    CW_PART_CACHE,
    CW_PART_ACTIVATIONS,
    CW_PART_GRADIENTS,
    CW_PART_MASTER,
    CW_PART_OPTIMIZER,
    CW_PART_COUNT,
};

struct cw_estimate {
    uint64_t parameters, active_parameters; /* of the model; those that a token uses, or 0 */
    uint64_t weights;                       /* bytes of the model */
    uint64_t reckoned;                      /* the same by its shape; 0: not known */
    uint64_t part[CW_PART_COUNT];           /* bytes on each device */
    uint64_t total;                         /* of the parts */
    uint64_t reserve;                       /* what a device needs beside it */
    uint64_t token_bytes; /* of the cache, on each device, while no window is full */
    uint8_t is_partial;   /* the shape is not known, so cache and activations are not either */
};

/*
 * `shape`: complete, or NULL if only the weights are known. `stored`: NULL, or what to take for the
 * weights instead of the shape's. 0, or -1 with a refusal: something cannot be divided, or is
 * larger than any machine.
 */
int cw_estimate_make(const struct cw_shape *shape, const struct cw_estimate_stored *stored,
                     const struct cw_estimate_load *load, struct cw_estimate *out,
                     struct cw_refusal *refusal);

/* The longest context, up to `most`, with which it fits into so much memory of each device; 0: none
 * does. */
uint64_t cw_estimate_longest(const struct cw_shape *shape, const struct cw_estimate_stored *stored,
                             const struct cw_estimate_load *load, uint64_t memory, uint64_t most);

const char *cw_optimizer_name(enum cw_optimizer optimizer);
/* "weights", "cache", ... */
const char *cw_estimate_part_name(enum cw_estimate_part part);

#endif
