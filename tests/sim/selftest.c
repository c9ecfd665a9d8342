/* SPDX-License-Identifier: MIT */
/* Proves that the simulated GPU behaves as README.md says. Prints TAP; exits 1 if a test fails.
 *
 * Run with libcuda.so.1 of the simulated GPU on LD_LIBRARY_PATH. `selftest old` tests the driver of
 * CUDA 11.4; `selftest ipc` and `selftest report` are its own child processes.
 */
#include <cuda.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "selftest.h"

static const char *self;
static CUcontext ctx;

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000;
}

/* ---- allocation ---- */

static void test_accounting(void)
{
    size_t before = free_bytes(), total;
    CUdeviceptr one, two;
    size_t pitch;

    must(cuDeviceTotalMem(&total, 0));
    ok(total == 1u << 30, "a device has the memory CUSIM_MEMORY says");
    ok(total - before == 16u << 20, "a context costs what CUSIM_CONTEXT_BYTES says");
    must(cuMemAlloc(&one, 1000));
    ok(before - free_bytes() == 1024, "an allocation is charged in units of 512 bytes");
    ok(one % 512 == 0, "device pointers are aligned to 512 bytes");
    ok(cusim_live_bytes(CUSIM_DEVICE, 0) == 1000, "live bytes are counted as asked for");
    must(cuMemFree(one));
    must(cuMemAlloc(&two, 900));
    ok(one == two, "a freed address is reused at once");
    must(cuMemFree(two));
    ok(free_bytes() == before, "a free gives the charge back");
    must(cuMemAllocPitch(&one, &pitch, 100, 10, 4));
    ok(pitch == 512 && before - free_bytes() == 5120, "a pitch is a multiple of 512");
    must(cuMemFree(one));
    ok(cuMemAlloc(&one, before + 1) == CUDA_ERROR_OUT_OF_MEMORY, "too much is out of memory");
    ok(cuMemAlloc(&one, 0) == CUDA_ERROR_INVALID_VALUE, "nothing cannot be allocated");
    must(cuMemAlloc(&one, before));
    ok(free_bytes() == 0, "all of the memory can be allocated");
    must(cuMemFree(one));
}

static void test_churn(void)
{
    CUdeviceptr blocks[64] = {0};
    size_t before = free_bytes();
    bool is_fine = true;

    /* Sizes that never repeat use the address space up; ranges must then be merged and split. */
    for (unsigned i = 0; i < 40000; i++) {
        unsigned slot = i % 64;

        if (blocks[slot])
            is_fine = is_fine && cuMemFree(blocks[slot]) == CUDA_SUCCESS;
        is_fine = is_fine && cuMemAlloc(&blocks[slot], 1000000 + 520 * (size_t)i % 9000000) == 0;
    }
    for (unsigned i = 0; i < 64; i++)
        is_fine = is_fine && cuMemFree(blocks[i]) == CUDA_SUCCESS;
    ok(is_fine && free_bytes() == before, "forty thousand sizes do not use the addresses up");
}

static void test_kinds(void)
{
    size_t before = free_bytes();
    CUdeviceptr managed, device, base;
    unsigned type, flags;
    size_t size;
    void *host;
    int value[64];

    must(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    must(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed + 5));
    ok(type == 1 && free_bytes() == before, "managed memory is not charged to the device");
    must(cuMemFree(managed));
    must(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_PORTABLE));
    must(cuMemHostGetFlags(&flags, host));
    must(cuMemHostGetDevicePointer(&device, host, 0));
    must(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)host));
    ok(flags == 1 && type == CU_MEMORYTYPE_HOST && device == (CUdeviceptr)host,
       "pinned memory knows its flags, type and device address");
    must(cuMemFreeHost(host));
    must(cuMemHostRegister(value, sizeof value, 0));
    ok(cuMemHostRegister(value, 8, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
       "host memory cannot be registered twice");
    must(cuMemHostUnregister(value));
    ok(cuMemHostUnregister(value) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "nor unregistered");
    must(cuMemAlloc(&device, 1000));
    must(cuMemGetAddressRange(&base, &size, device + 999));
    ok(base == device && size == 1000, "an address range is the block as it was asked for");
    ok(cuMemGetAddressRange(&base, &size, 4096) == CUDA_ERROR_NOT_FOUND, "or is not found");
    must(cuMemFree(device));
}

static void test_arrays(void)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {
        .Width = 64, .Height = 32, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4};
    size_t before = free_bytes();
    CUmipmappedArray mipmap;
    CUarray array, level, again;
    unsigned char in[256], out[256];

    for (unsigned i = 0; i < 256; i++)
        in[i] = (unsigned char)i;
    must(cuArray3DCreate(&array, &desc));
    ok(before - free_bytes() == 64 * 32 * 4, "an array is charged");
    must(cuMemcpyHtoA(array, 0, in, 256));
    must(cuMemcpyAtoH(out, array, 0, 256));
    ok(!memcmp(in, out, 256), "an array keeps what is copied to it");
    must(cuArrayDestroy(array));
    ok(cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE, "a destroyed array is refused");
    must(cuMipmappedArrayCreate(&mipmap, &desc, 3));
    must(cuMipmappedArrayGetLevel(&level, mipmap, 1));
    must(cuMipmappedArrayGetLevel(&again, mipmap, 1));
    must(cuArray3DGetDescriptor(&desc, level));
    ok(level == again && desc.Width == 32 && desc.Height == 16, "a mipmap has levels");
    must(cuMipmappedArrayDestroy(mipmap));
    ok(free_bytes() == before, "destroyed arrays give their memory back");
}

