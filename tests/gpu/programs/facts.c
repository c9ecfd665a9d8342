/* SPDX-License-Identifier: MIT */
/* What the driver waits for, what that costs, and what it does during captures. See facts.h. */
#include "facts.h"

#include <pthread.h>

#define NOT_READY         600
#define POINTER_BUFFER_ID 7

/* What a call cost that began while a kernel ran, and whether the kernel had ended when it
 * returned.
 */
static void say_waits(const char *name, int result, uint64_t start, void *ended)
{
    uint64_t us = (now_ns() - start) / 1000;

    say("fact %s result %d, %s, %llu us", name, result,
        cu.query(ended) == 0 ? "waits" : "does not wait", (unsigned long long)us);
}

static void ask_free_waits(void)
{
    static const struct {
        const char *name;
        size_t bytes;
    } sizes[] = {{"4KiB", 4096}, {"1MiB", 1 << 20}, {"64MiB", 64 << 20}};
    char name[64];
    void *stream, *ended, *pinned;
    cu_block block;
    uint64_t start;
    int result;

    begin();
    stream = new_stream();
    MUST(cu_spin(&kernels, 1, stream));
    MUST(cu.synchronize());
    for (size_t i = 0; i < 3; i++) {
        ended = start_kernel(stream);
        start = now_ns();
        result = cu.alloc(&block, sizes[i].bytes);
        snprintf(name, sizeof(name), "alloc-during-kernel-%s", sizes[i].name);
        say_waits(name, result, start, ended);
        MUST(cu.synchronize());
        ended = start_kernel(stream);
        start = now_ns();
        result = cu.free_block(block);
        snprintf(name, sizeof(name), "free-during-kernel-%s", sizes[i].name);
        say_waits(name, result, start, ended);
        MUST(cu.synchronize());
    }
    MUST(cu.alloc_host(&pinned, 1 << 20, 0));
    ended = start_kernel(stream);
    start = now_ns();
    result = cu.free_host(pinned);
    say_waits("free-host-during-kernel", result, start, ended);
    MUST(cu.synchronize());
}

/* The kernel runs in one context, the block belongs to another. */
static void ask_other_context(void)
{
    void *second, *stream, *ended, *pinned;
    cu_block block;
    uint64_t start;
    int result;

    begin();
    stream = new_stream();
    MUST(cu_spin(&kernels, 1, stream));
    MUST(cu.synchronize());
    second = new_context();
    MUST(cu.alloc(&block, 1 << 20));
    MUST(cu.alloc_host(&pinned, 1 << 20, 0));
    MUST(cu.set(context));
    ended = start_kernel(stream);
    MUST(cu.set(second));
    start = now_ns();
    result = cu.free_block(block);
    MUST(cu.set(context));
    say_waits("free-during-kernel-of-other-context", result, start, ended);
    MUST(cu.synchronize());
    ended = start_kernel(stream);
    MUST(cu.set(second));
    start = now_ns();
    result = cu.free_host(pinned);
    MUST(cu.set(context));
    say_waits("free-host-during-kernel-of-other-context", result, start, ended);
}

/* A copy that a stream of one context makes, behind a kernel, from a block of another. */
static void ask_peer_copy(void)
{
    void *second, *stream, *copied;
    cu_block from, to;
    uint64_t start;
    int result;

    begin();
    stream = new_stream();
    MUST(cu.alloc(&to, 1 << 20));
    copied = new_event();
    second = new_context();
    MUST(cu.alloc(&from, 1 << 20));
    MUST(cu.set(context));
    MUST(more.copy_peer(to, context, from, second, 1 << 20, stream));
    MUST(cu.synchronize());
    MUST(cu_spin(&kernels, SPIN_US, stream));
    MUST(more.copy_peer(to, context, from, second, 1 << 20, stream));
    MUST(cu.record(copied, stream));
    MUST(cu.set(second));
    start = now_ns();
    result = cu.free_block(from);
    MUST(cu.set(context));
    say_waits("free-during-peer-copy-of-other-context", result, start, copied);
    say("fact synchronize-after-free-during-peer-copy %d", cu.synchronize());
}

static void ask_no_context(void)
{
    cu_block block;
    int result;

    begin();
    say("fact free-of-0 %d", cu.free_block(0));
    MUST(cu.alloc(&block, 4096));
    MUST(cu.set(NULL));
    result = cu.free_block(block);
    say("fact free-without-context %d", result);
    say("fact free-of-0-without-context %d", cu.free_block(0));
}

