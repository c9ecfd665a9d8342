/* SPDX-License-Identifier: MIT */
/* Two processes share memory: `export` leaks a block and starts itself as `import`, which opens the
 * block twice, closes one opening, and leaks a block of its own. */
#include "victim.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static NOINLINE CUdeviceptr open_handle(CUipcMemHandle handle)
{
    CUdeviceptr block;

    MUST(cuIpcOpenMemHandle(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return block;
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
    use_device(0);
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
