/* SPDX-License-Identifier: MIT */
/*
 * A random program against the safety of streams: threads with several streams each take blocks of
 * few sizes, have kernels and copies write and read them in one stream after another, and free them
 * while all of that is still to run; who takes the memory next writes it at once. Every element is
 * checked, by kernels too. `streams [SEED]`; what a thread does depends on the seed alone, not on
 * time.
 */
#include "contents.h"

#include <pthread.h>

#define THREADS 4
#define STREAMS 4
#define HELD    10
#define STEPS   250
#define DELAY   60 /* microseconds */

enum kind { NONE, PLAIN, PINNED, IN_ORDER };

struct block {
    enum kind kind;
    void *at;
    size_t bytes;
    unsigned seed;
    cudaEvent_t last; /* behind all that was submitted to it */
};

struct worker {
    unsigned number, dice, seeds, taken, found;
    cudaStream_t streams[STREAMS]; /* the first is the default stream */
    struct block blocks[HELD];
    unsigned *wrong;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *handed[THREADS]; /* guarded by lock: freed by whoever comes next */

/* Keeps a stream busy, so that work behind it is late. */
static __global__ void spin(unsigned microseconds)
{
    unsigned long long start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < microseconds * 1000ull);
}

/* The simulated GPU is late by itself (CUSIM_LAZY). */
static void spin_on_host(size_t, unsigned)
{
}
EMULATED_WHOLE(spin, spin_on_host);

static unsigned roll(struct worker *self, unsigned sides)
{
    self->dice = self->dice * 1664525u + 1013904223u;
    return (self->dice >> 8) % sides;
}

/* A stream in which all that was submitted to the block so far comes first; mostly a busy one. */
static cudaStream_t behind(struct worker *self, const struct block *block)
{
    cudaStream_t stream = self->streams[roll(self, STREAMS)];

    MUST(cudaStreamWaitEvent(stream, block->last, 0));
    if (roll(self, 3) != 0)
        spin<<<1, 1, 0, stream>>>(DELAY);
    return stream;
}

static void write(struct worker *self, struct block *block, cudaStream_t stream)
{
    block->seed = self->number * 100000 + ++self->seeds;
    fill(block->at, block->bytes, block->seed, stream);
    MUST(cudaEventRecord(block->last, stream));
}

static void read(struct worker *self, struct block *block)
{
    cudaStream_t stream = behind(self, block);

    check(block->at, block->bytes, block->seed, self->wrong, stream);
    MUST(cudaEventRecord(block->last, stream));
}

SITE void take(struct worker *self, struct block *block)
{
    cudaStream_t stream = self->streams[roll(self, STREAMS)];
    unsigned which = roll(self, 6);

    block->bytes = (size_t)4096 << roll(self, 6);
    block->kind = which < 4 ? PLAIN : which == 4 ? PINNED : IN_ORDER;
    if (block->kind == PLAIN)
        MUST(cudaMalloc(&block->at, block->bytes));
    else if (block->kind == PINNED)
        MUST(cudaMallocHost(&block->at, block->bytes));
    else
        MUST(cudaMallocAsync(&block->at, block->bytes, stream));
    self->taken++;
    write(self, block, stream);
}

SITE void release(struct worker *self, struct block *block)
{
    if (block->kind == PLAIN)
        MUST(cudaFree(block->at));
    else if (block->kind == PINNED)
        MUST(cudaFreeHost(block->at));
    else
        MUST(cudaFreeAsync(block->at, behind(self, block)));
    block->kind = NONE;
}

/* Another thread frees it, while this one's work on it is on its way. */
static void hand_over(struct worker *self, struct block *block)
{
    void **place = &handed[(self->number + 1) % THREADS], *before;

    pthread_mutex_lock(&lock);
    before = *place;
    *place = block->at;
    pthread_mutex_unlock(&lock);
    block->kind = NONE;
    MUST(cudaFree(before));
}

static void copy(struct worker *self, struct block *to, struct block *from)
{
    cudaStream_t stream = behind(self, from);

    MUST(cudaStreamWaitEvent(stream, to->last, 0));
    MUST(cudaMemcpyAsync(to->at, from->at, from->bytes, cudaMemcpyDefault, stream));
    to->seed = from->seed;
    MUST(cudaEventRecord(to->last, stream));
    MUST(cudaEventRecord(from->last, stream));
}

static void step(struct worker *self)
{
    struct block *block = &self->blocks[roll(self, HELD)];
    struct block *other = &self->blocks[roll(self, HELD)];
    unsigned what = roll(self, 32);

    if (what == 0)
        MUST(cudaDeviceSynchronize());
    else if (what < 3)
        MUST(cudaStreamSynchronize(self->streams[roll(self, STREAMS)]));
    else if (block->kind == NONE)
        take(self, block);
    else if (what < 12)
        read(self, block);
    else if (what < 16)
        write(self, block, behind(self, block));
    else if (what < 20 && other != block && other->kind != NONE && other->bytes == block->bytes)
        copy(self, other, block);
    else if (what < 23 && block->kind == PLAIN)
        hand_over(self, block);
    else
        release(self, block);
}

static void begin(struct worker *self)
{
    for (unsigned i = 1; i < STREAMS; i++)
        MUST(cudaStreamCreateWithFlags(&self->streams[i],
                                       i == 1 ? cudaStreamDefault : cudaStreamNonBlocking));
    for (struct block &block : self->blocks)
        MUST(cudaEventCreateWithFlags(&block.last, cudaEventDisableTiming));
    MUST(cudaMalloc(&self->wrong, sizeof(*self->wrong)));
    start_counter(self->wrong, self->streams[STREAMS - 1]);
    MUST(cudaDeviceSynchronize());
    self->taken = 1;
}

static void end(struct worker *self)
{
    for (struct block &block : self->blocks) {
        if (block.kind != NONE) {
            read(self, &block);
            release(self, &block);
        }
        MUST(cudaEventDestroy(block.last));
    }
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&self->found, self->wrong, sizeof(self->found), cudaMemcpyDeviceToHost));
    MUST(cudaFree(self->wrong));
    for (unsigned i = 1; i < STREAMS; i++)
        MUST(cudaStreamDestroy(self->streams[i]));
}

static void *work(void *given)
{
    struct worker *self = (struct worker *)given;

    begin(self);
    for (int i = 0; i < STEPS; i++)
        step(self);
    end(self);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS];
    unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1, taken = 0, found = 0;
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].dice = seed * 7919u + i;
        if (pthread_create(&threads[i], NULL, work, &workers[i]))
            return 99;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        taken += workers[i].taken;
        found += workers[i].found;
    }
    for (void *block : handed)
        MUST(cudaFree(block));
    MUST(cudaDeviceSynchronize());
    say("%u elements are wrong", found);
    say("expect allocs=%u frees=%u failed=0 leaked_blocks=0 leaked_bytes=0", taken, taken);
    say("pool not_waited_for(0) + served(0)['hits'] >= 20");
    say("pool not_waited_for('host') + served('host')['hits'] >= 5");
    say("prompt served(0)['hits'] >= 20 and served('host')['hits'] >= 5");
    say("no report INVALID FREES");
    return found != 0;
}
