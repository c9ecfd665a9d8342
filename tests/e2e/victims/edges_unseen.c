/* SPDX-License-Identifier: MIT */
/* Contexts come and go where the library cannot see it.
 *
 * A program makes and ends contexts by the driver's own functions, and by those that are hooked, as
 * the dice say; handles come back, on any device. It takes, fills, asks about and frees blocks by
 * the hooked functions only, on two threads by turns. The program knows what lives: a block that is
 * given must be memory of the current context and nobody else's, and what died with its context
 * must be unknown. Parts:
 *
 *   created  contexts of cuCtxCreate
 *   primary  primary contexts, retained, released and reset
 *   both
 *   memory   both, and what cuMemGetInfo calls free is what is not in use
 */
#include "edges.h"
#include "unseen.h"

enum { CONTEXTS = 4, BLOCKS = 24, DEVICES = 2, GONE = 16, THREADS = 2 };

struct context {
    CUcontext handle;
    int device;
    bool is_alive, is_primary;
    unsigned retains;
    unsigned generation; /* of the slot here: another one is another context */
};

struct block {
    bool is_alive;
    enum kind kind;
    struct context *context;
    CUdeviceptr address;
    size_t size;
    uint32_t pattern;
};

struct gone {
    CUdeviceptr address;
    bool is_with_context; /* the program has not freed it */
};

static const char *const parts[] = {"created", "primary", "both", "memory"};
enum part { CREATED, PRIMARY, BOTH, MEMORY, PARTS };

/* What a program calls past the library. */
#define REAL(ROW)                                                                                  \
    ROW(create, cuCtxCreate_v2)                                                                    \
    ROW(destroy, cuCtxDestroy_v2)                                                                  \
    ROW(retain, cuDevicePrimaryCtxRetain)                                                          \
    ROW(release, cuDevicePrimaryCtxRelease_v2)                                                     \
    ROW(reset, cuDevicePrimaryCtxReset_v2)                                                         \
    ROW(set_current, cuCtxSetCurrent)                                                              \
    ROW(synchronise, cuCtxSynchronize)                                                             \
    ROW(range, cuMemGetAddressRange_v2)                                                            \
    ROW(ask, cuPointerGetAttribute)
#define DECLARE(name, function) __typeof__(&function) name;
#define FIND(name, function)    real.name = (__typeof__(&function))unseen(#function);

static struct {
    REAL(DECLARE)
} real;

static struct {
    enum part part;
    struct context contexts[CONTEXTS];
    struct block blocks[BLOCKS];
    struct gone gone[GONE];
    unsigned ngone;
    size_t sizes[2];
    uint32_t patterns;
    unsigned bad_frees;
    /* of each thread: what is current */
    const struct context *current[THREADS];
    unsigned generation[THREADS];
} self;

/* One thread does the program's operations, or the other. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool is_started;
    void (*job)(void);
} helper = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static _Thread_local unsigned me;

void unseen_prepare(void)
{
    REAL(FIND)
}

static void *run_helper(void *unused)
{
    (void)unused;
    me = 1;
    pthread_mutex_lock(&helper.lock);
    for (;;) {
        while (!helper.job)
            pthread_cond_wait(&helper.change, &helper.lock);
        helper.job();
        helper.job = NULL;
        pthread_cond_signal(&helper.change);
    }
    return NULL;
}

static void do_elsewhere(void (*job)(void))
{
    pthread_t thread;

    if (!helper.is_started && pthread_create(&thread, NULL, run_helper, NULL) != 0)
        violated("no thread");
    helper.is_started = true;
    pthread_mutex_lock(&helper.lock);
    helper.job = job;
    pthread_cond_signal(&helper.change);
    while (helper.job)
        pthread_cond_wait(&helper.change, &helper.lock);
    pthread_mutex_unlock(&helper.lock);
}

/* ---- contexts ---- */

static unsigned number_of(const struct context *context)
{
    return (unsigned)(context - self.contexts);
}

static struct context *some_context(void)
{
    unsigned start = below(CONTEXTS);

