/* SPDX-License-Identifier: MIT */
/* cuGetProcAddress: from a base name, a version and a flavour to the newest row that fits. */
#include "sim.h"

#include <string.h>

/* Names whose newest meaning is another function's; the header's #define says so. */
static const struct {
    const char *base, *symbol;
    int since;
} renamed[] = {
    {"cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000},
};

struct lookup {
    const char *base;
    int version;
    bool wants_per_thread;
    int best;      /* row, or -1 */
    bool is_known; /* some version of it exists */
};

static bool is_better(const struct lookup *lookup, unsigned index)
{
    const struct sim_row *row = &sim_rows[index], *best;

    if (lookup->best < 0)
        return true;
    best = &sim_rows[lookup->best];
    if ((row->flavour != SIM_PLAIN) != (best->flavour != SIM_PLAIN))
        return row->flavour != SIM_PLAIN;
    return row->since > best->since;
}

static void consider(struct lookup *lookup, unsigned index)
{
    const struct sim_row *row = &sim_rows[index];

    if (strcmp(row->base, lookup->base))
        return;
    if (row->since > sim.config.driver_version || !sim_row_export(index))
        return;
    lookup->is_known = true;
    if (row->since > lookup->version)
        return;
    if (row->flavour != SIM_PLAIN && !lookup->wants_per_thread)
        return;
    if (is_better(lookup, index))
        lookup->best = (int)index;
}

static int resolve(struct lookup *lookup)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (!strcmp(renamed[i].base, lookup->base) && lookup->version >= renamed[i].since &&
            sim.config.driver_version >= renamed[i].since)
            return sim_row_find(renamed[i].symbol);
    for (unsigned i = 0; i < sim_nrows; i++)
        consider(lookup, i);
    return lookup->best;
}

CUresult sim_cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *symbol_status)
{
    struct lookup lookup = {.base = name, .version = version, .best = -1};
    int row;

    if (!name || !out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    if (symbol_status)
        *symbol_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                              CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    lookup.wants_per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    row = resolve(&lookup);
    if (row < 0) {
        if (symbol_status && lookup.is_known)
            *symbol_status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        return CUDA_ERROR_NOT_FOUND;
    }
    *out = sim.config.is_private ? sim_row_private((unsigned)row) : sim_row_export((unsigned)row);
    if (symbol_status)
        *symbol_status = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
    return sim_cuGetProcAddress_v2(name, out, version, flags, NULL);
}

/* A real driver's private tables are none of our business. */
CUresult sim_cuGetExportTable(const void **out, const CUuuid *id)
{
    (void)id;
    if (out)
        *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
