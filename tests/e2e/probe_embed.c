/* SPDX-License-Identifier: MIT */
/* A program that loads Python: embed LIBPYTHON, with probe_python.c preloaded. Says how many frames
 * there are before, while and after there is an interpreter, twice. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (found == NULL) {
        printf("no %s\n", name);
        exit(1);
    }
    return found;
}

static void say_count(const char *when)
{
    int (*count)(void) = (int (*)(void))function("probe_count");
    int (*foreign)(void) = (int (*)(void))function("probe_foreign_thread");

    printf("%s: %d here, %d in another thread\n", when, count(), foreign());
    fflush(stdout);
}

/* Called by the evaluator, amid what it runs. Extension modules would do as well, but not all
 * releases stand their being loaded into a second interpreter. */
static int say_pending(void *arg)
{
    say_count(arg);
    return 0;
}

static const char program[] = "def f():\n"
                              "    for _ in range(10000):\n"
                              "        pass\n"
                              "f()\n";

int main(int argc, char **argv)
{
    int failed = argc != 2;

    if (failed || dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == NULL) {
        printf("cannot load %s\n", argv[1]);
        return 1;
    }
    for (int round = 0; round < 2; round++) {
        say_count("before");
        ((void (*)(int))function("Py_InitializeEx"))(0);
        say_count("idle");
        ((int (*)(int (*)(void *), void *))function("Py_AddPendingCall"))(say_pending, "running");
        failed |= ((int (*)(const char *))function("PyRun_SimpleString"))(program);
        failed |= ((int (*)(void))function("Py_FinalizeEx"))();
        say_count("after");
    }
    return failed;
}
