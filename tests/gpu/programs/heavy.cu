/* SPDX-License-Identifier: MIT */
/*
 * A program that allocates all the time, as much as a program can that still works on what it has:
 * ../bench.py times it. Each step takes 24 temporaries of 64 KiB to MOST bytes, fills each of them
 * in one of four streams, sums it up, and frees them in another order; and replaces some of 48
 * blocks that live longer.
 *
 *   heavy ms=N repeats=N steps=N words=N most=N
 *
 * Repeats of so many steps, always the same ones, until both the time and the count are reached; a
 * kernel touches at most so many words of a block. Prints "seconds X" for each repeat, then
 * "checksum N" of what all of them summed up to, and "live N", the bytes that it had at most. Then
 * "ready": waits for a line on standard input, does it once more, resting for some ms where it has
 * most, and says "done"; and ends after another line.
 */
#include "gpu.h"
#include "kernel.h"

#include <time.h>
#include <unistd.h>

#define TEMPORARIES 24
#define LASTING     48
#define REPLACED    6
#define STREAMS     4
#define LEAST       ((size_t)64 << 10)
#define REST_US     5000
#define SEED        UINT64_C(88172645463325252)

struct block {
    unsigned *address;
    size_t bytes;
};

static long ms = 1500, repeats = 3, steps = 10, words = 1L << 40, most = 64L << 20;
static cudaStream_t streams[STREAMS];
static cudaEvent_t filled[STREAMS];
static unsigned long long *total; /* on the device */
static struct block temporaries[TEMPORARIES], lasting[LASTING];
static size_t live, live_most;
static int rests;
static uint64_t dice;

static __host__ __device__ inline void fill_body(size_t thread, size_t threads, unsigned *block,
                                                 size_t count, unsigned seed)
{
    for (size_t i = thread; i < count; i += threads)
        block[i] = (unsigned)i * 2654435761u + seed;
}

static __global__ void fill(unsigned *block, size_t count, unsigned seed)
{
    fill_body(PLACE, block, count, seed);
}
EMULATED(fill, fill_body);

static __host__ __device__ inline void sum_body(size_t thread, size_t threads,
                                                const unsigned *block, size_t count,
                                                unsigned long long *sum)
{
    unsigned long long own = 0;

    for (size_t i = thread; i < count; i += threads)
        own += block[i];
#ifdef __CUDA_ARCH__
    atomicAdd(sum, own);
#else
    *sum += own;
#endif
}

static __global__ void sum(const unsigned *block, size_t count, unsigned long long *sum_of_all)
{
    sum_body(PLACE, block, count, sum_of_all);
}
EMULATED(sum, sum_body);

static double now_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t next_random(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}

/* As many sizes of each octave as of any other. */
static size_t random_bytes(void)
{
    size_t low = LEAST, octaves = 0;

    while ((low << (octaves + 1)) <= (size_t)most)
        octaves++;
    low <<= next_random() % (octaves > 0 ? octaves : 1);
    return low + next_random() % low;
}

static void take(struct block *block)
{
    block->bytes = random_bytes();
    MUST(cudaMalloc(&block->address, block->bytes));
    live += block->bytes;
    if (live > live_most)
        live_most = live;
}

static void give(struct block *block)
{
    MUST(cudaFree(block->address));
    live -= block->bytes;
    block->address = NULL;
}

/* Writes the block in one stream, and reads it in the next one. */
static void work_on(const struct block *block, unsigned number)
{
    size_t all = block->bytes / sizeof(unsigned);
    size_t count = all < (size_t)words ? all : (size_t)words;
    unsigned threads = 256, blocks = (unsigned)((count + threads - 1) / threads);
    unsigned one = number % STREAMS, next = (number + 1) % STREAMS;

    blocks = blocks < 1024 ? blocks : 1024;
    fill<<<blocks, threads, 0, streams[one]>>>(block->address, count, number);
    MUST(cudaGetLastError());
    MUST(cudaEventRecord(filled[one], streams[one]));
    MUST(cudaStreamWaitEvent(streams[next], filled[one], 0));
    sum<<<blocks, threads, 0, streams[next]>>>(block->address, count, total);
    MUST(cudaGetLastError());
}

static void step(unsigned number)
{
    for (unsigned i = 0; i < REPLACED; i++) {
        struct block *old = &lasting[next_random() % LASTING];

        if (old->address)
            give(old);
        take(old);
        work_on(old, number + i);
    }
    for (unsigned i = 0; i < TEMPORARIES; i++) {
        take(&temporaries[i]);
        work_on(&temporaries[i], number * TEMPORARIES + i);
    }
    if (rests && live == live_most)
        usleep(REST_US);
    for (unsigned i = 0; i < TEMPORARIES; i++)
        give(&temporaries[i * 7 % TEMPORARIES]);
}

/* All steps from the same start; returns the sum of all that was written. */
static unsigned long long repeat(void)
{
    unsigned long long result;

    dice = SEED;
    MUST(cudaMemset(total, 0, sizeof(*total)));
    MUST(cudaDeviceSynchronize());
    for (long i = 0; i < steps; i++)
        step((unsigned)i);
    for (struct block &block : lasting)
        if (block.address)
            give(&block);
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&result, total, sizeof(result), cudaMemcpyDeviceToHost));
    return result;
}

static int read_word(const char *word)
{
    static const struct {
        const char *name;
        long *value;
    } numbers[] = {
        {"ms=", &ms},       {"repeats=", &repeats}, {"steps=", &steps},
        {"words=", &words}, {"most=", &most},
    };

    for (const auto &number : numbers)
        if (strncmp(word, number.name, strlen(number.name)) == 0) {
            *number.value = atol(word + strlen(number.name));
            return *number.value > 0;
        }
    return 0;
}

static void wait_for_line(void)
{
    int c;

    do
        c = getchar();
    while (c != EOF && c != '\n');
}

int main(int argc, char **argv)
{
    unsigned long long checksum;
    double start, before;

    for (int i = 1; i < argc; i++)
        if (!read_word(argv[i]))
            return 2;
    for (int i = 0; i < STREAMS; i++) {
        MUST(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        MUST(cudaEventCreateWithFlags(&filled[i], cudaEventDisableTiming));
    }
    MUST(cudaMalloc(&total, sizeof(*total)));
    checksum = repeat(); /* also warms up */
    start = now_seconds();
    for (long i = 0; i < repeats || now_seconds() - start < (double)ms / 1e3; i++) {
        before = now_seconds();
        if (repeat() != checksum)
            return 98;
        say("seconds %.9f", now_seconds() - before);
    }
    say("checksum %llu", checksum);
    say("live %zu", live_most);
    say("ready");
    wait_for_line();
    rests = 1;
    repeat();
    say("done");
    wait_for_line();
    MUST(cudaFree(total));
    return 0;
}
