/* SPDX-License-Identifier: MIT */
/*
 * api/transfer_ops.h over the driver. Pinned memory is taken as the program would, so that the
 * account has it; streams, events and copies are the driver's alone. No state.
 */
#include "hook/bodies/entries.h" /* first */
#include "hook/bodies/transfer_driver.h"

#include "base/float_env.h"
#include "hook/bodies/buffer_driver.h"
#include "hook/resolve/hook_table.h"

_Static_assert(CW_TRANSFER_NOT_READY == CUDA_ERROR_NOT_READY, "a code of cuda.h");

/* Pinned for all contexts, so that the program may upload from it anywhere. */
static int host_alloc(uint64_t bytes, void **out)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, cuMemHostAlloc(out, bytes, CU_MEMHOSTALLOC_PORTABLE));
    return (int)rc;
}

static int host_free(void *address)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, cuMemFreeHost(address));
    return (int)rc;
}

static int stream_create(void **out)
{
    return (int)CW_REAL(cuStreamCreate)((CUstream *)out, CU_STREAM_NON_BLOCKING);
}

/* As the program: what the account knows of a stream goes with it. */
static int stream_destroy(void *stream)
{
    CUresult rc;

    CW_AS_PROGRAM(rc, cuStreamDestroy_v2((CUstream)stream));
    return (int)rc;
}

static int stream_wait(void *stream)
{
    return (int)CW_REAL(cuStreamSynchronize)((CUstream)stream);
}

static int event_create(int is_timed, void **out)
{
    return (int)CW_REAL(cuEventCreate)((CUevent *)out,
                                       is_timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
}

static int event_destroy(void *event)
{
    return (int)CW_REAL(cuEventDestroy_v2)((CUevent)event);
}

static int event_record(void *event, void *stream)
{
    return (int)CW_REAL(cuEventRecord)((CUevent)event, (CUstream)stream);
}

static int event_order(void *event, void *stream)
{
    return (int)CW_REAL(cuStreamWaitEvent)((CUstream)stream, (CUevent)event, 0);
}

static int event_query(void *event)
{
    return (int)CW_REAL(cuEventQuery)((CUevent)event);
}

static int event_wait(void *event)
{
    return (int)CW_REAL(cuEventSynchronize)((CUevent)event);
}

static int event_elapsed(void *begin, void *end, uint64_t *out_ns)
{
    struct cw_float_env env =
        cw_float_hold(); /* the driver uses floats, in a call that the program did not make */
    float ms = 0;
    CUresult rc = CW_REAL(cuEventElapsedTime)(&ms, (CUevent)begin, (CUevent)end);

    cw_float_release(&env);
    if (rc == CUDA_SUCCESS)
        *out_ns = cw_float_times(ms, 1000000);
    return (int)rc;
}

static int download(void *to, uint64_t from, uint64_t bytes, void *stream)
{
    return (int)CW_REAL(cuMemcpyDtoHAsync_v2)(to, from, bytes, (CUstream)stream);
}

const struct cw_transfer_ops cw_transfer_driver = {
    .host_alloc = host_alloc,
    .host_free = host_free,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_wait = stream_wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_order = event_order,
    .event_query = event_query,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
    .download = download,
};
