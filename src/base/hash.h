/* SPDX-License-Identifier: MIT */
/* Hashes for tables in memory: they are never written to a file. */
#ifndef CW_BASE_HASH_H
#define CW_BASE_HASH_H

#include <stdint.h>

/* The hash so far and one more value. */
static inline uint64_t cw_hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

/* FNV-1a; `hash` is CW_HASH_SEED, or of what comes before the text. */
#define CW_HASH_SEED UINT64_C(0xcbf29ce484222325)

static inline uint64_t cw_hash_add_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t cw_hash_text(const char *text)
{
    return cw_hash_add_text(CW_HASH_SEED, text);
}

#endif
