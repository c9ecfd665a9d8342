/* SPDX-License-Identifier: MIT */
/* What the driver waits for, and what that costs. See facts.h. */
#include "facts.h"

#include <pthread.h>

#define NOT_READY 600

#define MOST_TRIES 5

static void *kernel_stream, *second;
static cu_block block, target;
static void *pinned;
static size_t block_bytes;

/* A call while work runs that was submitted before. */
struct during {
    const char *name;
    void (*prepare)(void); /* or NULL: nothing */
    void *(*start)(void);  /* returns the event of the work's end */
    int (*call)(void);
};

/* Does it wait for that work? Said only where the work provably still ran when the call began, and,
 * if it had ended when the call returned, where the call took a good part of its time. Whose thread
 * was held up in between tries again. Returns what a synchronisation says afterwards.
 */
static int say_waits(const struct during *ask)
{
    const char *answer = NULL;
    int result = 0, synchronized = 0;
    uint64_t start, us = 0;

    for (int n = 0; n < MOST_TRIES && !answer && synchronized == 0; n++) {
        void *ended;
        int was_running;

        if (ask->prepare)
            ask->prepare();
        ended = ask->start();
        was_running = cu.query(ended) == NOT_READY;
        start = now_ns();
        result = ask->call();
        us = (now_ns() - start) / 1000;
        if (was_running && cu.query(ended) == NOT_READY)
            answer = "does not wait";
        else if (was_running && us >= SPIN_US / 4)
            answer = "waits";
        synchronized = cu.synchronize();
    }
    say("fact %s result %d, %s, %llu us", ask->name, result, answer ? answer : "not proven",
        (unsigned long long)us);
    return synchronized;
}

static void take_block(void)
{
    MUST(cu.alloc(&block, block_bytes));
}

static void take_pinned(void)
{
    MUST(cu.alloc_host(&pinned, 1 << 20, 0));
}

static void *run_kernel(void)
{
    return start_kernel(kernel_stream);
}

static int alloc_block(void)
{
    return cu.alloc(&block, block_bytes);
}

static int free_block(void)
{
    return cu.free_block(block);
}

static int free_pinned(void)
{
    return cu.free_host(pinned);
}

/* The first launch of a kernel loads it. */
static void begin_kernels(void)
{
    begin();
    kernel_stream = new_stream();
    MUST(cu_spin(&kernels, 1, kernel_stream));
    MUST(cu.synchronize());
}

static void ask_free_waits(void)
{
    static const struct {
        const char *name;
        size_t bytes;
    } sizes[] = {{"4KiB", 4096}, {"1MiB", 1 << 20}, {"64MiB", 64 << 20}};
    char name[64];

    begin_kernels();
    for (size_t i = 0; i < 3; i++) {
        block_bytes = sizes[i].bytes;
        snprintf(name, sizeof(name), "alloc-during-kernel-%s", sizes[i].name);
        MUST(say_waits(&(struct during){name, NULL, run_kernel, alloc_block}));
        snprintf(name, sizeof(name), "free-during-kernel-%s", sizes[i].name);
        MUST(say_waits(&(struct during){name, take_block, run_kernel, free_block}));
    }
    MUST(say_waits(
        &(struct during){"free-host-during-kernel", take_pinned, run_kernel, free_pinned}));
}

static void take_in_second(void)
{
    MUST(cu.set(second));
    MUST(cu.alloc(&block, 1 << 20));
    MUST(cu.alloc_host(&pinned, 1 << 20, 0));
    MUST(cu.set(context));
}

static int free_block_in_second(void)
{
    int result;

    MUST(cu.set(second));
    result = cu.free_block(block);
    MUST(cu.set(context));
    return result;
}

static int free_pinned_in_second(void)
{
    int result;

    MUST(cu.set(second));
    result = cu.free_host(pinned);
    MUST(cu.set(context));
    return result;
}

/* The kernel runs in one context, the block belongs to another. */
static void ask_other_context(void)
{
    begin_kernels();
    second = new_context();
    MUST(say_waits(&(struct during){"free-during-kernel-of-other-context", take_in_second,
                                    run_kernel, free_block_in_second}));
    MUST(say_waits(&(struct during){"free-host-during-kernel-of-other-context", take_in_second,
                                    run_kernel, free_pinned_in_second}));
}

static void *copy_behind_kernel(void)
{
    void *copied = new_event();

    MUST(cu_spin(&kernels, SPIN_US, kernel_stream));
    MUST(more.copy_peer(target, context, block, second, 1 << 20, kernel_stream));
    MUST(cu.record(copied, kernel_stream));
    return copied;
}

