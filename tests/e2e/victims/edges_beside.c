/* SPDX-License-Identifier: MIT */
/* Threads rely on what a free, the end of a batch and the end of a scope promise, while another
 * thread ends contexts or captures. Parts:
 *
 *   frees    a free waits for its context: what was copied to pinned memory before is there;
 *            where it is deferred, batches instead
 *   global   the same, where a capture that prohibits frees begins while one waits
 *   batches  so does the end of a batch of frees, for all of them
 *   scopes   the end of a scope frees stream-ordered memory, unless something captures
 *
 * on up to three devices, in one context or in one for each thread; the capture is in a context of
 * its own, or in that of the others.
 */
#include "edges.h"
#include "edges_bystander.h"

#include <cuwarden/cuwarden.h>

#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 3, DEVICES = 3, FREES = 6, WORDS = 16, LONG_US = 40000 };

static const char *const parts[] = {"frees", "global", "batches", "scopes"};
enum part { FREES_WAIT, GLOBAL, BATCHES, SCOPES, PARTS };

struct thread {
    unsigned index;
    pthread_t id;
    struct rng dice;
    CUcontext context;
    CUstream stream;
    uint32_t *host; /* pinned: FREES times WORDS */
    uint32_t pattern;
};

static struct {
    enum part part;
    bool is_active; /* the library is there */
    unsigned nthreads, nsteps;
    size_t size;
    struct thread threads[THREADS];
} self;

/* ---- frees ---- */

/* Fills a block, copies from it, and frees it. */
static void use(struct thread *thread, unsigned slot)
{
    uint32_t *to = thread->host + slot * WORDS;
    bool is_pinned = roll_chance(&thread->dice, 25);
    CUdeviceptr block;

    WORKS(take_memory(is_pinned ? PINNED : DEVICE, self.size, &block));
    WORKS(cuMemsetD32Async(block, thread->pattern + slot, WORDS, thread->stream));
    WORKS(cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, block, WORDS * 4, thread->stream));
    WORKS(give_memory(is_pinned ? PINNED : DEVICE, block));
}

static void verify(struct thread *thread, unsigned slot, const char *what)
{
    const volatile uint32_t *words = thread->host + slot * WORDS;

    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] != thread->pattern + slot)
            violated("thread %u: after the %s word %u is %u, expected %u", thread->index, what, i,
                     words[i], thread->pattern + slot);
}

static void free_one(struct thread *thread)
{
    thread->pattern += FREES;
    use(thread, 0);
    verify(thread, 0, "free");
}

static void free_batch(struct thread *thread)
{
    unsigned n = 1 + roll_below(&thread->dice, FREES);

    thread->pattern += FREES;
    cuwarden_batch_begin();
    for (unsigned i = 0; i < n; i++)
        use(thread, i);
    cuwarden_batch_end();
    for (unsigned i = 0; i < n; i++)
        verify(thread, i, "end of the batch");
}

/* ---- scopes ---- */

static void end_scope(struct thread *thread)
{
    unsigned n = 1 + roll_below(&thread->dice, FREES);
    struct cuwarden_freed freed;
    CUdeviceptr block;

    cuwarden_scope_begin("beside");
    for (unsigned i = 0; i < n; i++) {
        WORKS(cuMemAllocAsync(&block, self.size, thread->stream));
        WORKS(cuMemsetD32Async(block, 1, WORDS, thread->stream));
        if (!self.is_active)
            WORKS(cuMemFreeAsync(block, thread->stream));
    }
    if (cuwarden_scope_end(&freed) == CUWARDEN_OK && (freed.blocks != n || freed.left_blocks != 0))
        violated("the scope has freed %llu of %u blocks", (unsigned long long)freed.blocks, n);
}

/* ---- a capture that begins while a free waits ---- */

static _Atomic bool is_waiting, has_freed;

/* Only a library asks: the driver's own free waits inside. */
static void notice(const char *symbol)
{
    if (strcmp(symbol, "cuEventQuery") == 0)
        atomic_store(&is_waiting, true);
}

