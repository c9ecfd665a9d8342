/* SPDX-License-Identifier: MIT */
/*
 * Two processes share a block that the pool hands out for the second time. The child, which is this
 * program once more, sees what a kernel of the parent wrote, and the parent what one of the child's
 * did. What was shared is never handed out again, for the other process may still have it open.
 */
#include "contents.h"

#include <sys/wait.h>
#include <unistd.h>

#define BYTES    ((size_t)300000)
#define NOT_HERE 77

static unsigned *wrong;

static unsigned wrong_so_far(void)
{
    unsigned found;

    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost));
    return found;
}

static void *reused_block(void)
{
    void *before, *block;

    MUST(cudaMalloc(&before, BYTES));
    fill(before, BYTES, 50, 0);
    MUST(cudaDeviceSynchronize()); /* a strict free waits for 20 ms; on a busy machine the block is the driver's then */
    MUST(cudaFree(before));
    MUST(cudaDeviceSynchronize()); /* a deferred free is served from here on */
    MUST(cudaMalloc(&block, BYTES));
    fill(block, BYTES, 51, 0);
    MUST(cudaDeviceSynchronize());
    return block;
}

static int run_child(char *program, const cudaIpcMemHandle_t *handle)
{
    char text[2 * sizeof(*handle) + 1];
    int status = -1;
    pid_t child;

    for (size_t i = 0; i < sizeof(*handle); i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)handle)[i]);
    child = fork();
    if (child == 0) {
        if (getenv("CUWARDEN_REPORT") != NULL)
            setenv("CUWARDEN_REPORT", "child", 1);
        execl("/proc/self/exe", program, text, (char *)NULL);
        _exit(98);
    }
    return waitpid(child, &status, 0) == child ? status : -1;
}

static int share(char *program)
{
    cudaIpcMemHandle_t handle;
    cudaError_t result;
    void *block, *next;
    unsigned found;
    int status;

    block = reused_block();
    if ((result = cudaIpcGetMemHandle(&handle, block)) != cudaSuccess) {
        say("no memory is shared here: cudaIpcGetMemHandle returned %d", (int)result);
        return NOT_HERE;
    }
    status = run_child(program, &handle);
    say("the child ended with %d", status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
        return NOT_HERE;
    check(block, BYTES, 52, wrong, 0);
    MUST(cudaFree(block));
    MUST(cudaMalloc(&next, BYTES));
    fill(next, BYTES, 53, 0);
    check(next, BYTES, 53, wrong, 0);
    MUST(cudaFree(next));
    found = wrong_so_far();
    MUST(cudaFree(wrong));
    say("%u elements are wrong", found);
    say("expect allocs=4 frees=4 failed=0 leaked_blocks=0");
    say("pool served(0)['hits'] == 1"); /* not the block that was shared */
    return found != 0;
}

static int open_shared(const char *text)
{
    cudaIpcMemHandle_t handle;
    unsigned found, byte;
    cudaError_t result;
    void *block;

    for (size_t i = 0; i < sizeof(handle); i++) {
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return 97;
        ((unsigned char *)&handle)[i] = (unsigned char)byte;
    }
    result = cudaIpcOpenMemHandle(&block, handle, cudaIpcMemLazyEnablePeerAccess);
    if (result != cudaSuccess) {
        say("no memory is shared here: cudaIpcOpenMemHandle returned %d", (int)result);
        return NOT_HERE;
    }
    check(block, BYTES, 51, wrong, 0);
    fill(block, BYTES, 52, 0);
    found = wrong_so_far();
    say("in the child: %u elements are wrong", found);
    say("child: json kind('ipc')[0] == 1 or kind('imported')[0] == 1");
    say("child: expect allocs=1 frees=0 leaked_blocks=1 failed=0");
    return found != 0; /* the block is closed by the end of the process */
}

int main(int argc, char **argv)
{
    MUST(cudaMalloc(&wrong, sizeof(*wrong)));
    start_counter(wrong, 0);
    return argc > 1 ? open_shared(argv[1]) : share(argv[0]);
}
