/* SPDX-License-Identifier: MIT */
/*
 * The workloads: the same source for everything that gives out memory, so that contestants differ
 * in nothing else. In C and C++. Whoever includes this has defined
 *
 *   take_block(bytes)    an address, 0 when there is none
 *   give_block(address)
 *   synchronize()        waits for the device, as a program does
 *   null_upstream()      how many allocations the calling thread made of the driver
 *
 * and calls run_workload with words NAME=VALUE:
 *
 *   pattern=last|any|mix  what is freed, see below (last)
 *   threads=N             that do it at the same time (1)
 *   live=N                blocks that each thread holds meanwhile (0)
 *   loops=N pairs=N       how many loops, of how many pairs (25 of 40000)
 *   depth=N               calls between a thread's start and the loop (0)
 *   sync=N                a synchronisation of the program every N pairs (0: none)
 *   low=BYTES high=BYTES  sizes of a mix (256 B and 256 MiB)
 *
 * "last" takes 4 KiB and frees it, its record still in the cache. "any" takes 4 KiB and frees one
 * of the live blocks at random. "mix" frees one of 64 blocks at random and takes one of a random
 * size in its place, as many of each octave as of any other; the sequence is the same for all
 * contestants.
 *
 * Prints four numbers: ns per pair of the best loop, from the first thread's start to the last
 * one's end; allocations made; allocations that reached the driver; bytes resident when the live
 * blocks were taken. Short loops and the best of many, because other work takes the processors now
 * and then: some loops are left alone, and of several threads only a loop counts in which all were.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOPS_MAX   1000
#define THREADS_MAX 64
#define MIX_SLOTS   64
#define PAIR_BYTES  4096
#define SEED        UINT64_C(88172645463325252)

struct mix_step {
    uint32_t slot;
    uint32_t bytes;
};

struct worker {
    pthread_t id;
    double start[LOOPS_MAX], end[LOOPS_MAX];
    uint64_t *held;
    uint64_t random; /* goes on from loop to loop, or all would free the same few */
    uint64_t allocations, upstream;
};

static const char *pattern = "last";
static long threads = 1, live, loops = 25, pairs = 40000, depth, sync_every;
static long mix_low = 256, mix_high = 256L << 20;
static struct mix_step *mix_steps;
static struct worker workers[THREADS_MAX];
static unsigned long arrivals;
static long resident_bytes;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static long read_resident(void)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!statm || fscanf(statm, "%*d %ld", &pages) != 1)
        pages = 0;
    if (statm)
        fclose(statm);
    return pages * sysconf(_SC_PAGESIZE);
}

/* All threads go on from here at the same moment: they stay awake, because to wake one up takes as
 * long as many pairs. */
static void meet(void)
{
    unsigned long many = (unsigned long)threads;
    unsigned long place = __atomic_fetch_add(&arrivals, 1, __ATOMIC_ACQ_REL);

    while (__atomic_load_n(&arrivals, __ATOMIC_ACQUIRE) < (place / many + 1) * many)
        sched_yield();
}

/* ---- the loops ---- */

static void free_last(void)
{
    for (long i = 0; i < pairs; i++)
        give_block(take_block(PAIR_BYTES));
}

static void free_last_and_synchronize(void)
{
    for (long i = 1; i <= pairs; i++) {
        give_block(take_block(PAIR_BYTES));
        if (i % sync_every == 0)
            synchronize();
    }
}

static void free_any(uint64_t *held, uint64_t *random)
{
    for (long i = 0; i < pairs; i++) {
        uint64_t *victim = &held[next_random(random) % (uint64_t)live];
        uint64_t address = take_block(PAIR_BYTES);

        give_block(*victim);
        *victim = address;
    }
}

static void free_mixed(uint64_t *held)
{
    for (long i = 0; i < pairs; i++) {
        const struct mix_step *step = &mix_steps[i];

        give_block(held[step->slot]);
        held[step->slot] = take_block(step->bytes);
    }
}

static void loop_once(struct worker *self)
{
    if (mix_steps)
        free_mixed(self->held);
    else if (strcmp(pattern, "any") == 0)
        free_any(self->held, &self->random);
    else if (sync_every > 0)
        free_last_and_synchronize();
    else
        free_last();
}

/* ---- one thread ---- */

