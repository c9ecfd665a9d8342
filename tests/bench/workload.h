/* SPDX-License-Identifier: MIT */
/*
 * The workloads: the same source for everything that gives out memory, so that contestants differ
 * in nothing else. In C and C++. Whoever includes this has defined
 *
 *   begin_thread()                      makes the device the calling thread's own
 *   open_streams(streams, count)        fills an array of count streams, each a pointer
 *   take_block(bytes, stream)           an address, 0 when there is none
 *   touch_block(address, bytes, stream) an asynchronous fill of so many bytes, in the stream
 *   give_block(address, bytes, stream)
 *   wait_stream(stream)                 until all of it is done
 *   synchronize()                       waits for the device, as a program does
 *   free_memory()                       bytes that the device has left
 *   null_upstream()                     how many allocations the calling thread made of the driver,
 *                                       or UPSTREAM_UNKNOWN: a real driver does not count them
 *
 * and calls run_workload with words NAME=VALUE:
 *
 *   pattern=last|any|mix  what is freed, see below (last)
 *   bytes=N               of the block of a pair (4096)
 *   threads=N             that do it at the same time (1)
 *   streams=N             of its own that each thread goes round; 0: the default stream of all (0)
 *   touch=1               each block is written to between its take and its give: the first 4 KiB
 *   live=N                blocks that each thread holds meanwhile (0)
 *   loops=N pairs=N       how many loops, of how many pairs at most (25 of 40000)
 *   time=MS               a loop ends after so long, but not before its third pair (0: all pairs)
 *   depth=N               calls between a thread's start and the loop (0)
 *   rest=MS               each thread takes and gives a block and rests so long before its loops
 * (0) sync=N                a synchronisation of the program every N pairs (0: none) low=BYTES
 * high=BYTES  sizes of a mix (256 B and 256 MiB)
 *   --                    another workload, when this one is done: on a real device a process takes
 *                         longer to begin than most of them. What no word says is as at first
 *
 * "last" takes a block and frees it, its record still in the cache. "any" takes a block and frees
 * one of the live blocks at random. "mix" frees one of 64 blocks at random and takes one of a
 * random size in its place, as many of each octave as of any other; the sequence is the same for
 * all contestants. A block of "any" and "mix" keeps to the stream of the place that it takes.
 *
 * Prints seven numbers: ns per pair of the best loop, from the first thread's start to the last
 * one's end, which waits for its own streams first; allocations made; allocations that reached the
 * driver (- where nobody counts them); bytes resident when the live blocks were taken; and of the
 * loops' ns the median and the quartiles. Short loops and the best of many, because other work
 * takes the processors now and then: some loops are left alone, and of several threads only a loop
 * counts in which all were.
 *
 * Exit status 77, with one line, when the device has not the memory for the blocks; 2 when
 * something else is wrong. Of several workloads one that does not fit prints "-" in place of its
 * numbers.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOPS_MAX        1000
#define THREADS_MAX      64
#define STREAMS_MAX      64
#define MIX_SLOTS        64
#define TOUCH_BYTES      4096
#define PAIRS_LEAST      3
#define SEED             UINT64_C(88172645463325252)
#define UPSTREAM_UNKNOWN UINT64_MAX
#define DOES_NOT_FIT     77

struct mix_step {
    uint32_t slot;
    uint32_t bytes;
};

struct worker {
    pthread_t id;
    double start[LOOPS_MAX], end[LOOPS_MAX];
    long done[LOOPS_MAX]; /* pairs */
    void *streams[STREAMS_MAX];
    uint64_t *held;
    uint64_t random; /* goes on from loop to loop, or all would free the same few */
    uint64_t allocations, upstream;
};

static const char *pattern;
static long threads, streams, live, loops, pairs, depth, sync_every;
static long pair_bytes, touch, time_ms, rest_ms, mix_low, mix_high;
static struct mix_step *mix_steps;
static uint32_t mix_first[MIX_SLOTS]; /* the sizes that the slots begin with */
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

static inline uint64_t take(size_t bytes, void *stream)
{
    uint64_t address = take_block(bytes, stream);

    if (address == 0) {
        fprintf(stderr, "no block of %zu bytes to be had\n", bytes);
        exit(2);
    }
    if (touch)
        touch_block(address, bytes < TOUCH_BYTES ? bytes : TOUCH_BYTES, stream);
    return address;
}

