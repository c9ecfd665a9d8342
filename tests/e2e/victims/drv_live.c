/* SPDX-License-Identifier: MIT */
/* Does what its arguments say, one after the other, and dies of the last one if that is a way. */
#include "victim.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static CUcontext context;

static void act(const char *word);

static NOINLINE void leak_some(int count)
{
    CUdeviceptr block;

    for (int i = 0; i < count; i++)
        MUST(cuMemAlloc(&block, 100));
}

static NOINLINE void leak_others(int count)
{
    CUdeviceptr block;

    for (int i = 0; i < count; i++) {
        MUST(cuMemAlloc(&block, 3000));
        MUST(cuMemAlloc(&block, 70000));
        MUST(cuMemFree(block));
    }
}

static void leak(int count)
{
    if (!context)
        context = use_device(0);
    leak_some(count - count / 4);
    leak_others(count / 4);
}

/* As a daemon does; then files of its own have the numbers. */
static void close_all(void)
{
    for (int fd = 3; fd < 1100; fd++)
        close(fd);
    for (int i = 0; i < 1000; i++)
        if (open("own", O_RDWR | O_CREAT, 0600) < 0)
            break;
}

static void *churn(void *argument)
{
    (void)argument;
    if (cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return NULL;
    for (;;) {
        CUdeviceptr block[4];

        for (int i = 0; i < 4; i++)
            MUST(cuMemAlloc(&block[i], 1000));
        for (int i = 0; i < 4; i++)
            MUST(cuMemFree(block[i]));
    }
}

static void run_threads(void)
{
    pthread_t thread;

    if (!context)
        context = use_device(0);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread, NULL, churn, NULL);
    say("ready");
    for (int count = 4;; count = 4) {
        leak(count);
        usleep(1000);
    }
}

/* The account is open, by a call that comes too early; the driver is not, so the child may use it.
 */
static void fork_child(void)
{
    CUdeviceptr block;
    pid_t child;
    int status;

    MUST_FAIL(cuMemAlloc(&block, 1), CUDA_ERROR_NOT_INITIALIZED);
    child = fork();
    if (child == 0) {
        leak(8);
        kill(getpid(), SIGKILL);
    }
    say("child %d", (int)child);
    waitpid(child, &status, 0);
}

/* A child that calls no CUDA and outlives its parent. */
/* Goes on when the child has come out of fork(), where it lets go of what is its parent's. */
static void leave_orphan(void)
{
    int ready[2];
    char byte = 0;
    pid_t child;

    if (pipe(ready) != 0)
        exit(99);
    child = fork();
    if (child == 0) {
        alarm(600);
        if (write(ready[1], &byte, 1) != 1)
            _exit(99);
        for (;;)
            pause();
    }
    if (child < 0 || read(ready[0], &byte, 1) != 1)
        exit(99);
    close(ready[0]);
    close(ready[1]);
    say("child %d", (int)child);
}

static void change_root(void)
{
    if (mkdir("root", 0700) != 0 || chroot("root") != 0 || chdir("/") != 0)
        exit(99);
}

/* A thread that does what the next word says, after so many microseconds. */
static void *act_later(void *words)
{
    char **word = words;

    usleep((useconds_t)atoi(word[0] + strlen("after=")));
    act(word[1]);
    return NULL;
}

static void act(const char *word)
{
    if (strncmp(word, "leak=", 5) == 0)
        leak(atoi(word + 5));
    else if (strcmp(word, "close") == 0)
        close_all();
    else if (strcmp(word, "fork") == 0)
        fork_child();
    else if (strcmp(word, "orphan") == 0)
        leave_orphan();
    else if (strcmp(word, "threads") == 0)
        run_threads();
    else if (strcmp(word, "chroot") == 0)
        change_root();
    else if (strcmp(word, "kill") == 0)
        kill(getpid(), SIGKILL);
    else if (strcmp(word, "abort") == 0)
        abort();
    else if (strcmp(word, "segv") == 0)
        raise(SIGSEGV);
    else if (strcmp(word, "exec") == 0)
        execl("/bin/true", "true", (char *)NULL);
    else if (strcmp(word, "_exit") == 0)
        _exit(0);
    else if (strcmp(word, "quick_exit") == 0)
        quick_exit(0);
}

int main(int argc, char **argv)
{
    say("pid %d", (int)getpid());
    for (int i = 1; i < argc; i++) {
        pthread_t thread;

        if (strncmp(argv[i], "after=", 6) != 0 || i + 1 == argc)
            act(argv[i]);
        else
            pthread_create(&thread, NULL, act_later, &argv[i++]);
    }
    return 0;
}
