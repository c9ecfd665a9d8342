/* SPDX-License-Identifier: MIT */
/* Proves that the stand-in runtime behaves on the simulated GPU. Prints TAP; exits 1 on failure.
 *
 * Compiled for either meaning of stream 0, linked with the shared or the static runtime.
 */
#include "cusim.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cuda_profiler_api.h is in no wheel */
cudaError_t cudaProfilerStart(void), cudaProfilerStop(void);
cudaError_t cusim_register_kernel(const void *function, const char *name);

static unsigned ntests, nfailures;

static void ok(bool is_ok, const char *sentence)
{
    printf("%sok %u - %s\n", is_ok ? "" : "not ", ++ntests, sentence);
    nfailures += !is_ok;
    fflush(stdout);
}

static void must(cudaError_t status)
{
    if (status == cudaSuccess)
        return;
    printf("Bail out! %s\n", cudaGetErrorString(status));
    exit(1);
}

static void fill(void)
{
}

static void trap(void)
{
}

static void test_memory(void)
{
    struct cudaChannelFormatDesc desc =
        cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    struct cudaPointerAttributes about;
    char in[100], out[100] = {0};
    size_t before, after, total, pitch;
    cudaArray_t array;
    void *one, *two;

    must(cudaFree(NULL));
    must(cudaMemGetInfo(&before, &total));
    must(cudaMalloc(&one, 100));
    must(cudaMemGetInfo(&after, &total));
    ok(before - after == 512, "cudaMalloc takes memory of the device");
    memset(in, 3, sizeof in);
    must(cudaMemcpy(one, in, 100, cudaMemcpyHostToDevice));
    must(cudaMemcpy(out, one, 100, cudaMemcpyDefault));
    ok(!memcmp(in, out, 100), "cudaMemcpy copies there and back");
    must(cudaPointerGetAttributes(&about, one));
    ok(about.type == cudaMemoryTypeDevice && about.device == 0, "pointers are known");
    must(cudaPointerGetAttributes(&about, in));
    ok(about.type == cudaMemoryTypeUnregistered, "or known to be unknown");
    must(cudaFree(one));
    must(cudaMallocPitch(&one, &pitch, 10, 10));
    must(cudaMemset2D(one, pitch, 7, 10, 10));
    must(cudaMemcpy2D(out, 10, one, pitch, 10, 10, cudaMemcpyDeviceToHost));
    ok(out[0] == 7 && out[99] == 7, "two-dimensional memory works");
    must(cudaFree(one));
    must(cudaMallocArray(&array, &desc, 100, 1, 0));
    must(cudaMemcpy2DToArray(array, 0, 0, in, 100, 100, 1, cudaMemcpyHostToDevice));
    must(cudaMemcpy2DFromArray(out, 100, array, 0, 0, 100, 1, cudaMemcpyDeviceToHost));
    ok(!memcmp(in, out, 100), "arrays work");
    must(cudaFreeArray(array));
    must(cudaMallocAsync(&one, 1000, NULL));
    must(cudaMemsetAsync(one, 1, 1000, NULL));
    must(cudaFreeAsync(one, NULL));
    must(cudaMallocHost(&two, 1000));
    must(cudaFreeHost(two));
    must(cudaMalloc(&one, 0));
    ok(one == NULL, "nothing can be allocated");
    must(cudaDeviceSynchronize());
    must(cudaMemGetInfo(&after, &total));
    ok(after == before, "and everything comes back");
}

