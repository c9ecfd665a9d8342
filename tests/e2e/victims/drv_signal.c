/* SPDX-License-Identifier: MIT */
/*
 * Has its own idea of SIGUSR1, or none, and runs until the file `stop` is there:
 *   drv_signal none|before|after|ignored sleep|busy|leave
 * A handler of its own, from before or after the first CUDA call, counts; what it counted is said.
 * With sleep it makes no CUDA call once it has said "ready"; with busy, three threads allocate and
 * free without a pause, and say how many bytes they have written, which is nothing of the
 * program's.
 */
#include "victim.h"
#include "in_thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static CUcontext context;
static _Atomic int handled, over;
static _Atomic long written; /* by the threads; less than 0: the kernel does not say */

static void count(int number)
{
    (void)number;
    atomic_fetch_add(&handled, 1);
}

static void note_written(void)
{
    FILE *file = fopen("/proc/thread-self/io", "r");
    long bytes = -1000000000;

    if (file && fscanf(file, "rchar: %*d wchar: %ld", &bytes) != 1)
        bytes = -1000000000;
    if (file)
        fclose(file);
    atomic_fetch_add(&written, bytes);
}

static void *churn(void *argument)
{
    (void)argument;
    if (cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return NULL;
    while (!atomic_load(&over)) {
        CUdeviceptr block[8];

        for (int i = 0; i < 8; i++)
            MUST(cuMemAlloc(&block[i], 256u << i));
        for (int i = 0; i < 8; i++)
            MUST(cuMemFree(block[i]));
    }
    note_written();
    return NULL;
}

static NOINLINE void keep_some(void)
{
    CUdeviceptr block;

    for (int i = 0; i < 3; i++)
        MUST(cuMemAlloc(&block, 1000));
}

static void *be_last(void *argument)
{
    usleep(10000);
    say("last");
    return argument;
}

static void leave(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, be_last, NULL);
    pthread_exit(NULL);
}

static void wait_for_stop(void)
{
    say("ready");
    while (access("stop", F_OK) != 0)
        usleep(2000);
    atomic_store(&over, 1);
}

int main(int argc, char **argv)
{
    const char *handler = argc > 1 ? argv[1] : "none";
    struct sigaction counting = {.sa_handler = count};
    pthread_t thread[3];
    int threads = argc > 2 && strcmp(argv[2], "busy") == 0 ? 3 : 0;

    if (strcmp(handler, "before") == 0)
        sigaction(SIGUSR1, &counting, NULL);
    if (strcmp(handler, "ignored") == 0)
        signal(SIGUSR1, SIG_IGN);
    context = use_device(0);
    keep_some();
    if (strcmp(handler, "after") == 0)
        sigaction(SIGUSR1, &counting, NULL);
    if (argc > 2 && strcmp(argv[2], "leave") == 0)
        leave();
    start_threads(thread, threads, churn, NULL);
    wait_for_stop();
    join_threads(thread, threads);
    if (threads > 0)
        say("threads wrote %ld", atomic_load(&written));
    say("handled %d", atomic_load(&handled));
    return 7;
}
