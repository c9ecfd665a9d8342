/* SPDX-License-Identifier: MIT */
/* Threads allocate, others free; the allocating threads are gone by then. One block per thread
 * stays. */
#include "victim.h"

#include <pthread.h>

#define THREADS 8
#define BLOCKS  200

static CUcontext context;
static CUdeviceptr blocks[THREADS][BLOCKS];

static NOINLINE void take(CUdeviceptr *mine)
{
    for (int i = 0; i < BLOCKS; i++)
        MUST(cuMemAlloc(&mine[i], 1024));
}

static void *allocate(void *mine)
{
    MUST(cuCtxSetCurrent(context));
    take(mine);
    return NULL;
}

static void *release(void *theirs)
{
    CUdeviceptr *block = theirs;

    MUST(cuCtxSetCurrent(context));
    for (int i = 1; i < BLOCKS; i++)
        MUST(cuMemFree(block[i]));
    return NULL;
}

static void run(void *(*body)(void *))
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, blocks[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    context = use_device(0);
    run(allocate);
    run(release);
    say("expect leaked_bytes=%d leaked_blocks=%d leak_sites=1 allocs=%d frees=%d peak_bytes=%d",
        THREADS * 1024, THREADS, THREADS * BLOCKS, THREADS * (BLOCKS - 1), THREADS * BLOCKS * 1024);
    say("json live('take') == (%d, %d)", THREADS, THREADS * 1024);
    return 0;
}
