/* SPDX-License-Identifier: MIT */
/* Leaks, makes a process in the way that its argument names, which does not call CUDA, and leaks
 * once more. */
#include "leak.h"
#include "in_thread.h"

#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static CUcontext context;
static _Atomic int is_done;

static int status_of(pid_t child)
{
    int status;

    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static char *const shell[] = {(char *)"sh", (char *)"-c", (char *)"exit 11", NULL};

static int exec_shell(void *unused)
{
    (void)unused;
    execv("/bin/sh", shell);
    _exit(12);
}

static void fail_to_exec(void)
{
    execv("/nonexistent", shell);
    _exit(errno == ENOENT ? 11 : 12);
}

/* Without the C library's fork handlers. */
static pid_t raw_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* A child made so, which ends so. */
#define CHILDREN(ROW)                                                                              \
    ROW(by_fork_exit, fork(), exit(11))                                                            \
    ROW(by_vfork_exit, vfork(), _exit(11))                                                         \
    ROW(by_vfork_exec, vfork(), exec_shell(NULL))                                                  \
    ROW(by_vfork_failing_exec, vfork(), fail_to_exec())                                            \
    ROW(by_raw_fork, raw_fork(), _exit(11))                                                        \
    ROW(by_raw_fork_exit, raw_fork(), exit(11))

#define DEFINE_CHILD(name, make, end)                                                              \
    static int name(void)                                                                          \
    {                                                                                              \
        pid_t child = make;                                                                        \
                                                                                                   \
        if (child == 0)                                                                            \
            end;                                                                                   \
        return status_of(child);                                                                   \
    }
CHILDREN(DEFINE_CHILD)

static int by_spawn(void)
{
    pid_t child;

    if (posix_spawn(&child, "/bin/sh", NULL, NULL, shell, environ) != 0)
        return -1;
    return status_of(child);
}

static int by_failing_spawn(void)
{
    pid_t child;

    return posix_spawn(&child, "/nonexistent", NULL, NULL, shell, environ) == ENOENT ? 11 : 12;
}

static int by_system(void)
{
    return WEXITSTATUS(system("exit 11"));
}

static int by_popen(void)
{
    char line[16] = "";
    FILE *file = popen("echo eleven; exit 11", "r");

    if (file == NULL || fgets(line, sizeof(line), file) == NULL || strcmp(line, "eleven\n") != 0)
        return -1;
    return WEXITSTATUS(pclose(file));
}

static int leave(void *unused)
{
    (void)unused;
    _exit(11);
}

/* As runtimes of other languages start programs: the child shares our memory, on a stack of its
 * own. */
static int cloned(int (*run)(void *))
{
    static char stack[65536] __attribute__((aligned(16)));

    return status_of(clone(run, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
}

static int by_clone(void)
{
    return cloned(leave);
}

static int by_clone_exec(void)
{
    return cloned(exec_shell);
}

/* The grandchild ends last. */
static int by_double_fork(void)
{
    int ends[2], status;
    char byte;
    pid_t child;

    if (pipe(ends) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        if (fork() == 0 && write(ends[1], "x", 1) == 1)
            exit(12);
        exit(11);
    }
    status = status_of(child);
    close(ends[1]);
    return read(ends[0], &byte, 1) == 1 && read(ends[0], &byte, 1) == 0 ? status : -1;
}

static int by_nested_fork(void)
{
    int status = 11;

    for (int level = 0; level < 20; level++) {
        pid_t child = fork();

        if (child == 0)
            continue;
        status = status_of(child);
        if (level > 0)
            exit(status);
        return status;
    }
    exit(status);
}

static void *churn(void *unused)
{
    CUdeviceptr block[8];

    MUST(cuCtxSetCurrent(context));
    while (!atomic_load(&is_done)) {
        for (int i = 0; i < 8; i++)
            MUST(cuMemAlloc(&block[i], (size_t)256 << i));
        for (int i = 0; i < 8; i++)
            MUST(cuMemFree(block[i]));
    }
    return unused;
}

static int many(int (*make)(void))
{
    int status = 11;

    for (int i = 0; i < 50 && status == 11; i++)
        status = make();
    return status;
}

static int while_busy(int (*make)(void))
{
    pthread_t thread[3];
    int status;

    start_threads(thread, 3, churn, NULL);
    status = many(make);
    atomic_store(&is_done, 1);
    join_threads(thread, 3);
    return status;
}

/* It fails, and the program goes on. */
static int by_failing_exec(void)
{
    execv("/nonexistent", shell);
    return errno == ENOENT ? 11 : 12;
}

/* Another program, which is the same one. */
static int by_exec_itself(void)
{
    execl("/proc/self/exe", "drv_process", "fork", (char *)NULL);
    return -1;
}

/* The parent ends by an _exit inside the C library, the child by a return from main without CUDA.
 */
static int by_daemon(void)
{
    if (daemon(1, 1) != 0)
        return -1;
    exit(11);
}

static const struct {
    const char *name;
    int (*make)(void);
    int is_busy; /* many, while other threads allocate */
} ways[] = {
    {"fork", by_fork_exit, 0},        {"vfork-exit", by_vfork_exit, 0},
    {"vfork-exec", by_vfork_exec, 0}, {"vfork-noexec", by_vfork_failing_exec, 0},
    {"spawn", by_spawn, 0},           {"nospawn", by_failing_spawn, 0},
    {"system", by_system, 0},         {"popen", by_popen, 0},
    {"clone", by_clone, 0},           {"clone-exec", by_clone_exec, 0},
    {"raw-fork", by_raw_fork, 0},     {"raw-fork-exit", by_raw_fork_exit, 0},
    {"double", by_double_fork, 0},    {"nested", by_nested_fork, 0},
    {"busy-fork", by_fork_exit, 1},   {"busy-vfork", by_vfork_exec, 1},
    {"busy-spawn", by_spawn, 1},      {"noexec", by_failing_exec, 0},
    {"itself", by_exec_itself, 0},    {"daemon", by_daemon, 0},
};

int main(int argc, char **argv)
{
    /* A daemon goes to the background first, as it should. */
    if (argc > 2 && daemon(1, 1) != 0)
        return 1;
    context = use_device(0);
    leak(100);
    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].name, argv[1]) == 0)
            say("status %d", ways[i].is_busy ? while_busy(ways[i].make) : ways[i].make());
    leak(200);
    say("expect leaked_bytes=300 leaked_blocks=2 failed=0");
    return 5;
}
