/* SPDX-License-Identifier: MIT */
/* Streams of all kinds: the legacy one, each thread's own, and those that come and go, some of them
 * with work pending. Slots 0 to MAX_THREADS of a context are the first two kinds.
 *
 * Guarded by attack.lock: users and marks. A stream that has users, or is captured, is not
 * destroyed.
 */
#include "attack.h"

__typeof__(cuStreamSynchronize) cuStreamSynchronize_ptsz;

static bool is_usable(const struct thread *self, const struct stream *stream)
{
    if (stream->kind == NO_STREAM || stream->is_gone || stream->is_capturing)
        return false;
    if (stream->kind ==
        LEGACY) /* it may not be touched while a stream that it waits for is captured */
        return stream->context->blocking_captures == 0;
    return stream->kind != PER_THREAD || stream->thread == self->index;
}

struct stream *take_stream(struct thread *self, struct context *context)
{
    struct stream *usable[MAX_STREAMS], *stream;
    unsigned n = 0;

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 0; i < MAX_STREAMS; i++)
        if (is_usable(self, &context->streams[i]))
            usable[n++] = &context->streams[i];
    stream = usable[below(self, n)]; /* there always is one: the thread's own */
    stream->users++;
    pthread_mutex_unlock(&attack.lock);
    return stream;
}

struct stream *take_legacy(struct thread *self, struct context *context)
{
    struct stream *stream = &context->streams[0];
    bool is_free;

    pthread_mutex_lock(&attack.lock);
    is_free = is_usable(self, stream);
    if (is_free)
        stream->users++;
    pthread_mutex_unlock(&attack.lock);
    return is_free ? stream : NULL;
}

void put_stream(struct stream *stream)
{
    LOCKED(stream->users--);
}

static bool can_capture(const struct stream *stream)
{
    const struct context *context = stream->context;

    if (stream->kind != BLOCKING && stream->kind != NON_BLOCKING)
        return false;
    if (stream->is_gone || stream->is_capturing || stream->users > 0 || context->syncs > 0)
        return false;
    return stream->kind == NON_BLOCKING || context->streams[0].users == 0;
}

struct stream *take_for_capture(struct thread *self, struct context *context)
{
    unsigned start = below(self, MAX_STREAMS);
    struct stream *found = NULL;

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 0; i < MAX_STREAMS && !found; i++) {
        struct stream *stream = &context->streams[(start + i) % MAX_STREAMS];

        if (can_capture(stream))
            found = stream;
    }
    if (found) {
        memset(&self->capture, 0, sizeof self->capture);
        self->capture.context = context;
        found->is_capturing = true;
        context->captures++;
        context->blocking_captures += found->kind == BLOCKING;
    }
    pthread_mutex_unlock(&attack.lock);
    return found;
}

void put_captured(struct stream *stream)
{
    pthread_mutex_lock(&attack.lock);
    stream->is_capturing = false;
    stream->context->captures--;
    stream->context->blocking_captures -= stream->kind == BLOCKING;
    pthread_mutex_unlock(&attack.lock);
}

CUstream handle_of(struct thread *self, const struct stream *stream)
{
    if (stream->kind == LEGACY)
        return chance(self, 50) ? NULL : CU_STREAM_LEGACY;
    return stream->kind == PER_THREAD ? CU_STREAM_PER_THREAD : stream->handle;
}

static struct stream *take_slot(struct context *context)
{
    struct stream *found = NULL;

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = MAX_THREADS + 1; i < MAX_STREAMS && !found; i++)
        if (context->streams[i].kind == NO_STREAM)
            found = &context->streams[i];
    if (found) {
        found->kind = NON_BLOCKING;
        found->is_gone = true; /* nobody uses it yet */
    }
    pthread_mutex_unlock(&attack.lock);
    return found;
}

static void open_stream(struct thread *self, struct context *context)
{
    struct stream *stream = take_slot(context);
    bool is_blocking = chance(self, 40);
    unsigned flags = is_blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;

    if (!stream)
        return;
    enter(self, context);
    if (chance(self, 30))
        WORKS(self, cuStreamCreateWithPriority(&stream->handle, flags, -1));
    else
        WORKS(self, cuStreamCreate(&stream->handle, flags));
    WORKS(self, cuEventCreate(&stream->event, CU_EVENT_DISABLE_TIMING));
    pthread_mutex_lock(&attack.lock);
    stream->context = context;
    stream->kind = is_blocking ? BLOCKING : NON_BLOCKING;
    stream->users = 0;
    stream->is_gone = false;
    pthread_mutex_unlock(&attack.lock);
    trace(self, "new %s stream %d of context %d", is_blocking ? "blocking" : "non-blocking",
          (int)(stream - context->streams), (int)(context - attack.contexts));
}

void make_stream(struct thread *self)
{
    open_stream(self, some_context(self));
}

