/* SPDX-License-Identifier: MIT */
/*
 * What growable buffers need of the driver (api/buffers.h). The hook layer gives functions that
 * call the driver as the program would, so that limits, budgets, tags, stacks and reports have what
 * buffers hold; unit tests give a fake.
 *
 * For every function:
 *   - No lock is held, and no stream captures. The thread counts as inside a hook (cw_api_enter); a
 *     function for which the program's hooks are to work leaves it (cw_api_pause).
 *   - It returns the driver's code, 0 for success, and writes its out-parameters on 0 only.
 *   - A code that stays with the context comes out as it is; nothing clears it.
 *   - All but place, reserve, unreserve and unmap are called between enter and leave of the
 *     buffer's context.
 */
#ifndef CW_API_BUFFER_OPS_H
#define CW_API_BUFFER_OPS_H

#include <stdint.h>

#include "core/process/driver_ops.h"

/* Codes that are told apart (cuda.h). */
#define CW_BUFFER_NO_MEMORY     2   /* CUDA_ERROR_OUT_OF_MEMORY */
#define CW_BUFFER_NO_CONTEXT    201 /* CUDA_ERROR_INVALID_CONTEXT */
#define CW_BUFFER_CONTEXT_ENDED 709 /* CUDA_ERROR_CONTEXT_IS_DESTROYED */

struct cw_buffer_place {
    struct cw_context_name context;
    uint32_t record;  /* of core/device/context.h; 0: not known (place.h) */
    uint8_t device;   /* ordinal */
    uint64_t total;   /* bytes that the device has */
    uint64_t granule; /* of memory that is mapped; 0: the device cannot map */
};

struct cw_buffer_ops {
    /* Of the calling thread's current context. */
    int (*place)(struct cw_buffer_place *out);
    /* Makes the context current, if it is not; leave undoes it. CW_BUFFER_CONTEXT_ENDED: it is no
     * more. */
    int (*enter)(struct cw_context_name context, int *out_pushed);
    void (*leave)(struct cw_context_name context, int pushed);

    /* Addresses without memory. */
    int (*reserve)(uint64_t bytes, uint64_t *out_address);
    int (*unreserve)(uint64_t address, uint64_t bytes);
    /* Takes memory of the device and puts it there, to be read and written by the device. On
     * failure nothing is taken. bytes: of whole granules. */
    int (*map)(uint8_t device, uint64_t address, uint64_t bytes);
    /* Takes the memory of one call of map away and frees it. */
    int (*unmap)(uint64_t address, uint64_t bytes);

    int (*alloc)(uint64_t bytes, uint64_t *out_address);
    int (*free)(uint64_t address);

    /* Orders a copy after the work of the stream. */
    int (*copy)(uint64_t to, uint64_t from, uint64_t bytes, void *stream);
    int (*wait_stream)(void *stream);
    int (*wait_context)(void);
    /* What an allocation may hope for: free, or idle and the program's for the asking. */
    int (*room)(uint64_t *out_bytes);
};

#endif
