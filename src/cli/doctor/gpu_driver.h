/* SPDX-License-Identifier: MIT */
/*
 * The driver as `cuwarden doctor --gpu` calls it: by name, without a header of CUDA, in a process
 * that exists for nothing else. Results are the driver's codes; what it lacks is NULL.
 */
#ifndef CW_CLI_GPU_DRIVER_H
#define CW_CLI_GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#define CW_GPU_NOT_READY    600
#define CW_GPU_NON_BLOCKING 1 /* of a stream */
#define CW_GPU_NO_TIMING    2 /* of an event */

/* X(NAME, EXPORT, NEEDED, ARGUMENTS): drivers from 11.4 on have those that are needed. */
#define CW_GPU_FUNCTIONS(X)                                                                        \
    X(init, "cuInit", 1, (unsigned))                                                               \
    X(version, "cuDriverGetVersion", 1, (int *))                                                   \
    X(count, "cuDeviceGetCount", 1, (int *))                                                       \
    X(name, "cuDeviceGetName", 1, (char *, int, int))                                              \
    X(total, "cuDeviceTotalMem_v2", 1, (size_t *, int))                                            \
    X(attribute, "cuDeviceGetAttribute", 1, (int *, int, int))                                     \
    X(bus, "cuDeviceGetPCIBusId", 1, (char *, int, int))                                           \
    X(retain, "cuDevicePrimaryCtxRetain", 1, (void **, int))                                       \
    X(set, "cuCtxSetCurrent", 1, (void *))                                                         \
    X(current, "cuCtxGetCurrent", 1, (void **))                                                    \
    X(id, "cuCtxGetId", 0, (void *, unsigned long long *))                                         \
    X(synchronize, "cuCtxSynchronize", 1, (void))                                                  \
    X(record_context, "cuCtxRecordEvent", 0, (void *, void *))                                     \
    X(alloc, "cuMemAlloc_v2", 1, (uint64_t *, size_t))                                             \
    X(free_block, "cuMemFree_v2", 1, (uint64_t))                                                   \
    X(range, "cuMemGetAddressRange_v2", 1, (uint64_t *, size_t *, uint64_t))                       \
    X(pointer, "cuPointerGetAttribute", 1, (void *, int, uint64_t))                                \
    X(stream, "cuStreamCreate", 1, (void **, unsigned))                                            \
    X(stream_query, "cuStreamQuery", 1, (void *))                                                  \
    X(host_function, "cuLaunchHostFunc", 1, (void *, void (*)(void *), void *))                    \
    X(event, "cuEventCreate", 1, (void **, unsigned))                                              \
    X(event_query, "cuEventQuery", 1, (void *))                                                    \
    X(begin_capture, "cuStreamBeginCapture_v2", 1, (void *, int))                                  \
    X(end_capture, "cuStreamEndCapture", 1, (void *, void **))                                     \
    X(end_graph, "cuGraphDestroy", 1, (void *))                                                    \
    X(address, "cuGetProcAddress_v2", 0, (const char *, void **, int, uint64_t, int *))

struct cw_gpu_driver {
    void *library;
    void *context; /* the primary one of the device that is looked at */
#define X(name, export, is_needed, arguments) int(*name) arguments;
    CW_GPU_FUNCTIONS(X)
#undef X
};

/* 0; -1: there is no libcuda.so.1, or it lacks what is needed: *out_why says why. */
int cw_gpu_driver_open(struct cw_gpu_driver *out, const char **out_why);

#endif
