/* SPDX-License-Identifier: MIT */
/* No call of the program's takes unbounded time for our sake, and what waits to be of use again
 * does not pile up.
 *
 * Each call of the program is held against bound.h: it may give back so much, not more. What the
 * driver says is taken is held against what lives. Parts:
 *
 *   pile    threads take, set and free blocks of one size or two as fast as they can, which
 *           leaves the device behind; another one waits for the device now and then
 *   waves   very many blocks come and go; memory becomes scarce, is left alone for a while, or
 *           nearly all of it is freed and the context waited for; contexts end, or turn out to
 *           go on
 *   costly  the same with fewer blocks, each of which the driver takes a while to free
 *
 * What a program has left alone for long enough, with CUWARDEN_POOL_IDLE set, has gone back to the
 * driver in the end, however little at a time.
 */
#include "bound.h"
#include "edges.h"
#include "unseen.h"

#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 4, WAVE_BLOCKS = 8000, SIZES = 2 };

/* What may lie about: a bucket of each size, and for each thread what it keeps to itself, or has in
 * a batch that is open. */
#define KEPT_OF_SIZE   (64 * MIB)
#define KEPT_BY_THREAD (32 * MIB)
#define PILE_BYTES     (600 * MIB) /* that go through the hands of all threads */

static const char *const parts[] = {"pile", "waves", "costly"};
enum part { PILE, WAVES, COSTLY, PARTS };

struct block {
    CUdeviceptr address;
    size_t size;
};

struct thread {
    unsigned index;
    pthread_t id;
    struct rng dice;
};

static struct {
    enum part part;
    CUcontext context;
    size_t sizes[SIZES];
    unsigned nsizes;
    size_t fixed; /* taken before */
    /* pile */
    struct thread threads[THREADS];
    unsigned nthreads, nrounds;
    _Atomic size_t live;
    _Atomic unsigned nrunning;
    /* waves */
    struct block blocks[WAVE_BLOCKS];
    unsigned nblocks;
    bool is_aging; /* idle memory leaves soon */
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*release)(CUdevice);
} self;

void bound_prepare(void)
{
    self.retain = (CUresult(*)(CUcontext *, CUdevice))unseen("cuDevicePrimaryCtxRetain");
    self.release = (CUresult(*)(CUdevice))unseen("cuDevicePrimaryCtxRelease_v2");
    self.is_aging = getenv("CUWARDEN_POOL_IDLE") != NULL;
}

/* ---- calls ---- */

static _Thread_local struct cusim_here before;

static void end_call(CUresult code, const char *what)
{
    char text[160];

    expect(code, CUDA_SUCCESS, what);
    if (bound_is_broken(&before, text, sizeof text))
        violated("%s %s", what, text);
}

/* A call that must work, and not do too much. */
#define BOUND(call) (bound_begin(&before), end_call(call, #call))

/* What is taken that does not live: `live` may be too much, never too little. */
static void expect_no_pile(size_t live, unsigned nthreads)
{
    size_t most = self.nsizes * KEPT_OF_SIZE + nthreads * KEPT_BY_THREAD;
    size_t taken = (size_t)cusim_used_bytes(0);

    edges.checks++;
    if (taken > self.fixed + live + live / 8 + most)
        violated("%zu bytes are taken while %zu live", taken - self.fixed, live);
}

/* ---- pile ---- */

static void take_set_free(struct thread *thread, CUstream stream)
{
    size_t size = self.sizes[roll_below(&thread->dice, self.nsizes)];
    CUdeviceptr address;

    atomic_fetch_add(&self.live, size);
    BOUND(cuMemAlloc(&address, size));
    BOUND(cuMemsetD8Async(address, 1, 16, stream));
    BOUND(cuMemFree(address));
    atomic_fetch_sub(&self.live, size);
}

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    CUstream stream;

    WORKS(cuCtxSetCurrent(self.context));
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < self.nrounds; i++)
        take_set_free(thread, stream);
    WORKS(cuStreamDestroy(stream));
    atomic_fetch_sub(&self.nrunning, 1);
    return NULL;
}

/* The first thread is the one that waits now and then. */
static void pile_up(void)
{
    self.nthreads = 1 + below(THREADS - 1);
    self.nrounds = (unsigned)(PILE_BYTES / self.sizes[0] / self.nthreads);
    atomic_store(&self.live, 0);
    atomic_store(&self.nrunning, self.nthreads);
    for (unsigned i = 0; i < self.nthreads; i++) {
        struct thread *thread = &self.threads[i];

        thread->index = i;
        seed_dice(&thread->dice, edges.seed * THREADS + i);
        if (pthread_create(&thread->id, NULL, run_thread, thread) != 0)
            violated("no thread");
    }
    while (atomic_load(&self.nrunning) > 0) {
        usleep(1000 + below(20000));
        edges.operation++;
        expect_no_pile(atomic_load(&self.live) + THREADS * 2 * MIB, self.nthreads + 1);
        BOUND(cuCtxSynchronize());
    }
    for (unsigned i = 0; i < self.nthreads; i++)
        pthread_join(self.threads[i].id, NULL);
}

