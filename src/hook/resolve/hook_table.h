/* SPDX-License-Identifier: MIT */
/*
 * The tables that hooks.def expands to: ids of hooks, their names, the driver's real functions.
 * Ours are in hook/answers/answer.c.
 *
 * cw_real[] is filled when the driver is found and may be read at any moment; entries change only
 * when another libcuda is loaded in the place of one that was unloaded.
 */
#ifndef CW_HOOK_HOOK_TABLE_H
#define CW_HOOK_HOOK_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "hook/resolve/cuda_compat.h"

enum cw_hook {
#define HOOK(symbol, base, since, stream, family) CW_HOOK_##symbol,
#include "hook/hooks.def"
#define NVML(symbol) CW_HOOK_##symbol,
#include "hook/hooks.def"
    CW_HOOK_COUNT, /* what follows is called, not intercepted */
    CW_HOOK_LAST = CW_HOOK_COUNT - 1,
#define CALL(symbol) CW_HOOK_##symbol,
#include "hook/hooks.def"
#define NVML_CALL(symbol) CW_HOOK_##symbol,
#include "hook/hooks.def"
    CW_REAL_COUNT
};

enum cw_library { CW_LIBRARY_DRIVER, CW_LIBRARY_NVML, CW_LIBRARY_COUNT };

/* Which stream a symbol's stream argument 0 means. */
enum cw_stream_flavour { CW_STREAM_LEGACY, CW_STREAM_THREAD };

struct cw_hook_row {
    const char *symbol;
    const char *base; /* name without suffix, as cuGetProcAddress is asked; NULL: not asked */
    int since;        /* first CUDA version that answers this symbol for the base name */
    uint8_t stream;   /* enum cw_stream_flavour */
    uint8_t library;  /* enum cw_library */
};

extern CW_HIDDEN const struct cw_hook_row cw_hook_rows[CW_REAL_COUNT];
extern CW_HIDDEN _Atomic(void *) cw_real[CW_REAL_COUNT];

/* The row that intercepts this exported name, or -1. Any time, no lock. */
int cw_hook_find(const char *symbol);
/* The row that a driver answers for name, version and flags, or -1. */
int cw_hook_find_versioned(const char *base, int version, enum cw_stream_flavour stream);

/* The driver's function, or, if there is none, one that returns an error code. */
void *cw_real_lookup(enum cw_hook hook);

static inline void *cw_real_of(enum cw_hook hook)
{
    void *real = atomic_load_explicit(&cw_real[hook], memory_order_relaxed);

    return CW_LIKELY(real != NULL) ? real : cw_real_lookup(hook);
}

/* The driver's own function of this name, with its own type. */
#define CW_REAL(symbol) ((__typeof__(&symbol))cw_real_of(CW_HOOK_##symbol))

/* 1 if the driver has it; for optional features of newer drivers. */
static inline int cw_real_has(enum cw_hook hook)
{
    return atomic_load_explicit(&cw_real[hook], memory_order_relaxed) != NULL;
}

#endif
