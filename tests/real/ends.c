/* SPDX-License-Identifier: MIT */
/*
 * ends WAY [FILE]: a process that calls the driver, or the runtime FILE, and ends or goes on in
 * this way. Says each code, and ends with a status of its own.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*any_fn)();

static void *driver;
static const char *file;

static any_fn function(void *library, const char *name)
{
    return (any_fn)dlsym(library, name);
}

static void say(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    puts("");
    fflush(stdout);
}

static void open_driver(void)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        exit(90);
}

/* One of each kind that programs begin with. */
static void call_driver(const char *when)
{
    uint64_t block = 1;
    size_t available = 1, total = 1;
    void *context = &block;
    int count = -1, version = -1, code;

    say("%s: init %d", when, function(driver, "cuInit")(0));
    code = function(driver, "cuDeviceGetCount")(&count);
    say("%s: count %d %d", when, code, count);
    code = function(driver, "cuDriverGetVersion")(&version);
    say("%s: version %d %d", when, code, version);
    say("%s: retain %d", when, function(driver, "cuDevicePrimaryCtxRetain")(&context, 0));
    say("%s: context %d", when, function(driver, "cuCtxCreate_v2")(&context, 0, 0));
    say("%s: alloc %d", when, function(driver, "cuMemAlloc_v2")(&block, (size_t)4096));
    say("%s: async %d", when,
        function(driver, "cuMemAllocAsync")(&block, (size_t)4096, (void *)NULL));
    say("%s: host %d", when, function(driver, "cuMemHostAlloc")(&context, (size_t)4096, 0));
    say("%s: info %d", when, function(driver, "cuMemGetInfo_v2")(&available, &total));
    say("%s: free %d", when, function(driver, "cuMemFree_v2")(block));
    say("%s: free of 0 %d", when, function(driver, "cuMemFree_v2")((uint64_t)0));
    say("%s: synchronize %d", when, function(driver, "cuCtxSynchronize")());
}

static void in_handler(void)
{
    call_driver("exit handler");
}

static int is_ending;

static void __attribute__((destructor)) in_destructor(void)
{
    if (is_ending)
        call_driver("destructor");
}

static int by_return(void)
{
    atexit(in_handler);
    open_driver();
    atexit(in_handler);
    call_driver("main");
    is_ending = 1;
    return 3;
}

static int by_quick_exit(void)
{
    open_driver();
    at_quick_exit(in_handler);
    call_driver("main");
    quick_exit(4);
}

static int by_underscore_exit(void)
{
    by_return();
    _exit(5);
}

static int by_signal(void)
{
    open_driver();
    call_driver("main");
    raise(SIGTERM);
    return 6;
}

static int by_abort(void)
{
    open_driver();
    call_driver("main");
    abort();
}

/* ---- fork ---- */

static int in_child(int how)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        call_driver("child");
        if (how)
            _exit(7);
        exit(8);
    }
    waitpid(child, &status, 0);
    say("child: status %d", status);
    return status;
}

static int by_fork(void)
{
    open_driver();
    in_child(0); /* before the parent's first call */
    call_driver("parent");
    in_child(0);
    in_child(1);
    call_driver("parent again");
    atexit(in_handler);
    return 9;
}

/* ---- unloading ---- */

static int by_unload(void)
{
    for (int i = 0; i < 3; i++) {
        open_driver();
        call_driver("loaded");
        say("dlclose %d", dlclose(driver));
        driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        say("still there: %s", driver ? "yes" : "no");
        if (driver != NULL)
            dlclose(driver);
    }
    return 10;
}

/* ---- threads ---- */

static pthread_barrier_t all;

static void *in_thread(void *codes)
{
    uint64_t block;
    int *code = codes;

    pthread_barrier_wait(&all);
    code[0] = function(driver, "cuInit")(0);
    code[1] = function(driver, "cuMemAlloc_v2")(&block, (size_t)4096);
    return NULL;
}

static int by_threads(void)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    int codes[THREADS][2];

    open_driver();
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, in_thread, codes[i]) != 0)
            return 91;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        say("thread: %d %d", codes[i][0], codes[i][1]);
    }
    return 13; /* not pthread_exit: a thread of the driver goes on */
}

/* ---- the runtime ---- */

static int by_runtime(void)
{
    for (int i = 0; i < 2; i++) {
        void *runtime = dlopen(file, RTLD_NOW), *block = NULL;
        int count = -1, version = -1, code;

        if (runtime == NULL)
            return 92;
        say("malloc %d", function(runtime, "cudaMalloc")(&block, (size_t)4096));
        code = function(runtime, "cudaGetDeviceCount")(&count);
        say("count %d %d", code, count);
        code = function(runtime, "cudaDriverGetVersion")(&version);
        say("driver %d %d", code, version);
        say("free of 0 %d", function(runtime, "cudaFree")((void *)NULL));
        say("peek %d", function(runtime, "cudaPeekAtLastError")());
        say("last %d", function(runtime, "cudaGetLastError")());
        say("peek %d", function(runtime, "cudaPeekAtLastError")());
        say("async %d", function(runtime, "cudaMallocAsync")(&block, (size_t)4096, (void *)NULL));
        say("reset %d", function(runtime, "cudaDeviceReset")());
        say("dlclose %d", dlclose(runtime));
    }
    return 11;
}

/* ---- CUPTI ---- */

static void on_callback(void *data, int domain, int id, const void *what)
{
    (void)data, (void)domain, (void)id, (void)what;
}

static int by_cupti(void)
{
    enum { MEMORY = 49 }; /* CUPTI_ACTIVITY_KIND_MEMORY2 */
    void *cupti = dlopen(file, RTLD_NOW), *subscriber = NULL;

    if (cupti == NULL)
        return 93;
    say("subscribe %d",
        function(cupti, "cuptiSubscribe")(&subscriber, (void *)on_callback, (void *)NULL));
    say("enable %d", function(cupti, "cuptiActivityEnable")(MEMORY));
    open_driver();
    call_driver("main");
    say("flush %d", function(cupti, "cuptiActivityFlushAll")(1));
    say("unsubscribe %d", function(cupti, "cuptiUnsubscribe")(subscriber));
    return 12;
}

static const struct {
    const char *name;
    int (*go)(void);
} ways[] = {
    {"return", by_return}, {"quick-exit", by_quick_exit}, {"_exit", by_underscore_exit},
    {"signal", by_signal}, {"abort", by_abort},           {"fork", by_fork},
    {"unload", by_unload}, {"threads", by_threads},       {"runtime", by_runtime},
    {"cupti", by_cupti},
};

int main(int argc, char **argv)
{
    file = argc > 2 ? argv[2] : NULL;
    for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].name, argv[1]) == 0)
            return ways[i].go();
    return 2;
}
