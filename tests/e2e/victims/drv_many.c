/* SPDX-License-Identifier: MIT */
/* Much of one thing: leaked blocks of one place, places that leak, or threads at the same time. */
#include "leak.h"
#include "in_thread.h"

#include <string.h>

#define THREADS 400

static CUcontext context;
static pthread_barrier_t all_here;

/* Each level is another stack. */
static NOINLINE void leak_at_each_level(int levels) /* NOLINT(misc-no-recursion) */
{
    leak(1000);
    if (levels > 1)
        leak_at_each_level(levels - 1);
}

static NOINLINE void leak_and_free(void)
{
    CUdeviceptr block;

    for (int i = 0; i < 10; i++) {
        MUST(cuMemAlloc(&block, 512));
        pthread_barrier_wait(&all_here); /* no thread is gone before all have come */
        MUST(cuMemFree(block));
    }
    MUST(cuMemAlloc(&block, 512));
}

static void *work(void *argument)
{
    MUST(cuCtxSetCurrent(context));
    leak_and_free();
    return argument;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&all_here, NULL, THREADS);
    start_threads(threads, THREADS, work, NULL);
    join_threads(threads, THREADS);
    say("expect leaked_bytes=%d leaked_blocks=%d leak_sites=1 allocs=%d frees=%d peak_bytes=%d",
        THREADS * 512, THREADS, THREADS * 11, THREADS * 10, THREADS * 512);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "blocks";

    context = use_device(0);
    if (strcmp(what, "threads") == 0) {
        run_threads();
    } else if (strcmp(what, "sites") == 0) {
        leak_at_each_level(30);
        say("expect leaked_bytes=30000 leaked_blocks=30 leak_sites=30 allocs=30 frees=0");
        say("report ^==[0-9]+== \\.\\.\\. 10 more sites, 9\\.8 KiB \\(");
        say("json len([s for s in r['sites'] if s.get('class') == 'lost']) == 30");
    } else {
        for (int i = 0; i < 12000; i++)
            leak(512);
        say("expect leaked_bytes=%d leaked_blocks=12000 leak_sites=1 allocs=12000", 12000 * 512);
        say("json len(r['leaks']) == 10000 and r['leaks_truncated'] == 2000");
    }
    return 0;
}
