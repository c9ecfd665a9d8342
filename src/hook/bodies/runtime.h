/* SPDX-License-Identifier: MIT */
/*
 * The steps of every runtime hook around the call of the real runtime: name the API for the layer
 * below, and account for pointers that this layer did not see (a runtime that does not stand on our
 * libcuda).
 */
#ifndef CW_HOOK_RUNTIME_H
#define CW_HOOK_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "live/layout.h"

enum cw_runtime {
    CW_RUNTIME_NONE,
#define RUNTIME(symbol) CW_RUNTIME_##symbol,
#include "hook/hooks.def"
    CW_RUNTIME_COUNT
};

struct cw_runtime_call {
    enum cw_runtime function;
    uint32_t outer_api; /* what the thread was inside before */
    unsigned accounted; /* calls that the driver layer had seen before */
    uint32_t block;     /* taken by free_begin, 0: not ours to account */
    uint64_t key;
};

/* The function that the caller's module would have bound to; never NULL. */
void *cw_runtime_enter(struct cw_runtime_call *call, enum cw_runtime function, void *caller);
void cw_runtime_leave(const struct cw_runtime_call *call);

/* After a dlclose: another module may come to lie where a caller or a runtime was. */
void cw_runtime_unloaded(void);

/* After a successful allocation, before leave: accounts for it if the driver layer saw nothing. */
void cw_runtime_allocated(const struct cw_runtime_call *call, enum cw_kind kind, const void *ptr,
                          size_t bytes);
/* Around a free, between enter and leave. */
void cw_runtime_free_begin(struct cw_runtime_call *call, const void *ptr);
void cw_runtime_free_end(const struct cw_runtime_call *call, int code);

#endif
