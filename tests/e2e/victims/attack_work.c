/* SPDX-License-Identifier: MIT */
/* Asynchronous work on blocks: whoever touches a block in a stream makes this stream follow the one
 * that touched it last, so that each owner's work is in order, and nobody else's is.
 *
 * Memory of another context is touched only as a program may without peer access: by copies that
 * name both contexts, or, if it is pinned and portable, by anything.
 */
#include "attack.h"

__typeof__(cuLaunchKernel) cuLaunchKernel_ptsz;
__typeof__(cuMemsetD32Async) cuMemsetD32Async_ptsz;
__typeof__(cuMemcpyDtoDAsync) cuMemcpyDtoDAsync_v2_ptsz;
__typeof__(cuEventRecord) cuEventRecord_ptsz;

/* ---- order ---- */

void follow(struct thread *self, struct stream *stream, struct block *block)
{
    enter(self, stream->context);
    if (block->home && block->home != stream)
        WORKS(self, cuStreamWaitEvent(handle_of(self, stream), block->home->event, 0));
}

void stay(struct thread *self, struct stream *stream, struct block *block)
{
    if (stream->kind == PER_THREAD && chance(self, 50))
        WORKS(self, cuEventRecord_ptsz(stream->event, NULL));
    else
        WORKS(self, cuEventRecord(stream->event, handle_of(self, stream)));
    block->home = stream;
}

uint32_t new_pattern(struct block *block)
{
    return block->serial << 12 | (++block->nfills & 0xfff);
}

/* ---- kernels ---- */

static CUresult launch(struct thread *self, struct stream *stream, CUfunction function,
                       void **arguments)
{
    if (stream->kind == PER_THREAD && chance(self, 50))
        return note(cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    return note(
        cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, handle_of(self, stream), arguments, NULL));
}

CUresult launch_fill(struct thread *self, struct stream *stream, CUdeviceptr to, uint32_t value,
                     size_t words)
{
    uint64_t n = words;
    void *arguments[] = {&to, &value, &n};

    return launch(self, stream, stream->context->fill, arguments);
}

CUresult launch_copy(struct thread *self, struct stream *stream, CUdeviceptr to, CUdeviceptr from,
                     size_t words)
{
    uint64_t bytes = words * 4;
    void *arguments[] = {&to, &from, &bytes};

    return launch(self, stream, stream->context->copy, arguments);
}

CUresult launch_check(struct thread *self, struct stream *stream, struct block *block,
                      CUdeviceptr from, uint32_t value, size_t words)
{
    struct context *context = stream->context;
    uint64_t n = words;
    CUdeviceptr wrong;
    void *arguments[] = {&from, &value, &n, &wrong};
    unsigned slot;

    pthread_mutex_lock(&attack.lock);
    slot = context->nchecks < MAX_CHECKS ? context->nchecks++ : MAX_CHECKS;
    if (slot < MAX_CHECKS)
        context->checks[slot] = (struct check){self->operation, block->serial, value, from};
    pthread_mutex_unlock(&attack.lock);
    if (slot == MAX_CHECKS)
        return CUDA_SUCCESS;
    wrong = context->ledger + slot * 4;
    return launch(self, stream, context->check, arguments);
}

/* A context whose streams may run kernels on the block. */
static struct context *reach(struct thread *self, const struct block *block)
{
    if (block->kind == PINNED && (block->host_flags & CU_MEMHOSTALLOC_PORTABLE) && chance(self, 50))
        return some_context(self);
    return block->context;
}

static void say_work(struct thread *self, const char *what, const struct block *block,
                     const struct stream *stream)
{
    trace(self, "block %u: %s %#x in stream %d of context %d", block->serial, what, block->head,
          (int)(stream - stream->context->streams), (int)(stream->context - attack.contexts));
}

/* ---- filling ---- */

static void set_words(struct thread *self, struct stream *stream, CUdeviceptr to, uint32_t value,
                      size_t n)
{
    if (chance(self, 60))
        expect(self, launch_fill(self, stream, to, value, n), CUDA_SUCCESS, "launch of fill");
    else if (stream->kind == PER_THREAD && chance(self, 50))
        WORKS(self, cuMemsetD32Async_ptsz(to, value, n, NULL));
    else
        WORKS(self, cuMemsetD32Async(to, value, n, handle_of(self, stream)));
}

void fill(struct thread *self, struct block *block)
{
    struct stream *stream = take_stream(self, reach(self, block));
    uint32_t words[HEAD_WORDS];
    size_t n = head_words(block);

    follow(self, stream, block);
    block->head = new_pattern(block);
    if (n == 0) {
        WORKS(self, cuMemsetD8Async(block->address, 0xee, block->size, handle_of(self, stream)));
        block->head = 0;
    } else if (chance(self, 15)) { /* from pageable memory, which is read before the call returns */
        for (size_t i = 0; i < n; i++)
            words[i] = block->head;
        WORKS(self, cuMemcpyHtoDAsync(block->address, words, n * 4, handle_of(self, stream)));
        memset(words, 0, sizeof words);
    } else {
        set_words(self, stream, block->address, block->head, n);
    }
    if (tail_words(block)) {
        block->tail = new_pattern(block);
        set_words(self, stream, tail_address(block), block->tail, TAIL_WORDS);
    }
    say_work(self, "fill", block, stream);
    stay(self, stream, block);
    put_stream(stream);
}

/* ---- checking ---- */