    for (unsigned i = 0; i < CONTEXTS; i++)
        if (self.contexts[(start + i) % CONTEXTS].is_alive)
            return &self.contexts[(start + i) % CONTEXTS];
    return NULL;
}

static void enter(const struct context *context)
{
    if (self.current[me] == context && self.generation[me] == context->generation)
        return;
    if (chance(50))
        WORKS(cuCtxSetCurrent(context->handle));
    else
        WORKS(real.set_current(context->handle));
    self.current[me] = context;
    self.generation[me] = context->generation;
}

static bool has_primary(int device)
{
    for (unsigned i = 0; i < CONTEXTS; i++)
        if (self.contexts[i].is_alive && self.contexts[i].is_primary &&
            self.contexts[i].device == device)
            return true;
    return false;
}

static void open_primary(struct context *context, bool is_seen)
{
    context->is_primary = true;
    context->retains = 1 + below(2);
    for (unsigned i = 0; i < context->retains; i++)
        WORKS(
            (is_seen ? cuDevicePrimaryCtxRetain : real.retain)(&context->handle, context->device));
}

/* Often the new context, which is current, is used at once, by a thread that believes it knows the
 * handle. */
static void open_created(struct context *context, bool is_seen)
{
    CUcontext popped;

    context->is_primary = false;
    WORKS(cuCtxSetCurrent(NULL));
    self.current[me] = NULL;
    WORKS((is_seen ? cuCtxCreate_v2 : real.create)(&context->handle, 0, context->device));
    if (chance(50)) {
        self.current[me] = context;
        self.generation[me] = context->generation;
        return;
    }
    WORKS(cuCtxPopCurrent(&popped));
}

static void open_context(struct context *context)
{
    bool is_seen = chance(40);

    context->device = (int)below(DEVICES);
    context->generation++;
    if (self.part != CREATED && !has_primary(context->device) && chance(70))
        open_primary(context, is_seen);
    else
        open_created(context, is_seen);
    context->is_alive = true;
    trace("context %u, %s, on device %d is made%s: %p", number_of(context),
          context->is_primary ? "primary" : "created", context->device,
          is_seen ? "" : " out of sight", (void *)context->handle);
}

static void open_some(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (!self.contexts[i].is_alive)
            open_context(&self.contexts[i]);
    if (!self.contexts[2].is_alive && chance(10))
        open_context(&self.contexts[2]);
}

static void remember(const struct block *block, bool is_with_context)
{
    self.gone[self.ngone++ % GONE] = (struct gone){block->address, is_with_context};
}

static void end_context(struct context *context)
{
    bool is_seen = chance(25);

    trace("context %u ends%s", number_of(context), is_seen ? "" : " out of sight");
    if (!context->is_primary)
        WORKS((is_seen ? cuCtxDestroy_v2 : real.destroy)(context->handle));
    else if (chance(50))
        WORKS((is_seen ? cuDevicePrimaryCtxReset_v2 : real.reset)(context->device));
    else
        for (; context->retains > 0; context->retains--)
            WORKS((is_seen ? cuDevicePrimaryCtxRelease_v2 : real.release)(context->device));
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (self.blocks[i].is_alive && self.blocks[i].context == context) {
            self.blocks[i].is_alive = false;
            remember(&self.blocks[i], true);
        }
    }
    for (unsigned i = 0; i < THREADS; i++)
        if (self.current[i] == context)
            self.current[i] = NULL;
    context->is_alive = false;
}

/* ---- blocks ---- */

static struct block *some_block(void)
{
    unsigned start = below(BLOCKS);

    for (unsigned i = 0; i < BLOCKS; i++)
        if (self.blocks[(start + i) % BLOCKS].is_alive)
            return &self.blocks[(start + i) % BLOCKS];
    return NULL;
}

static unsigned index_of(const struct block *block)
{
    return (unsigned)(block - self.blocks);
}

static const struct block *owner_of(CUdeviceptr address)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (self.blocks[i].is_alive && address >= self.blocks[i].address &&
            address < self.blocks[i].address + self.blocks[i].size)
            return &self.blocks[i];
    return NULL;
}

