/* SPDX-License-Identifier: MIT */
/* Threads that allocate, compute and free at the same time, half of it in stream order; every other
 * block is freed by another thread than the one that took it. Each thread forgets one block. */
#include "contents.h"

#include <pthread.h>

#define THREADS   8
#define ROUNDS    200
#define FORGOTTEN ((size_t)5000)

/* One place per thread: the neighbour frees what lies there. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *handed[THREADS];
static unsigned wrong_total; /* guarded by lock */

SITE void *take(size_t bytes, int in_order, cudaStream_t stream)
{
    void *block;

    if (in_order)
        MUST(cudaMallocAsync(&block, bytes, stream));
    else
        MUST(cudaMalloc(&block, bytes));
    return block;
}

SITE void forget_one(unsigned seed)
{
    void *block;

    MUST(cudaMalloc(&block, FORGOTTEN));
    fill(block, FORGOTTEN, seed, 0);
}

static void *swap(int place, void *block)
{
    void *before;

    pthread_mutex_lock(&lock);
    before = handed[place];
    handed[place] = block;
    pthread_mutex_unlock(&lock);
    return before;
}

static void *worker(void *arg)
{
    int self = (int)(intptr_t)arg;
    cudaStream_t stream;
    unsigned *wrong, found;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&wrong, sizeof(*wrong)));
    start_counter(wrong, stream);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned seed = self * 1000u + round;
        size_t bytes = 4 * (1 + (seed * 7919u) % 60000);
        int in_order = round % 2;
        void *block = take(bytes, in_order, stream);

        fill(block, bytes, seed, stream);
        check(block, bytes, seed, wrong, stream);
        if (in_order) {
            MUST(cudaFreeAsync(block, stream));
        } else {
            MUST(cudaStreamSynchronize(stream));
            MUST(cudaFree(swap((self + 1) % THREADS, block)));
        }
    }
    forget_one(self);
    MUST(cudaMemcpyAsync(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(wrong));
    MUST(cudaStreamDestroy(stream));
    pthread_mutex_lock(&lock);
    wrong_total += found;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned allocs = THREADS * (ROUNDS + 2);

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, worker, (void *)(intptr_t)i))
            return 99;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MUST(cudaFree(handed[i]));
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", wrong_total);
    say("expect leaked_bytes=%zu leaked_blocks=%d leak_sites=1", THREADS * FORGOTTEN, THREADS);
    say("expect allocs=%u frees=%u failed=0", allocs, allocs - THREADS);
    say("json live('forget_one') == (%d, %zu)", THREADS, THREADS * FORGOTTEN);
    say("json len({block['tid'] for block in r['leaks']}) == %d", THREADS);
    say("json sum(s['total']['count'] for s in sites('take')) == %d", THREADS * ROUNDS);
    say("no report INVALID FREES");
    return wrong_total != 0;
}
