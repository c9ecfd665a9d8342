/* SPDX-License-Identifier: MIT */
/* Two processes share memory: `export` leaks a block and starts itself as `import`, which opens the
 * block twice again and again, and has two threads close it at once; opens it twice, closes one
 * opening, and leaks a block of its own. */
#include "victim.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "in_thread.h"

#define ROUNDS 1000

static NOINLINE CUdeviceptr open_handle(CUipcMemHandle handle)
{
    CUdeviceptr block;

    MUST(cuIpcOpenMemHandle(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return block;
}

static CUcontext context;
static CUdeviceptr shared;
static atomic_int opened, met, closed;

/* Seldom yields: both threads are to leave at once. */
static void spin_until(const atomic_int *count, int wanted)
{
    for (int turns = 1; atomic_load(count) < wanted; turns++)
        if (turns % 1000 == 0)
            sched_yield();
}

static void *close_often(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    for (int i = 1; i <= ROUNDS; i++) {
        spin_until(&opened, i);
        atomic_fetch_add(&met, 1);
        spin_until(&met, 2 * i);
        MUST(cuIpcCloseMemHandle(shared));
        atomic_fetch_add(&closed, 1);
    }
    return unused;
}

static NOINLINE void open_and_close(CUipcMemHandle handle)
{
    pthread_t thread[2];

    start_threads(thread, 2, close_often, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        shared = open_handle(handle);
        shared = open_handle(handle);
        atomic_store(&opened, i);
        while (atomic_load(&closed) < 2 * i)
            usleep(50);
    }
    join_threads(thread, 2);
}

static int import(const char *text)
{
    CUipcMemHandle handle;
    CUdeviceptr block, own;
    unsigned first;

    for (size_t i = 0; i < sizeof(handle); i++) {
        unsigned byte;

        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return 1;
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    context = use_device(0);
    open_and_close(handle);
    block = open_handle(handle);
    if (open_handle(handle) != block)
        return 1;
    MUST(cuIpcCloseMemHandle(block));
    MUST(cuMemcpyDtoH(&first, block, sizeof(first)));
    MUST(cuMemAlloc(&own, 500));
    say("first word %x", first);
    return 0;
}

static int export(char *program)
{
    CUipcMemHandle handle;
    CUdeviceptr block;
    char text[2 * sizeof(handle) + 1];
    pid_t child;
    int status;

    use_device(0);
    MUST(cuMemAlloc(&block, 40000));
    MUST(cuMemsetD8(block, 0x5a, 40000));
    MUST(cuCtxSynchronize());
    MUST(cuIpcGetMemHandle(&handle, block));
    for (size_t i = 0; i < sizeof(handle); i++)
        sprintf(text + 2 * i, "%02x", ((unsigned char *)&handle)[i]);
    child = fork();
    if (child == 0) {
        execl(program, program, text, (char *)NULL);
        _exit(98);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        return 1;
    say("the child read it");
    return 0;
}

int main(int argc, char **argv)
{
    return argc > 1 ? import(argv[1]) : export(argv[0]);
}
