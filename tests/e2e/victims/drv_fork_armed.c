/* SPDX-License-Identifier: MIT */
/* Calls the driver too early, so that the account is open when it forks; then parent and child each
 * start the driver and leak: the child's account starts from nothing. */
#include "victim.h"

#include <sys/wait.h>
#include <unistd.h>

static NOINLINE void leak(size_t bytes)
{
    CUdeviceptr block;

    use_device(0);
    MUST(cuMemAlloc(&block, bytes));
}

int main(void)
{
    CUdeviceptr block;
    pid_t child;
    int status;

    MUST_FAIL(cuMemAlloc(&block, 1), CUDA_ERROR_NOT_INITIALIZED);
    child = fork();
    if (child == 0) {
        leak(1111);
        return 0;
    }
    waitpid(child, &status, 0);
    leak(2222);
    return status;
}
