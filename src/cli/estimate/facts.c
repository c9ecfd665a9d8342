/* SPDX-License-Identifier: MIT */
/* What a model's files say of it. See facts.h. */
#include "cli/estimate/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- for the readers ---- */

int cw_facts_refuse(struct cw_facts *facts, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(facts->why, sizeof(facts->why), fmt, ap);
    va_end(ap);
    return -1;
}

int cw_facts_set(struct cw_facts *facts, enum cw_shape_field field, const char *key, uint64_t value)
{
    const struct cw_shape_row *row = cw_shape_row(field);

    if (value < row->least || value > row->most)
        return cw_facts_refuse(facts, "has a %s of %ju, which is not from %ju to %ju", key,
                               (uintmax_t)value, (uintmax_t)row->least, (uintmax_t)row->most);
    *cw_shape_at(&facts->shape, field) = value;
    return 0;
}

/* From the modeling files of transformers, and llama-arch.cpp of llama.cpp; all others have three
 * matrices and no table, as Llama has. */
static const struct cw_family families[] = {
    {.names = "gpt2 gpt_neo starcoder", .plain_ffn = 1, .has_table = 1, .four_hidden = 1},
    {.names = "gpt_bigcode", .plain_ffn = 1, .has_table = 1, .four_hidden = 1, .one_key = 1},
    {.names = "opt", .plain_ffn = 1, .has_table = 1},
    {.names = "falcon RefinedWeb RefinedWebModel", .plain_ffn = 1, .four_hidden = 1, .one_key = 1},
    {.names = "bloom mpt gptj codegen", .plain_ffn = 1, .four_hidden = 1},
    {.names = "gpt_neox gptneox phi phi2 starcoder2 nemotron persimmon", .plain_ffn = 1},
    {.names = "gemma2 gpt_oss gpt-oss", .every = 2},
    {.names = "cohere2", .every = 4},
    {.names = "gemma3 gemma3_text", .every = 6, .head_dim = 256, .vocab = 262208},
    {.names = "albert bert big_bird camembert clip deberta deberta-v2 distilbert electra ernie esm "
              "jina-bert-v2 modernbert nomic-bert "
              "nomic_bert roberta t5 t5encoder vit xlm-roberta xlnet rwkv rwkv5 rwkv6 rwkv7 mamba "
              "mamba2",
     .is_no_decoder = 1},
    {.names = "llama4 llama4_text", .every = 4, .shares_ffn = 1},
    {.names = ""},
};

const struct cw_family *cw_family_of(const char *name)
{
    size_t i = 0, len = strlen(name);

    for (; *families[i].names; i++)
        for (const char *at = families[i].names; (at = strstr(at, name)) && len > 0; at += len)
            if ((at == families[i].names || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
                return &families[i];
    return &families[i];
}
