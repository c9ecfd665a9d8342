/* SPDX-License-Identifier: MIT */
/*
 * What a model's files say of it: config.json of Hugging Face, the index or the header of
 * safetensors, the header of a GGUF file. Weights themselves are never read.
 *
 * The files come from strangers: every length is checked against a bound and the file, every number
 * against the range of shape.def, and what is refused is named in one line.
 */
#ifndef CW_CLI_FACTS_H
#define CW_CLI_FACTS_H

#include "base/compiler.h"
#include "base/estimate/estimate.h"

#define CW_FACTS_NAME 48
#define CW_FACTS_WHY  320

struct cw_facts {
    struct cw_shape shape;
    struct cw_estimate_stored stored;       /* what the file with the weights says */
    const struct cw_number_format *weights; /* NULL: not said */
    char name[CW_FACTS_NAME];               /* of the architecture, printable; "": not said */
    uint32_t varies;                        /* 1 << field: another number in each layer */
    uint8_t has_shape, has_weights;         /* a file told of them */
    uint8_t is_gguf;
    uint8_t is_part; /* of a model of several kinds: what is not text is not in the shape */
    char quantizer[CW_FACTS_NAME]; /* whose format is not known here, printable; "": none */
    char why[CW_FACTS_WHY];
};

/* ---- of the readers; each returns 0, or -1 with facts->why, to follow "'FILE' " ---- */

/* The whole of config.json, or of the index of safetensors. */
int cw_facts_read_json(struct cw_facts *facts, int fd, uint64_t size);
int cw_facts_read_safetensors(struct cw_facts *facts, int fd, uint64_t size);
int cw_facts_read_gguf(struct cw_facts *facts, int fd, uint64_t size);

/* Words for facts->why; returns -1. */
int cw_facts_refuse(struct cw_facts *facts, const char *fmt, ...) CW_PRINTF(2, 3);
/* A number of a field, as the file writes it; `key`: what the file calls it. */
int cw_facts_set(struct cw_facts *facts, enum cw_shape_field field, const char *key,
                 uint64_t value);

/* What goes without saying in an architecture. */
struct cw_family {
    const char *names;   /* model_type of config.json, or architecture of GGUF */
    uint8_t plain_ffn;   /* two matrices in the feed-forward network */
    uint8_t has_table;   /* learned positions */
    uint8_t four_hidden; /* a feed-forward network of four times the hidden size, if none is said */
    uint8_t one_key;     /* all heads share a key, if nothing is said */
    uint8_t every;       /* each layer of this number has no window; 0: no such rule */
    uint8_t is_no_decoder;
    uint8_t shares_ffn; /* layers with experts have a network beside them that is as large as one */
    uint16_t head_dim;  /* if nothing is said; 0: no such rule. So the next */
    uint32_t vocab;
};

/* Never NULL. */
const struct cw_family *cw_family_of(const char *name);

#endif
