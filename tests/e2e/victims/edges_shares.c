/* SPDX-License-Identifier: MIT */
/* Threads share a device that is nearly full.
 *
 * Each request fits, whatever the other threads do at that moment: either every thread has a share
 * of the device and stays within it, and the shares come to 99 percent (own), or all of them
 * together stay below what the program has set itself, which counts what is being asked for and
 * what is being freed (common). So none may be refused. Parts:
 *
 *   own      shares, 2 to 16 threads
 *   common   one account for all, 8 threads, 90 to 99 percent
 *   empty    own, where each thread now and then frees all that it has
 *   whole    own, where some threads ask for most of their share in one block
 *   beside   own, beside a thread that captures in another context or in theirs, or ends contexts
 *   turns    own, one thread at a time; one that has been refused memory and asks again does so
 *            at a bad moment, a few hundred times, if the others can bring one about
 *
 * Guarded by self.lock: the account that is common. The rest is each thread's own.
 */
#include "edges_account.h"
#include "edges_bystander.h"
#include "edges_turns.h"

enum { THREADS = TURNS_MOST, BLOCKS = 128, BAD_MOMENTS = 300 };

enum style { ARBITRARY, POWERS, PHASES, STYLES };

struct block {
    CUdeviceptr address;
    size_t size;
};

struct thread {
    unsigned index;
    pthread_t id;
    struct rng dice;
    CUstream stream;
    struct account account; /* of its own share */
    struct account *kept;   /* that one, or the common one */
    size_t cap;             /* of what is taken, as *kept has it */
    size_t least, most;     /* sizes */
    struct block blocks[BLOCKS];
    unsigned nblocks;
    unsigned long long requests;
    /* of a request under way: */
    size_t asked;
    struct cusim_here before;
    unsigned patience; /* bad moments that are still waited for */
};

static const char *const parts[] = {"own", "common", "empty", "whole", "turns", "beside"};
enum part { OWN, COMMON, EMPTY, WHOLE, TURNS, BESIDE, PARTS };

