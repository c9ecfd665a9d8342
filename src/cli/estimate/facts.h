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
#define CW_FACTS_PATH 200 /* as much of a path as a reason has room for */

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
    char shapeless[CW_FACTS_WHY + CW_FACTS_PATH +
                   8]; /* why the shape is not known although a file tells of it; "" */
};

/* ---- of the readers; each returns 0, or with facts->why, to follow "'FILE' ", 1 if no more than
 * the weights is known, or -1 ---- */

/* The whole of config.json, or of the index of safetensors. */
int cw_facts_read_json(struct cw_facts *facts, int fd, uint64_t size);
int cw_facts_read_safetensors(struct cw_facts *facts, int fd, uint64_t size);
int cw_facts_read_gguf(struct cw_facts *facts, int fd, uint64_t size);

/* Words for facts->why; returns -1. */
int cw_facts_refuse(struct cw_facts *facts, const char *fmt, ...) CW_PRINTF(2, 3);
/* Forgets the shape, for the reason in facts->why; returns 1. */
int cw_facts_drop_shape(struct cw_facts *facts);
/* A number of a field, as the file writes it; `key`: what the file calls it. */
int cw_facts_set(struct cw_facts *facts, enum cw_shape_field field, const char *key,
                 uint64_t value);

/* What goes without saying in an architecture. See families.def. */
struct cw_family {
    const char *names;   /* as model_type of config.json */
    const char *gguf;    /* as general.architecture of GGUF */
    const char *keys;    /* of its config.json, which carry no memory in this family; or NULL */
    uint8_t by_list;     /* these keys do unless layer_types has all layers */
    uint8_t plain_ffn;   /* two matrices in the feed-forward network */
    uint8_t has_table;   /* learned positions */
    uint8_t four_hidden; /* a feed-forward network of four times the hidden size, if none is said */
    uint8_t one_key;     /* all heads share a key, if nothing is said */
    uint8_t is_tied;     /* the output uses the embedding's matrix, if nothing is said */
    uint8_t every;       /* each layer of this number has no window, 1: none; 0: all have none */
    uint8_t shares_ffn;  /* layers with experts have the dense network beside them */
    uint16_t head_dim;   /* if nothing is said; 0: no such rule. So the next */
    uint32_t vocab;
    uint32_t chunk; /* the window of a GGUF file, which does not say it */
};

/* Never NULL; that of no names for a type that is not known. */
const struct cw_family *cw_family_of(const char *name, int is_gguf);

#endif
