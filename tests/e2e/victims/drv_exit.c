/* SPDX-License-Identifier: MIT */
/* Leaks 1234 bytes and ends in the way that its argument names. */
#include "leak.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void on_signal(int number)
{
    (void)number;
    _Exit(9);
}

static void *end_last(void *argument)
{
    (void)argument;
    usleep(20000);
    return NULL;
}

static int end(const char *way)
{
    pthread_t thread;

    if (strcmp(way, "exit") == 0)
        exit(3);
    if (strcmp(way, "quick_exit") == 0)
        quick_exit(4);
    if (strcmp(way, "_exit") == 0)
        _exit(5);
    if (strcmp(way, "_Exit") == 0) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
    }
    if (strcmp(way, "abort") == 0)
        abort();
    if (strcmp(way, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(way, "exec") == 0)
        execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
    if (strcmp(way, "pthread_exit") == 0) {
        pthread_create(&thread, NULL, end_last, NULL);
        pthread_exit(NULL);
    }
    return 7;
}

int main(int argc, char **argv)
{
    use_device(0);
    leak(1234);
    say("expect leaked_bytes=1234 leaked_blocks=1 leak_sites=1 allocs=1 frees=0");
    say("report  leak  +");
    return end(argc > 1 ? argv[1] : "return");
}
