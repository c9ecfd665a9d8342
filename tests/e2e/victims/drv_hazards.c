/* SPDX-License-Identifier: MIT */
/*
 * Ways in which a preloaded library has hung or crashed its programs: each child must end by
 * itself.
 *
 *   drv_hazards constructor PLUGIN    a thread's first call while another is inside dlopen, in
 *                                     PLUGIN's constructor, which calls CUDA too
 *   drv_hazards fork                  children of a process whose other threads allocate from many
 *                                     places
 *   drv_hazards signal                _exit in a handler that interrupts captures
 *   drv_hazards waits PLUGIN          PLUGIN's constructor waits for a thread that calls CUDA;
 *   drv_hazards waits PLUGIN again    after cuInit
 *   drv_hazards unloads OTHER PYTHON  two threads unload libraries at the same time, one of them an
 *                                     interpreter
 */
#include "victim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN     60
#define PATIENCE_SEC 600

static CUcontext context;
static _Atomic int is_done;

static void start(void)
{
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

static void take_and_give(void)
{
    CUdeviceptr block;

    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&block, 512));
    MUST(cuMemFree(block));
}

/* A stack of its own for each pattern of bits. */
static NOINLINE void take_from(unsigned bits, int left)
{
    if (left == 0)
        take_and_give();
    else if (bits & 1)
        take_from(bits >> 1, left - 1);
    else
        take_from(bits / 2, left - 1), (void)*(volatile unsigned *)&bits;
    __asm__ volatile(""); /* no tail call, and no merging of the two above */
}

static void *take_often(void *unused)
{
    for (unsigned i = 0; !atomic_load(&is_done); i++)
        take_from(i, 10);
    return unused;
}

/* 1 if all ended with this status in time. */
static int reap(pid_t child, int status)
{
    int got = 0;

    for (int i = 0; i < PATIENCE_SEC * 1000; i++) {
        if (waitpid(child, &got, WNOHANG) == child)
            return WIFEXITED(got) && WEXITSTATUS(got) == status;
        usleep(1000);
    }
    kill(child, SIGKILL);
    waitpid(child, &got, 0);
    return 0;
}

static void *start_and_take(void *barrier)
{
    pthread_barrier_wait(barrier);
    start();
    take_and_give();
    return NULL;
}

/* What many children come to that do this with `plugin`, and are to end with `status`. */
static int run_children(void (*child)(const char *plugin), const char *plugin, int status)
{
    int failed = 0;

    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();

        if (pid == 0)
            child(plugin);
        failed += !reap(pid, status);
    }
    say("children that failed %d", failed);
    return failed != 0;
}

/* Both threads' first calls, at the same moment. */
static void race_with_constructor(const char *plugin)
{
    pthread_barrier_t barrier;
    pthread_t thread;
    void *handle;

    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, start_and_take, &barrier);
    pthread_barrier_wait(&barrier);
    handle = dlopen(plugin, RTLD_NOW);
    pthread_join(thread, NULL);
    _exit(handle ? 5 : 6);
}

static void open_library(const char *unused)
{
    (void)unused;
    _exit(dlopen("libm.so.6", RTLD_NOW) ? 5 : 6);
}

static int run_fork(void)
{
    pthread_t thread;
    int failed;

    start();
    pthread_create(&thread, NULL, take_often, NULL);
    failed = run_children(open_library, NULL, 5);
    atomic_store(&is_done, 1);
    pthread_join(thread, NULL);
    return failed;
}

static void leave(int signal)
{
    (void)signal;
    _exit(7);
}

static void capture_until_interrupted(const char *unused)
{
    struct itimerval timer = {.it_value = {.tv_usec = 2000 + getpid() % 997}};
    CUstream stream;
    CUgraph graph;

    (void)unused;
    start();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (;;) {
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphDestroy(graph));
    }
}

static NOINLINE void leave_block(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, 512));
}

static NOINLINE int run_waits(const char *plugin, int is_again)
{
    void *handle;

    alarm(PATIENCE_SEC);
    if (is_again)
        MUST(cuInit(0));
    handle = dlopen(plugin, RTLD_NOW);
    start();
    leave_block();
    say("the plug-in is %s", handle != NULL ? "there" : dlerror());
    return handle == NULL;
}

/* ---- two unloadings ---- */

static _Atomic int is_in_first, is_first_over;

static void wait_for(_Atomic int *it)
{
    while (!atomic_load(it))
        usleep(1000);
}

/* By then the second is on its way to the loader's lock, which this one holds. */
static void in_first(void)
{
    atomic_store(&is_in_first, 1);
    usleep(300000);
}

static void in_second(void)
{
    wait_for(&is_first_over);
}

static void *unload_second(void *python)
{
    wait_for(&is_in_first);
    return dlclose(python) == 0 ? NULL : python;
}

static void *open_to_unload(const char *name, void (*at_unload)(void))
{
    void *handle = dlopen(name, RTLD_NOW);
    void (**hook)(void) = handle != NULL ? dlsym(handle, "at_unload") : NULL;

    if (hook == NULL)
        say("no %s", name);
    else
        *hook = at_unload;
    return handle;
}

static int run_unloads(const char *first, const char *second)
{
    void *other = open_to_unload(first, in_first), *python = open_to_unload(second, in_second);
    CUdeviceptr block;
    pthread_t thread;

    start();
    MUST(cuMemAlloc(&block, 512));
    pthread_create(&thread, NULL, unload_second, python);
    say("closed: %d", dlclose(other));
    atomic_store(&is_first_over, 1);
    pthread_join(thread, NULL);
    MUST(cuMemFree(block));
    take_and_give();
    say("freed");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "waits") == 0)
        return run_waits(argv[2], argc > 3);
    if (argc > 3 && strcmp(argv[1], "unloads") == 0)
        return run_unloads(argv[2], argv[3]);
    if (argc > 2 && strcmp(argv[1], "constructor") == 0)
        return run_children(race_with_constructor, argv[2], 5);
    if (argc > 1 && strcmp(argv[1], "fork") == 0)
        return run_fork();
    return argc > 1 && strcmp(argv[1], "signal") == 0
               ? run_children(capture_until_interrupted, NULL, 7)
               : 2;
}
