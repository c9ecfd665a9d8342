/* SPDX-License-Identifier: MIT */
/*
 * The cost of one allocation and its free, seen by a program: ns per pair.
 *
 *   pairs THREADS LIVE ITERATIONS
 *
 * LIVE blocks are held by each thread meanwhile. Prints one number: ns per pair and thread, the
 * best of five runs, so that a busy machine disturbs less.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuInit(unsigned flags);
int cuMemAlloc_v2(uint64_t *dptr, size_t bytes);
int cuMemFree_v2(uint64_t dptr);

#define RUNS 5

static long live, iterations;
static pthread_barrier_t barrier;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *worker(void *arg)
{
    double *best = arg;

    for (long i = 0; i < live; i++) {
        uint64_t held;

        cuMemAlloc_v2(&held, 4096);
    }
    for (int run = 0; run < RUNS; run++) {
        double start;

        pthread_barrier_wait(&barrier);
        start = now_ns();
        for (long i = 0; i < iterations; i++) {
            uint64_t dptr;

            cuMemAlloc_v2(&dptr, 4096);
            cuMemFree_v2(dptr);
        }
        start = (now_ns() - start) / iterations;
        if (run == 0 || start < *best)
            *best = start;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    double best[64] = {0}, sum = 0;
    pthread_t ids[64];

    live = argc > 2 ? atol(argv[2]) : 0;
    iterations = argc > 3 ? atol(argv[3]) : 1000000;
    if (threads < 1 || threads > 64 || iterations < 1 || cuInit(0) != 0)
        return 2;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, worker, &best[i]);
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum += best[i];
    }
    printf("%.1f\n", sum / threads);
    return 0;
}