static inline void *stream_of(struct worker *self, uint64_t place)
{
    return streams > 1 ? self->streams[place % (uint64_t)streams] : self->streams[0];
}

static void free_last(struct worker *self, long from, long to)
{
    long at = streams > 1 ? from % streams : 0;

    for (long i = from; i < to; i++) {
        void *stream = self->streams[at];

        give_block(take((size_t)pair_bytes, stream), (size_t)pair_bytes, stream);
        if (++at >= streams)
            at = 0;
        if (sync_every > 0 && (i + 1) % sync_every == 0)
            synchronize();
    }
}

static void free_any(struct worker *self, long from, long to)
{
    for (long i = from; i < to; i++) {
        uint64_t place = next_random(&self->random) % (uint64_t)live;
        void *stream = stream_of(self, place);
        uint64_t address = take((size_t)pair_bytes, stream);

        give_block(self->held[place], (size_t)pair_bytes, stream);
        self->held[place] = address;
    }
}

/* sizes: of the blocks in the slots. */
static void free_mixed(struct worker *self, uint32_t *sizes, long from, long to)
{
    for (long i = from; i < to; i++) {
        const struct mix_step *step = &mix_steps[i];
        void *stream = stream_of(self, step->slot);

        give_block(self->held[step->slot], sizes[step->slot], stream);
        self->held[step->slot] = take(step->bytes, stream);
        sizes[step->slot] = step->bytes;
    }
}

static void run_pairs(struct worker *self, uint32_t *sizes, long from, long to)
{
    if (mix_steps)
        free_mixed(self, sizes, from, to);
    else if (strcmp(pattern, "any") == 0)
        free_any(self, from, to);
    else
        free_last(self, from, to);
}

/* Looks at the clock after every eighth of what was done so far, so that the clock costs nothing
 * and a loop is no longer than it has to be. Returns how many pairs were done. */
static long loop_once(struct worker *self, uint32_t *sizes)
{
    double deadline = time_ms > 0 ? now_ns() + (double)time_ms * 1e6 : INFINITY;
    long batch = time_ms > 0 ? PAIRS_LEAST : pairs, done = 0;

    while (done < pairs && (done == 0 || time_ms == 0 || now_ns() < deadline)) {
        long to = done + batch < pairs ? done + batch : pairs;

        run_pairs(self, sizes, done, to);
        done = to;
        batch = done / 8 + 1;
    }
    for (long i = 0; i < (streams > 1 ? streams : 1); i++)
        wait_stream(self->streams[i]);
    return done;
}

/* ---- one thread ---- */

static void rest(struct worker *self)
{
    void *stream = stream_of(self, 0);

    give_block(take((size_t)pair_bytes, stream), (size_t)pair_bytes, stream);
    self->allocations++;
    usleep((useconds_t)rest_ms * 1000);
}

static void measure(struct worker *self)
{
    uint32_t sizes[MIX_SLOTS];

    memcpy(sizes, mix_first, sizeof(sizes));
    for (long i = 0; i < live; i++)
        self->held[i] =
            take(mix_steps ? sizes[i] : (size_t)pair_bytes, stream_of(self, (uint64_t)i));
    self->allocations = (uint64_t)live;
    meet();
    if (self == workers)
        resident_bytes = read_resident();
    if (rest_ms > 0)
        rest(self);
    for (long loop = 0; loop < loops; loop++) {
        meet();
        self->start[loop] = now_ns();
        self->done[loop] = loop_once(self, sizes);
        self->end[loop] = now_ns();
        self->allocations += (uint64_t)self->done[loop];
    }
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
    begin_thread();
    open_streams(self->streams, streams);
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
    for (long i = 0; i < MIX_SLOTS; i++)
        mix_first[i] = mix_steps[i % pairs].bytes;
    return 0;
}

/* The most that all threads hold at a time, and what their streams keep for themselves. */
static uint64_t needed_memory(void)
{
    uint64_t now = 0, most;
    uint32_t sizes[MIX_SLOTS];

    if (!mix_steps)
        return (uint64_t)pair_bytes * (uint64_t)threads *
               (uint64_t)(live + (streams > 1 ? streams : 1));
    memcpy(sizes, mix_first, sizeof(sizes));
    for (long i = 0; i < MIX_SLOTS; i++)
        now += sizes[i];
    most = now;
    for (long i = 0; i < 2 * pairs; i++) { /* the second loop begins with what the first left */
        const struct mix_step *step = &mix_steps[i % pairs];

        now = now - sizes[step->slot] + step->bytes;
        sizes[step->slot] = step->bytes;
        most = now > most ? now : most;
    }
    return most * (uint64_t)threads;
}