/* A copy that a stream of one context makes, behind a kernel, from a block of another. */
static void ask_peer_copy(void)
{
    begin_kernels();
    MUST(cu.alloc(&target, 1 << 20));
    second = new_context();
    take_in_second();
    MUST(more.copy_peer(target, context, block, second, 1 << 20, kernel_stream));
    MUST(cu.synchronize());
    say("fact synchronize-after-free-during-peer-copy %d",
        say_waits(&(struct during){"free-during-peer-copy-of-other-context", take_in_second,
                                   copy_behind_kernel, free_block_in_second}));
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

/* Two kernels run, of which the one in streams[longer] takes twice as long. Returns whether both
 * still did when their start was through.
 */
static int start_two(void *const *streams, int longer, void **ended)
{
    for (int i = 0; i < 2; i++) {
        ended[i] = new_event();
        MUST(cu_spin(&kernels, i == longer ? 2 * SPIN_US : SPIN_US, streams[i]));
        MUST(cu.record(ended[i], streams[i]));
    }
    return cu.query(ended[0]) == NOT_READY && cu.query(ended[1]) == NOT_READY;
}

static int wait_for_context(void *const *ended)
{
    (void)ended;
    MUST(cu.synchronize());
    return 1;
}

/* Returns whether the kernels still ran when the event was recorded. */
static int wait_for_context_event(void *const *ended)
{
    void *event = new_event();
    int were_running;

    MUST(cu.record_context(context, event));
    were_running = cu.query(ended[0]) == NOT_READY && cu.query(ended[1]) == NOT_READY;
    while (cu.query(event) == NOT_READY)
        usleep(1000);
    return were_running;
}

/* Does it wait for both streams, whichever takes longer? */
static const char *waits_for_both(int (*wait)(void *const *ended))
{
    void *streams[2] = {new_stream(), new_stream()}, *ended[2];
    int proven = 0;

    for (int i = 0; i < 2; i++)
        MUST(cu_spin(&kernels, 1, streams[i]));
    MUST(cu.synchronize());
    for (int n = 0; n < 2 * MOST_TRIES && proven < 2; n++) {
        int were_running = start_two(streams, proven, ended);
        uint64_t start = now_ns();

        were_running &= wait(ended);
        if (cu.query(ended[0]) == NOT_READY || cu.query(ended[1]) == NOT_READY)
            return "no";
        proven += were_running && (now_ns() - start) / 1000 >= SPIN_US / 4;
    }
    return proven == 2 ? "yes" : "not proven";
}

/* Does a wait, or an event, for a whole context see kernels in streams of the program? */
static void ask_whole_context(void)
{
    begin();
    say("fact synchronize-waits-for-all-streams %s", waits_for_both(wait_for_context));
    say("fact context-event-stands-for-all-streams %s",
        cu.record_context ? waits_for_both(wait_for_context_event) : "missing");
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

#define THREAD_LOCAL 1 /* of CUstreamCaptureMode */

static void *capture_stream;
static cu_block beside;
static pthread_t freeing;
static int is_freeing;

static void join_free(void)
{
    if (is_freeing)
        pthread_join(freeing, NULL);
    is_freeing = 0;
}

static void *free_elsewhere(void *unused)
{
    MUST(cu.set(context));
    MUST(cu.free_block(block));
    return unused;
}

static void take_after_free(void)
{
    join_free();
    take_block();
}

/* The other thread is in the driver's free by then, which waits for the kernel. */
static void *run_kernel_and_free(void)
{
    void *ended = run_kernel();

    is_freeing = pthread_create(&freeing, NULL, free_elsewhere, NULL) == 0;
    usleep(SPIN_US / 10);
    return ended;
}

static int record_now(void)
{
    return cu.record_context(context, second);
}

static int alloc_now(void)
{
    cu_block small;

    return cu.alloc(&small, 4096);
}

static int free_now(void)
{
    return cu.free_block(beside);
}

static int info_now(void)
{
    size_t unused[2];

    return cu.info(&unused[0], &unused[1]);
}

static int event_now(void)
{
    void *made;

    return cu.event(&made, NO_TIMING);
}

static int launch_now(void)
{
    return cu_spin(&kernels, 1, kernel_stream);
}

static int capture_now(void)
{
    void *graph;
    int result = cu.begin_capture(capture_stream, THREAD_LOCAL);

    return result != 0 ? result : cu.end_capture(capture_stream, &graph);
}

/* What other threads do while one is in the driver's free. */
static void ask_beside_free(void)
{
    static const struct {
        const char *name;
        int (*call)(void);
    } calls[] = {
        {"record-context-beside-a-free", record_now}, {"alloc-beside-a-free", alloc_now},
        {"free-of-4KiB-beside-a-free", free_now},     {"memory-info-beside-a-free", info_now},
        {"event-create-beside-a-free", event_now},    {"launch-beside-a-free", launch_now},
        {"capture-beside-a-free", capture_now}};

    begin_kernels();
    block_bytes = 64 << 20;
    second = new_event();
    capture_stream = new_stream();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        MUST(cu.alloc(&beside, 4096));
        if (calls[i].call == record_now && !cu.record_context)
            say("fact %s missing", calls[i].name);
        else
            MUST(say_waits(&(struct during){calls[i].name, take_after_free, run_kernel_and_free,
                                            calls[i].call}));
        join_free();
    }
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

static const struct subject subjects[] = {
    {"free-waits", ask_free_waits},       {"other-context", ask_other_context},
    {"peer-copy", ask_peer_copy},         {"no-context", ask_no_context},
    {"whole-context", ask_whole_context}, {"foreign-event", ask_foreign_event},
    {"beside-free", ask_beside_free},     {"costs", ask_costs},
};

int main(int argc, char **argv)
{
    return facts_main(argc, argv, subjects, sizeof(subjects) / sizeof(subjects[0]));
}
