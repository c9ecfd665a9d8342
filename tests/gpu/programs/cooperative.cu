/* SPDX-License-Identifier: MIT */
/* Cooperative launches: every block of the grid waits for all others between the steps, so memory
 * that the pool hands out is written and read by the whole grid again and again. Each round takes
 * buffers of its own and frees them while the kernel still runs. */
#include "contents.h"

#include <cooperative_groups.h>
#include <vector>

#define COUNT  20000u
#define STEPS  6u
#define ROUNDS 24u

static __host__ __device__ void start_body(size_t thread, size_t threads, unsigned *first,
                                           unsigned seed)
{
    for (size_t i = thread; i < COUNT; i += threads)
        first[i] = expected_at(i, seed);
}

/* Every element becomes the sum of itself and one that another block of the grid may have written.
 */
static __host__ __device__ void step_body(size_t thread, size_t threads, const unsigned *from,
                                          unsigned *to, unsigned step)
{
    for (size_t i = thread; i < COUNT; i += threads)
        to[i] = from[i] + from[(i + (COUNT >> (step + 1))) % COUNT];
}

static __host__ __device__ void finish_body(size_t thread, size_t threads, const unsigned *last,
                                            unsigned *sum)
{
    for (size_t i = thread; i < COUNT; i += threads)
        sum[i] += last[i];
}

static __global__ void start(unsigned *first, unsigned seed)
{
    start_body(PLACE, first, seed);
}
EMULATED(start, start_body);

static __global__ void mix(unsigned *one, unsigned *other, unsigned *sum)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600 /* others have no such launches */
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();

    for (unsigned step = 0; step < STEPS; step++) {
        step_body(PLACE, step % 2 ? other : one, step % 2 ? one : other, step);
        grid.sync();
    }
    finish_body(PLACE, STEPS % 2 ? other : one, sum);
#endif
}

static void mix_on_host(size_t, unsigned *one, unsigned *other, unsigned *sum)
{
    for (unsigned step = 0; step < STEPS; step++)
        step_body(0, 1, step % 2 ? other : one, step % 2 ? one : other, step);
    finish_body(0, 1, STEPS % 2 ? other : one, sum);
}
EMULATED_WHOLE(mix, mix_on_host);

static int grid_size(void)
{
    int processors, is_possible;

    MUST(cudaDeviceGetAttribute(&is_possible, cudaDevAttrCooperativeLaunch, 0));
    MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    return is_possible ? processors : 0;
}

SITE void run_round(int blocks, unsigned *sum, unsigned seed, cudaStream_t stream)
{
    unsigned *one, *other;
    void *arguments[] = {&one, &other, &sum};

    MUST(cudaMalloc(&one, COUNT * sizeof(*one)));
    MUST(cudaMalloc(&other, COUNT * sizeof(*other)));
    start<<<32, 128, 0, stream>>>(one, seed);
    MUST(cudaLaunchCooperativeKernel((void *)mix, dim3((unsigned)blocks), dim3(64), arguments, 0,
                                     stream));
    MUST(cudaFree(other));
    MUST(cudaFree(one));
}

static unsigned count_wrong(const unsigned *sums, unsigned which)
{
    std::vector<unsigned> one(COUNT), other(COUNT), wanted(COUNT), found(COUNT);
    unsigned wrong = 0;

    for (unsigned round = which; round < ROUNDS; round += 2) {
        start_body(0, 1, one.data(), round);
        mix_on_host(1, one.data(), other.data(), wanted.data());
    }
    MUST(cudaMemcpy(found.data(), sums, COUNT * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < COUNT; i++)
        wrong += found[i] != wanted[i];
    return wrong;
}

int main(void)
{
    cudaStream_t streams[2];
    unsigned *sums[2], wrong = 0;
    int blocks = grid_size();

    if (blocks == 0) {
        say("no cooperative launches");
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        MUST(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        MUST(cudaMalloc(&sums[i], COUNT * sizeof(unsigned)));
        MUST(cudaMemsetAsync(sums[i], 0, COUNT * sizeof(unsigned), streams[i]));
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        run_round(blocks, sums[round % 2], round, streams[round % 2]);
        if (round % 8 == 7) /* deferred frees are served from here on */
            MUST(cudaDeviceSynchronize());
    }
    MUST(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 2; i++) {
        wrong += count_wrong(sums[i], i);
        MUST(cudaFree(sums[i]));
    }
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", wrong);
    say("expect allocs=%u frees=%u failed=0 leaked_blocks=0", 2 * ROUNDS + 2, 2 * ROUNDS + 2);
    say("strict not_waited_for(0) + served(0)['hits'] >= %u", 2 * ROUNDS - 2);
    say("prompt served(0)['hits'] >= %u", 2 * ROUNDS - 2);
    say("deferred served(0)['hits'] >= 2");
    return wrong != 0;
}