static void test_errors(void)
{
    void *pointer;

    ok(cudaMalloc(&pointer, (size_t)1 << 50) == cudaErrorMemoryAllocation, "too much is refused");
    ok(cudaPeekAtLastError() == cudaErrorMemoryAllocation &&
           cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess,
       "the last error is told once");
    must(cusim_register_kernel((const void *)trap, "trap"));
    must(cudaLaunchKernel((const void *)trap, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
    ok(cudaDeviceSynchronize() == cudaErrorLaunchFailure &&
           cudaGetLastError() == cudaErrorLaunchFailure &&
           cudaGetLastError() == cudaErrorLaunchFailure,
       "a broken context's error stays");
    must(cudaDeviceReset());
    must(cudaMalloc(&pointer, 100));
    ok(cudaGetLastError() == cudaSuccess, "until the device is reset");
    must(cudaFree(pointer));
}

static void test_work(void)
{
    unsigned *block, value = 5, out[4] = {0};
    uint64_t n = 4;
    void *arguments[] = {&block, &value, &n};
    cudaGraphExec_t exec;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaEvent_t event;
    void *symbol;

    must(cudaMalloc((void **)&block, 16));
    must(cusim_register_kernel((const void *)fill, "fill"));
    must(
        cudaLaunchKernel((const void *)fill, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, NULL));
    must(cudaMemcpy(out, block, 16, cudaMemcpyDeviceToHost));
    ok(out[3] == 5, "a registered kernel runs");
    value = 6;
    must(cudaLaunchCooperativeKernel((const void *)fill, (dim3){1, 1, 1}, (dim3){1, 1, 1},
                                     arguments, 0, NULL));
    must(cudaMemcpy(out, block, 16, cudaMemcpyDeviceToHost));
    ok(out[3] == 6, "a cooperative launch, too");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaEventCreate(&event));
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    must(cudaMemsetAsync(block, 0, 16, stream));
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphLaunch(exec, stream));
    must(cudaEventRecord(event, stream));
    must(cudaEventSynchronize(event));
    must(cudaMemcpy(out, block, 16, cudaMemcpyDeviceToHost));
    ok(out[3] == 0, "a captured graph runs");
    must(cudaGraphExecDestroy(exec));
    must(cudaGraphDestroy(graph));
    must(cudaEventDestroy(event));
    must(cudaStreamDestroy(stream));
    must(cudaFree(block));
    must(cudaGetDriverEntryPointByVersion("cuMemAlloc", &symbol, 12000, 0, NULL));
    ok(symbol != NULL, "the driver's functions can be had through the runtime");
}

/* What cusim_texel finds behind a texture of this, or 0; level 0 of arrays without levels. */
static unsigned texel(const struct cudaResourceDesc *resource, unsigned level, size_t x, size_t y)
{
    static __typeof__(&cusim_texel) find;
    struct cudaTextureDesc how = {.readMode = cudaReadModeElementType};
    cudaTextureObject_t texture;
    unsigned *element, value;

    find = (__typeof__(find))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cusim_texel");
    must(cudaCreateTextureObject(&texture, resource, &how, NULL));
    element = find(texture, level, x, y, 0);
    value = element ? *element : 0;
    must(cudaDestroyTextureObject(texture));
    return value;
}

