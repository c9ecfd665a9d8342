/* SPDX-License-Identifier: MIT */
/* Contexts end while others still work on what was freed in them.
 *
 * A program copies from and to blocks of one context in streams of others, frees the blocks, which
 * the driver's free waits for, and ends their context. Memory is then taken again, here and on the
 * other device. Nobody's work may meet memory that is no longer what it was, and what was copied is
 * what was there. Parts, by how the context ends:
 *
 *   destroy  cuCtxDestroy, of both names, and cuCtxDetach
 *   release  the last cuDevicePrimaryCtxRelease, of both names
 *   reset    cuDevicePrimaryCtxReset, of both names
 *   runtime  cudaDeviceReset
 *   capture  any of them, while a stream of another context captures, which must not notice
 *   beside   cuCtxDestroy or a reset, while another thread ends contexts or captures
 *
 * each on the program's thread or another one, whose current context is the ended one, another, or
 * none.
 */
#include "edges.h"
#include "edges_bystander.h"
#include "edges_ways.h"

enum { CONTEXTS = 4, STREAMS = 3, BLOCKS = 24, DEVICES = 3, WORDS = 16 };

struct stream {
    CUstream handle;
    CUevent event; /* after the last piece of work */
    struct context *context;
};

struct context {
    struct way way;
    CUcontext handle;
    int device;
    bool is_alive;
    CUfunction copy;
    struct stream streams[STREAMS];
};

struct block {
    bool is_alive;
    enum kind kind;
    struct context *context;
    CUdeviceptr address;
    size_t size;
    uint32_t pattern;
    struct stream *home; /* what follows its event follows all work on the block; or NULL */
    unsigned strangers;  /* a bit for each other context that may still work on it */
};

static const char *const parts[] = {"destroy", "release", "reset", "runtime", "capture", "beside"};
enum part { DESTROY, RELEASE, RESET, RUNTIME, CAPTURE, BESIDE, PARTS };

static const char image[] = "cusim 1\nkernel copy\n";

static struct {
    enum part part;
    struct context contexts[CONTEXTS];
    struct block blocks[BLOCKS];
    size_t sizes[2];
    uint32_t patterns;
} self;

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
    WORKS(cuCtxSetCurrent(context ? context->handle : NULL));
}

/* ---- contexts ---- */

static bool has_primary(int device)
{
    for (unsigned i = 0; i < CONTEXTS; i++)
        if (self.contexts[i].is_alive && self.contexts[i].way.is_primary &&
            self.contexts[i].device == device)
            return true;
    return false;
}

static void open_streams(struct context *context)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        struct stream *stream = &context->streams[i];

        stream->context = context;
        if (i > 0)
            WORKS(cuStreamCreate(&stream->handle,
                                 i == 1 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
        WORKS(cuEventCreate(&stream->event, CU_EVENT_DISABLE_TIMING));
    }
}

static void open_context(struct context *context, int device)
{
    bool is_primary = self.part != DESTROY && chance(60) && !has_primary(device);
    bool is_of_runtime = self.part == RUNTIME || (self.part == CAPTURE && chance(30));
    CUmodule module;

    memset(context, 0, sizeof *context);
    context->device = device;
    context->handle = way_begin(&context->way, device, is_primary, is_of_runtime);
    context->is_alive = true;
    enter(context);
    WORKS(cuModuleLoadData(&module, image));
    WORKS(cuModuleGetFunction(&context->copy, module, "copy"));
    open_streams(context);
    trace("context %u on device %d%s", number_of(context), device,
          context->way.is_of_runtime ? ", the runtime's"
          : context->way.is_primary  ? ", primary"
                                     : "");
}

/* Where a context is missing: more often than not on a device that another one is on. */
static void open_some(unsigned wanted, bool on_one_device)
{
    for (unsigned i = 0; i < wanted; i++)
        if (!self.contexts[i].is_alive)
            open_context(&self.contexts[i], on_one_device ? 0 : (int)below(DEVICES));
}

/* ---- work ---- */

static struct stream *some_stream(struct context *context)
{
    return &context->streams[below(STREAMS)];
}

static void follow(struct stream *stream, const struct block *block)
{
    enter(stream->context);
    if (block->home && block->home != stream)
        WORKS(cuStreamWaitEvent(stream->handle, block->home->event, 0));
}

static void stay(struct stream *stream, struct block *block)
{
    WORKS(cuEventRecord(stream->event, stream->handle));
    block->home = stream;
    if (stream->context != block->context)
        block->strangers |= 1u << number_of(stream->context);
}

static struct block *some_block(const struct context *context)
{
    unsigned start = below(BLOCKS);

    for (unsigned i = 0; i < BLOCKS; i++) {
        struct block *block = &self.blocks[(start + i) % BLOCKS];

        if (block->is_alive && (!context || block->context == context))
            return block;
    }
    return NULL;
}