/* ---- waves ---- */

static void grow(unsigned n)
{
    for (; n > 0 && self.nblocks < WAVE_BLOCKS; n--) {
        struct block *block = &self.blocks[self.nblocks];

        block->size = self.sizes[below(self.nsizes)];
        BOUND(cuMemAlloc(&block->address, block->size));
        if (chance(5))
            BOUND(cuMemsetD8Async(block->address, 1, 16, NULL));
        self.nblocks++;
    }
}

static void shrink(unsigned percent)
{
    for (unsigned i = self.nblocks; i-- > 0;) {
        if (!chance(percent))
            continue;
        BOUND(cuMemFree(self.blocks[i].address));
        self.blocks[i] = self.blocks[--self.nblocks];
    }
}

static void take_much(void)
{
    size_t available, total;
    CUdeviceptr address;

    BOUND(cuMemGetInfo(&available, &total));
    BOUND(cuMemAlloc(&address, available / 100 * (20 + below(60))));
    shrink(below(30));
    if (chance(50))
        BOUND(cuCtxSynchronize());
    BOUND(cuMemFree(address));
}

static void wait_somehow(void)
{
    unsigned how = below(3);
    CUevent event;

    if (how == 0) {
        BOUND(cuStreamSynchronize(NULL));
    } else if (how == 1) {
        BOUND(cuCtxSynchronize());
    } else {
        WORKS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        BOUND(cuEventRecord(event, NULL));
        BOUND(cuEventSynchronize(event));
        WORKS(cuEventDestroy(event));
    }
}

/* A release that is the last for all that could be seen, and is not. */
static void seem_to_end(void)
{
    CUcontext context;

    WORKS(self.retain(&context, 0));
    WORKS(cuDevicePrimaryCtxRelease(0));
    WORKS(cuDevicePrimaryCtxRetain(&context, 0));
    WORKS(self.release(0));
}

static void use_other_context(void)
{
    CUcontext other;
    CUdeviceptr address;

    WORKS(cuCtxCreate_v2(&other, 0, 0));
    BOUND(cuMemAlloc(&address, self.sizes[0]));
    WORKS(cuCtxSetCurrent(self.context));
    shrink(below(50));
    WORKS(cuCtxDestroy(other));
}

static void operate(void)
{
    unsigned what = below(100);

    if (what < 35)
        grow(1 + below(self.part == COSTLY ? 150 : 3000));
    else if (what < 65)
        shrink(chance(40) ? 100 : below(100));
    else if (what < 82)
        wait_somehow();
    else if (what < 90)
        take_much();
    else if (what < 94)
        seem_to_end();
    else if (what < 97)
        use_other_context();
    else if (self.is_aging)
        usleep(25000);
}

/* Little by little: as many calls as it takes, as long as it takes. */
static void wait_for_idle_memory(void)
{
    for (unsigned i = 0; i < 400; i++) {
        for (unsigned k = 0; k < 16; k++)
            BOUND(cuCtxSynchronize());
        if (cusim_used_bytes(0) <= self.fixed + 32 * MIB)
            return;
        usleep(10000);
    }
    violated("%llu bytes are taken after four seconds without use",
             cusim_used_bytes(0) - self.fixed);
}

static void make_waves(void)
{
    unsigned noperations = 10 + below(30);

    for (unsigned i = 0; i < noperations; i++) {
        edges.operation++;
        operate();
    }
    shrink(100);
    wait_somehow();
    if (self.is_aging && chance(20))
        wait_for_idle_memory();
}

/* ---- one program ---- */

static void begin(void)
{
    static const size_t sizes[] = {512, 4096, 12288, 40000, 65536, 262144};

    self.part = choose_part(parts, PARTS);
    self.nsizes = 1 + below(SIZES);
    for (unsigned i = 0; i < SIZES; i++)
        self.sizes[i] = sizes[self.part == WAVES ? below(6) : 2 + below(4)];
    if (self.part == COSTLY)
        self.sizes[0] = MIB;
    self.nblocks = 0;
    WORKS(cuDevicePrimaryCtxRetain(&self.context, 0));
    WORKS(cuCtxSetCurrent(self.context));
    self.fixed = (size_t)cusim_used_bytes(0);
    cusim_set_cost_ns("cuMemFree_v2", self.part == COSTLY ? 200000 : 0);
    cusim_set_lazy(self.part != PILE ? edges.seed + 1 : 0);
    cusim_set_delay_us(self.part == PILE ? 10 + below(50) : 0);
    forget_misuse();
}

void bound_run(void)
{
    begin();
    trace("%s, %u sizes, %zu and %zu", parts[self.part], self.nsizes, self.sizes[0], self.sizes[1]);
    if (self.part == PILE)
        pile_up();
    else
        make_waves();
    WORKS(cuCtxSetCurrent(NULL));
    WORKS(cuDevicePrimaryCtxRelease(0));
    expect_no_misuse(NULL);
}