/* Does a wait, or an event, for a whole context see kernels in streams of the program? */
static void ask_whole_context(void)
{
    void *streams[2], *ended[2], *event;

    begin();
    event = new_event();
    for (int i = 0; i < 2; i++) {
        streams[i] = new_stream();
        MUST(cu_spin(&kernels, 1, streams[i]));
    }
    MUST(cu.synchronize());
    for (int i = 0; i < 2; i++)
        ended[i] = start_kernel(streams[i]);
    MUST(cu.synchronize());
    say("fact synchronize-waits-for-all-streams %s",
        cu.query(ended[0]) == 0 && cu.query(ended[1]) == 0 ? "yes" : "no");
    if (!cu.record_context) {
        say("fact context-event-stands-for-all-streams missing");
        return;
    }
    for (int i = 0; i < 2; i++)
        ended[i] = start_kernel(streams[i]);
    MUST(cu.record_context(context, event));
    while (cu.query(event) == NOT_READY)
        usleep(1000);
    say("fact context-event-stands-for-all-streams %s",
        cu.query(ended[0]) == 0 && cu.query(ended[1]) == 0 ? "yes" : "no");
}

/* The second context is current. */
static void ask_ids(void *second)
{
    unsigned long long id = 0, id_second = 0;
    void *current = second;
    int result;

    if (!more.id)
        return;
    result = more.id(context, &id);
    MUST(more.id(second, &id_second));
    say("fact context-id-of-one-not-current %d, %s", result,
        id != id_second ? "two ids" : "one id");
    result = more.id(NULL, &id);
    say("fact context-id-of-the-current-one %d, %s", result,
        id == id_second ? "the same" : "another");
    while (current) { /* one lay below the other */
        MUST(cu.set(NULL));
        MUST(cu.current(&current));
    }
    say("fact context-id-of-none %d", more.id(NULL, &id));
    MUST(cu.set(second));
}

/* How cuwarden uses an event of a context: from threads where another is current, or none. */
static void ask_foreign_event(void)
{
    void *second, *stream, *event;

    begin();
    stream = new_stream();
    event = new_event();
    MUST(cu_spin(&kernels, 1, stream));
    MUST(cu.synchronize());
    second = new_context();
    ask_ids(second);
    if (!cu.record_context) {
        say("fact record-context-of-one-not-current missing");
        return;
    }
    MUST(cu.set(context));
    MUST(cu_spin(&kernels, SPIN_US, stream));
    MUST(cu.set(second));
    say("fact record-context-of-one-not-current %d", cu.record_context(context, event));
    say("fact query-event-of-one-not-current %d", cu.query(event));
    MUST(cu.set(NULL));
    say("fact query-event-with-no-context %d", cu.query(event));
    while (cu.query(event) == NOT_READY)
        usleep(1000);
    say("fact query-event-with-no-context-at-the-end %d", cu.query(event));
}

#define LOOPS 1000

static void ask_costs(void)
{
    static const int counts[] = {1, 16, 256};
    void *event;
    int made = 0;
    uint64_t start;

    begin();
    event = new_event();
    for (size_t i = 0; i < 3; i++) {
        for (; made < counts[i]; made++)
            MUST(cu_spin(&kernels, 1, new_stream()));
        MUST(cu.synchronize());
        start = now_ns();
        for (int n = 0; n < LOOPS; n++)
            MUST(cu.synchronize());
        say("fact synchronize-idle-ns-%d-streams %llu", counts[i],
            (unsigned long long)((now_ns() - start) / LOOPS));
        if (!cu.record_context) {
            say("fact record-context-ns-%d-streams missing", counts[i]);
            continue;
        }
        start = now_ns();
        for (int n = 0; n < LOOPS; n++)
            MUST(cu.record_context(context, event));
        say("fact record-context-ns-%d-streams %llu", counts[i],
            (unsigned long long)((now_ns() - start) / LOOPS));
        MUST(cu.synchronize());
    }
}

static cu_block captured_block, kept_block;
static void *captured_pinned, *captured_other, *idle_event, *idle_stream;

static int try_alloc(void)
{
    return cu.alloc(&captured_block, 4096);
}

static int try_free(void)
{
    return cu.free_block(kept_block);
}

static int try_free_0(void)
{
    return cu.free_block(0);
}

static int try_free_host(void)
{
    return cu.free_host(captured_pinned);
}

static int try_info(void)
{
    size_t available, total;

    return cu.info(&available, &total);
}