static void close_stream(struct thread *self, struct stream *stream)
{
    enter(self, stream->context);
    trace(self, "end of stream %d of context %d", (int)(stream - stream->context->streams),
          (int)(stream->context - attack.contexts));
    WORKS(self, cuStreamDestroy(stream->handle));
}

/* Its work goes on, and blocks that were last used in it still refer to its event. */
void drop_stream(struct thread *self)
{
    struct stream *stream = take_stream(self, some_context(self));
    bool is_mine = false;

    pthread_mutex_lock(&attack.lock);
    stream->users--;
    if ((stream->kind == BLOCKING || stream->kind == NON_BLOCKING) && stream->users == 0)
        is_mine = stream->is_gone = true;
    pthread_mutex_unlock(&attack.lock);
    if (is_mine)
        close_stream(self, stream);
}

/* The legacy stream and one per thread, then a few more. */
void open_streams(struct thread *self, struct context *context)
{
    memset(context->streams, 0, sizeof context->streams);
    for (unsigned i = 0; i <= MAX_THREADS; i++) {
        struct stream *stream = &context->streams[i];

        stream->context = context;
        stream->kind = i == 0 ? LEGACY : PER_THREAD;
        stream->thread = i - 1;
        WORKS(self, cuEventCreate(&stream->event, CU_EVENT_DISABLE_TIMING));
    }
    for (unsigned i = 1 + below(self, 3); i > 0; i--)
        open_stream(self, context);
}

/* Nothing is going on any more, and no block refers to a stream. */
void tidy_streams(struct thread *self, struct context *context)
{
    enter(self, context);
    for (unsigned i = MAX_THREADS + 1; i < MAX_STREAMS; i++) {
        struct stream *stream = &context->streams[i];

        if (stream->kind == NO_STREAM)
            continue;
        if (!stream->is_gone && chance(self, 40)) {
            stream->is_gone = true;
            close_stream(self, stream);
        }
        if (!stream->is_gone)
            continue;
        WORKS(self, cuEventDestroy(stream->event));
        stream->kind = NO_STREAM;
    }
}

/* ---- what the host waits for ---- */

static void wait_for_stream(struct thread *self, struct context *context)
{
    struct stream *stream = take_stream(self, context);

    enter(self, context);
    trace(self, "waits for stream %d of context %d", (int)(stream - context->streams),
          (int)(context - attack.contexts));
    if (stream->kind == PER_THREAD && chance(self, 50))
        WORKS(self, cuStreamSynchronize_ptsz(NULL));
    else
        WORKS(self, cuStreamSynchronize(handle_of(self, stream)));
    put_stream(stream);
}

static void wait_for_context(struct thread *self, struct context *context)
{
    if (!begin_sync(context))
        return;
    trace(self, "waits for context %d", (int)(context - attack.contexts));
    if (cuCtxSynchronize_v2 && chance(self, 30)) {
        WORKS(self, cuCtxSynchronize_v2(context->handle));
    } else {
        enter(self, context);
        WORKS(self, cuCtxSynchronize());
    }
    end_sync(context);
}

static void ask_stream(struct thread *self, struct context *context)
{
    struct stream *stream = take_stream(self, context);
    CUresult code;

    enter(self, context);
    code = cuStreamQuery(handle_of(self, stream));
    if (code != CUDA_SUCCESS && code != CUDA_ERROR_NOT_READY)
        expect(self, code, CUDA_SUCCESS, "cuStreamQuery");
    put_stream(stream);
}

/* What a capture may forbid. The code of a question depends on time. */
static void use_event(struct thread *self, struct context *context, bool is_question)
{
    struct stream *stream = take_stream(self, context);
    struct guard guard;
    CUresult code;

    enter(self, context);
    guard = guard_begin(self);
    code = is_question ? cuEventQuery(stream->event) : note(cuEventSynchronize(stream->event));
    trace(self, "%s event of stream %d of context %d: %d", is_question ? "asks" : "waits for",
          (int)(stream - context->streams), (int)(context - attack.contexts), (int)code);
    if (guard_end(self, &guard, code, is_question ? "cuEventQuery" : "cuEventSynchronize") &&
        !(is_question && code == CUDA_ERROR_NOT_READY))
        expect(self, code, CUDA_SUCCESS, is_question ? "cuEventQuery" : "cuEventSynchronize");
    put_stream(stream);
}

void wait_for_all(struct thread *self)
{
    for (unsigned i = 0; i < MAX_CONTEXTS; i++)
        if (attack.contexts[i].is_alive)
            wait_for_context(self, &attack.contexts[i]);
}

void wait_for(struct thread *self)
{
    struct context *context = some_context(self);
    unsigned how = below(self, 100);

    if (how < 20)
        wait_for_stream(self, context);
    else if (how < 55)
        wait_for_context(self, context);
    else if (how < 65)
        wait_for_all(self);
    else if (how < 70)
        ask_stream(self, context);
    else
        use_event(self, context, how >= 85);
}
