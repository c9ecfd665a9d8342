/* SPDX-License-Identifier: MIT */
/*
 * The driver for programs that are built with a C compiler alone: no header of CUDA and no library
 * is needed, every function comes from libcuda.so.1 at run time. Where the driver lacks one, its
 * pointer is null. Three kernels come as PTX for the oldest target that the driver takes; over the
 * simulated driver of tests/sim its kernels of the same names and arguments stand in.
 */
#ifndef CU_H
#define CU_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../e2e/victims/say.h"

typedef uint64_t cu_block;
struct cu_ipc {
    char bytes[64];
};

/* CU(NAME, EXPORT, ARGUMENTS) for each function that the programs call. */
#define CU_FUNCTIONS(CU)                                                                           \
    CU(init, "cuInit", (unsigned))                                                                 \
    CU(count, "cuDeviceGetCount", (int *))                                                         \
    CU(device, "cuDeviceGet", (int *, int))                                                        \
    CU(name, "cuDeviceGetName", (char *, int, int))                                                \
    CU(total, "cuDeviceTotalMem_v2", (size_t *, int))                                              \
    CU(attribute, "cuDeviceGetAttribute", (int *, int, int))                                       \
    CU(retain, "cuDevicePrimaryCtxRetain", (void **, int))                                         \
    CU(reset, "cuDevicePrimaryCtxReset_v2", (int))                                                 \
    CU(create, "cuCtxCreate_v2", (void **, unsigned, int))                                         \
    CU(set, "cuCtxSetCurrent", (void *))                                                           \
    CU(current, "cuCtxGetCurrent", (void **))                                                      \
    CU(synchronize, "cuCtxSynchronize", (void))                                                    \
    CU(record_context, "cuCtxRecordEvent", (void *, void *))                                       \
    CU(alloc, "cuMemAlloc_v2", (cu_block *, size_t))                                               \
    CU(free_block, "cuMemFree_v2", (cu_block))                                                     \
    CU(alloc_host, "cuMemHostAlloc", (void **, size_t, unsigned))                                  \
    CU(free_host, "cuMemFreeHost", (void *))                                                       \
    CU(alloc_async, "cuMemAllocAsync", (cu_block *, size_t, void *))                               \
    CU(free_async, "cuMemFreeAsync", (cu_block, void *))                                           \
    CU(info, "cuMemGetInfo_v2", (size_t *, size_t *))                                              \
    CU(range, "cuMemGetAddressRange_v2", (cu_block *, size_t *, cu_block))                         \
    CU(pointer, "cuPointerGetAttribute", (void *, int, cu_block))                                  \
    CU(ipc, "cuIpcGetMemHandle", (struct cu_ipc *, cu_block))                                      \
    CU(to_host, "cuMemcpyDtoH_v2", (void *, cu_block, size_t))                                     \
    CU(set_bytes, "cuMemsetD8_v2", (cu_block, unsigned char, size_t))                              \
    CU(set_words_async, "cuMemsetD32Async", (cu_block, unsigned, size_t, void *))                  \
    CU(stream, "cuStreamCreate", (void **, unsigned))                                              \
    CU(end_stream, "cuStreamDestroy_v2", (void *))                                                 \
    CU(wait_stream, "cuStreamSynchronize", (void *))                                               \
    CU(wait_event, "cuStreamWaitEvent", (void *, void *, unsigned))                                \
    CU(event, "cuEventCreate", (void **, unsigned))                                                \
    CU(record, "cuEventRecord", (void *, void *))                                                  \
    CU(query, "cuEventQuery", (void *))                                                            \
    CU(begin_capture, "cuStreamBeginCapture_v2", (void *, int))                                    \
    CU(end_capture, "cuStreamEndCapture", (void *, void **))                                       \
    CU(end_graph, "cuGraphDestroy", (void *))                                                      \
    CU(load, "cuModuleLoadData", (void **, const void *))                                          \
    CU(function, "cuModuleGetFunction", (void **, void *, const char *))                           \
    CU(launch, "cuLaunchKernel",                                                                   \
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,      \
        void **, void **))

#define CU_MEMBER(name, export, arguments) int(*name) arguments;
static struct {
    CU_FUNCTIONS(CU_MEMBER)
} cu;

struct cu_kernels {
    void *fill;  /* (u32 *to, u32 value, u64 n) */
    void *check; /* (const u32 *from, u32 value, u64 n, u32 *mismatches) */
    void *spin;  /* (u64 microseconds) */
};

static void *cu_library;

static inline uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define CU_THREAD_INDEX                                                                            \
    "  mov.u32 %%r2, %%ctaid.x; mov.u32 %%r3, %%ntid.x; mov.u32 %%r4, %%tid.x;\n"                  \
    "  mul.wide.u32 %%d3, %%r2, %%r3; cvt.u64.u32 %%d4, %%r4; add.s64 %%d3, %%d3, %%d4;\n"         \
    "  mov.u32 %%r5, %%nctaid.x; mul.wide.u32 %%d5, %%r5, %%r3;\n"