static void test_virtual(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t before = free_bytes(), unit;
    CUmemGenericAllocationHandle handle, imported;
    CUdeviceptr space;
    unsigned value = 0;
    int fd;

    must(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    must(cuMemAddressReserve(&space, 3 * unit, 0, 0, 0));
    must(cuMemCreate(&handle, unit, &prop, 0));
    ok(before - free_bytes() == unit, "physical memory is charged when it is created");
    must(cuMemMap(space, unit, 0, handle, 0));
    must(cuMemMap(space + unit, unit, 0, handle, 0));
    ok(cuMemsetD32(space, 1, 1) == CUDA_ERROR_INVALID_VALUE, "without access there is none");
    must(cuMemSetAccess(space, 2 * unit, &access, 1));
    must(cuMemsetD32(space, 0x12345678, 16));
    must(cuMemcpyDtoH(&value, space + unit + 60, 4));
    ok(value == 0x12345678, "two mappings of one handle show the same bytes");
    must(cuMemcpyDtoD(space + unit - 64, space, 32));
    must(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    must(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    must(cuMemMap(space + 2 * unit, unit, 0, imported, 0));
    must(cuMemSetAccess(space + 2 * unit, unit, &access, 1));
    value = 0;
    must(cuMemcpyDtoH(&value, space + 2 * unit, 4));
    ok(value == 0x12345678, "an imported descriptor shows the same bytes");
    close(fd);
    must(cuMemRelease(imported));
    must(cuMemRelease(handle));
    ok(before - free_bytes() == unit, "a released handle lives on while it is mapped");
    ok(cuMemAddressFree(space, 3 * unit) == CUDA_ERROR_INVALID_VALUE, "mapped space stays");
    must(cuMemUnmap(space, 3 * unit));
    ok(free_bytes() == before, "the last unmap gives the memory back");
    must(cuMemAddressFree(space, 3 * unit));
    cusim_wait_idle();
}

/* What a stream waits for until sem_post. */
static sem_t gate;

static void CUDA_CB wait_gate(void *unused)
{
    (void)unused;
    sem_wait(&gate);
}

static void test_pools(void)
{
    size_t before = free_bytes();
    CUmemoryPool pool;
    CUdeviceptr one, two, three;
    CUstream stream, other;
    cuuint64_t value = UINT64_MAX;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    must(cuDeviceGetDefaultMemPool(&pool, 0));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    must(cuLaunchHostFunc(stream, wait_gate, NULL));
    must(cuMemAllocAsync(&one, 1 << 20, stream));
    must(cuMemsetD8Async(one, 1, 1 << 20, stream));
    must(cuMemFreeAsync(one, stream));
    must(cuMemAllocAsync(&two, 1 << 20, stream));
    ok(two == one, "a stream may reuse at once what it has freed");
    must(cuMemFreeAsync(two, stream));
    must(cuMemAllocAsync(&three, 1 << 20, other));
    ok(three != one, "another stream may not");
    must(cuMemFreeAsync(three, other));
    sem_post(&gate);
    must(cuCtxSynchronize());
    must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    ok(value == 2 << 20 && before - free_bytes() == value, "a pool reserves up to its threshold");
    must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    ok(value == 0, "and knows that nothing of it is used");
    must(cuMemAlloc(&one, free_bytes() + (1 << 20)));
    ok(true, "cuMemAlloc takes back what pools only reserve");
    must(cuMemFreeAsync(one, stream));
    must(cuStreamSynchronize(stream));
    value = 0;
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    must(cuMemAllocAsync(&one, 1 << 20, stream));
    must(cuMemFree(one));
    must(cuCtxSynchronize());
    ok(free_bytes() == before, "cuMemFree and cuMemFreeAsync free each other's memory");
    ok(cuMemFreeAsync(one, stream) == CUDA_ERROR_INVALID_VALUE, "but not twice");
    must(cuStreamDestroy(stream));
    must(cuStreamDestroy(other));
}

/* ---- order ---- */

struct trace {
    unsigned n;
    char letters[32];
};

static struct trace trace;

#define LETTER(x)                                                                                  \
    static void CUDA_CB note_##x(void *unused)                                                     \
    {                                                                                              \
        (void)unused;                                                                              \
        trace.letters[__atomic_fetch_add(&trace.n, 1, __ATOMIC_SEQ_CST)] = #x[0];                  \
    }

LETTER(a)
LETTER(b)
LETTER(c)

static bool traced(const char *expected)
{
    bool is_same = strlen(expected) == trace.n && !memcmp(trace.letters, expected, trace.n);

    memset(&trace, 0, sizeof trace);
    return is_same;
}

static void test_order(void)
{
    CUstream blocking, free_running, legacy = CU_STREAM_LEGACY;
    CUevent event;

    must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    must(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&event, CU_EVENT_DEFAULT));
    must(cuLaunchHostFunc(blocking, wait_gate, NULL));
    must(cuLaunchHostFunc(blocking, note_a, NULL));
    must(cuLaunchHostFunc(legacy, note_b, NULL));
    must(cuLaunchHostFunc(blocking, note_c, NULL));
    must(cuLaunchHostFunc(free_running, note_c, NULL));
    must(cuStreamSynchronize(free_running));
    ok(traced("c"), "a non-blocking stream does not wait for the legacy stream");
    ok(cuStreamQuery(legacy) == CUDA_ERROR_NOT_READY, "the legacy stream waits");
    sem_post(&gate);
    must(cuCtxSynchronize());
    ok(traced("abc"), "the legacy stream runs between the work of a blocking stream");
    must(cuLaunchHostFunc(CU_STREAM_PER_THREAD, wait_gate, NULL));
    must(cuLaunchHostFunc(CU_STREAM_PER_THREAD, note_a, NULL));
    must(cuLaunchHostFunc(blocking, note_b, NULL));
    must(cuStreamSynchronize(blocking));
    sem_post(&gate);
    must(cuCtxSynchronize());
    ok(traced("ba"), "per-thread streams and others are independent");
    must(cuLaunchHostFunc(blocking, wait_gate, NULL));
    must(cuLaunchHostFunc(blocking, note_a, NULL));
    must(cuEventRecord(event, blocking));
    must(cuStreamWaitEvent(free_running, event, 0));
    must(cuLaunchHostFunc(free_running, note_b, NULL));
    ok(cuEventQuery(event) == CUDA_ERROR_NOT_READY, "an event is not ready before its work");
    sem_post(&gate);
    must(cuStreamSynchronize(free_running));
    ok(traced("ab"), "a stream waits for an event of another");
    must(cuEventSynchronize(event));
    must(cuLaunchHostFunc(free_running, wait_gate, NULL));
    must(cuLaunchHostFunc(free_running, note_a, NULL));
    must(cuCtxRecordEvent(ctx, event));
    must(cuCtxWaitEvent(ctx, event));
    must(cuLaunchHostFunc(blocking, note_b, NULL));
    ok(cuEventQuery(event) == CUDA_ERROR_NOT_READY, "a context's event covers every stream");
    sem_post(&gate);
    must(cuCtxSynchronize());
    ok(traced("ab"), "a context's wait holds every stream");
    must(cuEventDestroy(event));
    must(cuStreamDestroy(blocking));
    must(cuStreamDestroy(free_running));
}

/* Work is still to come when its memory is freed. */
static void test_early_free(CUstream stream)
{
    CUdeviceptr block;

    must(cuMemAlloc(&block, 64));
    cusim_set_free_waits(0);
    must(cuLaunchHostFunc(stream, wait_gate, NULL));
    must(cuMemsetD8Async(block, 1, 64, stream));
    must(cuMemFree(block));
    ok(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY, "unless it is told not to");
    sem_post(&gate);
    must(cuCtxSynchronize());
    ok(cusim_misuse_of("use_after_free") == 1, "work on memory freed too early is misuse");
    must(cuMemAlloc(&block, 64));
    must(cuLaunchHostFunc(stream, wait_gate, NULL));
    must(cuMemsetD8Async(block, 1, 64, stream));
    must(cuMemFree(block));
    must(cuMemAlloc(&block, 64));
    sem_post(&gate);
    must(cuCtxSynchronize());
    ok(cusim_misuse_of("use_after_free") == 2, "even if the address has a new owner");
    cusim_set_free_waits(1);
    must(cuMemFree(block));
}

static void test_streams_and_delay(void)
{
    CUstream one, two;
    CUevent start, end;
    CUdeviceptr block;
    unsigned long long old_id, new_id;
    unsigned char bytes[64] = {0};
    float elapsed;
    void *pinned;
    uint64_t begin;

    must(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    must(cuStreamGetId(one, &old_id));
    must(cuStreamDestroy(one));
    must(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    must(cuStreamGetId(two, &new_id));
    ok(one == two && old_id != new_id, "stream handles come back, their ids do not");
    must(cuEventCreate(&start, CU_EVENT_DEFAULT));
    must(cuEventCreate(&end, CU_EVENT_DEFAULT));
    must(cuMemAlloc(&block, 64));
    must(cuMemHostAlloc(&pinned, 64, 0));
    memset(pinned, 9, 64);
    must(cuMemsetD8(block, 5, 64));
    cusim_set_delay_us(300000);
    must(cuLaunchHostFunc(two, wait_gate, NULL));
    must(cuEventRecord(start, two));
    must(cuMemcpyDtoHAsync(pinned, block, 64, two));
    must(cuEventRecord(end, two));
    ok(cuEventQuery(end) == CUDA_ERROR_NOT_READY && *(char *)pinned == 9,
       "asynchronous work is done later");
    sem_post(&gate);
    must(cuEventSynchronize(end));
    ok(*(char *)pinned == 5, "and is done when its event is");
    must(cuEventElapsedTime(&elapsed, start, end));
    ok(elapsed >= 290.0f && elapsed < 290000.0f, "events measure time in ms");
    memset(bytes, 7, sizeof bytes);
    must(cuMemcpyHtoDAsync(block, bytes, 64, two));
    memset(bytes, 0, sizeof bytes);
    must(cuMemcpyDtoHAsync(bytes, block, 64, two));
    ok(bytes[63] == 7, "pageable memory is read and written before the call returns");
    begin = now_us();
    must(cuMemsetD8Async(block, 1, 64, two));
    must(cuMemFree(block));
    ok(now_us() - begin >= 290000, "cuMemFree waits for the context");
    cusim_set_delay_us(0);
    test_early_free(two);
    must(cuMemFreeHost(pinned));
    must(cuEventDestroy(start));
    must(cuEventDestroy(end));
    must(cuStreamDestroy(two));
}

/* ---- threads ---- */

static atomic_uint thread_errors;

static void *stress(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument, value;
    CUstream stream;
    CUdeviceptr blocks[8] = {0};

    must(cuCtxSetCurrent(ctx));
    must(cuStreamCreate(&stream, seed % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    for (unsigned i = 0; i < 2000; i++) {
        unsigned slot = (unsigned)rand_r(&seed) % 8;
        bool is_async = rand_r(&seed) % 2;

        if (blocks[slot]) {
            must(cuMemcpyDtoHAsync(&value, blocks[slot], 4, stream));
            must(cuStreamSynchronize(stream));
            thread_errors += value != (unsigned)(uintptr_t)argument;
            must(is_async ? cuMemFreeAsync(blocks[slot], stream) : cuMemFree(blocks[slot]));
            blocks[slot] = 0;
            continue;
        }
        must(is_async ? cuMemAllocAsync(&blocks[slot], 64 + (size_t)slot * 512, stream)
                      : cuMemAlloc(&blocks[slot], 64 + (size_t)slot * 512));
        must(cuMemsetD32Async(blocks[slot], (unsigned)(uintptr_t)argument, 16, stream));
    }
    for (unsigned slot = 0; slot < 8; slot++)
        if (blocks[slot])
            must(cuMemFreeAsync(blocks[slot], stream));
    must(cuStreamSynchronize(stream));
    must(cuStreamDestroy(stream));
    return NULL;
}

static void test_threads(void)
{
    size_t before = free_bytes();
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, stress, (void *)(i + 1));
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    must(cuCtxSynchronize());
    ok(thread_errors == 0 && free_bytes() == before, "four threads do not disturb each other");
}

/* ---- kernels and errors ---- */

static const char image[] = "cusim 1\nkernel fill\nkernel check\nkernel copy\nkernel spin\n"
                            "kernel persist\nkernel trap\nglobal table 100\n";

static CUresult launch(CUfunction function, CUstream stream, void **arguments)
{
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static void test_kernels(void)
{
    CUmodule module, other;
    CUlibrary library;
    CUkernel kernel;
    CUfunction fill, check, spin, persist, nothing;
    uint32_t *flag, done = 1;
    void *persist_arguments[] = {&flag, &done};
    CUdeviceptr block, wrong, table;
    unsigned value = 77, mismatches = 0;
    uint64_t n = 1000, us = 20000, begin;
    size_t size;
    void *fill_arguments[] = {&block, &value, &n};
    void *check_arguments[] = {&block, &value, &n, &wrong};
    void *spin_arguments[] = {&us};

    must(cuModuleLoadData(&module, image));
    must(cuModuleGetFunction(&fill, module, "fill"));
    must(cuModuleGetFunction(&check, module, "check"));
    must(cuModuleGetFunction(&spin, module, "spin"));
    must(cuModuleGetFunction(&persist, module, "persist"));
    ok(cuModuleGetFunction(&nothing, module, "absent") == CUDA_ERROR_NOT_FOUND,
       "a text image has only the kernels it lists");
    must(cuModuleGetGlobal(&table, &size, module, "table"));
    ok(size == 100 && cusim_live_bytes(CUSIM_GLOBAL, 0) == 100, "modules have variables");
    must(cuMemAlloc(&block, 4000));
    must(cuMemAlloc(&wrong, 4));
    must(cuMemsetD32(wrong, 0, 1));
    must(launch(fill, NULL, fill_arguments));
    must(cuMemsetD32(block + 40, 1, 3));
    must(launch(check, NULL, check_arguments));
    must(cuMemcpyDtoH(&mismatches, wrong, 4));
    ok(mismatches == 3, "built-in kernels fill and check memory");
    begin = now_us();
    must(launch(spin, NULL, spin_arguments));
    must(cuCtxSynchronize());
    ok(now_us() - begin >= 20000, "a kernel can take its time");
    must(cuMemHostAlloc((void **)&flag, 4, 0));
    *flag = 0;
    must(launch(persist, NULL, persist_arguments));
    usleep(20000);
    ok(cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY, "a kernel can run until it is told to end");
    __atomic_store_n(flag, done, __ATOMIC_RELEASE);
    must(cuCtxSynchronize());
    must(cuMemFreeHost(flag));
    must(cuModuleLoadData(&other, ".version 7.0\n.target sm_50\n"));
    must(cuModuleGetFunction(&nothing, other, "anything"));
    must(launch(nothing, NULL, fill_arguments));
    must(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    must(cuLibraryGetKernel(&kernel, library, "fill"));
    must(cuKernelGetFunction(&fill, kernel));
    must(launch((CUfunction)kernel, NULL, fill_arguments));
    must(cuLibraryUnload(library));
    must(cuModuleUnload(other));
    must(cuModuleUnload(module));
    ok(cusim_live_bytes(CUSIM_GLOBAL, 0) == 0, "unloading frees the variables");
    must(cuMemFree(block));
    must(cuMemFree(wrong));
}

/* What a compiler writes: the variables of a module of PTX, and of what is linked from one. */
static void test_ptx_variables(void)
{
    static const struct {
        const char *name;
        size_t bytes;
    } variables[] = {{"words", 4096}, {"factors", 96}, {"flag", 8}, {"corner", 48}};
    static const char ptx[] =
        "//\n// Made by hand\n//\n.version 8.4\n.target sm_50\n.address_size 64\n"
        ".visible .const .align 4 .b8 words[4096];\n"
        "\t.global .align 16 .v4 .f32 factors[2][3] = {0};\n"
        ".visible .global .u64 flag = 1;\n.const .align 4 .u32 corner[12]={1, 2};\n"
        ".extern .global .align 4 .b8 elsewhere[4];\n"
        ".visible .entry run()\n{\n\t.local .align 4 .b8 inside[16];\n\tret;\n}\n";
    CUdeviceptr address;
    CUlinkState link;
    CUmodule modules[2];
    void *image;
    size_t size;

    must(cuModuleLoadData(&modules[0], ptx));
    must(cuLinkCreate(0, NULL, NULL, &link));
    must(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)ptx, sizeof ptx, "", 0, NULL, NULL));
    must(cuLinkComplete(link, &image, &size));
    must(cuModuleLoadData(&modules[1], image));
    must(cuLinkDestroy(link));
    for (int m = 0; m < 2; m++) {
        for (int i = 0; i < 4; i++) {
            must(cuModuleGetGlobal(&address, &size, modules[m], variables[i].name));
            ok(size == variables[i].bytes, variables[i].name);
        }
        ok(cuModuleGetGlobal(&address, &size, modules[m], "elsewhere") == CUDA_ERROR_NOT_FOUND &&
               cuModuleGetGlobal(&address, &size, modules[m], "inside") == CUDA_ERROR_NOT_FOUND,
           "only those of the module itself");
        must(cuModuleUnload(modules[m]));
    }
}

/* ---- laziness ---- */

/* Two streams write one word: which of them is the last to do so? */
static unsigned last_writer(CUdeviceptr word, CUstream one, CUstream two, unsigned seed)
{
    unsigned value = 0;

    cusim_set_lazy(seed);
    must(cuMemsetD32Async(word, 1, 1, one));
    must(cuMemsetD32Async(word, 2, 1, two));
    must(cuCtxSynchronize());
    must(cuMemcpyDtoH(&value, word, 4));
    return value;
}

static void test_lazy_order(CUdeviceptr word, CUstream one, CUstream two)
{
    unsigned seen[3] = {0}, held = 0;
    bool is_repeated = true;

    for (unsigned seed = 1; seed <= 64; seed++) {
        unsigned value = last_writer(word, one, two, seed);

        seen[value]++;
        is_repeated = is_repeated && value == last_writer(word, one, two, seed);
    }
    ok(seen[1] > 8 && seen[2] > 8, "a lazy driver carries out independent work in any order");
    ok(is_repeated, "the same seed gives the same order");
    for (unsigned seed = 1; seed <= 64; seed++) {
        cusim_set_lazy(seed);
        must(cuMemsetD32Async(word, 1, 1, one));
        must(cuMemsetD32Async(word, 2, 1, two));
        must(cuStreamSynchronize(one));
        held += cuStreamQuery(two) == CUDA_ERROR_NOT_READY;
    }
    ok(held > 16, "waiting for one stream does not bring about the work of another");
}

/* Host memory, which can be looked at without a call. */
static void test_lazy_steps(CUstream one, CUstream two)
{
    unsigned *words, asked = 0, late = 0;
    CUevent event;

    must(cuMemAllocHost((void **)&words, 64));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuEventQuery(event) == CUDA_SUCCESS, "an event that was never recorded is done");
    cusim_set_lazy(5);
    memset(words, 0, 64);
    for (unsigned i = 0; i < 8; i++)
        must(cuMemsetD32Async((CUdeviceptr)&words[i], 1, 1, i % 2 ? one : two));
    cusim_step(3);
    ok(words[0] + words[1] && !(words[6] && words[7]), "a step carries out some of the work");
    while (cuEventQuery(event) != CUDA_SUCCESS || cuStreamQuery(one) != CUDA_SUCCESS)
        asked++;
    ok(asked < 10000 && words[1] && words[7], "who asks often enough sees the end of it");
    cusim_wait_idle();
    ok(words[6] && cusim_step(9) == 0, "waiting for all leaves nothing to step through");
    for (unsigned seed = 1; seed <= 32; seed++) {
        cusim_set_lazy(seed);
        memset(words, 0, 64);
        must(cuMemsetD32Async((CUdeviceptr)&words[0], 1, 1, one));
        must(cuCtxRecordEvent(ctx, event));
        must(cuMemsetD32Async((CUdeviceptr)&words[1], 1, 1, two));
        must(cuEventSynchronize(event));
        late += words[0] == 1 && words[1] == 0;
        asked += words[0] == 0;
    }
    ok(late > 8 && asked < 10000, "a context's event covers what came before it, and no more");
    must(cuEventDestroy(event));
    must(cuMemFreeHost(words));
}

static void test_lazy_waits(CUstream one, CUstream two)
{
    unsigned *words, early = 0, held = 0;
    CUevent events[2];
    CUstream late;
    CUcontext other;
    CUdeviceptr block;

    must(cuMemAllocHost((void **)&words, 64));
    must(cuEventCreate(&events[0], CU_EVENT_DISABLE_TIMING));
    must(cuEventCreate(&events[1], CU_EVENT_DISABLE_TIMING));
    for (unsigned seed = 1; seed <= 32; seed++) {
        cusim_set_lazy(seed);
        memset(words, 0, 64);
        must(cuMemsetD32Async((CUdeviceptr)&words[0], 1, 1, one));
        must(cuEventRecord(events[0], one));
        must(cuMemsetD32Async((CUdeviceptr)&words[1], 1, 1, two));
        must(cuEventRecord(events[1], two));
        must(cuCtxWaitEvent(ctx, events[0]));
        must(cuCtxWaitEvent(ctx, events[1]));
        must(cuStreamCreate(&late, CU_STREAM_NON_BLOCKING));
        must(cuStreamSynchronize(late));
        early += !words[0] || !words[1];
        must(cuStreamDestroy(late));
    }
    ok(early == 0, "a stream made after two waits of its context follows both");
    must(cuCtxCreate(&other, NULL, 0, 0));
    must(cuMemAlloc(&block, 64));
    for (int waits = 1; waits <= 2; waits++) {
        cusim_set_lazy(7);
        cusim_set_free_waits(waits);
        words[0] = 0;
        must(cuMemsetD32Async((CUdeviceptr)&words[0], 1, 1, one));
        must(cuMemFree(block));
        held += words[0] == 0;
        must(cuMemAlloc(&block, 64));
    }
    ok(held == 1 && words[0] == 1, "cuMemFree waits for one context or for all, as is asked for");
    cusim_set_free_waits(1);
    must(cuCtxDestroy(other));
    must(cuEventDestroy(events[0]));
    must(cuEventDestroy(events[1]));
    must(cuMemFreeHost(words));
}

static void test_lazy(void)
{
    CUdeviceptr word;
    CUstream one, two;

    must(cuMemAlloc(&word, 4));
    must(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    test_lazy_order(word, one, two);
    test_lazy_steps(one, two);
    test_lazy_waits(one, two);
    cusim_set_lazy(1);
    must(cuLaunchHostFunc(one, note_a, NULL));
    must(cuMemsetD32Async(word, 1, 1, one));
    must(cuLaunchHostFunc(one, note_b, NULL));
    must(cuStreamSynchronize(one));
    ok(traced("ab"), "a lazy driver calls host functions in their order");
    cusim_set_lazy(0);
    must(cuStreamDestroy(one));
    must(cuStreamDestroy(two));
    must(cuMemFree(word));
}

static void test_sticky(void)
{
    CUcontext broken;
    CUfunction fill, trap;
    CUmodule module;
    CUdeviceptr block, bad = 64;
    unsigned value = 1;
    uint64_t n = 1;
    void *arguments[] = {&bad, &value, &n};
    unsigned long long misuses = cusim_misuse_of("wild_access");

    must(cuCtxCreate(&broken, NULL, 0, 0));
    must(cuModuleLoadData(&module, image));
    must(cuModuleGetFunction(&fill, module, "fill"));
    must(launch(fill, NULL, arguments));
    ok(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel can break its context");
    ok(cuMemAlloc(&block, 64) == CUDA_ERROR_ILLEGAL_ADDRESS, "which stays broken");
    ok(cusim_misuse_of("wild_access") == misuses + 1, "and is misuse");
    must(cuCtxDestroy(broken));
    must(cuMemAlloc(&block, 64));
    must(cuMemFree(block));
    must(cuCtxCreate(&broken, NULL, 0, 0));
    must(cuModuleLoadData(&module, image));
    must(cuModuleGetFunction(&trap, module, "trap"));
    must(launch(trap, NULL, NULL));
    ok(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED, "so can one named trap");
    must(cuCtxDestroy(broken));
    must(cuCtxCreate(&broken, NULL, 0, 0));
    cusim_fail("cuMemAlloc_v2:nth=2:sticky=700");
    must(cuMemAlloc(&block, 64));
    ok(cuMemAlloc(&block, 64) == 700 && cuMemFree(block) == CUDA_SUCCESS + 700,
       "a script can break it too");
    cusim_fail(NULL);
    must(cuCtxDestroy(broken));
}

static void test_script(void)
{
    CUdeviceptr block;

    cusim_fail("cuMemAlloc_v2:nth=2:code=2;cuMemGetInfo_v2:every=2:code=999");
    must(cuMemAlloc(&block, 64));
    must(cuMemFree(block));
    ok(cuMemAlloc(&block, 64) == CUDA_ERROR_OUT_OF_MEMORY, "the second call can be made to fail");
    must(cuMemAlloc(&block, 64));
    must(cuMemFree(block));
    free_bytes();
    ok(cuMemGetInfo(NULL, NULL) == CUDA_ERROR_UNKNOWN, "or every second one");
    cusim_fail(NULL);
    must(cuMemGetInfo(NULL, NULL));
    ok(cuMemGetInfo(NULL, NULL) == CUDA_SUCCESS, "or none any more");
}

static void test_misuse(void)
{
    CUdeviceptr block;
    unsigned char bytes[128];
    unsigned long long before = cusim_misuse_count();

    must(cuMemAlloc(&block, 100));
    ok(cuMemsetD8(block, 0, 101) == CUDA_ERROR_INVALID_VALUE &&
           cusim_misuse_of("out_of_bounds") == 1,
       "one byte too many is out of bounds");
    ok(cuMemcpyDtoH(bytes, block + 50, 51) == CUDA_ERROR_INVALID_VALUE &&
           cusim_misuse_of("out_of_bounds") == 2,
       "so is reading over the end");
    must(cuMemFree(block));
    ok(cuMemFree(block) == CUDA_ERROR_INVALID_VALUE && cusim_misuse_of("double_free") >= 1,
       "a second free is a double free");
    ok(cuMemFree(block + 8) == CUDA_ERROR_INVALID_VALUE &&
           cuMemFree(12345) == CUDA_ERROR_INVALID_VALUE && cusim_misuse_of("unknown_free") >= 2,
       "an unknown pointer cannot be freed");
    ok(cuMemsetD8(block, 0, 1) == CUDA_ERROR_INVALID_VALUE, "freed memory cannot be set");
    ok(cusim_misuse_count() == before + 6, "every misuse is counted once");
}

/* ---- capture and graphs ---- */

static CUresult other_result;
static CUdeviceptr other_block;

static void *allocate_elsewhere(void *unused)
{
    (void)unused;
    must(cuCtxSetCurrent(ctx));
    other_result = cuMemAlloc(&other_block, 64);
    return NULL;
}

static CUresult elsewhere(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, allocate_elsewhere, NULL);
    pthread_join(thread, NULL);
    if (other_result == CUDA_SUCCESS)
        must(cuMemFree(other_block));
    return other_result;
}

static const struct {
    CUstreamCaptureMode begin, thread;
    CUresult own, other, end;
    const char *sentence;
} modes[] = {
    {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL, 900, 900, 901,
     "a global capture forbids allocation everywhere"},
    {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL, 900, 0, 901,
     "a thread-local capture forbids it in its thread"},
    {CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL, 0, 0, 0,
     "a relaxed capture forbids it nowhere"},
    {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED, 0, 900, 901,
     "a relaxed thread may do what its global capture forbids others"},
};

static void test_capture_modes(void)
{
    CUstreamCaptureMode mode;
    CUdeviceptr block;
    CUstream stream;
    CUgraph graph;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        CUresult own, other, end;

        must(cuStreamBeginCapture(stream, modes[i].begin));
        mode = modes[i].thread;
        must(cuThreadExchangeStreamCaptureMode(&mode));
        own = cuMemAlloc(&block, 64);
        other_result = 0;
        {
            pthread_t thread;

            pthread_create(&thread, NULL, allocate_elsewhere, NULL);
            pthread_join(thread, NULL);
            other = other_result;
        }
        end = cuStreamEndCapture(stream, &graph);
        must(cuThreadExchangeStreamCaptureMode(&mode));
        if (own == CUDA_SUCCESS)
            must(cuMemFree(block));
        if (other == CUDA_SUCCESS)
            must(cuMemFree(other_block));
        if (end == CUDA_SUCCESS)
            must(cuGraphDestroy(graph));
        ok(own == modes[i].own && other == modes[i].other && end == modes[i].end,
           modes[i].sentence);
    }
    must(cuStreamDestroy(stream));
}

static void test_illegal_in_capture(void)
{
    CUstream stream, blocking;
    CUevent event;
    CUgraph graph;
    CUdeviceptr block;

    must(cuMemAlloc(&block, 64));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    ok(cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_RELAXED) == 900,
       "the legacy stream cannot be captured");
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuStreamSynchronize(stream) == 900 && cuStreamEndCapture(stream, &graph) == 901,
       "waiting for a capturing stream breaks the capture");
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuCtxSynchronize() == 900 && cuStreamEndCapture(stream, &graph) == 901,
       "so does waiting for its context");
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuCtxRecordEvent(ctx, event) == 900 && cuStreamEndCapture(stream, &graph) == 901,
       "so does an event of the context");
    must(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuMemsetD8(block, 1, 1) == 906 && cuStreamEndCapture(blocking, &graph) == 901,
       "so does the legacy stream if the capturing one is blocking");
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuMemsetD8(block, 1, 1) == 0 && cuStreamEndCapture(stream, &graph) == 0,
       "but not if it is non-blocking");
    must(cuGraphDestroy(graph));
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    must(cuEventRecord(event, stream));
    ok(cuEventQuery(event) == CUDA_ERROR_CAPTURED_EVENT, "a captured event cannot be asked");
    ok(cuStreamEndCapture(stream, &graph) == 901, "and asking breaks the capture");
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    must(cuEventRecord(event, stream));
    must(cuStreamWaitEvent(blocking, event, 0));
    must(cuMemsetD8Async(block, 1, 1, blocking));
    ok(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
       "forked streams must be joined");
    ok(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE, "a capture ends once");
    must(cuEventDestroy(event));
    must(cuStreamDestroy(stream));
    must(cuStreamDestroy(blocking));
    must(cuMemFree(block));
    ok(elsewhere() == CUDA_SUCCESS, "and then allocation is legal again");
}

