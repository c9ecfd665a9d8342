/* SPDX-License-Identifier: MIT */
/* What the driver answers while a stream captures, in each mode, and whether the capture survives.
 * See facts.h. */
#include "facts.h"

#include <pthread.h>

#define POINTER_BUFFER_ID 7

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

struct elsewhere {
    int (*call)(void);
    int result;
};

/* Another thread, with the same context current. */
static void *call_elsewhere(void *data)
{
    struct elsewhere *elsewhere = data;

    elsewhere->result = cu.set(context);
    if (elsewhere->result == 0)
        elsewhere->result = elsewhere->call();
    return NULL;
}

static int try_elsewhere(int (*call)(void))
{
    struct elsewhere elsewhere = {call, -1};
    pthread_t thread;

    if (pthread_create(&thread, NULL, call_elsewhere, &elsewhere) == 0)
        pthread_join(thread, NULL);
    return elsewhere.result;
}

static int (*relaxed_call)(void);

/* In a thread whose own mode is CU_STREAM_CAPTURE_MODE_RELAXED meanwhile. */
static int call_relaxed(void)
{
    int mode = 2, result;

    if (more.exchange_mode(&mode) != 0)
        return -1;
    result = relaxed_call();
    more.exchange_mode(&mode);
    return result;
}

static int try_alloc_elsewhere(void)
{
    return try_elsewhere(try_alloc);
}

static int try_free_elsewhere(void)
{
    return try_elsewhere(try_free);
}

static int try_query_elsewhere(void)
{
    return try_elsewhere(try_query);
}

static int try_record_elsewhere(void)
{
    return try_elsewhere(try_record_context);
}

static int try_relaxed_elsewhere(int (*call)(void))
{
    relaxed_call = call;
    return try_elsewhere(call_relaxed);
}

static int try_alloc_relaxed(void)
{
    return try_relaxed_elsewhere(try_alloc);
}

static int try_free_relaxed(void)
{
    return try_relaxed_elsewhere(try_free);
}

static int try_query_relaxed(void)
{
    return try_relaxed_elsewhere(try_query);
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
    {"cuMemFree-in-another-thread", try_free_elsewhere},
    {"cuEventQuery-in-another-thread", try_query_elsewhere},
    {"cuCtxRecordEvent-in-another-thread", try_record_elsewhere},
    {"cuMemAlloc-in-a-relaxed-thread", try_alloc_relaxed},
    {"cuMemFree-in-a-relaxed-thread", try_free_relaxed},
    {"cuEventQuery-in-a-relaxed-thread", try_query_relaxed},
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
    {"global-captures", ask_global_captures},
    {"thread-local-captures", ask_thread_local_captures},
    {"relaxed-captures", ask_relaxed_captures},
};

int main(int argc, char **argv)
{
    return facts_main(argc, argv, subjects, sizeof(subjects) / sizeof(subjects[0]));
}