/* A format: version and target are its values. */
static const char cu_ptx[] =
    ".version %s\n.target sm_%d\n.address_size 64\n"
    ".visible .entry fill(.param .u64 p_to, .param .u32 p_value,\n"
    "  .param .u64 p_n)\n"
    "{\n"
    "  .reg .pred %%p<2>; .reg .b32 %%r<6>; .reg .b64 %%d<7>;\n"
    "  ld.param.u64 %%d1, [p_to]; cvta.to.global.u64 %%d1, %%d1;\n"
    "  ld.param.u32 %%r1, [p_value]; ld.param.u64 %%d2, [p_n];\n" CU_THREAD_INDEX "again:\n"
    "  setp.ge.u64 %%p1, %%d3, %%d2;\n"
    "  @%%p1 bra done;\n"
    "  shl.b64 %%d6, %%d3, 2; add.s64 %%d6, %%d1, %%d6;\n"
    "  st.volatile.global.u32 [%%d6], %%r1;\n"
    "  add.s64 %%d3, %%d3, %%d5;\n"
    "  bra again;\n"
    "done:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry check(.param .u64 p_from, .param .u32 p_value,\n"
    "  .param .u64 p_n, .param .u64 p_mismatches)\n"
    "{\n"
    "  .reg .pred %%p<3>; .reg .b32 %%r<8>; .reg .b64 %%d<8>;\n"
    "  ld.param.u64 %%d1, [p_from]; cvta.to.global.u64 %%d1, %%d1;\n"
    "  ld.param.u32 %%r1, [p_value]; ld.param.u64 %%d2, [p_n];\n"
    "  ld.param.u64 %%d7, [p_mismatches]; cvta.to.global.u64 %%d7, %%d7;\n"
    "  mov.u32 %%r7, 1;\n" CU_THREAD_INDEX "again:\n"
    "  setp.ge.u64 %%p1, %%d3, %%d2;\n"
    "  @%%p1 bra done;\n"
    "  shl.b64 %%d6, %%d3, 2; add.s64 %%d6, %%d1, %%d6;\n"
    "  ld.volatile.global.u32 %%r6, [%%d6];\n"
    "  setp.ne.u32 %%p2, %%r6, %%r1;\n"
    "  @%%p2 red.global.add.u32 [%%d7], %%r7;\n"
    "  add.s64 %%d3, %%d3, %%d5;\n"
    "  bra again;\n"
    "done:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry spin(.param .u64 p_microseconds)\n"
    "{\n"
    "  .reg .pred %%p<2>; .reg .b64 %%d<4>;\n"
    "  ld.param.u64 %%d1, [p_microseconds]; mul.lo.u64 %%d1, %%d1, 1000;\n"
    "  mov.u64 %%d2, %%globaltimer;\n"
    "again:\n"
    "  mov.u64 %%d3, %%globaltimer; sub.s64 %%d3, %%d3, %%d2;\n"
    "  setp.lt.u64 %%p1, %%d3, %%d1;\n"
    "  @%%p1 bra again;\n"
    "  ret;\n"
    "}\n";

/* Drivers of new devices may refuse old targets. */
static inline int cu_load_ptx(void **module)
{
    static const struct {
        const char *version;
        int target;
    } targets[] = {{"6.3", 50}, {"6.3", 75}, {"7.8", 90}};
    static char text[sizeof(cu_ptx) + 16];
    int status = 1;

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]) && status != 0; i++) {
        snprintf(text, sizeof(text), cu_ptx, targets[i].version, targets[i].target);
        status = cu.load(module, text);
    }
    return status;
}

static inline struct cu_kernels cu_load_kernels(void)
{
    struct cu_kernels kernels;
    void *module;

    if (dlsym(cu_library, "cusim_calls"))
        MUST(cu.load(&module, "cusim 1\nkernel fill\nkernel check\nkernel spin\n"));
    else
        MUST(cu_load_ptx(&module));
    MUST(cu.function(&kernels.fill, module, "fill"));
    MUST(cu.function(&kernels.check, module, "check"));
    MUST(cu.function(&kernels.spin, module, "spin"));
    return kernels;
}

/* Its functions, which answer only after cu_open, except for those that need no device. */
static inline void cu_find(void)
{
    cu_library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cu_library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(99);
    }
#define CU_FIND(name, export, arguments) *(void **)&cu.name = dlsym(cu_library, export);
    CU_FUNCTIONS(CU_FIND)
#undef CU_FIND
}

static inline void cu_open(void)
{
    cu_find();
    MUST(cu.init(0));
}

/* The primary context of device 0, made current. */
static inline void *cu_begin(void)
{
    void *context;
    int device;

    cu_open();
    MUST(cu.device(&device, 0));
    MUST(cu.retain(&context, device));
    MUST(cu.set(context));
    return context;
}

static inline int cu_fill(const struct cu_kernels *kernels, cu_block to, uint32_t value,
                          uint64_t words, void *stream)
{
    void *arguments[] = {&to, &value, &words};

    return cu.launch(kernels->fill, 64, 1, 1, 128, 1, 1, 0, stream, arguments, NULL);
}

static inline int cu_check(const struct cu_kernels *kernels, cu_block from, uint32_t value,
                           uint64_t words, cu_block mismatches, void *stream)
{
    void *arguments[] = {&from, &value, &words, &mismatches};

    return cu.launch(kernels->check, 64, 1, 1, 128, 1, 1, 0, stream, arguments, NULL);
}

static inline int cu_spin(const struct cu_kernels *kernels, uint64_t microseconds, void *stream)
{
    void *arguments[] = {&microseconds};

    return cu.launch(kernels->spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

#endif
