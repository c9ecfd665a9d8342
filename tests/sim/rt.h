/* SPDX-License-Identifier: MIT */
/* What the files of the stand-in runtime share: the driver's functions, the device of a thread and
 * the last error.
 *
 * The runtime is a thin layer: it finds the driver the way NVIDIA's does, by dlopen and
 * cuGetProcAddress, retains primary contexts lazily, and translates. rt_work.c is compiled twice,
 * once per meaning of stream 0. `RT` is the table of driver functions for the file's meaning.
 */
#ifndef CUSIM_RT_H
#define CUSIM_RT_H

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#undef __CUDA_API_VERSION_INTERNAL /* the runtime's names, though, are to be renamed per flavour   \
                                    */
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>

#include "sim_elsewhere.h"
cudaError_t cudaProfilerStart(void),
    cudaProfilerStop(void); /* cuda_profiler_api.h is in no wheel */
/* cuda_gl_interop.h needs OpenGL's headers. */
cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource_t *out, unsigned int buffer,
                                         unsigned int flags);

struct rt_driver {
#define FN(symbol, base, since) __typeof__(&symbol) symbol;
#include "rt_driver.def"
#undef FN
};

extern struct rt_driver rt_drivers[2]; /* legacy and per-thread default stream */

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define RT (&rt_drivers[1])
#else
#define RT (&rt_drivers[0])
#endif

/* Loads the driver and calls cuInit, once; no context yet. */
cudaError_t rt_load(void);
/* The same, and makes a context current: what every call that needs a device starts with. */
cudaError_t rt_begin(void);
/* Remembers an error for cudaGetLastError and passes it on. */
cudaError_t rt_note(cudaError_t status);
cudaError_t rt_end(CUresult status);
int rt_device(void);
CUfunction rt_function(const void *function);
/* A kernel of code from nvcc, by its host stub, or one that was adopted; NULL if it is neither. */
CUfunction rt_registered(const void *host);
/* From now on the driver's handle is taken where a host stub is. */
cudaKernel_t rt_adopt(CUkernel kernel);

/* Copies as the driver takes them. Which side is a host address, by kind; unified where the driver
 * shall find out. */
void rt_set_types(CUDA_MEMCPY3D_v2 *region, enum cudaMemcpyKind kind);
CUDA_MEMCPY3D_v2 rt_plane(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                          size_t width, size_t height);
/* With an array on either side, widths and x positions count its elements. */
CUDA_MEMCPY3D_v2 rt_region(const struct cudaMemcpy3DParms *params);

#endif