static void *capture_once(void *context)
{
    CUgraph graph = NULL;
    CUstream stream;

    WORKS(cuCtxSetCurrent(context));
    WORKS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    while (!atomic_load(&is_waiting) && !atomic_load(&has_freed))
        sched_yield();
    if (atomic_load(&is_waiting)) {
        WORKS(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        while (!atomic_load(&has_freed))
            sched_yield();
        WORKS(cuStreamEndCapture(stream, &graph));
        WORKS(cuGraphDestroy(graph));
    }
    WORKS(cuStreamDestroy(stream));
    return NULL;
}

static void free_beside_global(struct thread *thread)
{
    pthread_t other;

    atomic_store(&is_waiting, false);
    atomic_store(&has_freed, false);
    cusim_set_delay_us(LONG_US);
    cusim_set_entered(notice);
    if (pthread_create(&other, NULL, capture_once, thread->context) != 0)
        violated("no thread");
    free_one(thread);
    atomic_store(&has_freed, true);
    pthread_join(other, NULL);
    cusim_set_entered(NULL);
    cusim_set_delay_us(0);
}

/* ---- one program ---- */

static void *run_thread(void *argument)
{
    struct thread *thread = argument;

    WORKS(cuCtxSetCurrent(thread->context));
    WORKS(cuStreamCreate(&thread->stream, CU_STREAM_NON_BLOCKING));
    WORKS(cuMemHostAlloc((void **)&thread->host, sizeof *thread->host * FREES * WORDS,
                         CU_MEMHOSTALLOC_PORTABLE));
    for (unsigned i = 0; i < self.nsteps; i++)
        if (self.part == FREES_WAIT)
            free_one(thread);
        else if (self.part == GLOBAL)
            free_beside_global(thread);
        else if (self.part == BATCHES)
            free_batch(thread);
        else
            end_scope(thread);
    WORKS(cuMemFreeHost(thread->host));
    WORKS(cuStreamDestroy(thread->stream));
    return NULL;
}

static void open_threads(bool is_common)
{
    for (unsigned i = 0; i < self.nthreads; i++) {
        struct thread *thread = &self.threads[i];

        memset(thread, 0, sizeof *thread);
        thread->index = i;
        seed_dice(&thread->dice, edges.seed * THREADS + i);
        if (is_common && i > 0) {
            thread->context = self.threads[0].context;
            continue;
        }
        WORKS(cuCtxCreate_v2(&thread->context, 0, (int)below(DEVICES)));
        WORKS(cuCtxPopCurrent(NULL));
    }
}

static void close_threads(bool is_common)
{
    for (unsigned i = 0; i < (is_common ? 1 : self.nthreads); i++)
        WORKS(cuCtxDestroy(self.threads[i].context));
}

void beside_run(void)
{
    static const size_t sizes[] = {512, 70000, 3 * MIB};
    const char *way = getenv("CUWARDEN_FREE_SYNC");
    bool is_common = chance(50);

    self.part = choose_part(parts, PARTS);
    if (self.part < BATCHES && way && strcmp(way, "deferred") == 0)
        self.part = BATCHES;
    self.is_active = cuwarden_is_active();
    self.nthreads = self.part == SCOPES || self.part == GLOBAL ? 1 : 1 + below(THREADS);
    self.nsteps = self.part == GLOBAL ? 1 : 20;
    self.size = sizes[below(3)];
    cusim_set_lazy(getenv("CUSIM_DELAY_US") || self.part == GLOBAL ? 0 : edges.seed + 1);
    forget_misuse();
    open_threads(is_common);
    if (self.part != GLOBAL)
        bystander_begin(self.part != SCOPES && chance(60) ? CAPTURES : ENDS, (int)below(DEVICES),
                        chance(40) ? self.threads[0].context : NULL);
    for (unsigned i = 0; i < self.nthreads; i++)
        if (pthread_create(&self.threads[i].id, NULL, run_thread, &self.threads[i]) != 0)
            violated("no thread");
    for (unsigned i = 0; i < self.nthreads; i++)
        pthread_join(self.threads[i].id, NULL);
    edges.operation += self.nthreads * self.nsteps;
    edges.checks += self.nthreads * self.nsteps;
    if (self.part != GLOBAL)
        bystander_end();
    close_threads(is_common);
    expect_no_misuse(NULL);
}
