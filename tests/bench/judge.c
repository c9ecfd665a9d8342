/* SPDX-License-Identifier: MIT */
/*
 * Programs that allocate and free on judge_driver.c, whose clock is virtual.
 *
 *   judge heavy|quick|train|torch [ideal]
 *
 * heavy  repeats tests/gpu/programs/heavy.cu: many sizes, far ahead of the device
 * quick  is heavy with kernels that only memory bandwidth bounds
 * train  is a training loop that spends more time on launches than its kernels take
 * torch  is train with the sizes and the slower host of torch_train (tests/gpu/bench_workloads.py)
 * ideal  makes allocations and frees cost nothing, and a free not wait
 *
 * Prints one line: virtual ns of a repeat, most bytes held from the driver, most live bytes; and of
 * all REPEATS together the pairs, the driver calls, and NAME=COUNT for each function called.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

#define KIB     ((uint64_t)1 << 10)
#define MIB     ((uint64_t)1 << 20)
#define REPEATS 3

/* An empty kernel takes KERNEL_NS; memory moves at 2.8 TB/s. */
#define KERNEL_NS   UINT64_C(1800)
#define BYTES_OF_US UINT64_C(2800000)

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0) {                                                                         \
            fprintf(stderr, "judge: %s failed\n", #call);                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct block {
    uint64_t address, bytes;
};

static uint64_t live, live_most;
static unsigned long pairs;

static void take(struct block *block, uint64_t bytes)
{
    MUST(cuMemAlloc_v2(&block->address, bytes));
    block->bytes = bytes;
    live += bytes;
    if (live_most < live)
        live_most = live;
    pairs++;
}

static void give(struct block *block)
{
    if (block->bytes == 0)
        return;
    MUST(cuMemFree_v2(block->address));
    live -= block->bytes;
    block->bytes = 0;
}

static void launch(void *stream, uint64_t bytes, uint64_t more_ns)
{
    static int kernel;
    uint64_t ns = KERNEL_NS + bytes * 1000 / BYTES_OF_US + more_ns;
    void *parameters[] = {&ns};

    MUST(cuLaunchKernel(&kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

/* ---- heavy, quick ---- */

#define TEMPORARIES 24
#define LASTING     48
#define REPLACED    6
#define STREAMS     4
#define STEPS       10
#define LEAST       (64 * KIB)
#define OCTAVES     10 /* up to 64 MiB */
#define THREADS     (1024 * 256)
#define SEED        UINT64_C(88172645463325252)

static void *streams[STREAMS], *filled[STREAMS];
static struct block temporaries[TEMPORARIES], lasting[LASTING];
static uint64_t dice, addition_cns;

static uint64_t next_random(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}

static uint64_t random_bytes(void)
{
    uint64_t low = LEAST << next_random() % OCTAVES;

    return low + next_random() % low;
}

/* Fills the block in one stream and sums it up in the next one, each thread adding to one word. */
static void work_on(const struct block *block, unsigned number)
{
    unsigned one = number % STREAMS, next = (number + 1) % STREAMS;
    uint64_t words = block->bytes / 4, threads = words < THREADS ? words : THREADS;

    launch(streams[one], block->bytes, 0);
    MUST(cuEventRecord(filled[one], streams[one]));
    MUST(cuStreamWaitEvent(streams[next], filled[one], 0));
    launch(streams[next], block->bytes, threads * addition_cns / 100);
}

static void heavy_step(unsigned number)
{
    for (unsigned i = 0; i < REPLACED; i++) {
        struct block *old = &lasting[next_random() % LASTING];

        give(old);
        take(old, random_bytes());
        work_on(old, number + i);
    }
    for (unsigned i = 0; i < TEMPORARIES; i++) {
        take(&temporaries[i], random_bytes());
        work_on(&temporaries[i], number * TEMPORARIES + i);
    }
    for (unsigned i = 0; i < TEMPORARIES; i++)
        give(&temporaries[i * 7 % TEMPORARIES]);
}

static void heavy(void)
{
    for (int i = 0; i < STREAMS && streams[i] == NULL; i++) {
        MUST(cuStreamCreate(&streams[i], 1));
        MUST(cuEventCreate(&filled[i], 2));
    }
    dice = SEED;
    for (unsigned i = 0; i < STEPS; i++)
        heavy_step(i);
    for (unsigned i = 0; i < LASTING; i++)
        give(&lasting[i]);
    MUST(cuCtxSynchronize());
}

/* ---- train, torch ---- */

#define LAYERS      8
#define PARAMETERS  4 /* per layer */
#define ACTIVATIONS 9 /* kept per layer until its gradients are computed */
#define TRAIN_STEPS 20

static const uint64_t parameter_bytes[PARAMETERS] = {4 * MIB, 4 * KIB, 4 * KIB, 4 * KIB};
static const uint64_t activation_bytes[ACTIVATIONS] = {
    1 * MIB, 1 * MIB, 1 * MIB, 1 * KIB, 1 * KIB, 1 * MIB, 256 * KIB, 1 * MIB, 1 * MIB};

static struct layer {
    struct block parameter[PARAMETERS][3]; /* with the optimizer's two averages */
    struct block gradient[PARAMETERS];
    struct block activation[ACTIVATIONS];
} layers[LAYERS];
static uint64_t operator_ns, scale;

/* An operator allocates its result, and its kernel reads two blocks and writes that one. */
static void operate(struct block *out, uint64_t bytes)
{
    judge_work(operator_ns);
    take(out, bytes * scale);
    launch(NULL, 3 * bytes * scale, 0);
}

static void forward(struct layer *layer)
{
    for (unsigned i = 0; i < ACTIVATIONS; i++)
        operate(&layer->activation[i], activation_bytes[i]);
}

/* *flowing is the gradient that each operator replaces. */
static void backward(struct layer *layer, struct block *flowing)
{
    for (unsigned i = ACTIVATIONS; i-- > 0;) {
        struct block next;

        operate(&next, MIB);
        give(flowing);
        give(&layer->activation[i]);
        *flowing = next;
        if (i < PARAMETERS)
            operate(&layer->gradient[i], parameter_bytes[i]);
    }
}

/* Each expression frees the temporary of the one before it. */
static void optimize(void)
{
    for (unsigned i = 0; i < PARAMETERS; i++) {
        struct block last = {0}, next;

        for (int k = 0; k < 4; k++) {
            operate(&next, parameter_bytes[i]);
            give(&last);
            last = next;
        }
        give(&last);
    }
}

static void train_step(void)
{
    struct block flowing;

    for (unsigned i = 0; i < LAYERS; i++)
        for (unsigned k = 0; k < PARAMETERS; k++)
            give(&layers[i].gradient[k]);
    for (unsigned i = 0; i < LAYERS; i++)
        forward(&layers[i]);
    operate(&flowing, MIB);
    for (unsigned i = LAYERS; i-- > 0;)
        backward(&layers[i], &flowing);
    give(&flowing);
    for (unsigned i = 0; i < LAYERS; i++)
        optimize();
}

static void train(void)
{
    for (unsigned i = 0; i < LAYERS; i++)
        for (unsigned k = 0; k < PARAMETERS; k++)
            for (unsigned j = 0; j < 3 && layers[i].parameter[k][j].bytes == 0; j++)
                take(&layers[i].parameter[k][j], parameter_bytes[k] * scale);
    for (int i = 0; i < TRAIN_STEPS; i++)
        train_step();
    MUST(cuCtxSynchronize());
}

/* ---- */

static const struct program {
    const char *name;
    void (*repeat)(void);
    uint64_t addition_cns; /* hundredths of a ns for a thread's addition, see work_on */
    uint64_t operator_ns;  /* host time of an operator beside its launch */
    uint64_t scale;        /* multiplies the sizes */
} programs[] = {
    {"heavy", heavy, 75, 0, 0},
    {"quick", heavy, 0, 0, 0},
    {"train", train, 0, 6000, 2},
    {"torch", train, 0, 27000, 1},
};

static void print(uint64_t ns)
{
    const struct judge_call *call;
    unsigned long sum = 0;

    for (unsigned i = 0; (call = judge_call_at(i)) != NULL; i++)
        sum += call->is_own ? 0 : call->count;
    printf("%llu %llu %llu %lu %lu", (unsigned long long)ns / REPEATS,
           (unsigned long long)judge_held_most(), (unsigned long long)live_most, pairs, sum);
    for (unsigned i = 0; (call = judge_call_at(i)) != NULL; i++)
        if (!call->is_own && call->count > 0)
            printf(" %s=%lu", call->name, call->count);
    putchar('\n');
}

static const struct program *program_of(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(programs[0]); i++)
        if (strcmp(argv[1], programs[i].name) == 0 &&
            (argc == 2 || (argc == 3 && strcmp(argv[2], "ideal") == 0)))
            return &programs[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct program *program = program_of(argc, argv);
    void *context;
    uint64_t begin;

    if (program == NULL) {
        fprintf(stderr, "usage: judge heavy|quick|train|torch [ideal]\n");
        return 2;
    }
    if (argc == 3)
        judge_make_ideal();
    addition_cns = program->addition_cns;
    operator_ns = program->operator_ns;
    scale = program->scale;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    program->repeat(); /* fills the pool */
    judge_reset_calls();
    pairs = 0;
    begin = judge_now();
    for (int i = 0; i < REPEATS; i++)
        program->repeat();
    print(judge_now() - begin);
    return 0;
}