static const struct {
    const char *name;
    long *value, usual;
} numbers[] = {
    {"threads=", &threads, 1},     {"live=", &live, 0},
    {"loops=", &loops, 25},        {"pairs=", &pairs, 40000},
    {"depth=", &depth, 0},         {"sync=", &sync_every, 0},
    {"low=", &mix_low, 256},       {"high=", &mix_high, 256L << 20},
    {"bytes=", &pair_bytes, 4096}, {"streams=", &streams, 0},
    {"touch=", &touch, 0},         {"time=", &time_ms, 0},
    {"rest=", &rest_ms, 0},
};

/* Where the number of a word NAME=NUMBER belongs, or NULL. */
static long *number_of(const char *word)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strncmp(word, numbers[i].name, strlen(numbers[i].name)) == 0)
            return numbers[i].value;
    return NULL;
}

/* As if there were no words, and had been no other workload. */
static void forget_words(void)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        *numbers[i].value = numbers[i].usual;
    pattern = "last";
    free(mix_steps);
    mix_steps = NULL;
    arrivals = 0;
}

static int read_words(int count, char **words)
{
    forget_words();
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
        live < 0 || depth < 0 || streams < 0 || streams > STREAMS_MAX || pair_bytes < 1 ||
        time_ms < 0 || rest_ms < 0)
        return -1;
    if (strcmp(pattern, "mix") == 0)
        return prepare_mix();
    if (strcmp(pattern, "any") == 0)
        return live == 0 ? -1 : 0;
    return strcmp(pattern, "last") == 0 ? 0 : -1;
}

/* ns per pair of a thread, over all of them. */
static double loop_ns(long loop)
{
    double start = workers[0].start[loop], end = workers[0].end[loop];
    long done = workers[0].done[loop];

    for (long i = 1; i < threads; i++) {
        start = fmin(start, workers[i].start[loop]);
        end = fmax(end, workers[i].end[loop]);
        done += workers[i].done[loop];
    }
    return (end - start) * (double)threads / (double)done;
}

static int compare_ns(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

static void print_figures(uint64_t allocations, uint64_t upstream)
{
    double ns[LOOPS_MAX];

    for (long loop = 0; loop < loops; loop++)
        ns[loop] = loop_ns(loop);
    qsort(ns, (size_t)loops, sizeof(ns[0]), compare_ns);
    printf("%.2f %llu ", ns[0], (unsigned long long)allocations);
    if (upstream == UPSTREAM_UNKNOWN)
        printf("-");
    else
        printf("%llu", (unsigned long long)upstream);
    printf(" %ld %.2f %.2f %.2f\n", resident_bytes, ns[loops / 2], ns[loops / 4],
           ns[loops * 3 / 4]);
}

static int run_one(int count, char **words)
{
    uint64_t allocations = 0, upstream = 0, needed, left;

    if (read_words(count, words) != 0) {
        fprintf(stderr, "words that make no workload\n");
        return 2;
    }
    begin_thread();
    needed = needed_memory();
    left = free_memory();
    if (needed > left / 10 * 9) {
        fprintf(stderr, "%llu bytes of blocks do not fit: the device has %llu left\n",
                (unsigned long long)needed, (unsigned long long)left);
        return DOES_NOT_FIT;
    }
    for (long i = 0; i < threads; i++)
        if (pthread_create(&workers[i].id, NULL, work, &workers[i]) != 0)
            return 2;
    for (long i = 0; i < threads; i++) {
        pthread_join(workers[i].id, NULL);
        allocations += workers[i].allocations;
        if (workers[i].upstream == UPSTREAM_UNKNOWN)
            upstream = UPSTREAM_UNKNOWN;
        else
            upstream += workers[i].upstream;
    }
    print_figures(allocations, upstream);
    return 0;
}

static int run_workload(int count, char **words)
{
    int status = 0, end;

    for (int begin = 0; begin <= count && status == 0; begin = end + 1) {
        for (end = begin; end < count && strcmp(words[end], "--") != 0;)
            end++;
        status = run_one(end - begin, words + begin);
        if (status == DOES_NOT_FIT && (begin > 0 || end < count)) {
            printf("-\n");
            status = 0;
        }
        fflush(stdout);
    }
    return status;
}

#endif
