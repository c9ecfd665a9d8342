/* SPDX-License-Identifier: MIT */
/*
 * What no document says of the driver, and cuwarden relies on or would like to know: asks it, and
 * prints "fact NAME VALUE" for each answer; numbers alone are result codes of the driver. Each
 * subject is a process of its own, since some break their context. `facts SUBJECT` is that process.
 * Built with a C compiler alone. Run without the library.
 */
#include "cu.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define NON_BLOCKING 1
#define NO_TIMING    2
#define SPIN_US      100000
#define LIMIT_S      10

static void *context;
static struct cu_kernels kernels;

static void begin(void)
{
    context = cu_begin();
    kernels = cu_load_kernels();
}

static void *new_stream(void)
{
    void *stream;

    MUST(cu.stream(&stream, NON_BLOCKING));
    return stream;
}

static void *new_event(void)
{
    void *event;

    MUST(cu.event(&event, NO_TIMING));
    return event;
}

/* What a call cost that began while a kernel ran, and whether the kernel had ended when it
 * returned.
 */
static void say_waits(const char *name, int result, uint64_t start, void *ended)
{
    uint64_t us = (now_ns() - start) / 1000;

    say("fact %s result %d, %s, %llu us", name, result,
        cu.query(ended) == 0 ? "waits" : "does not wait", (unsigned long long)us);
}

