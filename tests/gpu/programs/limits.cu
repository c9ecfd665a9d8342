/* SPDX-License-Identifier: MIT */
/*
 * What a program sees of a limit, and of a device that has none left:
 *
 *   limits view            what CUDA, the runtime and NVML say is there, one line each, and whether
 *                          a block of 90 % of what is said to be free can be had
 *   limits fill KIND SIZE [MOST]
 *                          takes blocks of SIZE MiB of device, async, managed or array memory until
 *                          one is refused, or it has MOST MiB; how many MiB, and with which error
 *   limits query           microseconds for a query of the device's memory, the median of 1000
 *   limits empty           takes 256 MiB, frees it, sleeps, and synchronises
 */
#include "gpu.h"

#include <algorithm>
#include <chrono>
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
#include <vector>

#define MIB ((size_t)1 << 20)

struct nvml_memory {
    unsigned long long total, free, used;
};

static void say_nvml(void)
{
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device;
    CUuuid uuid;
    char name[64] = "GPU-";
    size_t at = 4;
    struct nvml_memory memory;

    MUST(cuDeviceGetUuid(&uuid, 0));
    for (int i = 0; i < 16; i++)
        at += (size_t)snprintf(name + at, sizeof(name) - at,
                               i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                               (unsigned char)uuid.bytes[i]);
    if (nvml == NULL || ((int (*)(void))dlsym(nvml, "nvmlInit_v2"))() != 0 ||
        ((int (*)(const char *, void **))dlsym(nvml, "nvmlDeviceGetHandleByUUID"))(name, &device) !=
            0 ||
        ((int (*)(void *, struct nvml_memory *))dlsym(nvml, "nvmlDeviceGetMemoryInfo"))(
            device, &memory) != 0) {
        say("nvml none");
        return;
    }
    say("nvml total=%llu free=%llu used=%llu", memory.total, memory.free, memory.used);
}

static void view(void)
{
    struct cudaDeviceProp properties;
    size_t free_bytes, total, device_total;
    void *block;
    cudaError_t rc;

    MUST(cudaMemGetInfo(&free_bytes, &total));
    MUST(cuDeviceTotalMem(&device_total, 0));
    MUST(cudaGetDeviceProperties(&properties, 0));
    say("runtime total=%zu free=%zu", total, free_bytes);
    say("driver total=%zu", device_total);
    say("properties total=%zu", properties.totalGlobalMem);
    say_nvml();
    rc = cudaMalloc(&block, free_bytes / 10 * 9);
    say("big rc=%d", (int)rc);
}

static cudaError_t take(const char *kind, size_t mib)
{
    struct cudaChannelFormatDesc bytes = cudaCreateChannelDesc<unsigned char>();
    cudaArray_t array;
    void *block;

    if (strcmp(kind, "async") == 0)
        return cudaMallocAsync(&block, mib * MIB, 0);
    if (strcmp(kind, "managed") == 0)
        return cudaMallocManaged(&block, mib * MIB);
    if (strcmp(kind, "array") == 0)
        return cudaMallocArray(&array, &bytes, 16384, mib * MIB / 16384);
    return cudaMalloc(&block, mib * MIB);
}

static void fill(const char *kind, size_t mib, size_t most)
{
    cudaError_t rc = cudaSuccess;
    size_t taken = 0;

    while (taken < most && (rc = take(kind, mib)) == cudaSuccess)
        taken += mib;
    say("%s %zu MiB, then rc=%d, last error %d", kind, taken, (int)rc, (int)cudaGetLastError());
}

static void query(void)
{
    std::vector<double> taken;
    size_t free_bytes, total;

    MUST(cudaMemGetInfo(&free_bytes, &total)); /* makes the context */
    for (int i = 0; i < 1000; i++) {
        auto begin = std::chrono::steady_clock::now();

        MUST(cudaMemGetInfo(&free_bytes, &total));
        taken.push_back(
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                .count());
    }
    std::sort(taken.begin(), taken.end());
    fprintf(stderr, "query median %.1f us, longest %.1f us\n", taken[500], taken[999]);
}

/* Nothing is left to the program after that, and the pool has given back what it kept. */
static void empty(void)
{
    void *block;

    MUST(cudaMalloc(&block, 256 * MIB));
    MUST(cudaMemset(block, 1, 256 * MIB));
    MUST(cudaFree(block));
    usleep(400000);                /* longer than POOL_IDLE */
    MUST(cudaDeviceSynchronize()); /* finds that it is due */
    MUST(cudaDeviceSynchronize());
    say("pool served(0)['reserved_bytes'] == 0 and sum(served(0)['trimmed'].values()) == 1");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "view";

    MUST(cuInit(0));
    if (strcmp(what, "view") == 0)
        view();
    else if (strcmp(what, "fill") == 0 && argc > 3)
        fill(argv[2], (size_t)atol(argv[3]), argc > 4 ? (size_t)atol(argv[4]) : 1 << 20);
    else if (strcmp(what, "query") == 0)
        query();
    else if (strcmp(what, "empty") == 0)
        empty();
    else
        return 98;
    return 0;
}
