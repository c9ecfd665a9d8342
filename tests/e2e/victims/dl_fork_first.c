/* SPDX-License-Identifier: MIT */
/* Forks before anything else; parent and child each load the driver and leak: two reports. */
#include "dl_leak.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        leak(dlopen("libcuda.so.1", RTLD_NOW), 1111);
        return 0;
    }
    waitpid(child, &status, 0);
    leak(dlopen("libcuda.so.1", RTLD_NOW), 2222);
    return status;
}
