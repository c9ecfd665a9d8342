/* SPDX-License-Identifier: MIT */
/* Frees of memory that cuMemFree does not free: mapped, of a graph, an array; and a free in a
 * stream that is none. */
#include "victim.h"

static CUstream stream;

static NOINLINE CUdeviceptr map(CUmemGenericAllocationHandle *handle, size_t bytes)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUdeviceptr address;

    MUST(cuMemCreate(handle, bytes, &prop, 0));
    MUST(cuMemAddressReserve(&address, 2 * bytes, 0, 0, 0));
    MUST(cuMemMap(address, bytes, 0, *handle, 0));
    return address;
}

static NOINLINE void free_mapped(void)
{
    const size_t bytes = 2 << 20;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address = map(&handle, bytes);

    say("cuMemFree of mapped memory returned %d", (int)cuMemFree(address));
    MUST(cuMemUnmap(address, bytes));
    say("cuMemFree of reserved addresses returned %d", (int)cuMemFree(address));
    MUST(cuMemAddressFree(address, 2 * bytes));
    MUST(cuMemRelease(handle));
}

static NOINLINE void free_of_graph(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = 5000};
    CUgraphNode alloc, free_node;
    CUgraphExec exec;
    CUgraph graph;

    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    MUST(cuGraphAddMemFreeNode(&free_node, graph, &alloc, 1, params.dptr));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    say("cuMemFree of a graph's memory returned %d", (int)cuMemFree(params.dptr));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

static NOINLINE void free_array(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUarray array;

    MUST(cuArrayCreate(&array, &shape));
    say("cuMemFree of an array returned %d", (int)cuMemFree((CUdeviceptr)(uintptr_t)array));
    MUST(cuArrayDestroy(array));
}

static NOINLINE void free_in_no_stream(void)
{
    CUdeviceptr block;

    MUST(cuMemAllocAsync(&block, 3000, stream));
    say("cuMemFreeAsync in no stream returned %d",
        (int)cuMemFreeAsync(block, (CUstream)(uintptr_t)0xdead));
    MUST(cuMemFreeAsync(block, stream));
}

int main(void)
{
    use_device(0);
    MUST(cuStreamCreate(&stream, 0));
    free_mapped();
    free_of_graph();
    free_array();
    free_in_no_stream();
    MUST(cuStreamSynchronize(stream));
    say("expect leaked_bytes=0 leaked_blocks=0 failed=0 invalid_frees=5");
    say("report  free by the wrong function: cuMemFree, ");
    say("report    allocated by cuMemCreate at$");
    say("report    allocated by cuMemAddressReserve at$");
    say("report    allocated by cuArrayCreate at$");
    say("report  free of a graph's memory while it is not allocated: cuMemFree, ");
    say("report    allocated by cuGraphAddMemAllocNode at$");
    say("report  free in an invalid stream: cuMemFreeAsync, .*CUDA_ERROR_INVALID_HANDLE .400.$");
    say("report    allocated by cuMemAllocAsync at$");
    say("json [e['misuse'] for e in events('invalid-free')] == ['wrong-function', "
        "'wrong-function', 'graph-memory', 'wrong-function', 'invalid-stream']");
    return 0;
}