/* What the driver knows of a block that was just given, by its own functions and as we tell it. */
static void expect_real(const struct block *block)
{
    CUcontext context = NULL;
    CUdeviceptr base = 0;
    size_t size = 0;

    WORKS(real.ask(&context, CU_POINTER_ATTRIBUTE_CONTEXT, block->address));
    if (context != block->context->handle)
        violated("block %u is of another context", index_of(block));
    WORKS(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, block->address));
    if (context != block->context->handle)
        violated("block %u is said to be of another context", index_of(block));
    edges.checks++;
    if (block->kind == PINNED)
        return;
    WORKS(real.range(&base, &size, block->address));
    if (base != block->address || size < block->size)
        violated("block %u, %zu bytes at %#llx, is memory of %zu bytes at %#llx", index_of(block),
                 block->size, (unsigned long long)block->address, size, (unsigned long long)base);
    WORKS(cuMemGetAddressRange(&base, &size, block->address));
    if (base != block->address || size < block->size)
        violated("block %u, %zu bytes at %#llx, is said to be %zu bytes at %#llx", index_of(block),
                 block->size, (unsigned long long)block->address, size, (unsigned long long)base);
}

static void fill(struct block *block)
{
    CUdeviceptr last = block->address + (block->size / 4 - 1) * 4;

    block->pattern = ++self.patterns;
    if (block->kind == PINNED) {
        *(uint32_t *)(uintptr_t)block->address = block->pattern;
        *(uint32_t *)(uintptr_t)last = block->pattern;
    } else if (chance(50)) {
        WORKS(cuMemsetD32(block->address, block->pattern, 1));
        WORKS(cuMemsetD32Async(last, block->pattern, 1, NULL));
    } else {
        WORKS(cuMemsetD2D32(block->address, last - block->address, block->pattern, 1, 2));
    }
}

static void verify(const struct block *block)
{
    uint32_t words[2];

    enter(block->context);
    WORKS(cuCtxSynchronize());
    WORKS(cuMemcpy((CUdeviceptr)(uintptr_t)&words[0], block->address, 4));
    WORKS(
        cuMemcpy((CUdeviceptr)(uintptr_t)&words[1], block->address + (block->size / 4 - 1) * 4, 4));
    for (unsigned i = 0; i < 2; i++)
        if (words[i] != block->pattern)
            violated("block %u has %u in it, expected %u", index_of(block), words[i],
                     block->pattern);
    edges.checks++;
}

static void allocate(struct context *context)
{
    unsigned which = below(100), slot = 0;
    struct block block = {.context = context};

    while (slot < BLOCKS && self.blocks[slot].is_alive)
        slot++;
    if (slot == BLOCKS)
        return;
    block.kind = which < 65 ? DEVICE : which < 80 ? PITCHED : PINNED;
    block.size = self.sizes[below(2)];
    enter(context);
    WORKS(take_memory(block.kind, block.size, &block.address));
    trace("block %u of context %u, kind %d, %zu bytes at %#llx", slot, number_of(context),
          (int)block.kind, block.size, (unsigned long long)block.address);
    if (owner_of(block.address) || owner_of(block.address + block.size - 1))
        violated("block %u lies within another", slot);
    self.blocks[slot] = block;
    self.blocks[slot].is_alive = true;
    expect_real(&self.blocks[slot]);
    fill(&self.blocks[slot]);
}

static void release(struct block *block)
{
    enter(chance(70) ? block->context : some_context());
    trace("block %u is freed", index_of(block));
    expect(give_memory(block->kind, block->address), CUDA_SUCCESS, "free");
    block->is_alive = false;
    remember(block, false);
}

/* ---- questions, and wrong frees ---- */

static const struct gone *some_gone(void)
{
    unsigned n = self.ngone < GONE ? self.ngone : GONE;
    const struct gone *gone = n ? &self.gone[below(n)] : NULL;

    return gone && !owner_of(gone->address) ? gone : NULL;
}

