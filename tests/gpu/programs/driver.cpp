/* SPDX-License-Identifier: MIT */
/* The driver API alone, without a runtime: a kernel from PTX, two contexts, and one block that goes
 * with its context. */
#include "gpu.h"
#include "kernel.h"

#include <cuda.h>
#include <string>

/* void fill_threes(u32 *block, u32 count): block[i] = 3 * i + 1, one thread each. */
static const char fill_ptx[] = ".address_size 64\n"
                               ".visible .entry fill_threes(.param .u64 block, .param .u32 count)\n"
                               "{\n"
                               "  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
                               "  ld.param.u64 %d1, [block];\n"
                               "  ld.param.u32 %r1, [count];\n"
                               "  mov.u32 %r2, %ctaid.x;\n"
                               "  mov.u32 %r3, %ntid.x;\n"
                               "  mov.u32 %r4, %tid.x;\n"
                               "  mad.lo.s32 %r5, %r2, %r3, %r4;\n"
                               "  setp.ge.u32 %p1, %r5, %r1;\n"
                               "  @%p1 bra done;\n"
                               "  mad.lo.s32 %r6, %r5, 3, 1;\n"
                               "  cvta.to.global.u64 %d1, %d1;\n"
                               "  mul.wide.u32 %d2, %r5, 4;\n"
                               "  add.s64 %d3, %d1, %d2;\n"
                               "  st.global.u32 [%d3], %r6;\n"
                               "done:\n"
                               "  ret;\n"
                               "}\n";

#define COUNT 10000u

/* The same for the simulated GPU, which does not read PTX. */
static void fill_on_host(const struct cusim_launch *launch)
{
    unsigned *block = (unsigned *)launch->arguments[0];

    for (unsigned i = 0; i < (unsigned)launch->arguments[1]; i++)
        block[i] = 3 * i + 1;
}

/* Drivers of new devices may refuse old targets. */
static CUresult load_ptx(CUmodule *module)
{
    static const char *const targets[] = {".version 6.3\n.target sm_50\n",
                                          ".version 6.3\n.target sm_75\n",
                                          ".version 7.8\n.target sm_90\n"};
    CUresult result = CUDA_ERROR_INVALID_PTX;

    for (const char *target : targets)
        if (result != CUDA_SUCCESS)
            result = cuModuleLoadData(module, (std::string(target) + fill_ptx).c_str());
    return result;
}

/* Has the kernel defined, where it is not PTX. */
static CUresult load(CUmodule *module)
{
    static const struct cusim_kernel kernel = {"fill_threes", 2, {8, 4}, 1, fill_on_host};

    auto *define = control<decltype(cusim_define_kernel)>("cusim_define_kernel");

    if (define == NULL)
        return load_ptx(module);
    define(&kernel);
    return cuModuleLoadData(module, "cusim 1\nkernel fill_threes\n");
}

static CUcontext create_context(CUdevice device)
{
    CUcontext context;

#if CUDA_VERSION >= 13000
    MUST(cuCtxCreate(&context, NULL, 0, device));
#else
    MUST(cuCtxCreate(&context, 0, device));
#endif
    return context;
}

SITE unsigned compute(void)
{
    static unsigned back[COUNT];
    unsigned count = COUNT, wrong = 0;
    CUfunction function;
    CUdeviceptr block;
    CUmodule module;

    MUST(cuMemAlloc(&block, sizeof(back)));
    MUST(load(&module));
    MUST(cuModuleGetFunction(&function, module, "fill_threes"));
    void *arguments[] = {&block, &count};
    MUST(cuLaunchKernel(function, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
    MUST(cuMemcpyDtoH(back, block, sizeof(back)));
    for (unsigned i = 0; i < COUNT; i++)
        wrong += back[i] != 3 * i + 1;
    MUST(cuModuleUnload(module));
    MUST(cuMemFree(block));
    say("json {(s['live']['count'], s['api']) for s in sites('compute') if s['kind'] == 'device'"
        " and s['total']['count']}"
        " == {(0, 'cuMemAlloc')}");
    return wrong;
}

SITE void keep_one(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 22222));
    MUST(cuMemsetD8(block, 1, 22222));
    say("json live('keep_one') == (1, 22222)");
}

SITE void lose_with_context(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 33333));
    say("json site('lose_with_context')['class'] == 'context-destroyed'");
    say("json site('lose_with_context')['reclaimed'] == {'count': 1, 'bytes': 33333}");
}

SITE void keep_pinned(void)
{
    void *block;

    MUST(cuMemHostAlloc(&block, 4444, CU_MEMHOSTALLOC_PORTABLE));
    memset(block, 1, 4444);
    say("json live('keep_pinned') == (1, 4444) and site('keep_pinned')['device'] == 'host'");
}

int main(void)
{
    CUcontext primary, second;
    CUdevice device;
    unsigned wrong;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuCtxSetCurrent(primary));
    wrong = compute();
    keep_one();
    keep_pinned();
    second = create_context(device);
    lose_with_context();
    wrong += compute();
    MUST(cuCtxSynchronize());
    MUST(cuCtxDestroy(second));
    MUST(cuCtxSetCurrent(primary));
    MUST(cuCtxSynchronize());
    say("%u elements are wrong", wrong);
    say("expect leaked_bytes=%d leaked_blocks=3 leak_sites=3", 22222 + 33333 + 4444);
    say("expect allocs=5 frees=2 failed=0");
    return wrong != 0;
}