static unsigned index_of(const struct block *block)
{
    return (unsigned)(block - self.blocks);
}

static void fill(struct block *block)
{
    struct stream *stream =
        some_stream(block->kind == PINNED && chance(50) ? some_context() : block->context);

    follow(stream, block);
    block->pattern = ++self.patterns;
    WORKS(cuMemsetD32Async(block->address, block->pattern, WORDS, stream->handle));
    stay(stream, block);
    trace("block %u is filled with %u in context %u", index_of(block), block->pattern,
          number_of(stream->context));
}

/* A kernel of `in` reaches memory of another device. */
static void let_reach(const struct context *in, const struct context *other)
{
    CUresult code;

    if (in->device == other->device)
        return;
    enter(in);
    code = cuCtxEnablePeerAccess(other->handle, 0);
    if (code != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        expect(code, CUDA_SUCCESS, "cuCtxEnablePeerAccess");
}

static void launch_copy(struct stream *stream, struct block *to, struct block *from)
{
    uint64_t bytes = WORDS * 4;
    void *arguments[] = {&to->address, &from->address, &bytes};

    WORKS(cuLaunchKernel(stream->context->copy, 1, 1, 1, 1, 1, 1, 0, stream->handle, arguments,
                         NULL));
}

/* Where the copy may run as a kernel, or as one that names no contexts; NULL: nowhere. */
static struct context *reached_from(const struct block *to, const struct block *from)
{
    if (to->kind == PINNED && from->kind == PINNED)
        return some_context();
    if (to->kind == PINNED || from->kind == PINNED || to->context == from->context)
        return to->kind == PINNED ? from->context : to->context;
    if (to->context->device == from->context->device)
        return NULL; /* addresses of one context mean nothing in another */
    let_reach(to->context, from->context);
    return to->context;
}

static void copy(struct block *to, struct block *from)
{
    struct context *context = reached_from(to, from);
    bool is_named = to->kind != PINNED && from->kind != PINNED && (!context || chance(50));
    struct stream *stream = some_stream(is_named || !context ? some_context() : context);

    if (to == from || !from->pattern)
        return;
    follow(stream, from);
    follow(stream, to);
    if (is_named)
        WORKS(cuMemcpyPeerAsync(to->address, to->context->handle, from->address,
                                from->context->handle, WORDS * 4, stream->handle));
    else if (chance(60))
        launch_copy(stream, to, from);
    else
        WORKS(cuMemcpyAsync(to->address, from->address, WORDS * 4, stream->handle));
    to->pattern = from->pattern;
    stay(stream, from);
    stay(stream, to);
    trace("block %u is copied to %u in context %u", index_of(from), index_of(to),
          number_of(stream->context));
}

static void copy_some(struct block *from)
{
    struct block *to = some_block(chance(70) ? some_context() : NULL);

    if (from && to)
        copy(to, from);
}

/* ---- blocks ---- */

static void allocate(struct context *context)
{
    unsigned which = below(100), slot = 0;
    struct block *block;

    while (slot < BLOCKS && self.blocks[slot].is_alive)
        slot++;
    if (slot == BLOCKS)
        return;
    block = &self.blocks[slot];
    memset(block, 0, sizeof *block);
    block->kind = which < 55 ? DEVICE : which < 70 ? PITCHED : PINNED;
    block->size = self.sizes[below(2)];
    block->context = context;
    enter(context);
    WORKS(take_memory(block->kind, block->size, &block->address));
    block->is_alive = true;
    trace("block %u of context %u, kind %d, %zu bytes at %#llx", slot, number_of(context),
          (int)block->kind, block->size, (unsigned long long)block->address);
    fill(block);
}

static void release(struct block *block)
{
    enter(chance(60) ? block->context : some_context());
    trace("block %u is freed", index_of(block));
    WORKS(give_memory(block->kind, block->address));
    block->is_alive = false;
}

static void wait_for(struct context *context)
{
    enter(context);
    WORKS(cuCtxSynchronize());
    trace("context %u is waited for", number_of(context));
    for (unsigned i = 0; i < BLOCKS; i++)
        self.blocks[i].strangers &= ~(1u << number_of(context));
}

static void wait_for_all(void)
{
    for (unsigned i = 0; i < CONTEXTS; i++)
        if (self.contexts[i].is_alive)
            wait_for(&self.contexts[i]);
}

static void verify(struct block *block)
{
    uint32_t words[WORDS];

    if (block->home) {
        enter(block->home->context);
        WORKS(cuStreamSynchronize(block->home->handle));
    }
    enter(block->context);
    WORKS(cuMemcpy((CUdeviceptr)(uintptr_t)words, block->address, sizeof words));
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] != block->pattern)
            violated("word %u of block %u is %u, expected %u", i, index_of(block), words[i],
                     block->pattern);
    edges.checks++;
}

