/* SPDX-License-Identifier: MIT */
/* Expansion of hooks.def, and look-up by name. See hook_table.h. */
#include "hook/resolve/hook_table.h"

#include <string.h>

#include "base/hash.h"
#include "hook/resolve/resolve.h"

const struct cw_hook_row cw_hook_rows[CW_REAL_COUNT] = {
#define HOOK(symbol, base, since, stream, family)                                                  \
    [CW_HOOK_##symbol] = {#symbol, base, since, CW_STREAM_##stream, CW_LIBRARY_DRIVER},
#include "hook/hooks.def"
#define NVML(symbol) [CW_HOOK_##symbol] = {#symbol, NULL, 0, 0, CW_LIBRARY_NVML},
#include "hook/hooks.def"
#define CALL(symbol) [CW_HOOK_##symbol] = {#symbol, NULL, 0, 0, CW_LIBRARY_DRIVER},
#include "hook/hooks.def"
#define NVML_CALL(symbol) [CW_HOOK_##symbol] = {#symbol, NULL, 0, 0, CW_LIBRARY_NVML},
#include "hook/hooks.def"
};

_Atomic(void *) cw_real[CW_REAL_COUNT];

/* Open addressing over the symbols, made by the first thread that asks: a process without CUDA
 * never does. A slot holds row + 1. */
#define NAME_SLOTS 1024
static uint16_t names[NAME_SLOTS];
static atomic_flag names_begun = ATOMIC_FLAG_INIT;
static _Atomic int names_ready;

_Static_assert(CW_HOOK_COUNT < NAME_SLOTS / 2, "grow NAME_SLOTS");

static void index_names(void)
{
    for (int row = 0; row < CW_HOOK_COUNT; row++) {
        uint32_t i = (uint32_t)cw_hash_text(cw_hook_rows[row].symbol) & (NAME_SLOTS - 1);

        while (names[i] != 0)
            i = (i + 1) & (NAME_SLOTS - 1);
        names[i] = (uint16_t)(row + 1);
    }
    atomic_store_explicit(&names_ready, 1, memory_order_release);
}

/* Nobody waits for the thread that makes the index, which a fork may have ended. */
static int find_slowly(const char *symbol)
{
    for (int row = 0; row < CW_HOOK_COUNT; row++)
        if (strcmp(cw_hook_rows[row].symbol, symbol) == 0)
            return row;
    return -1;
}

int cw_hook_find(const char *symbol)
{
    if (CW_UNLIKELY(!atomic_load_explicit(&names_ready, memory_order_acquire))) {
        if (atomic_flag_test_and_set(&names_begun))
            return find_slowly(symbol);
        index_names();
    }
    for (uint32_t i = (uint32_t)cw_hash_text(symbol) & (NAME_SLOTS - 1); names[i] != 0;
         i = (i + 1) & (NAME_SLOTS - 1))
        if (strcmp(cw_hook_rows[names[i] - 1].symbol, symbol) == 0)
            return names[i] - 1;
    return -1;
}

/* A function without a variant for the per-thread stream has one variant for both. */
static int best_row(const char *base, int version, int stream)
{
    int best = -1;

    for (int row = 0; row < CW_HOOK_COUNT; row++) {
        const struct cw_hook_row *r = &cw_hook_rows[row];

        if (r->base != NULL && r->stream == stream && r->since <= version &&
            strcmp(r->base, base) == 0 && (best < 0 || cw_hook_rows[best].since < r->since))
            best = row;
    }
    return best;
}

int cw_hook_find_versioned(const char *base, int version, enum cw_stream_flavour stream)
{
    int row = -1;

    /* A newer request may be answered with an ABI that no row knows. */
    if (version > CW_NEWEST_KNOWN_CUDA)
        return -1;
    if (stream == CW_STREAM_THREAD)
        row = best_row(base, version, CW_STREAM_THREAD);
    return row >= 0 ? row : best_row(base, version, CW_STREAM_LEGACY);
}

static CUresult no_driver(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult not_in_this_driver(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

void *cw_real_lookup(enum cw_hook hook)
{
    struct cw_object other;
    void *real;

    cw_resolve_libraries();
    real = atomic_load_explicit(&cw_real[hook], memory_order_relaxed);
    if (real != NULL)
        return real;
    if (cw_resolve_is_loaded(cw_hook_rows[hook].library))
        return (void *)&not_in_this_driver;
    if (cw_resolve_stand_in(&other))
        real = cw_object_symbol(&other, cw_hook_rows[hook].symbol);
    return real != NULL ? real : (void *)&no_driver;
}