static int try_record_context(void)
{
    return cu.record_context ? cu.record_context(context, idle_event) : -1;
}

static int try_query(void)
{
    return cu.query(idle_event);
}

static int try_wait_stream(void)
{
    return cu.wait_stream(idle_stream);
}

static int try_synchronize(void)
{
    return cu.synchronize();
}

static int try_free_of_nobody(void)
{
    return cu.free_block(1);
}

static int try_alloc_host(void)
{
    return cu.alloc_host(&captured_other, 4096, 0);
}

static int try_current(void)
{
    void *found;

    return cu.current(&found);
}

static int try_current_device(void)
{
    int device;

    return more.current_device(&device);
}

static int try_id(void)
{
    unsigned long long id;

    return more.id ? more.id(context, &id) : -1;
}

static int try_range(void)
{
    cu_block base;
    size_t bytes;

    return cu.range(&base, &bytes, kept_block);
}

static int try_pointer(void)
{
    unsigned long long id;

    return cu.pointer(&id, POINTER_BUFFER_ID, kept_block);
}

/* Another thread, with the same context current. */
static void *alloc_elsewhere(void *result)
{
    *(int *)result = cu.set(context);
    if (*(int *)result == 0)
        *(int *)result = cu.alloc(&captured_block, 4096);
    return NULL;
}

static int try_alloc_elsewhere(void)
{
    pthread_t thread;
    int result = -1;

    if (pthread_create(&thread, NULL, alloc_elsewhere, &result) == 0)
        pthread_join(thread, NULL);
    return result;
}

static const struct {
    const char *name;
    int (*call)(void);
} tries[] = {
    {"cuMemAlloc", try_alloc},
    {"cuMemFree", try_free},
    {"cuMemFree-of-0", try_free_0},
    {"cuMemFree-of-nobodys", try_free_of_nobody},
    {"cuMemFreeHost", try_free_host},
    {"cuMemHostAlloc", try_alloc_host},
    {"cuMemGetInfo", try_info},
    {"cuCtxRecordEvent", try_record_context},
    {"cuCtxSynchronize", try_synchronize},
    {"cuEventQuery", try_query},
    {"cuStreamSynchronize-of-another", try_wait_stream},
    {"cuCtxGetCurrent", try_current},
    {"cuCtxGetDevice", try_current_device},
    {"cuCtxGetId", try_id},
    {"cuMemGetAddressRange", try_range},
    {"cuPointerGetAttribute", try_pointer},
    {"cuMemAlloc-in-another-thread", try_alloc_elsewhere},
};

static void try_in(int mode, const char *mode_name, size_t n)
{
    void *stream = new_stream(), *graph = NULL;
    cu_block base;
    size_t bytes;
    int result, ended;

    MUST(cu.alloc(&kept_block, 4096));
    MUST(cu.alloc_host(&captured_pinned, 4096, 0));
    MUST(cu.begin_capture(stream, mode));
    result = tries[n].call();
    ended = cu.end_capture(stream, &graph);
    say("fact capture-%s-%s %d, end of the capture %d, the block is %s", mode_name, tries[n].name,
        result, ended, cu.range(&base, &bytes, kept_block) == 0 ? "there" : "gone");
    if (graph)
        cu.end_graph(graph);
    cu.end_stream(stream);
}

static void ask_captures(int mode, const char *mode_name)
{
    begin();
    idle_event = new_event();
    idle_stream = new_stream();
    MUST(cu.record(idle_event, idle_stream));
    MUST(cu.synchronize());
    for (size_t n = 0; n < sizeof(tries) / sizeof(tries[0]); n++)
        try_in(mode, mode_name, n);
}

static void ask_global_captures(void)
{
    ask_captures(0, "global");
}

static void ask_thread_local_captures(void)
{
    ask_captures(1, "thread-local");
}

static void ask_relaxed_captures(void)
{
    ask_captures(2, "relaxed");
}

static const struct subject subjects[] = {
    {"free-waits", ask_free_waits},
    {"other-context", ask_other_context},
    {"peer-copy", ask_peer_copy},
    {"no-context", ask_no_context},
    {"whole-context", ask_whole_context},
    {"foreign-event", ask_foreign_event},
    {"costs", ask_costs},
    {"global-captures", ask_global_captures},
    {"thread-local-captures", ask_thread_local_captures},
    {"relaxed-captures", ask_relaxed_captures},
};

int main(int argc, char **argv)
{
    return facts_main(argc, argv, subjects, sizeof(subjects) / sizeof(subjects[0]));
}