/* ---- ends ---- */

static CUcontext some_current(const struct context *ended)
{
    unsigned which = below(3);
    const struct context *other = some_context();

    return which == 0 ? NULL : which == 1 ? ended->handle : other->handle;
}

static void end_now(struct context *context)
{
    CUcontext current = some_current(context);
    bool is_reset = self.part == RESET || (self.part != RELEASE && chance(50));
    bool is_elsewhere = chance(40);

    trace("end of context %u%s", number_of(context), is_elsewhere ? " by another thread" : "");
    way_end(&context->way, current, is_reset, is_elsewhere);
    context->is_alive = false;
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (self.blocks[i].context == context)
            self.blocks[i].is_alive = false;
        if (self.blocks[i].home && self.blocks[i].home->context == context)
            self.blocks[i].home = NULL; /* the end has waited for its work */
        self.blocks[i].strangers &= ~(1u << number_of(context));
    }
}

/* Work of others on what is left to the context has to be over before it ends; on what was freed it
 * need not: the free has waited for it. */
static void prepare_end(const struct context *context)
{
    bool frees_all = chance(60);
    unsigned strangers = 0;

    for (unsigned i = 0; i < BLOCKS; i++) {
        struct block *block = &self.blocks[i];

        if (!block->is_alive || block->context != context)
            continue;
        for (unsigned n = below(3); n > 0; n--)
            copy_some(block);
        if (frees_all || chance(50))
            release(block);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (self.blocks[i].is_alive && self.blocks[i].context == context)
            strangers |= self.blocks[i].strangers;
    for (unsigned i = 0; i < CONTEXTS; i++)
        if (strangers & 1u << i)
            wait_for(&self.contexts[i]);
}

/* The capture's own context is not the one that ends; nor does the program free anything meanwhile,
 * which a capture may forbid. */
static void end_in_capture(struct context *context)
{
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                CU_STREAM_CAPTURE_MODE_RELAXED};
    struct context *other = some_context();
    struct stream *stream;
    CUgraph graph = NULL;

    if (other == context)
        return;
    stream = &other->streams[1];
    enter(other);
    trace("a stream of context %u captures", number_of(other));
    WORKS(cuStreamBeginCapture(stream->handle, modes[below(3)]));
    end_now(context);
    cuCtxSetCurrent(other->handle);
    WORKS(cuStreamEndCapture(stream->handle, &graph));
    if (!graph)
        violated("the capture has no graph");
    WORKS(cuGraphDestroy(graph));
}

static void end_context(struct context *context)
{
    if (!context)
        return;
    prepare_end(context);
    if (self.part == CAPTURE && chance(60))
        end_in_capture(context);
    if (context->is_alive)
        end_now(context);
}

/* ---- one program ---- */

static unsigned count_contexts(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < CONTEXTS; i++)
        n += self.contexts[i].is_alive;
    return n;
}

static void operate(void)
{
    unsigned what = below(100);
    struct block *block = some_block(NULL);

    if (what < 30 || !block)
        allocate(some_context());
    else if (what < 55)
        copy_some(block);
    else if (what < 65)
        fill(block);
    else if (what < 78)
        release(block);
    else if (what < 82)
        verify(block);
    else if (what < 85)
        wait_for(some_context());
    else if (what < 87)
        wait_for_all();
    else if (count_contexts() > 1)
        end_context(some_context());
}

static void begin(void)
{
    static const size_t sizes[] = {512, 4096, 70000, MIB, 3 * MIB};

    self.part = choose_part(parts, PARTS);
    memset(self.contexts, 0, sizeof self.contexts);
    memset(self.blocks, 0, sizeof self.blocks);
    self.patterns = 0;
    for (unsigned i = 0; i < 2; i++)
        self.sizes[i] = sizes[below(5)];
    cusim_set_lazy(edges.seed + 1);
    forget_misuse();
}

void ends_run(void)
{
    unsigned wanted, noperations;
    bool on_one_device;

    begin();
    wanted = 2 + below(CONTEXTS - 1);
    noperations = 20 + below(60);
    on_one_device = chance(40);
    if (self.part == BESIDE)
        bystander_begin((enum bystander)below(BYSTANDERS), (int)below(DEVICES), NULL);
    while (edges.operation < noperations) {
        edges.operation++;
        open_some(wanted, on_one_device);
        operate();
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (self.blocks[i].is_alive)
            verify(&self.blocks[i]);
    while (count_contexts() > 0)
        end_context(some_context());
    WORKS(cuCtxSetCurrent(NULL));
    if (self.part == BESIDE)
        bystander_end();
    expect_no_misuse(NULL);
}