/* Starts a kernel in `stream`; the event is that of its end. */
static void *start_kernel(void *stream)
{
    void *ended = new_event();

    MUST(cu_spin(&kernels, SPIN_US, stream));
    MUST(cu.record(ended, stream));
    return ended;
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
    int device, result;

    begin();
    stream = new_stream();
    MUST(cu_spin(&kernels, 1, stream));
    MUST(cu.synchronize());
    MUST(cu.device(&device, 0));
    MUST(cu.create(&second, 0, device));
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
static void *captured_pinned, *idle_event, *idle_stream;

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

static const struct {
    const char *name;
    int (*call)(void);
} tries[] = {
    {"cuMemAlloc", try_alloc},
    {"cuMemFree", try_free},
    {"cuMemFree-of-0", try_free_0},
    {"cuMemFreeHost", try_free_host},
    {"cuMemGetInfo", try_info},
    {"cuCtxRecordEvent", try_record_context},
    {"cuCtxSynchronize", try_synchronize},
    {"cuEventQuery", try_query},
    {"cuStreamSynchronize-of-another", try_wait_stream},
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

static void ask_captures(void)
{
    static const char *const modes[] = {"global", "thread-local", "relaxed"};

    begin();
    idle_event = new_event();
    idle_stream = new_stream();
    MUST(cu.record(idle_event, idle_stream));
    MUST(cu.synchronize());
    for (int mode = 0; mode < 3; mode++)
        for (size_t n = 0; n < sizeof(tries) / sizeof(tries[0]); n++)
            try_in(mode, modes[mode], n);
}

static int proc_address(const char *name, void **found)
{
    int (*second)(const char *, void **, int, uint64_t, int *);
    int (*first)(const char *, void **, int, uint64_t);
    int answer = -1;

    *(void **)&second = dlsym(cu_library, "cuGetProcAddress_v2");
    if (second)
        return second(name, found, 12000, 0, &answer);
    *(void **)&first = dlsym(cu_library, "cuGetProcAddress");
    return first ? first(name, found, 11030, 0) : -1;
}

static void ask_addresses(void)
{
    static const char *const names[][2] = {
        {"cuMemAlloc", "cuMemAlloc_v2"},          {"cuMemFree", "cuMemFree_v2"},
        {"cuMemGetInfo", "cuMemGetInfo_v2"},      {"cuLaunchKernel", "cuLaunchKernel"},
        {"cuMemHostAlloc", "cuMemHostAlloc"},     {"cuEventRecord", "cuEventRecord"},
        {"cuCtxSynchronize", "cuCtxSynchronize"}, {"cuCtxSetCurrent", "cuCtxSetCurrent"},
    };
    void *found;
    int result, same = 0;

    begin();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        found = NULL;
        result = proc_address(names[i][0], &found);
        if (result == 0 && found && found == dlsym(cu_library, names[i][1]))
            same++;
        else
            say("fact address-of-%s %s", names[i][0], found ? "differs from dlsym's" : "none");
    }
    say("fact addresses-as-from-dlsym %d of %zu", same, sizeof(names) / sizeof(names[0]));
    found = &found;
    result = proc_address("cuNoSuchFunction", &found);
    say("fact address-of-unknown %d, pointer %s", result,
        !found            ? "null"
        : found == &found ? "untouched"
                          : "set");
    found = &found;
    result = proc_address("", &found);
    say("fact address-of-empty %d, pointer %s", result,
        !found            ? "null"
        : found == &found ? "untouched"
                          : "set");
}

static void ask_fork(void)
{
    cu_block block;
    void *current;
    int status;
    pid_t child;

    begin();
    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(LIMIT_S / 2);
        say("fact forked-child-current-context %d", cu.current(&current));
        say("fact forked-child-alloc %d", cu.alloc(&block, 4096));
        say("fact forked-child-init %d", cu.init(0));
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        say("fact forked-child-signal %d", WTERMSIG(status));
}

static void at_exit(void)
{
    cu_block block;

    say("fact exit-handler-alloc %d", cu.alloc(&block, 4096));
}

static int asked_exit;

static void __attribute__((destructor)) at_end(void)
{
    size_t available, total;

    if (asked_exit)
        say("fact destructor-of-program %d", cu.info(&available, &total));
}

static void ask_exit(void)
{
    asked_exit = 1;
    atexit(at_exit);
    begin();
}

static int zeros(cu_block block, size_t bytes)
{
    char *copy = calloc(1, bytes);
    int clean = 1;

    if (!copy)
        return -1;
    memset(copy, 1, bytes);
    MUST(cu.to_host(copy, block, bytes));
    for (size_t i = 0; i < bytes && clean; i++)
        clean = copy[i] == 0;
    free(copy);
    return clean;
}

#define PIECE ((size_t)16 << 20)

static void ask_zero(void)
{
    cu_block first, again;

    begin();
    MUST(cu.alloc(&first, PIECE));
    say("fact fresh-block-is-zero %s", zeros(first, PIECE) ? "yes" : "no");
    MUST(cu.set_bytes(first, 0x5a, PIECE));
    MUST(cu.synchronize());
    MUST(cu.free_block(first));
    MUST(cu.alloc(&again, PIECE));
    say("fact block-after-free-is-zero %s, %s address", zeros(again, PIECE) ? "yes" : "no",
        first == again ? "the same" : "another");
}

#define POINTER_BUFFER_ID 7

static void ask_identity(void)
{
    unsigned long long id = 0, id_again = 0;
    struct cu_ipc handle, handle_again;
    int shared, shared_again;
    cu_block first, again;

    begin();
    memset(&handle, 0, sizeof(handle));
    memset(&handle_again, 0, sizeof(handle_again));
    MUST(cu.alloc(&first, PIECE));
    MUST(cu.pointer(&id, POINTER_BUFFER_ID, first));
    shared = cu.ipc(&handle, first);
    MUST(cu.free_block(first));
    MUST(cu.alloc(&again, PIECE));
    MUST(cu.pointer(&id_again, POINTER_BUFFER_ID, again));
    shared_again = cu.ipc(&handle_again, again);
    say("fact reused-block-address %s", first == again ? "the same" : "another");
    say("fact reused-block-buffer-id %s", id == id_again ? "the same" : "another");
    if (shared || shared_again)
        say("fact reused-block-ipc-handle none, results %d and %d", shared, shared_again);
    else
        say("fact reused-block-ipc-handle %s",
            memcmp(&handle, &handle_again, sizeof(handle)) ? "another" : "the same");
}

static void ask_reset(void)
{
    cu_block block;
    void *fresh;
    int device, retained;

    begin();
    MUST(cu.device(&device, 0));
    MUST(cu_fill(&kernels, 0x10, 1, 64, NULL));
    say("fact wild-write-synchronize %d", cu.synchronize());
    say("fact wild-write-alloc %d", cu.alloc(&block, 4096));
    say("fact reset-after-wild-write %d", cu.reset(device));
    retained = cu.retain(&fresh, device);
    say("fact retain-after-reset %d", retained);
    if (retained != 0)
        return;
    say("fact set-after-reset %d", cu.set(fresh));
    say("fact alloc-after-reset %d", cu.alloc(&block, 4096));
}

static const struct {
    const char *name;
    void (*ask)(void);
} subjects[] = {
    {"free-waits", ask_free_waits},
    {"other-context", ask_other_context},
    {"no-context", ask_no_context},
    {"costs", ask_costs},
    {"captures", ask_captures},
    {"addresses", ask_addresses},
    {"fork", ask_fork},
    {"exit", ask_exit},
    {"zero", ask_zero},
    {"identity", ask_identity},
    {"reset", ask_reset},
};

/* Whatever becomes of it, the others are asked. */
static int run_subject(const char *self, const char *name)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        alarm(LIMIT_S);
        execl(self, self, name, (char *)NULL);
        _exit(98);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    if (WIFSIGNALED(status))
        say("fact %s-unfinished %s", name,
            WTERMSIG(status) == SIGALRM ? "gave up" : strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        say("fact %s-unfinished exit status %d", name, WEXITSTATUS(status));
    return status != 0;
}

int main(int argc, char **argv)
{
    int unfinished = 0;

    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        if (argc < 2)
            unfinished += run_subject("/proc/self/exe", subjects[i].name);
        else if (strcmp(argv[1], subjects[i].name) == 0) {
            subjects[i].ask();
            return 0;
        }
    }
    if (argc > 1) {
        fprintf(stderr, "facts: there is no subject %s\n", argv[1]);
        return 2;
    }
    return unfinished != 0;
}