static struct {
    enum part part;
    enum style style;
    pthread_mutex_t lock;
    struct account account;
    CUcontext context;
    unsigned nthreads, nrequests;
    unsigned nsizes;
    unsigned works; /* percent of the blocks that something is done with */
    struct thread threads[THREADS];
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what is taken ---- */

static void lock_account(const struct thread *thread)
{
    if (thread->kept == &self.account)
        pthread_mutex_lock(&self.lock);
}

static void unlock_account(const struct thread *thread)
{
    if (thread->kept == &self.account)
        pthread_mutex_unlock(&self.lock);
}

/* From now on it counts. */
static bool reserve(struct thread *thread, size_t size)
{
    bool fits;

    lock_account(thread);
    fits = account_after(thread->kept, size) <= thread->cap;
    if (fits)
        account_add(thread->kept, size);
    unlock_account(thread);
    return fits;
}

static void cancel(struct thread *thread, size_t size)
{
    lock_account(thread);
    account_sub(thread->kept, size);
    unlock_account(thread);
}

/* ---- requests ---- */

static _Thread_local struct thread *running;

/* Between two turns of this thread the others have done something: is there less now than it is
 * about to ask for? */
static void await_bad_moment(struct thread *thread)
{
    struct cusim_here now;
    unsigned long long used, total;

    cusim_here(&now);
    if (now.refused == thread->before.refused)
        return;
    while (thread->patience > 0) {
        thread->patience--;
        if (cusim_memory(0, &used, &total) != 0 || total - used < thread->asked)
            return;
        turns_pass();
    }
}

static void enter_call(const char *symbol)
{
    if (!running || self.part != TURNS)
        return;
    if (running->asked && strcmp(symbol, "cuMemAlloc_v2") == 0)
        await_bad_moment(running);
    else if (roll_chance(&running->dice, 5))
        turns_pass();
}

static void take(struct thread *thread, size_t size)
{
    struct block *block = &thread->blocks[thread->nblocks];
    CUresult code;

    thread->asked = size;
    thread->patience = BAD_MOMENTS;
    cusim_here(&thread->before);
    code = cuMemAlloc(&block->address, size);
    thread->asked = 0;
    thread->requests++;
    if (code != CUDA_SUCCESS)
        violated("thread %u: request %llu, of %zu bytes, returned %d; all of its blocks are to "
                 "have %zu of %zu bytes",
                 thread->index, thread->requests, size, (int)code, thread->cap, self.account.total);
    block->size = size;
    thread->nblocks++;
    if (roll_chance(&thread->dice, self.works))
        WORKS(cuMemsetD8Async(block->address, 1, 4, thread->stream));
}

static void give(struct thread *thread, unsigned which)
{
    struct block block = thread->blocks[which];

    WORKS(cuMemFree(block.address));
    thread->blocks[which] = thread->blocks[--thread->nblocks];
    cancel(thread, block.size);
}

static void give_all(struct thread *thread)
{
    while (thread->nblocks > 0)
        give(thread, thread->nblocks - 1);
}

/* Powers of two need no rounding, and are served by blocks that were freed. */
static size_t some_size(struct thread *thread)
{
    size_t power = 512;

    if (self.style != POWERS)
        return thread->least + roll(&thread->dice) % (thread->most - thread->least);
    while (power * 2 <= thread->most)
        power *= 2;
    return power >> roll_below(&thread->dice, self.nsizes);
}

/* All that the thread may have, in equal pieces, now so many and now so many: what was freed is of
 * no use for what is asked for next. */
static void change_phase(struct thread *thread)
{
    unsigned pieces = 1 + roll_below(&thread->dice, 1 + self.nsizes);
    size_t size = thread->cap / pieces / thread->kept->unit * thread->kept->unit;

    give_all(thread);
    for (unsigned i = 0; i < pieces && reserve(thread, size); i++)
        take(thread, size);
}

static void step(struct thread *thread)
{
    size_t size = some_size(thread);

    if (self.part == EMPTY && roll_chance(&thread->dice, 1))
        give_all(thread);
    while (thread->nblocks == BLOCKS || !reserve(thread, size)) {
        if (thread->nblocks == 0)
            return;
        give(thread, roll_below(&thread->dice, thread->nblocks));
    }
    take(thread, size);
}

static void *run_thread(void *argument)
{
    struct thread *thread = argument;

    turns_enter(thread->index);
    running = thread;
    WORKS(cuCtxSetCurrent(self.context));
    WORKS(cuStreamCreate(&thread->stream, CU_STREAM_NON_BLOCKING));
    while (thread->requests < self.nrequests) {
        if (self.style == PHASES && self.part != COMMON)
            change_phase(thread);
        else
            step(thread);
        turns_pass();
    }
    give_all(thread);
    WORKS(cuStreamDestroy(thread->stream));
    running = NULL;
    turns_leave();
    return NULL;
}

/* ---- one program ---- */

/* Blocks are about as many as make it a question at each request whether there is room. */
static void choose_sizes(struct thread *thread, unsigned parts_of_share, unsigned spread)
{
    size_t share = thread->cap / (self.part == COMMON ? 8 : 1);

    thread->most = share / parts_of_share;
    thread->least = thread->most / spread + 1;
    if (self.part != WHOLE)
        return;
    thread->most = thread->index % 4 == 0 ? share : share / 20;
    thread->least = thread->index % 4 == 0 ? share / 2 : share / 100;
}

static void share_out(struct thread *thread)
{
    static const unsigned percents[] = {90, 94, 97, 99};
    size_t all = self.account.total / 100 * 99;

    if (self.part == COMMON) {
        thread->kept = &self.account;
        thread->cap = self.account.total / 100 * percents[edges.seed % 4];
        return;
    }
    thread->account = self.account;
    thread->account.fixed = 0;
    thread->kept = &thread->account;
    thread->cap = (all - self.account.fixed) / self.nthreads;
}

static void open_threads(void)
{
    unsigned parts_of_share = 1 + below(20), spread = chance(50) ? 2 : 50;

    for (unsigned i = 0; i < self.nthreads; i++) {
        struct thread *thread = &self.threads[i];

        memset(thread, 0, sizeof *thread);
        thread->index = i;
        seed_dice(&thread->dice, edges.seed * THREADS + i);
        share_out(thread);
        choose_sizes(thread, parts_of_share, spread);
    }
}

/* Contexts end on the other device; one that captures and is not that of the threads takes as much
 * of theirs as that does. */
static void stand_beside(void)
{
    bool captures = chance(70), is_common = chance(50);

    bystander_begin(captures ? CAPTURES : ENDS, captures ? 0 : 1, is_common ? self.context : NULL);
    if (captures && !is_common)
        self.account.fixed *= 2;
}

static void begin(void)
{
    self.part = choose_part(parts, PARTS);
    self.style = below(STYLES);
    WORKS(cuDevicePrimaryCtxRetain(&self.context, 0));
    WORKS(cuCtxSetCurrent(self.context));
    account_begin(&self.account);
    if (self.part == BESIDE)
        stand_beside();
    self.nthreads = self.part == COMMON ? 8 : chance(50) ? 2 : 2 + below(THREADS - 1);
    self.nrequests = (self.part == TURNS ? 1000 : 4000) / self.nthreads;
    self.works = chance(70) ? 5 + below(60) : 0;
    self.nsizes = 1 + below(6);
    cusim_set_lazy(chance(50) ? edges.seed + 1 : 0);
    cusim_set_entered(self.part == TURNS ? enter_call : NULL);
    turns_begin(self.part == TURNS ? self.nthreads : 0, edges.seed);
    open_threads();
    forget_misuse();
}

void shares_run(void)
{
    begin();
    trace("%s, style %d, %u threads, work on %u percent", parts[self.part], (int)self.style,
          self.nthreads, self.works);
    for (unsigned i = 0; i < self.nthreads; i++)
        if (pthread_create(&self.threads[i].id, NULL, run_thread, &self.threads[i]) != 0)
            violated("no thread");
    for (unsigned i = 0; i < self.nthreads; i++) {
        pthread_join(self.threads[i].id, NULL);
        edges.checks += self.threads[i].requests;
        edges.operation += (unsigned)self.threads[i].requests;
    }
    cusim_set_entered(NULL);
    if (self.part == BESIDE)
        bystander_end();
    WORKS(cuCtxSetCurrent(NULL));
    WORKS(cuDevicePrimaryCtxRelease(0));
    expect_no_misuse(NULL);
}