static void free_again(void)
{
    const struct gone *gone = some_gone();

    if (!gone)
        return;
    enter(some_context());
    trace("%#llx is freed again", (unsigned long long)gone->address);
    expect(cuMemFree(gone->address), CUDA_ERROR_INVALID_VALUE, "free of what is gone");
    self.bad_frees++;
}

static void ask_gone(void)
{
    const struct gone *gone = some_gone();
    CUdeviceptr base;
    unsigned type;
    size_t size;

    if (!gone || !gone->is_with_context)
        return;
    enter(some_context());
    trace("%#llx is asked about", (unsigned long long)gone->address);
    if (real.ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, gone->address) == CUDA_SUCCESS)
        return; /* the library may keep a block that has the address by now */
    expect(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, gone->address),
           CUDA_ERROR_INVALID_VALUE, "cuPointerGetAttribute of what is gone");
    expect(cuMemGetAddressRange(&base, &size, gone->address), CUDA_ERROR_NOT_FOUND,
           "cuMemGetAddressRange of what is gone");
    edges.checks++;
}

static size_t taken(int device, bool is_most)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < CONTEXTS; i++)
        bytes += self.contexts[i].is_alive && self.contexts[i].device == device ? 16 * MIB : 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        const struct block *block = &self.blocks[i];
        size_t size = (block->size / 512 + 1) * 512;

        if (block->is_alive && block->kind != PINNED && block->context->device == device)
            bytes += is_most ? size + size / 8 + 512 : block->size;
    }
    return bytes;
}

static void ask_memory(struct context *context)
{
    size_t available, total;

    enter(context);
    WORKS(cuMemGetInfo(&available, &total));
    if (available + taken(context->device, false) > total ||
        available + taken(context->device, true) < total)
        violated("%zu of %zu bytes are said to be free on device %d, where %zu are taken",
                 available, total, context->device, taken(context->device, false));
    edges.checks++;
}

/* ---- one program ---- */

static void operate(void)
{
    unsigned what = below(100);
    struct block *block = some_block();

    if (what < 35 || !block)
        allocate(some_context());
    else if (what < 60)
        release(block);
    else if (what < 68)
        verify(block);
    else if (what < 72)
        expect((enter(some_context()), chance(50) ? cuCtxSynchronize() : real.synchronise()),
               CUDA_SUCCESS, "cuCtxSynchronize");
    else if (what < 78)
        free_again();
    else if (what < 82)
        ask_gone();
    else if (what < 86 && self.part == MEMORY)
        ask_memory(some_context());
    else
        end_context(some_context());
    open_some();
}

static void leave(void)
{
    CUcontext popped;

    while (cuCtxPopCurrent(&popped) == CUDA_SUCCESS)
        self.current[me] = NULL;
    self.current[me] = NULL;
}

static void finish(void)
{
    struct context *context;

    for (unsigned i = 0; i < BLOCKS; i++)
        if (self.blocks[i].is_alive)
            verify(&self.blocks[i]);
    while ((context = some_context()) != NULL)
        end_context(context);
    leave();
    do_elsewhere(leave);
}

static void begin(void)
{
    static const size_t sizes[] = {512, 4096, 70000, MIB, 3 * MIB};

    self.part = choose_part(parts, PARTS);
    memset(self.contexts, 0, sizeof self.contexts);
    memset(self.blocks, 0, sizeof self.blocks);
    self.ngone = self.bad_frees = 0;
    self.patterns = (uint32_t)edges.seed << 12;
    for (unsigned i = 0; i < 2; i++)
        self.sizes[i] = sizes[below(5)];
    cusim_set_lazy(edges.seed + 1);
    forget_misuse();
}

void unseen_run(void)
{
    unsigned noperations;

    begin();
    noperations = 20 + below(60);
    open_some();
    while (edges.operation < noperations) {
        edges.operation++;
        if (chance(30))
            do_elsewhere(operate);
        else
            operate();
    }
    finish();
    expect_few_frees(self.bad_frees);
    expect_no_misuse("use_after_free");
    expect_no_misuse("out_of_bounds");
    expect_no_misuse("wild_access");
    expect_no_misuse("stale_handle");
}