void check(struct thread *self, struct block *block)
{
    struct stream *stream;

    if (!block->head) {
        fill(self, block);
        return;
    }
    stream = take_stream(self, reach(self, block));
    follow(self, stream, block);
    expect(self, launch_check(self, stream, block, block->address, block->head, head_words(block)),
           CUDA_SUCCESS, "launch of check");
    if (block->tail)
        expect(self,
               launch_check(self, stream, block, tail_address(block), block->tail, TAIL_WORDS),
               CUDA_SUCCESS, "launch of check");
    say_work(self, "check", block, stream);
    stay(self, stream, block);
    put_stream(stream);
}

static void compare(struct thread *self, const struct block *block, const uint32_t *words)
{
    for (size_t i = 0; i < head_words(block); i++)
        if (words[i] != block->head)
            violated(
                self,
                "word %zu of block %u at %#llx is %#x, which block %u has written; expected %#x", i,
                block->serial, (unsigned long long)block->address, words[i], words[i] >> 12,
                block->head);
}

/* A copy to pageable memory, over when the call returns. */
static void read_now(struct thread *self, struct block *block)
{
    struct stream *stream = take_legacy(self, block->context);
    uint32_t words[HEAD_WORDS];

    if (!stream)
        return;
    follow(self, stream, block);
    WORKS(self, cuMemcpyDtoH(words, block->address, head_words(block) * 4));
    say_work(self, "read by the host", block, stream);
    compare(self, block, words);
    stay(self, stream, block);
    put_stream(stream);
}

/* The processor looks at pinned memory, and writes it. */
static void touch_directly(struct thread *self, struct block *block)
{
    uint32_t *words = (uint32_t *)(uintptr_t)block->address;

    if (block->home) {
        struct guard guard = guard_begin(self);
        CUresult code = note(cuEventSynchronize(block->home->event));

        if (!guard_end(self, &guard, code, "cuEventSynchronize"))
            return;
        expect(self, code, CUDA_SUCCESS, "cuEventSynchronize");
    }
    trace(self, "block %u is touched directly", block->serial);
    block->home = NULL;
    if (block->head)
        compare(self, block, words);
    block->head = new_pattern(block);
    for (size_t i = 0; i < head_words(block); i++)
        words[i] = block->head;
}

/* ---- copying ---- */

static void copy_within(struct thread *self, struct stream *stream, struct block *to,
                        struct block *from, size_t n)
{
    CUstream handle = handle_of(self, stream);

    if (to->kind == PINNED && from->kind != PINNED)
        WORKS(self,
              cuMemcpyDtoHAsync((void *)(uintptr_t)to->address, from->address, n * 4, handle));
    else if (to->kind != PINNED && from->kind == PINNED)
        WORKS(self,
              cuMemcpyHtoDAsync(to->address, (void *)(uintptr_t)from->address, n * 4, handle));
    else if (chance(self, 40))
        expect(self, launch_copy(self, stream, to->address, from->address, n), CUDA_SUCCESS,
               "launch of copy");
    else if (stream->kind == PER_THREAD && chance(self, 50))
        WORKS(self, cuMemcpyDtoDAsync_v2_ptsz(to->address, from->address, n * 4, NULL));
    else if (to->kind == PINNED || chance(self, 30))
        WORKS(self, cuMemcpyAsync(to->address, from->address, n * 4, handle));
    else
        WORKS(self, cuMemcpyDtoDAsync(to->address, from->address, n * 4, handle));
}

/* Both taken. The stream may be of either context, and for a copy that names both, of any. */
static void copy(struct thread *self, struct block *to, struct block *from)
{
    bool is_pinned = to->kind == PINNED || from->kind == PINNED;
    bool is_across = to->context != from->context;
    size_t n = head_words(to);
    struct context *context = from->kind == PINNED ? to->context : from->context;
    struct stream *stream;

    if (n == 0 || n > head_words(from) || !from->head || (is_across && is_pinned))
        return;
    if (!is_pinned && (is_across || chance(self, 25)))
        context = some_context(self);
    stream = take_stream(self, context);
    follow(self, stream, from);
    follow(self, stream, to);
    if (is_across || context != from->context)
        WORKS(self, cuMemcpyPeerAsync(to->address, to->context->handle, from->address,
                                      from->context->handle, n * 4, handle_of(self, stream)));
    else
        copy_within(self, stream, to, from, n);
    to->head = from->head;
    say_work(self, "copy here of", to, stream);
    stay(self, stream, from);
    to->home = stream;
    put_stream(stream);
}

/* The context that works on the block may well be another than its own. */
void spoil(struct thread *self, struct block *block)
{
    struct block *other = take_block(self, chance(self, 70) ? some_context(self) : block->context);
    struct stream *stream;
    size_t n;

    if (!other)
        return;
    n = head_words(block) < head_words(other) ? head_words(block) : head_words(other);
    if (n > 0 && block->kind != PINNED && other->kind != PINNED) {
        stream = take_stream(self, other->context);
        follow(self, stream, other);
        follow(self, stream, block);
        WORKS(self, cuMemcpyPeerAsync(block->address, block->context->handle, other->address,
                                      other->context->handle, n * 4, handle_of(self, stream)));
        block->head = 0;
        say_work(self, "overwritten", block, stream);
        stay(self, stream, other);
        block->home = stream;
        put_stream(stream);
    }
    put_block(other);
}

static void copy_with_other(struct thread *self, struct block *block)
{
    struct block *other = take_block(self, NULL);

    if (!other)
        return;
    if (chance(self, 50))
        copy(self, block, other);
    else
        copy(self, other, block);
    put_block(other);
}

void work(struct thread *self, struct block *block)
{
    unsigned how = below(self, 100);

    if (how < 35)
        fill(self, block);
    else if (how < 60)
        check(self, block);
    else if (how < 88)
        copy_with_other(self, block);
    else if (block->kind == PINNED)
        touch_directly(self, block);
    else if (block->head)
        read_now(self, block);
}