static void test_textures(void)
{
    unsigned rows[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindUnsigned};
    struct cudaResourceDesc resource = {.resType = cudaResourceTypeArray};
    cudaSurfaceObject_t surface;
    cudaMipmappedArray_t levels;
    cudaArray_t array;

    must(cudaMallocArray(&array, &format, 4, 2, cudaArraySurfaceLoadStore));
    must(cudaMemcpy2DToArray(array, 0, 0, rows, 16, 16, 2, cudaMemcpyHostToDevice));
    resource.res.array.array = array;
    ok(texel(&resource, 0, 3, 1) == 8 && texel(&resource, 0, 0, 0) == 1, "a texture has elements");
    ok(texel(&resource, 0, 4, 0) == 0 && texel(&resource, 0, 0, 2) == 0 &&
           texel(&resource, 1, 0, 0) == 0,
       "and none beyond its array");
    must(cudaCreateSurfaceObject(&surface, &resource));
    must(cudaDestroySurfaceObject(surface));
    ok(cudaDestroySurfaceObject(surface) == cudaErrorInvalidValue, "a surface goes once");
    must(cudaFreeArray(array));

    must(cudaMallocMipmappedArray(&levels, &format, (struct cudaExtent){8, 4, 0}, 2, 0));
    must(cudaGetMipmappedArrayLevel(&array, levels, 1));
    must(cudaMemcpy2DToArray(array, 0, 0, rows, 16, 16, 2, cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = levels;
    ok(texel(&resource, 1, 2, 1) == 7 && texel(&resource, 2, 0, 0) == 0, "a level has its own");
    resource.resType = cudaResourceTypeArray;
    ok(cudaCreateTextureObject(NULL, &resource, NULL, NULL) == cudaErrorInvalidValue &&
           cudaGetLastError() == cudaErrorInvalidValue,
       "a texture needs a description");
    must(cudaFreeMipmappedArray(levels));
    cudaGetLastError();
}

static bool holds(const unsigned *block, unsigned value)
{
    unsigned out[4] = {0};

    must(cudaMemcpy(out, block, sizeof out, cudaMemcpyDeviceToHost));
    return out[0] == value && out[3] == value;
}

static void test_libraries(void)
{
    unsigned *block, value = 6, count;
    uint64_t n = 4;
    void *arguments[] = {&block, &value, &n};
    cudaLaunchConfig_t config = {.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}};
    struct cudaFuncAttributes about;
    cudaLibrary_t library;
    cudaKernel_t kernel, listed;
    void *table;
    size_t bytes;
    int blocks;

    must(cudaMalloc((void **)&block, 16));
    must(cudaLibraryLoadData(&library, "cusim 1\nkernel fill\nglobal table 400\n", NULL, NULL, 0,
                             NULL, NULL, 0));
    must(cudaLibraryGetKernel(&kernel, library, "fill"));
    must(cudaLibraryGetKernelCount(&count, library));
    must(cudaLibraryEnumerateKernels(&listed, 1, library));
    ok(count == 1 && listed == kernel, "a library lists its kernels");
    must(cudaLibraryGetGlobal(&table, &bytes, library, "table"));
    ok(table && bytes == 400, "and gives its variables");
    ok(cudaLibraryGetManaged(&table, &bytes, library, "table") == cudaErrorSymbolNotFound &&
           cudaLibraryGetUnifiedFunction(&table, library, "fill") == cudaErrorNotSupported,
       "it has no managed ones, and no functions of two sides");
    must(cudaLaunchKernelExC(&config, (const void *)kernel, arguments));
    ok(holds(block, 6), "its kernel is launched by its handle");
    value = 7;
    must(cudaLaunchCooperativeKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1},
                                     arguments, 0, NULL));
    ok(holds(block, 7), "and as a cooperative one");
    must(cudaFuncGetAttributes(&about, (const void *)kernel));
    must(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              1024));
    must(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024,
                                         0));
    must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)kernel, 256, 0));
    ok(about.maxThreadsPerBlock == 1024 && blocks == 6, "what a launch may be like is known");
    ok(cudaFuncGetAttributes(&about, &library) == cudaErrorInvalidDeviceFunction &&
           cudaGetLastError() == cudaErrorInvalidDeviceFunction,
       "what is no kernel has no attributes");
    must(cudaLibraryUnload(library));
    must(cudaFree(block));
}

static void note_end(void *semaphore)
{
    sem_post(semaphore);
}

/* The graph keeps the object, and so does what was made of it. */
static void test_user_objects(cudaGraph_t graph, cudaGraphExec_t exec)
{
    cudaUserObject_t object;
    sem_t ended;

    sem_init(&ended, 0, 0);
    must(cudaUserObjectCreate(&object, &ended, note_end, 2, cudaUserObjectNoDestructorSync));
    must(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    must(cudaUserObjectRetain(object, 1));
    must(cudaUserObjectRelease(object, 2));
    must(cudaGraphRetainUserObject(graph, object, 1, 0));
    must(cudaGraphReleaseUserObject(graph, object, 1));
    ok(cudaGraphReleaseUserObject(graph, object, 2) == cudaErrorInvalidValue,
       "a graph gives back no more of an object than it has");
    must(cudaGraphExecDestroy(exec));
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphDestroy(graph));
    ok(cudaUserObjectRetain(object, 1) == cudaSuccess &&
           cudaUserObjectRelease(object, 1) == cudaSuccess,
       "an executable graph keeps the objects of its graph");
    must(cudaGraphExecDestroy(exec));
    ok(sem_wait(&ended) == 0 && cudaUserObjectRetain(object, 1) == cudaErrorInvalidValue &&
           cudaGetLastError() == cudaErrorInvalidValue,
       "and ends them with itself");
    sem_destroy(&ended);
}