static void measure(struct worker *self)
{
    for (long i = 0; i < live; i++) {
        self->held[i] = take_block(mix_steps ? mix_steps[i % pairs].bytes : PAIR_BYTES);
        if (self->held[i] == 0)
            exit(2);
    }
    meet();
    if (self == workers)
        resident_bytes = read_resident();
    for (long loop = 0; loop < loops; loop++) {
        meet();
        self->start[loop] = now_ns();
        loop_once(self);
        self->end[loop] = now_ns();
    }
    self->allocations = (uint64_t)(live + loops * pairs);
    self->upstream = null_upstream();
}

/* The assembly keeps the call from becoming a jump. */
static __attribute__((noinline)) void deeper(long levels, struct worker *self)
{
    if (levels > 0)
        deeper(levels - 1, self);
    else
        measure(self);
    __asm__ volatile("" ::: "memory");
}

/* Each of several threads gets a processor to itself, where there are enough: for as short as this
 * lasts the scheduler would leave two of them on one. */
static void take_processor(long number)
{
    cpu_set_t allowed, own;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    number %= CPU_COUNT(&allowed);
    CPU_ZERO(&own);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && number-- == 0)
            CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof(own), &own);
}

static void *work(void *arg)
{
    struct worker *self = (struct worker *)arg;

    if (threads > 1)
        take_processor(self - workers);
    self->held = (uint64_t *)calloc((size_t)live + 1, sizeof(*self->held));
    if (!self->held)
        exit(2);
    self->random = SEED;
    deeper(depth, self);
    free(self->held);
    return NULL;
}

/* ---- all of them ---- */

static int prepare_mix(void)
{
    double octaves = log2((double)mix_high / (double)mix_low);
    uint64_t random = SEED;

    if (mix_low < 1 || mix_high < mix_low || mix_high > UINT32_MAX)
        return -1;
    live = MIX_SLOTS;
    mix_steps = (struct mix_step *)malloc((size_t)pairs * sizeof(*mix_steps));
    if (!mix_steps)
        return -1;
    for (long i = 0; i < pairs; i++) {
        double share = (double)(next_random(&random) >> 11) / (double)(UINT64_C(1) << 53);

        mix_steps[i].bytes = (uint32_t)((double)mix_low * exp2(share * octaves));
        mix_steps[i].slot = (uint32_t)(next_random(&random) % MIX_SLOTS);
    }
    return 0;
}

/* Where the number of a word NAME=NUMBER belongs, or NULL. */
static long *number_of(const char *word)
{
    static const struct {
        const char *name;
        long *value;
    } numbers[] = {
        {"threads=", &threads}, {"live=", &live},       {"loops=", &loops}, {"pairs=", &pairs},
        {"depth=", &depth},     {"sync=", &sync_every}, {"low=", &mix_low}, {"high=", &mix_high},
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strncmp(word, numbers[i].name, strlen(numbers[i].name)) == 0)
            return numbers[i].value;
    return NULL;
}

static int read_words(int count, char **words)
{
    for (int i = 0; i < count; i++) {
        long *number = number_of(words[i]);

        if (number)
            *number = atol(strchr(words[i], '=') + 1);
        else if (strncmp(words[i], "pattern=", 8) == 0)
            pattern = words[i] + 8;
        else
            return -1;
    }
    if (threads < 1 || threads > THREADS_MAX || loops < 1 || loops > LOOPS_MAX || pairs < 1 ||
        live < 0 || depth < 0)
        return -1;
    if (strcmp(pattern, "mix") == 0)
        return prepare_mix();
    return strcmp(pattern, "any") == 0 && live == 0 ? -1 : 0;
}

static double best_of_loops(void)
{
    double best = 0;

    for (long loop = 0; loop < loops; loop++) {
        double start = workers[0].start[loop], end = workers[0].end[loop];

        for (long i = 1; i < threads; i++) {
            start = fmin(start, workers[i].start[loop]);
            end = fmax(end, workers[i].end[loop]);
        }
        if (loop == 0 || end - start < best)
            best = end - start;
    }
    return best / (double)pairs;
}

static int run_workload(int count, char **words)
{
    uint64_t allocations = 0, upstream = 0;

    if (read_words(count, words) != 0)
        return 2;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&workers[i].id, NULL, work, &workers[i]) != 0)
            return 2;
    for (long i = 0; i < threads; i++) {
        pthread_join(workers[i].id, NULL);
        allocations += workers[i].allocations;
        upstream += workers[i].upstream;
    }
    printf("%.2f %llu %llu %ld\n", best_of_loops(), (unsigned long long)allocations,
           (unsigned long long)upstream, resident_bytes);
    return 0;
}

#endif
