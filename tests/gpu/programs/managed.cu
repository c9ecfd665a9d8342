/* SPDX-License-Identifier: MIT */
/* Managed memory: the host and kernels write it in turn, with advice and with copies ahead; it is
 * freed right behind the kernels that use it. A variable of the program's own lies there too. Two
 * blocks are forgotten. */
#include "contents.h"

#define BYTES ((size_t)200000)

static unsigned *wrong;
__managed__ unsigned own[256];

static void advise(void *block, cudaMemoryAdvise advice, int device)
{
#if CUDART_VERSION >= 13000
    cudaMemLocation location;

    memset(&location, 0, sizeof(location));
    location.type = cudaMemLocationTypeDevice;
    location.id = device;
    MUST(cudaMemAdvise(block, BYTES, advice, location));
#else
    MUST(cudaMemAdvise(block, BYTES, advice, device));
#endif
}

/* To the device, or to the host. */
static void prefetch(void *block, bool to_host)
{
#if CUDART_VERSION >= 13000
    cudaMemLocation location;

    memset(&location, 0, sizeof(location));
    location.type = to_host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    MUST(cudaMemPrefetchAsync(block, BYTES, location, 0, 0));
#else
    MUST(cudaMemPrefetchAsync(block, BYTES, to_host ? cudaCpuDeviceId : 0, 0));
#endif
}

static unsigned wrong_on_host(const unsigned *block, size_t bytes, unsigned seed)
{
    unsigned bad = 0;

    for (size_t i = 0; i < bytes / sizeof(*block); i++)
        bad += block[i] != expected_at(i, seed);
    return bad;
}

SITE void take_turns(void)
{
    unsigned *block, bad = 0;

    MUST(cudaMallocManaged(&block, BYTES));
    for (unsigned turn = 0; turn < 4; turn++) {
        for (size_t i = 0; i < BYTES / sizeof(*block); i++)
            block[i] = expected_at(i, 60 + turn);
        check(block, BYTES, 60 + turn, wrong, 0);
        fill(block, BYTES, 70 + turn, 0);
        MUST(cudaDeviceSynchronize());
        bad += wrong_on_host(block, BYTES, 70 + turn);
    }
    MUST(cudaFree(block));
    say("in turn: %u elements are wrong", bad);
    say("json live('take_turns') == (0, 0) and site('take_turns')['kind'] == 'managed'");
}

SITE void advise_and_prefetch(void)
{
    unsigned *block, bad;

    MUST(cudaMallocManaged(&block, BYTES));
    advise(block, cudaMemAdviseSetPreferredLocation, 0);
    advise(block, cudaMemAdviseSetAccessedBy, 0);
    prefetch(block, false);
    fill(block, BYTES, 80, 0);
    prefetch(block, true);
    MUST(cudaDeviceSynchronize());
    bad = wrong_on_host(block, BYTES, 80);
    say("ahead: %u elements are wrong", bad);
    say("json live('advise_and_prefetch') == (1, %zu)", BYTES);
}

/* Freed while kernels use it; others of the same size come at once, of this kind and of another. */
SITE void free_behind_kernels(void)
{
    void *block, *plain;
    cudaStream_t streams[2];

    for (cudaStream_t &stream : streams)
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (unsigned round = 0; round < 20; round++) {
        MUST(cudaMallocManaged(&block, BYTES));
        MUST(cudaMalloc(&plain, BYTES));
        fill(block, BYTES, 90 + round, streams[round % 2]);
        fill(plain, BYTES, 190 + round, streams[round % 2]);
        check(block, BYTES, 90 + round, wrong, streams[round % 2]);
        check(plain, BYTES, 190 + round, wrong, streams[round % 2]);
        MUST(cudaFree(block));
        MUST(cudaFree(plain));
    }
    MUST(cudaDeviceSynchronize());
    for (cudaStream_t stream : streams)
        MUST(cudaStreamDestroy(stream));
    say("json sum(s['live']['count'] for s in sites('free_behind_kernels')) == 0");
}

SITE void forget_host_part(void)
{
    void *block;

    MUST(cudaMallocManaged(&block, 5000, cudaMemAttachHost));
    say("json live('forget_host_part') == (1, 5000)");
}

int main(void)
{
    unsigned found;
    int is_concurrent;

    MUST(cudaDeviceGetAttribute(&is_concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    MUST(cudaMalloc(&wrong, sizeof(*wrong)));
    start_counter(wrong, 0);
    fill(own, sizeof(own), 100, 0);
    MUST(cudaDeviceSynchronize());
    say("of the program: %u elements are wrong", wrong_on_host(own, sizeof(own), 100));
    take_turns();
    free_behind_kernels();
    forget_host_part();
    if (is_concurrent)
        advise_and_prefetch();
    MUST(cudaMemcpy(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost));
    MUST(cudaFree(wrong));
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", found);
    say("expect leaked_blocks=%d leaked_bytes=%zu failed=0", 1 + is_concurrent,
        5000 + is_concurrent * BYTES);
    say("expect allocs=%d frees=42", 43 + is_concurrent);
    say("no report INVALID FREES");
    return found != 0;
}
