/* SPDX-License-Identifier: MIT */
/* Stream captures in all modes, what may and may not be done beside them, and the graphs made so.
 *
 * Guarded by attack.lock: the captures of all threads, attack.captures, attack.global_starts. They
 * say who may make "potentially unsafe" calls: cuda.h, cuThreadExchangeStreamCaptureMode. When
 * threads run freely, a capture of another thread may begin and end during a call, and all
 * answers are right that were right at some moment of it.
 */
#include "attack.h"

/* ---- what is forbidden ---- */

static bool forbids_own(const struct thread *self)
{
    return self->capture.is_active && self->capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
}

static bool forbids_others(const struct thread *self, const struct thread *other)
{
    return other != self && other->capture.is_active &&
           other->capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           self->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

struct guard guard_begin(struct thread *self)
{
    struct guard guard = {0};

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 0; i < attack.nthreads; i++)
        guard.has_others |= forbids_others(self, &attack.threads[i]);
    guard.is_forbidden = forbids_own(self) || (guard.has_others && !is_loose());
    if (self->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        guard.is_forbidden = false;
    guard.is_uncertain = is_loose() && self->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    guard.starts = attack.global_starts;
    pthread_mutex_unlock(&attack.lock);
    return guard;
}

/* An illegal call breaks the captures that forbid it. */
static void break_captures(struct thread *self)
{
    attack.refused++;
    if (forbids_own(self))
        self->capture.is_broken = true;
    for (unsigned i = 0; i < attack.nthreads; i++)
        if (forbids_others(self, &attack.threads[i])) {
            attack.threads[i].capture.is_broken = !is_loose();
            attack.threads[i].capture.is_doubtful = true;
        }
}

bool guard_end(struct thread *self, const struct guard *guard, CUresult code, const char *what)
{
    bool may_be;

    if (code != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
        if (guard->is_forbidden)
            violated(self, "%s returned %d during a capture that forbids it, expected %d", what,
                     (int)code, (int)CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        return true;
    }
    pthread_mutex_lock(&attack.lock);
    may_be = guard->is_forbidden ||
             (guard->is_uncertain && (guard->has_others || guard->starts != attack.global_starts));
    if (!may_be)
        violated(self, "%s returned %d, but no capture forbids it", what, (int)code);
    break_captures(self);
    pthread_mutex_unlock(&attack.lock);
    return false;
}

/* ---- capturing ---- */

/* From before it begins until after it has ended. */
static void set_active(struct thread *self, bool is_active)
{
    pthread_mutex_lock(&attack.lock);
    self->capture.is_active = is_active;
    if (is_active) {
        attack.captures++;
        attack.starts++;
        attack.global_starts += self->capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    } else {
        attack.captures--;
        self->capture.context = NULL;
    }
    pthread_mutex_unlock(&attack.lock);
}

/* What a call on the captured stream, or the end of the capture, has to return. */
static void expect_captured(struct thread *self, CUresult code, const char *what)
{
    bool is_broken, is_doubtful;

    pthread_mutex_lock(&attack.lock);
    is_broken = self->capture.is_broken;
    is_doubtful = self->capture.is_doubtful ||
                  (is_loose() && self->capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    pthread_mutex_unlock(&attack.lock);
    if (code == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED && (is_broken || is_doubtful))
        return;
    if (code != CUDA_SUCCESS || is_broken)
        violated(self, "%s returned %d in a capture that %s", what, (int)code,
                 is_broken ? "was broken" : "nothing illegal has been done to");
}

/* In another mode a thread may do what its capture, and those of others, forbid. */
static void allocate_relaxed(struct thread *self)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    WORKS(self, cuThreadExchangeStreamCaptureMode(&mode));
    self->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    allocate(self);
    WORKS(self, cuThreadExchangeStreamCaptureMode(&mode));
    self->mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

/* Nobody can wait for what is not going to run; who tries breaks the capture, or, if he waits for
 * the context, all captures in it. */
static void wait_for_captured(struct thread *self, struct stream *stream, bool is_context)
{
    enter(self, stream->context);
    pthread_mutex_lock(&attack.lock);
    attack.refused++;
    stream->context->syncs++; /* no capture may begin now */
    for (unsigned i = 0; i < attack.nthreads && is_context; i++)
        if (attack.threads[i].capture.context == stream->context) {
            attack.threads[i].capture.is_broken |= !is_loose();
            attack.threads[i].capture.is_doubtful = true;
        }
    self->capture.is_broken = true;
    pthread_mutex_unlock(&attack.lock);
    trace(self, "waits for the captured %s", is_context ? "stream's context" : "stream");
    expect(self, note(is_context ? cuCtxSynchronize() : cuStreamSynchronize(stream->handle)),
           CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a wait for a captured stream");
    end_sync(stream->context);
}

static void meanwhile(struct thread *self, struct stream *stream)
{
    unsigned what = below(self, 100);
    struct block *block;

    if (what < 20)
        allocate(self);
    else if (what < 35)
        allocate_relaxed(self);
    else if (what < 50 && (block = take_block(self, NULL)))
        release(self, block);
    else if (what < 75 && (block = take_block(self, NULL))) {
        work(self, block);
        put_block(block);
    } else if (what < 85)
        wait_for(self);
    else if (what < 88)
        wait_for_captured(self, stream, chance(self, 50));
    pass_turn(self);
}

static void capture_work(struct thread *self, struct stream *stream, struct graph *graph)
{
    struct block *to = graph->blocks[1], *from = graph->blocks[0];
    size_t n = head_words(from) < head_words(to) ? head_words(from) : head_words(to);

    enter(self, stream->context);
    expect_captured(self, launch_fill(self, stream, from->address, graph->pattern, n),
                    "launch of fill");
    for (unsigned i = below(self, 3); i > 0; i--)
        meanwhile(self, stream);
    enter(self, stream->context);
    expect_captured(self, launch_copy(self, stream, to->address, from->address, n),
                    "launch of copy");
    expect_captured(self, launch_check(self, stream, to, to->address, graph->pattern, n),
                    "launch of check");
    for (unsigned i = below(self, 2); i > 0; i--)
        meanwhile(self, stream);
}

static void begin(struct thread *self, struct stream *stream)
{
    enter(self, stream->context);
    self->capture.mode = (CUstreamCaptureMode)below(self, 3);
    set_active(self, true);
    trace(self, "captures stream %d of context %d in mode %d",
          (int)(stream - stream->context->streams), (int)(stream->context - attack.contexts),
          (int)self->capture.mode);
    WORKS(self, cuStreamBeginCapture(stream->handle, self->capture.mode));
}

/* NULL if the capture was broken. */
static CUgraph end(struct thread *self, struct stream *stream)
{
    CUgraph result = NULL;

    enter(self, stream->context);
    expect_captured(self, note(cuStreamEndCapture(stream->handle, &result)), "cuStreamEndCapture");
    set_active(self, false);
    trace(self, "the capture ends");
    return result;
}

/* A call that waits for a context, and fails: nothing has been waited for. */
void wait_in_vain(struct thread *self)
{
    struct stream *stream = take_for_capture(self, some_context(self));

    if (!stream)
        return;
    begin(self, stream);
    wait_for_captured(self, stream, true);
    end(self, stream);
    put_captured(stream);
}

/* ---- graphs ---- */

/* Its blocks are taken. */
static void launch_graph(struct thread *self, struct graph *graph)
{
    struct stream *stream = take_stream(self, graph->context);

    follow(self, stream, graph->blocks[0]);
    follow(self, stream, graph->blocks[1]);
    WORKS(self, cuGraphLaunch(graph->exec, handle_of(self, stream)));
    stay(self, stream, graph->blocks[0]);
    graph->blocks[1]->home = stream;
    for (unsigned i = 0; i < 2; i++)
        graph->blocks[i]->head = 0; /* only the words that both have are known */
    trace(self, "launches the graph of blocks %u and %u in stream %d", graph->blocks[0]->serial,
          graph->blocks[1]->serial, (int)(stream - graph->context->streams));
    put_stream(stream);
}

static struct graph *take_slot(void)
{
    struct graph *found = NULL;

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 0; i < MAX_GRAPHS && !found; i++)
        if (!attack.graphs[i].exec && !attack.graphs[i].is_busy)
            found = &attack.graphs[i];
    if (found) {
        memset(found, 0, sizeof *found);
        found->is_busy = true;
    }
    pthread_mutex_unlock(&attack.lock);
    return found;
}

static void put_graph(struct graph *graph, bool has_users)
{
    pthread_mutex_lock(&attack.lock);
    graph->is_busy = false;
    for (unsigned i = 0; i < 2; i++) {
        graph->blocks[i]->users += has_users;
        graph->blocks[i]->is_busy = false;
    }
    pthread_mutex_unlock(&attack.lock);
}

static void capture_into(struct thread *self, struct stream *stream, struct graph *graph)
{
    CUgraph captured;

    begin(self, stream);
    capture_work(self, stream, graph);
    captured = end(self, stream);
    put_captured(stream);
    if (captured) {
        enter(self, graph->context);
        WORKS(self, cuGraphInstantiateWithFlags(&graph->exec, captured, 0));
        WORKS(self, cuGraphDestroy(captured));
        for (unsigned i = below(self, 3); i > 0; i--)
            launch_graph(self, graph);
    }
    put_graph(graph, captured != NULL);
}

void capture(struct thread *self)
{
    struct context *context = some_context(self);
    struct graph *graph = take_slot();
    struct stream *stream = NULL;

    if (!graph)
        return;
    graph->context = context;
    graph->blocks[0] = take_block(self, context);
    graph->blocks[1] = take_block(self, context);
    if (graph->blocks[0] && graph->blocks[1] && head_words(graph->blocks[0]) &&
        head_words(graph->blocks[1]))
        stream = take_for_capture(self, context);
    if (stream) {
        graph->pattern = new_pattern(graph->blocks[0]);
        capture_into(self, stream, graph);
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        if (graph->blocks[i])
            put_block(graph->blocks[i]);
    LOCKED(graph->is_busy = false);
}

static struct graph *take_graph(struct thread *self)
{
    unsigned start = below(self, MAX_GRAPHS);
    struct graph *found = NULL;

    pthread_mutex_lock(&attack.lock);
    for (unsigned i = 0; i < MAX_GRAPHS && !found; i++) {
        struct graph *graph = &attack.graphs[(start + i) % MAX_GRAPHS];

        if (graph->exec && !graph->is_busy && !graph->is_retired && !graph->blocks[0]->is_busy &&
            !graph->blocks[1]->is_busy)
            found = graph;
    }
    if (found)
        found->is_busy = found->blocks[0]->is_busy = found->blocks[1]->is_busy = true;
    pthread_mutex_unlock(&attack.lock);
    return found;
}

static void retire(struct graph *graph)
{
    graph->is_retired = true;
    graph->blocks[0]->users--;
    graph->blocks[1]->users--;
}

/* Once more, perhaps for the last time: then its blocks may be freed while it runs. */
void relaunch(struct thread *self)
{
    struct graph *graph = take_graph(self);

    if (!graph)
        return;
    launch_graph(self, graph);
    if (chance(self, 50)) {
        LOCKED(retire(graph));
    }
    put_graph(graph, false);
}

void drop_graphs(struct thread *self, struct context *context)
{
    for (unsigned i = 0; i < MAX_GRAPHS; i++) {
        struct graph *graph = &attack.graphs[i];

        if (!graph->exec || (context && graph->context != context))
            continue;
        if (!graph->is_retired)
            retire(graph);
        enter(self, graph->context);
        WORKS(self, cuGraphExecDestroy(graph->exec));
        graph->exec = NULL;
    }
}