static void test_graph(void)
{
    CUstream stream, forked;
    CUevent fork, join;
    CUgraph graph, clone;
    CUgraphExec exec;
    CUdeviceptr block;
    CUgraphNode nodes[8];
    size_t nnodes = 8, nedges;
    unsigned value;
    CUgraphNodeType type;

    must(cuMemAlloc(&block, 256));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&forked, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    must(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    must(cuMemsetD32(block, 0, 64));
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    must(cuMemsetD32Async(block, 3, 32, stream));
    must(cuEventRecord(fork, stream));
    must(cuStreamWaitEvent(forked, fork, 0));
    must(cuMemcpyDtoDAsync(block + 128, block, 128, forked));
    must(cuLaunchHostFunc(stream, note_a, NULL));
    must(cuEventRecord(join, forked));
    must(cuStreamWaitEvent(stream, join, 0));
    must(cuLaunchHostFunc(stream, note_b, NULL));
    must(cuStreamEndCapture(stream, &graph));
    must(cuMemcpyDtoH(&value, block + 252, 4));
    ok(value == 0, "captured work does not run");
    must(cuGraphGetNodes(graph, nodes, &nnodes));
    must(cuGraphGetEdges(graph, NULL, NULL, NULL, &nedges));
    must(cuGraphNodeGetType(nodes[1], &type));
    ok(nnodes == 4 && nedges == 4 && type == CU_GRAPH_NODE_TYPE_MEMCPY,
       "captured work becomes nodes and edges");
    must(cuGraphClone(&clone, graph));
    must(cuGraphInstantiate(&exec, clone, 0));
    must(cuGraphDestroy(clone));
    must(cuGraphLaunch(exec, stream));
    must(cuGraphLaunch(exec, stream));
    must(cuStreamSynchronize(stream));
    must(cuMemcpyDtoH(&value, block + 252, 4));
    ok(value == 3 && traced("abab"), "a launched graph runs in the order of its edges");
    must(cuGraphExecDestroy(exec));
    must(cuGraphAddDependencies(graph, &nodes[3], &nodes[0], NULL, 1));
    ok(cuGraphInstantiate(&exec, graph, 0) == CUDA_ERROR_INVALID_VALUE, "a cycle is refused");
    must(cuGraphDestroy(graph));
    must(cuEventDestroy(fork));
    must(cuEventDestroy(join));
    must(cuStreamDestroy(stream));
    must(cuStreamDestroy(forked));
    must(cuMemFree(block));
}

static cuuint64_t graph_memory(CUgraphMem_attribute attribute)
{
    cuuint64_t value;

    must(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

static void test_graph_memory(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
        .bytesize = 1 << 20,
    };
    size_t before = free_bytes();
    CUgraph graph, outer;
    CUgraphNode alloc, release;
    CUgraphExec exec;
    CUstream stream;
    CUdeviceptr captured;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuGraphCreate(&graph, 0));
    must(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    ok(params.dptr && free_bytes() == before, "an allocation node has an address and no memory");
    ok(cuGraphClone(&outer, graph) == CUDA_ERROR_NOT_SUPPORTED, "it cannot be cloned");
    must(cuGraphInstantiate(&exec, graph, 0));
    must(cuGraphLaunch(exec, stream));
    must(cuMemsetD8Async(params.dptr, 1, 1 << 20, stream));
    ok(before - free_bytes() == 1 << 20 && cusim_live_blocks(CUSIM_GRAPH, 0) == 1,
       "a launch charges it");
    ok(cuGraphLaunch(exec, stream) == CUDA_ERROR_INVALID_VALUE, "and cannot be repeated");
    must(cuMemFreeAsync(params.dptr, stream));
    must(cuGraphLaunch(exec, stream));
    must(cuMemFree(params.dptr));
    must(cuStreamSynchronize(stream));
    ok(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0 &&
           graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 1 << 20,
       "until the memory is freed, which stays reserved");
    must(cuDeviceGraphMemTrim(0));
    must(cuGraphExecDestroy(exec));
    must(cuGraphAddMemFreeNode(&release, graph, &alloc, 1, params.dptr));
    must(cuGraphInstantiate(&exec, graph, 0));
    must(cuGraphLaunch(exec, stream));
    must(cuGraphLaunch(exec, stream));
    must(cuStreamSynchronize(stream));
    ok(cusim_live_blocks(CUSIM_GRAPH, 0) == 0, "a free node ends what an allocation node began");
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    ok(free_bytes() == before, "destroying the graph gives the memory back");
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    must(cuMemAllocAsync(&captured, 4096, stream));
    must(cuMemsetD8Async(captured, 1, 4096, stream));
    must(cuMemFreeAsync(captured, stream));
    ok(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS,
       "asynchronous allocations can be captured");
    must(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    must(cuGraphLaunch(exec, stream));
    must(cuStreamSynchronize(stream));
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    ok(free_bytes() == before, "and leave nothing behind");
    must(cuStreamDestroy(stream));
}

static void test_take(void)
{
    size_t before = free_bytes();
    CUevent event[3];

    cusim_take("cuEventCreate", before + 512);
    ok(cuEventCreate(&event[0], 0) == CUDA_ERROR_OUT_OF_MEMORY, "any call can be out of memory");
    cusim_take("cuEventCreate", 1 << 20);
    must(cuEventCreate(&event[0], 0));
    must(cuEventCreate(&event[1], 0));
    ok(before - free_bytes() == 1 << 20, "or take some once");
    cusim_take("cuEventCreate", 0);
    must(cuEventCreate(&event[2], 0));
    ok(before == free_bytes(), "until it is told otherwise");
    for (int i = 0; i < 3; i++)
        must(cuEventDestroy(event[i]));
}

/* ---- contexts ---- */

static void test_contexts(void)
{
    CUcontext one, two, primary, popped, current;
    unsigned long long first, second;
    CUdeviceptr block;
    CUdevice device;
    int active;
    unsigned flags;
    size_t before, total;

    must(cuCtxCreate(&one, NULL, 0, 1));
    must(cuCtxGetId(one, &first));
    must(cuCtxGetDevice(&device));
    ok(device == 1, "a new context is current");
    must(cuMemGetInfo(&before, &total));
    must(cuMemAlloc(&block, 4096));
    must(cuCtxDestroy(one));
    ok(cusim_used_bytes(1) == 0 && cusim_live_blocks(CUSIM_DEVICE, 1) == 0,
       "a context takes its memory with it");
    must(cuCtxCreate(&two, NULL, 0, 1));
    must(cuCtxGetId(two, &second));
    ok(one == two && first != second, "its address comes back, its id does not");
    must(cuCtxPushCurrent(two));
    must(cuCtxPopCurrent(&popped));
    must(cuCtxDestroy(two));
    must(cuDevicePrimaryCtxRetain(&primary, 1));
    must(cuDevicePrimaryCtxGetState(1, &flags, &active));
    must(cuCtxPushCurrent(primary));
    must(cuMemAlloc(&block, 4096));
    ok(active == 1 && cuCtxDestroy(primary) == CUDA_ERROR_INVALID_CONTEXT,
       "a primary context cannot be destroyed");
    must(cuDevicePrimaryCtxReset(1));
    ok(cuMemAlloc(&block, 64) == CUDA_ERROR_CONTEXT_IS_DESTROYED && cusim_used_bytes(1) == 0,
       "but reset");
    must(cuCtxCreate(&one, NULL, 0, 1));
    must(cuDevicePrimaryCtxRetain(&two, 1));
    ok(one != primary && two == primary, "its handle is never that of another");
    must(cuDevicePrimaryCtxRelease(1));
    must(cuCtxDestroy(one));
    must(cuCtxPopCurrent(&popped));
    must(cuCtxGetCurrent(&current));
    ok(current == ctx, "the stack of contexts is one of each thread");
    must(cuCtxSetCurrent(NULL));
    ok(cuMemAlloc(&block, 64) == CUDA_ERROR_INVALID_CONTEXT, "without a context nothing works");
    must(cuCtxSetCurrent(ctx));
}

static void test_green(void)
{
    CUdevResource resource;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUcontext as_context;
    CUstream stream;
    CUdeviceptr block;

    must(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    must(cuDevResourceGenerateDesc(&desc, &resource, 1));
    must(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    must(cuCtxFromGreenCtx(&as_context, green));
    must(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    must(cuCtxPushCurrent(as_context));
    must(cuMemAlloc(&block, 64));
    must(cuMemsetD8Async(block, 1, 64, stream));
    must(cuStreamSynchronize(stream));
    must(cuMemFree(block));
    must(cuCtxPopCurrent(NULL));
    ok(cuGreenCtxDestroy(green) == CUDA_SUCCESS, "green contexts allocate and run");
}

/* ---- addresses of functions ---- */

static const struct {
    const char *name;
    int version;
    cuuint64_t flags;
    const char *symbol; /* NULL: not found */
    CUdriverProcAddressQueryResult status;
} rows[] = {
    {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2", 0},
    {"cuMemAlloc", 2000, 0, "cuMemAlloc", 0},
    {"cuDevicePrimaryCtxReset", 7000, 0, "cuDevicePrimaryCtxReset", 0},
    {"cuDevicePrimaryCtxReset", 11000, 0, "cuDevicePrimaryCtxReset_v2", 0},
    {"cuCtxSynchronize", 2000, 0, "cuCtxSynchronize", 0},
    {"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2", 0},
    {"cuMemAllocAsync", 11020, 0, "cuMemAllocAsync", 0},
    {"cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz", 0},
    {"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds", 0},
    {"cuMemAlloc", 7000, 2, "cuMemAlloc_v2", 0},
    {"cuGetProcAddress", 11030, 0, "cuGetProcAddress", 0},
    {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2", 0},
    {"cuGraphInstantiate", 12000, 0, "cuGraphInstantiateWithFlags", 0},
    {"cuCtxCreate", 13000, 0, "cuCtxCreate_v4", 0},
    {"cuMemAllocAsync", 11010, 0, NULL, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
    {"cuMemAlloc_v2", 12000, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
    {"", 0, 0, NULL, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
    {"cuMemAlloc", -1, 0, "cuMemAlloc_v2", 0},
    {"cuMemAllocAsync", 11020, 3, "cuMemAllocAsync_ptsz", 0},
};

static void test_addresses(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*first)(const char *, void **, int, cuuint64_t) =
        (CUresult(*)(const char *, void **, int, cuuint64_t))dlsym(driver, "cuGetProcAddress");
    CUdriverProcAddressQueryResult status;
    char sentence[128];
    void *untouched = &status;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *expected = rows[i].symbol ? dlsym(driver, rows[i].symbol) : NULL, *address;

        must(cuGetProcAddress(rows[i].name, &address, rows[i].version, rows[i].flags, &status));
        snprintf(sentence, sizeof sentence, "%s of %d with flags %d is %s", rows[i].name,
                 rows[i].version, (int)rows[i].flags, rows[i].symbol ? rows[i].symbol : "absent");
        ok(address == expected && status == rows[i].status, sentence);
    }
    status = CU_GET_PROC_ADDRESS_SUCCESS;
    ok(cuGetProcAddress("cuMemAlloc", &untouched, 12000, 4, &status) == CUDA_ERROR_INVALID_VALUE &&
           untouched == &status && status == CU_GET_PROC_ADDRESS_SUCCESS,
       "flags that nobody knows are refused, and nothing is written");
    ok(first("cuAbsent", &untouched, 11080, 0) == CUDA_ERROR_NOT_FOUND && untouched == &status,
       "to the first form what is absent is an error, and nothing is written");
}

/* ---- other processes ---- */

static int run_self(const char *mode, const char *argument)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        execl(self, self, mode, argument, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_ipc(void)
{
    char text[2 * sizeof(CUipcMemHandle) + 1];
    CUipcMemHandle handle;
    CUdeviceptr block, pad, again;
    unsigned value = 0;

    must(cuMemAlloc(&pad, 512));
    must(cuMemAlloc(&block, 1000));
    must(cuMemsetD32(block, 0xabcd, 250));
    must(cuIpcGetMemHandle(&handle, block));
    ok(cuIpcOpenMemHandle(&again, handle, 1) == CUDA_ERROR_INVALID_CONTEXT,
       "a process cannot open its own memory handle");
    for (size_t i = 0; i < sizeof handle; i++)
        sprintf(text + 2 * i, "%02x", ((unsigned char *)&handle)[i]);
    ok(run_self("ipc", text) == 0, "another process opens it and sees the bytes");
    must(cuMemcpyDtoH(&value, block + 8, 4));
    ok(value == 0x1234, "and its writes come back");
    must(cuMemFree(block));
    must(cuMemFree(pad));
}

static int child_ipc(const char *text)
{
    CUipcMemHandle handle;
    CUdeviceptr one, two;
    unsigned value = 0;

    for (size_t i = 0; i < sizeof handle; i++) {
        unsigned byte;

        sscanf(text + 2 * i, "%2x", &byte);
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    must(cuInit(0));
    must(cuCtxCreate(&ctx, NULL, 0, 0));
    must(cuIpcOpenMemHandle(&one, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    must(cuIpcOpenMemHandle(&two, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    must(cuMemcpyDtoH(&value, one + 996, 4));
    must(cuMemsetD32(one + 8, 0x1234, 1));
    must(cuIpcCloseMemHandle(one));
    must(cuMemcpyDtoH(&value, two + 996, 4));
    must(cuIpcCloseMemHandle(two));
    return one == two && value == 0xabcd && cuMemcpyDtoH(&value, two, 4) ? 0 : 1;
}

static void test_fork(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        CUdeviceptr block;

        _exit(cuMemAlloc(&block, 64) == CUDA_ERROR_NOT_INITIALIZED &&
                      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    waitpid(pid, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child finds no driver");
}

static void test_external(void)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = 4096, .size = 4096};
    CUexternalMemory memory;
    CUdeviceptr block;
    unsigned char byte = 0;
    int fd = memfd_create("external", 0);

    if (ftruncate(fd, 8192) || pwrite(fd, "x", 1, 4096) != 1)
        exit(99);
    desc.handle.fd = fd;
    desc.size = 8192;
    must(cuImportExternalMemory(&memory, &desc));
    must(cuExternalMemoryGetMappedBuffer(&block, memory, &buffer));
    must(cuMemcpyDtoH(&byte, block, 1));
    ok(byte == 'x' && cusim_live_bytes(CUSIM_EXTERNAL, 0) == 4096, "external memory is mapped");
    must(cuMemFree(block));
    must(cuDestroyExternalMemory(memory));
    ok(cusim_live_bytes(CUSIM_EXTERNAL, 0) == 0, "and freed by cuMemFree");
}

CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *out, unsigned int buffer,
                                    unsigned int flags);

static void test_graphics(void)
{
    CUgraphicsResource resource, twice[2];
    CUdeviceptr block;
    unsigned char byte = 0;
    size_t bytes = 0;

    ok(cuGraphicsGLRegisterBuffer(&resource, 0, 0) == CUDA_ERROR_INVALID_HANDLE,
       "a buffer that OpenGL has not is not registered");
    must(cuGraphicsGLRegisterBuffer(&resource, cusim_gl_buffer(5000), 0));
    ok(cuGraphicsResourceGetMappedPointer(&block, &bytes, resource) == CUDA_ERROR_NOT_MAPPED,
       "a buffer has no address before it is mapped");
    twice[0] = twice[1] = resource;
    ok(cuGraphicsMapResources(2, twice, NULL) == CUDA_ERROR_INVALID_HANDLE,
       "nor can it be mapped twice");
    must(cuGraphicsMapResources(1, &resource, NULL));
    ok(cuGraphicsMapResources(1, &resource, NULL) == CUDA_ERROR_ALREADY_MAPPED,
       "neither at once nor one after the other");
    must(cuGraphicsResourceGetMappedPointer(&block, &bytes, resource));
    must(cuMemsetD8(block, 7, bytes));
    ok(bytes == 5000 && cusim_live_bytes(CUSIM_GRAPHICS, 0) == 5000, "then it has all its bytes");
    must(cuGraphicsUnmapResources(1, &resource, NULL));
    ok(cuGraphicsUnmapResources(1, &resource, NULL) == CUDA_ERROR_NOT_MAPPED &&
           cusim_live_bytes(CUSIM_GRAPHICS, 0) == 0,
       "until it is unmapped");
    must(cuGraphicsMapResources(1, &resource, NULL));
    must(cuGraphicsResourceGetMappedPointer(&block, &bytes, resource));
    must(cuMemcpyDtoH(&byte, block + 4999, 1));
    must(cuGraphicsUnregisterResource(resource));
    ok(byte == 7 && cusim_live_bytes(CUSIM_GRAPHICS, 0) == 0,
       "its contents stay, and an unregistered one is unmapped");
}

/* ---- the end of the process ---- */

static void call_late(void)
{
    CUdeviceptr block;

    if (cuMemAlloc(&block, 64) != CUDA_ERROR_DEINITIALIZED)
        _exit(3);
    _exit(5);
}

/* Destructors of the program run before the driver's; only a thread can be later than that. */
static void *outlive(void *unused)
{
    CUdeviceptr block;

    (void)unused;
    for (;;) {
        CUresult status = cuMemAlloc(&block, 64);

        if (status == CUDA_ERROR_DEINITIALIZED)
            call_late();
        if (status == CUDA_SUCCESS)
            cuMemFree(block);
    }
    return NULL;
}

static int child_report(const char *how)
{
    CUdeviceptr block;
    CUstream stream;
    pthread_t thread;

    must(cuInit(0));
    must(cuCtxCreate(&ctx, NULL, 0, 0));
    must(cuMemAlloc(&block, 100));
    must(cuMemAlloc(&block, 200));
    must(cuMemFree(block));
    cuMemFree(block);
    must(cuStreamCreate(&stream, 0));
    must(cuLaunchHostFunc(stream, wait_gate, NULL));
    cusim_set_delay_us(1000000);
    must(cuMemsetD8Async(block - 512, 1, 1, stream));
    if (!strcmp(how, "thread"))
        pthread_create(&thread, NULL, outlive, NULL);
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "quick"))
        quick_exit(0);
    return 0;
}

static bool report_has(const char *path, const char *wanted)
{
    FILE *file = fopen(path, "r");
    char line[512];
    bool has = false;

    while (file && fgets(line, sizeof line, file))
        has = has || strstr(line, wanted);
    if (file)
        fclose(file);
    return has;
}

static void test_end(void)
{
    const char *path = "selftest.report.txt";
    int code;

    setenv("CUSIM_REPORT", path, 1);
    unlink(path);
    ok(run_self("report", "exit") == 0, "a process with work outstanding ends");
    ok(report_has(path, "calls cuMemAlloc_v2 2") && report_has(path, "misuse double_free") &&
           report_has(path, "live device device 0 blocks 1 bytes 100"),
       "and leaves a report of calls, misuse and leaks");
    ok(run_self("report", "_exit") == 0 && run_self("report", "quick") == 0,
       "it also ends by _exit and quick_exit");
    code = run_self("report", "thread");
    ok(code == 5 || code == 0, "calls after the teardown are refused");
    unlink(path);
    unsetenv("CUSIM_REPORT");
}

static int test_old(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*get_version)(int *) = (int (*)(int *))dlsym(driver, "cuDriverGetVersion");
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*resolve)(const char *, void **, int, unsigned long long) =
        (int (*)(const char *, void **, int, unsigned long long))dlsym(driver, "cuGetProcAddress");
    int version = 0;
    void *address = &version;

    get_version(&version);
    ok(version == 11040 && init(0) == 0, "the old driver is of CUDA 11.4");
    ok(!dlsym(driver, "cuCtxGetId") && !dlsym(driver, "cuGetProcAddress_v2") &&
           !dlsym(driver, "cuLibraryLoadData") && dlsym(driver, "cuMemAllocAsync_ptsz"),
       "it exports nothing newer");
    ok(resolve("cuCtxGetId", &address, 12000, 0) != 0 && address == &version,
       "nor does it resolve it");
    ok(resolve("cuMemAllocAsync", &address, 11020, 0) == 0 &&
           address == dlsym(driver, "cuMemAllocAsync"),
       "what it has it resolves");
    printf("1..%u\n", ntests);
    return nfailures > 0;
}

int main(int argc, char **argv)
{
    CUdeviceptr block;

    self = "/proc/self/exe";
    sem_init(&gate, 0, 0);
    if (argc > 2 && !strcmp(argv[1], "ipc"))
        return child_ipc(argv[2]);
    if (argc > 2 && !strcmp(argv[1], "report"))
        return child_report(argv[2]);
    if (argc > 1 && !strcmp(argv[1], "old"))
        return test_old();
    ok(cuMemAlloc(&block, 64) == CUDA_ERROR_NOT_INITIALIZED, "before cuInit nothing works");
    must(cuInit(0));
    ok(cuMemAlloc(&block, 64) == CUDA_ERROR_INVALID_CONTEXT, "nor without a context");
    must(cuCtxCreate(&ctx, NULL, 0, 0));
    test_accounting();
    test_churn();
    test_kinds();
    test_arrays();
    test_virtual();
    test_pools();
    test_order();
    test_streams_and_delay();
    test_threads();
    test_kernels();
    test_ptx_variables();
    test_lazy();
    test_sticky();
    test_script();
    test_misuse();
    test_capture_modes();
    test_illegal_in_capture();
    test_graph();
    test_graph_memory();
    test_take();
    test_contexts();
    test_green();
    test_addresses();
    test_ipc();
    test_fork();
    test_external();
    test_graphics();
    test_end();
    ok(cusim_used_bytes(0) == 16u << 20 || cusim_used_bytes(0) == 32u << 20,
       "nothing but contexts is left");
    printf("1..%u\n", ntests);
    return nfailures > 0;
}
