/* SPDX-License-Identifier: MIT */
/* Ends, or forks children that end, while other threads allocate and free without a pause. */
#include "victim.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static CUcontext context;

static void *allocate_for_ever(void *argument)
{
    (void)argument;
    if (cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return NULL;
    for (;;) {
        CUdeviceptr block[8];

        for (int i = 0; i < 8; i++)
            if (cuMemAlloc(&block[i], 256 << i) != CUDA_SUCCESS)
                block[i] = 0;
        for (int i = 0; i < 8; i++)
            cuMemFree(block[i]);
    }
}

static void on_alarm(int number)
{
    (void)number;
    _exit(23);
}

static int fork_children(void)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        int status;

        if (child == 0)
            exit(i);
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != i)
            return 1;
    }
    return 23;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "return";
    struct itimerval soon = {.it_value = {.tv_usec = 3000}};
    pthread_t thread;

    context = use_device(0);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, allocate_for_ever, NULL);
    if (strcmp(way, "fork") == 0)
        return fork_children();
    if (strcmp(way, "signal") == 0) {
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &soon, NULL);
        allocate_for_ever(NULL);
    }
    usleep(3000);
    if (strcmp(way, "_exit") == 0)
        _exit(23);
    return 23;
}