static void test_nodes(void)
{
    unsigned *from, *to, value = 8;
    uint64_t n = 4;
    void *arguments[] = {&from, &value, &n};
    struct cudaGraphNodeParams launch = {.type = cudaGraphNodeTypeKernel},
                               copy = {.type = cudaGraphNodeTypeMemcpy};
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t nodes[2], first;
    cudaGraphExec_t exec;
    cudaStream_t stream;
    cudaGraph_t graph;
    size_t count = 1;

    must(cudaMalloc((void **)&from, 16));
    must(cudaMalloc((void **)&to, 16));
    must(cudaStreamCreate(&stream));
    must(cudaGraphCreate(&graph, 0));
    launch.kernel = (struct cudaKernelNodeParamsV2){.func = (void *)fill,
                                                    .gridDim = {1, 1, 1},
                                                    .blockDim = {1, 1, 1},
                                                    .kernelParams = arguments};
    must(cudaGraphAddNode(&nodes[0], graph, NULL, NULL, 0, &launch));
    copy.memcpy.copyParams = (struct cudaMemcpy3DParms){.srcPtr = {from, 16, 16, 1},
                                                        .dstPtr = {to, 16, 16, 1},
                                                        .extent = {16, 1, 1},
                                                        .kind = cudaMemcpyDeviceToDevice};
    must(cudaGraphAddNode(&nodes[1], graph, &nodes[0], NULL, 1, &copy));
    must(cudaGraphNodeGetDependencies(nodes[1], &first, NULL, &count));
    ok(count == 1 && first == nodes[0], "a node knows what it depends on");
    must(cudaStreamBeginCaptureToGraph(stream, graph, &nodes[0], NULL, 1,
                                       cudaStreamCaptureModeRelaxed));
    must(cudaStreamUpdateCaptureDependencies(stream, &nodes[1], NULL, 1,
                                             cudaStreamSetCaptureDependencies));
    must(cudaMemsetAsync(from, 0, 16, stream));
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphGetNodes(graph, NULL, &count));
    ok(count == 3, "a stream is captured into a graph that is there");
    ok(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0) == cudaErrorNotSupported &&
           cudaGetLastError() == cudaErrorNotSupported,
       "conditions are not to be had");
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphLaunch(exec, stream));
    must(cudaStreamSynchronize(stream));
    ok(holds(to, 8), "nodes that were added one by one run in their order");
    must(cudaProfilerStart());
    must(cudaProfilerStop());
    test_user_objects(graph, exec);
    must(cudaStreamDestroy(stream));
    must(cudaFree(from));
    must(cudaFree(to));
}

static void *use_device_1(void *unused)
{
    struct cudaPointerAttributes about;
    void *block;

    (void)unused;
    must(cudaSetDevice(1));
    must(cudaMalloc(&block, 10));
    must(cudaPointerGetAttributes(&about, block));
    must(cudaFree(block));
    return (void *)(intptr_t)(about.device == 1);
}

static void test_devices(void)
{
    struct cudaDeviceProp prop;
    pthread_t thread;
    int count, device, version;
    void *result;

    must(cudaGetDeviceCount(&count));
    must(cudaGetDeviceProperties(&prop, 1));
    must(cudaRuntimeGetVersion(&version));
    ok(prop.maxThreadsPerMultiProcessor == 1536 && prop.maxGridSize[2] == 65535 &&
           prop.sharedMemPerBlockOptin == 101376 && prop.memoryPoolsSupported == 1,
       "properties are the driver's attributes");
    ok(count == 2 && !strcmp(prop.name, "Simulated GPU 1") && version == CUDART_VERSION,
       "devices have names");
    pthread_create(&thread, NULL, use_device_1, NULL);
    pthread_join(thread, &result);
    must(cudaGetDevice(&device));
    ok(result && device == 0, "every thread has a device of its own");
    ok(cudaSetDevice(2) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice,
       "there is no third");
}

int main(void)
{
    test_memory();
    test_work();
    test_textures();
    test_libraries();
    test_nodes();
    test_devices();
    test_errors();
    printf("1..%u\n", ntests);
    return nfailures > 0;
}
