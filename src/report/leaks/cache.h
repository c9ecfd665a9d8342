/* SPDX-License-Identifier: MIT */
/* The caches that frameworks keep memory in, as rows of caches.def: all that is said of them. */
#ifndef CW_REPORT_CACHE_H
#define CW_REPORT_CACHE_H

#include <stddef.h>
#include <stdint.h>

#define CACHE_RULE(...)
#define PASSED_RULE(...)
enum cw_cache_id {
    CW_CACHE_NONE,
#define CACHE(id, ...) CW_CACHE_##id,
#include "report/leaks/caches.def"
#undef CACHE
    CW_CACHE_COUNT
};
#undef CACHE_RULE
#undef PASSED_RULE

struct cw_cache {
    const char *owner;   /* "PyTorch" */
    const char *keeps;   /* "segments" */
    const char *inside;  /* how the framework lets one look inside, "" if it does not */
    const char *flag;    /* of cuwarden run that looks inside, or "" */
    const char *empties; /* the setting or call that empties it or switches it off, or "" */
    uint8_t is_host;     /* of pinned memory */
    uint8_t is_emptied;  /* by itself, in a program that ends by exit() */
};

/* NULL for CW_CACHE_NONE and unknown numbers. */
const struct cw_cache *cw_cache_row(unsigned id);

#endif
