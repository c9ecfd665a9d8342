/* SPDX-License-Identifier: MIT */
/* The runtime, compiled for the per-thread default stream; threads with a stream each. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "victim_rt.h"
#include "in_thread.h"

static NOINLINE void leak_in_own_stream(void)
{
    void *kept, *freed;

    MUST(cudaMallocAsync(&kept, 6001, NULL));
    MUST(cudaMallocAsync(&freed, 100, NULL));
    MUST(cudaMemsetAsync(kept, 1, 6001, NULL));
    MUST(cudaFreeAsync(freed, NULL));
    MUST(cudaStreamSynchronize(NULL));
}

static void *work(void *argument)
{
    leak_in_own_stream();
    return argument;
}

int main(void)
{
    pthread_t threads[4];

    start_threads(threads, 4, work, NULL);
    join_threads(threads, 4);
    say("expect leaked_bytes=%d leaked_blocks=4 leak_sites=1 allocs=8 frees=4", 4 * 6001);
    say("json kind('async') == (4, %d)", 4 * 6001);
    return 0;
}
