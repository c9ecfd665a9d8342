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
    unsigned version; /* a negative one is newer than all */
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
    if ((unsigned)row->since > lookup->version)
        return;
    if (row->flavour != SIM_PLAIN && !lookup->wants_per_thread)
        return;
    if (is_better(lookup, index))
        lookup->best = (int)index;
}

static int resolve(struct lookup *lookup)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (!strcmp(renamed[i].base, lookup->base) &&
            lookup->version >= (unsigned)renamed[i].since &&
            sim.config.driver_version >= renamed[i].since)
            return sim_row_find(renamed[i].symbol);
    for (unsigned i = 0; i < sim_nrows; i++)
        consider(lookup, i);
    return lookup->best;
}

/* The row, -1: unknown, or CUDA_ERROR_INVALID_VALUE in *result. */
static int row_of(struct lookup *lookup, void **out, cuuint64_t flags, CUresult *result)
{
    *result = CUDA_ERROR_INVALID_VALUE;
    if (!lookup->base || !out ||
        (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)))
        return -1;
    *result = CUDA_SUCCESS;
    lookup->wants_per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    return resolve(lookup);
}

static void *address_of(int row)
{
    return sim.config.is_private ? sim_row_private((unsigned)row) : sim_row_export((unsigned)row);
}

/* As drivers 535 and 550 do: that nothing was found is no error, and wrong flags change nothing. */
CUresult sim_cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *symbol_status)
{
    struct lookup lookup = {.base = name, .version = (unsigned)version, .best = -1};
    CUresult result;
    int row = row_of(&lookup, out, flags, &result);

    if (result != CUDA_SUCCESS)
        return result;
    *out = row < 0 ? NULL : address_of(row);
    if (symbol_status)
        *symbol_status = row >= 0          ? CU_GET_PROC_ADDRESS_SUCCESS
                         : lookup.is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

/* As those drivers do: here it is one, and leaves the pointer alone. */
CUresult sim_cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
    struct lookup lookup = {.base = name, .version = (unsigned)version, .best = -1};
    CUresult result;
    int row = row_of(&lookup, out, flags, &result);

    if (row >= 0)
        *out = address_of(row);
    return result == CUDA_SUCCESS && row < 0 ? CUDA_ERROR_NOT_FOUND : result;
}

/* A real driver's private tables are none of our business. */
CUresult sim_cuGetExportTable(const void **out, const CUuuid *id)
{
    (void)id;
    if (out)
        *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
