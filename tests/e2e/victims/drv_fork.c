/* SPDX-License-Identifier: MIT */
/* Leaks, forks a child that ends in the way that its argument names and never calls CUDA, and leaks
 * once more. */
#include "leak.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static NOINLINE pid_t start(const char *way)
{
    pid_t child = strcmp(way, "vfork") == 0 ? vfork() : fork();

    if (child != 0)
        return child;
    if (strcmp(way, "vfork") == 0)
        _exit(11);
    if (strcmp(way, "_exit") == 0)
        _exit(11);
    if (strcmp(way, "exec") == 0)
        execl("/bin/sh", "sh", "-c", "exit 11", (char *)NULL);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(11);
    exit(11);
}

int main(int argc, char **argv)
{
    pid_t child;
    int status;

    use_device(0);
    leak(100);
    child = start(argc > 1 ? argv[1] : "exit");
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 11)
        return 1;
    leak(200);
    say("expect leaked_bytes=300 leaked_blocks=2 allocs=2 frees=0");
    return 0;
}
