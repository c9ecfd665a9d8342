/* SPDX-License-Identifier: MIT */
/*
 * The cost of one allocation and its free, seen by a program: ns per pair.
 *
 *   pairs THREADS LIVE ITERATIONS last|any DEPTH
 *
 * LIVE blocks are held by each thread meanwhile. "last" frees the block just taken, whose record is
 * still in the cache; "any" keeps it and frees one of the LIVE at random. DEPTH calls lie between
 * the thread's start and the loop. Prints one number: ns per pair and thread, for each thread the
 * best of five runs, so that a busy machine disturbs less.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cuInit(unsigned flags);
int cuMemAlloc_v2(uint64_t *dptr, size_t bytes);
int cuMemFree_v2(uint64_t dptr);

#define RUNS        5
#define THREADS_MAX 64

static long live, iterations, depth;
static int any;
static pthread_barrier_t barrier;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void free_last(void)
{
    for (long i = 0; i < iterations; i++) {
        uint64_t dptr;

        cuMemAlloc_v2(&dptr, 4096);
        cuMemFree_v2(dptr);
    }
}

static void free_any(uint64_t *held)
{
    uint64_t random = 88172645463325252u;

    for (long i = 0; i < iterations; i++) {
        uint64_t *victim, dptr;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        victim = &held[random % (uint64_t)live];
        cuMemAlloc_v2(&dptr, 4096);
        cuMemFree_v2(*victim);
        *victim = dptr;
    }
}

static double measure(uint64_t *held)
{
    double best = 0;

    for (long i = 0; i < live; i++)
        cuMemAlloc_v2(&held[i], 4096);
    for (int run = 0; run < RUNS; run++) {
        double took;

        pthread_barrier_wait(&barrier);
        took = now_ns();
        if (any)
            free_any(held);
        else
            free_last();
        took = (now_ns() - took) / (double)iterations;
        if (run == 0 || took < best)
            best = took;
    }
    return best;
}

/* The assembly keeps the call from becoming a jump. */
static __attribute__((noinline)) double deeper(long levels, uint64_t *held)
{
    double best = levels > 0 ? deeper(levels - 1, held) : measure(held);

    __asm__ volatile("" ::: "memory");
    return best;
}

static void *worker(void *arg)
{
    double *best = arg;
    uint64_t *held = calloc((size_t)live + 1, sizeof(*held));

    if (!held)
        exit(2);
    *best = deeper(depth, held);
    free(held);
    return NULL;
}

int main(int argc, char **argv)
{
    double best[THREADS_MAX] = {0}, sum = 0;
    pthread_t ids[THREADS_MAX];
    int threads;

    if (argc != 6)
        return 2;
    threads = atoi(argv[1]);
    live = atol(argv[2]);
    iterations = atol(argv[3]);
    any = strcmp(argv[4], "any") == 0;
    depth = atol(argv[5]);
    if (threads < 1 || threads > THREADS_MAX || live < any || iterations < 1 || cuInit(0) != 0)
        return 2;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, worker, &best[i]) != 0)
            return 2;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum += best[i];
    }
    printf("%.1f\n", sum / threads);
    return 0;
}
