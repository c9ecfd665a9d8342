/* SPDX-License-Identifier: MIT */
/* Memory that a call takes on the way: code that is loaded when first needed, page tables, room for
 * an object. Any function may be told to take some of the current context's device, once, and to
 * keep it; without room the call is out of memory before it does anything. Guarded by sim.lock.
 */
#include "sim_take.h"

#define MOST 16 /* functions at a time */

static struct take {
    unsigned index;
    size_t wanted, taken; /* wanted 0: nobody's */
    int device;
} takes[MOST];

CUresult sim_take(unsigned index)
{
    for (struct take *take = takes; take < takes + MOST; take++) {
        const struct sim_context *ctx = sim_context_current();

        if (take->wanted == 0 || take->index != index || take->taken != 0)
            continue;
        take->device = ctx ? ctx->device : 0;
        if (!sim_device_charge(take->device, take->wanted))
            return CUDA_ERROR_OUT_OF_MEMORY;
        take->taken = take->wanted;
    }
    return CUDA_SUCCESS;
}

void sim_take_set(const char *symbol, size_t bytes)
{
    int index = sim_row_find(symbol);
    struct take *free = NULL;

    for (struct take *take = takes; take < takes + MOST; take++) {
        if (take->wanted != 0 && (int)take->index == index) {
            sim_device_discharge(take->device, take->taken);
            *take = (struct take){0};
        }
        if (take->wanted == 0)
            free = take;
    }
    if (free && index >= 0)
        *free = (struct take){.index = (unsigned)index, .wanted = bytes};
}
