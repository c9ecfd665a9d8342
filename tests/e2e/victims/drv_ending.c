/* SPDX-License-Identifier: MIT */
/*
 * Ends as its arguments say; what it leaks on the way, and whether that is known in time to be
 * reported, it says itself.
 */
#include "leak.h"
#include "in_thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static CUcontext context;
static CUdeviceptr block_of_main;
static pthread_key_t key;
static _Atomic int is_busy;

/* ---- handlers ---- */

static void free_and_leak(void)
{
    MUST(cuMemFree(block_of_main));
    leak(70);
    block_of_main = 0;
}

static void exit_again(void)
{
    exit(41);
}

static void exit_at_once(void)
{
    leak(5);
    _exit(42);
}

/* ---- threads ---- */

static void *allocate_for_ever(void *unused)
{
    CUdeviceptr block;

    if (cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return unused;
    for (;;) {
        if (cuMemAlloc(&block, 512) != CUDA_SUCCESS)
            continue;
        atomic_store(&is_busy, 1);
        cuMemFree(block);
    }
}

static void start_busy_thread(int is_detached)
{
    pthread_t thread;

    pthread_create(&thread, NULL, allocate_for_ever, NULL);
    if (is_detached)
        pthread_detach(thread);
    while (!atomic_load(&is_busy))
        usleep(100);
}

static int end_detached(void)
{
    for (int i = 0; i < 3; i++)
        start_busy_thread(1);
    return 31;
}

static void *exit_here(void *unused)
{
    while (!atomic_load(&is_busy))
        usleep(100);
    exit(unused ? 33 : 32);
}

static int end_from_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, exit_here, NULL);
    allocate_for_ever(NULL);
    return 1;
}

static void *outlive_main(void *main_thread)
{
    pthread_join(*(pthread_t *)main_thread, NULL);
    MUST(cuCtxSetCurrent(context));
    leak(40);
    return NULL;
}

static int __attribute__((noreturn)) end_main_first(void)
{
    static pthread_t self;
    pthread_t thread;

    self = pthread_self();
    pthread_create(&thread, NULL, outlive_main, &self);
    pthread_exit(NULL);
}

static void leak_at_thread_end(void *times)
{
    leak(30);
    if (--*(int *)times > 0)
        pthread_setspecific(key, times);
}

static void *set_and_end(void *times)
{
    MUST(cuCtxSetCurrent(context));
    pthread_setspecific(key, times);
    leak(2);
    return NULL;
}

/* Each thread's destructor calls CUDA three times over. */
static int end_thread_keys(void)
{
    for (int i = 0; i < 20; i++) {
        int times = 3;

        in_thread(set_and_end, &times);
    }
    return 33;
}

static void *cancel_point(void *unused)
{
    CUdeviceptr block;

    MUST(cuCtxSetCurrent(context));
    while (unused == NULL) {
        MUST(cuMemAlloc(&block, 512));
        MUST(cuMemFree(block));
        atomic_store(&is_busy, 1);
        pthread_testcancel();
    }
    return NULL;
}

static int end_cancel(void)
{
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        void *result;

        atomic_store(&is_busy, 0);
        pthread_create(&thread, NULL, cancel_point, NULL);
        while (!atomic_load(&is_busy))
            usleep(10);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED)
            return 1;
    }
    return 34;
}

static void *start_cancelled(void *unused)
{
    pthread_cancel(pthread_self());
    context = use_device(0);
    leak(3);
    pthread_testcancel();
    return unused;
}

/* The first call of all comes from a thread that ends at its next cancellation point. */
static void start_by_cancelled_thread(void)
{
    in_thread(start_cancelled, NULL);
    MUST(cuCtxSetCurrent(context));
}

/* ---- signals ---- */

static void exit_in_handler(int number)
{
    (void)number;
    exit(35);
}

static int end_signal(void)
{
    signal(SIGUSR1, exit_in_handler);
    raise(SIGUSR1);
    return 1;
}

static int end_quick(void)
{
    quick_exit(36);
}

static int end_abort(void)
{
    abort();
}

static void start(void)
{
    context = use_device(0);
}

static int end_exit(void)
{
    exit(40);
}

static const struct {
    const char *name;
    size_t bytes; /* that are known to leak, or 0, and in how many blocks */
    int blocks, status;
    int (*end)(void); /* NULL: returns `status` */
    void (*start)(void);
    void (*handler)(void); /* at exit; registered before the first call of CUDA */
} ways[] = {
    {"return", 1111, 2, 37, NULL, start, NULL},
    {"handler", 1070, 2, 30, NULL, start, free_and_leak},
    {"exit-twice", 1111, 2, 0, end_exit, start, exit_again},
    {"exit-hard", 1116, 3, 0, end_exit, start, exit_at_once},
    {"detached", 0, 0, 0, end_detached, start, NULL},
    {"thread", 0, 0, 0, end_from_thread, start, NULL},
    {"main-first", 1151, 3, 0, end_main_first, start, NULL},
    {"keys", 1111 + 20 * 92, 2 + 20 * 4, 0, end_thread_keys, start, NULL},
    {"cancel", 1111, 2, 0, end_cancel, start, NULL},
    {"cancelled", 1114, 3, 38, NULL, start_by_cancelled_thread, NULL},
    {"signal", 1111, 2, 0, end_signal, start, NULL},
    {"quick", 1111, 2, 0, end_quick, start, NULL},
    {"abort", 0, 0, 0, end_abort, start, NULL},
};

/* drv_ending WAY [late]: "late" registers the handler once more, after the first call of CUDA. */
int main(int argc, char **argv)
{
    size_t way = 0;

    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].name, argv[1]) == 0)
            way = i;
    if (ways[way].handler)
        atexit(ways[way].handler);
    pthread_key_create(&key, leak_at_thread_end);
    ways[way].start();
    leak(1000);
    MUST(cuMemAlloc(&block_of_main, 111));
    if (argc > 2)
        atexit(ways[way].handler);
    if (ways[way].bytes > 0)
        say("expect leaked_bytes=%zu leaked_blocks=%d failed=0", ways[way].bytes, ways[way].blocks);
    return ways[way].end ? ways[way].end() : ways[way].status;
}
