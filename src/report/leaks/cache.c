/* SPDX-License-Identifier: MIT */
/* The facts of caches.def. See cache.h; their rules are in leak_class.c. */
#include "report/leaks/cache.h"

enum memory { DEVICE, HOST };
enum at_exit { KEPT, EMPTIED };

#define CACHE_RULE(...)
#define PASSED_RULE(...)
static const struct cw_cache rows[CW_CACHE_COUNT] = {
#define CACHE(id, owner_, memory_, keeps_, inside_, flag_, empties_, at_exit_)                     \
    [CW_CACHE_##id] = {.owner = (owner_),                                                          \
                       .keeps = (keeps_),                                                          \
                       .inside = (inside_),                                                        \
                       .flag = (flag_),                                                            \
                       .empties = (empties_),                                                      \
                       .is_host = (memory_) == HOST,                                               \
                       .is_emptied = (at_exit_) == EMPTIED},
#include "report/leaks/caches.def"
};

const struct cw_cache *cw_cache_row(unsigned id)
{
    return id > CW_CACHE_NONE && id < CW_CACHE_COUNT ? &rows[id] : NULL;
}
