/* SPDX-License-Identifier: MIT */
/*
 * Walks over JSON that others wrote, and calls back for each plain value with the keys that lead to
 * it. Nothing is kept; values deeper than CW_JSON_WALK_DEPTH objects are passed over, a longer key
 * ends the walk.
 */
#ifndef CW_CLI_JSON_WALK_H
#define CW_CLI_JSON_WALK_H

#include <stddef.h>
#include <stdint.h>

#define CW_JSON_WALK_DEPTH 4
#define CW_JSON_WALK_KEY   1024

enum cw_json_kind {
    CW_JSON_IS_NULL,
    CW_JSON_IS_TRUTH,
    CW_JSON_IS_NUMBER,
    CW_JSON_IS_STRING,
    CW_JSON_IS_NESTED, /* an object or an array that is passed over: too deep, or in an array */
};

struct cw_json_at {
    unsigned depth; /* number of keys */
    const char *key[CW_JSON_WALK_DEPTH];
    unsigned element; /* 1 and more: an element of the array with the last key; 0: its value */
};

/* The text is not terminated; that of a truth is "true" or "false". 0: go on. */
typedef int (*cw_json_value_fn)(void *arg, const struct cw_json_at *at, enum cw_json_kind kind,
                                const char *text, size_t len);

/* `len` bytes of the descriptor from `from` on, which must be one value. 0, or -1 with the reason
 * in `why`, to follow "'FILE' "; or what `value` returned. */
int cw_json_walk(int fd, uint64_t from, uint64_t len, cw_json_value_fn value, void *arg, char *why,
                 size_t cap);

#endif
