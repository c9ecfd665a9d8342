/* SPDX-License-Identifier: MIT */
/* Calls the driver first, and loads Python afterwards: dl_python LIBPYTHON. Allocates before there
 * is an interpreter, amid what it runs, when it is idle, has ended, and was unloaded; twice. */
#include "victim.h"

#include <dlfcn.h>

static CUresult (*alloc)(CUdeviceptr *, size_t);

static void *function(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL) {
        say("no %s", name);
        exit(1);
    }
    return found;
}

static NOINLINE void leak(size_t bytes)
{
    CUdeviceptr block;

    MUST(alloc(&block, bytes));
}

/* By the evaluator, as soon as it looks: no extension module is needed for it. */
static int leak_in_python(void *arg)
{
    CUdeviceptr block;

    (void)arg;
    MUST(alloc(&block, 1000));
    return 0;
}

static void start_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))function(driver, "cuInit");
    CUresult (*retain)(CUcontext *, CUdevice) =
        (CUresult(*)(CUcontext *, CUdevice))function(driver, "cuDevicePrimaryCtxRetain");
    CUresult (*set)(CUcontext) = (CUresult(*)(CUcontext))function(driver, "cuCtxSetCurrent");
    CUcontext context;

    alloc = (CUresult(*)(CUdeviceptr *, size_t))function(driver, "cuMemAlloc_v2");
    MUST(init(0));
    MUST(retain(&context, 0));
    MUST(set(context));
}

static const char program[] = "def busy():\n"
                              "    for _ in range(10000):\n"
                              "        pass\n"
                              "busy()\n";

static int run_python(const char *path)
{
    void *python = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int failed;

    if (python == NULL) {
        say("cannot load %s", path);
        return 1;
    }
    leak(200);
    ((void (*)(int))function(python, "Py_InitializeEx"))(0);
    leak(300);
    ((int (*)(int (*)(void *), void *))function(python, "Py_AddPendingCall"))(leak_in_python, NULL);
    failed = ((int (*)(const char *))function(python, "PyRun_SimpleString"))(program);
    failed |= ((int (*)(void))function(python, "Py_FinalizeEx"))();
    leak(400);
    dlclose(python);
    leak(500);
    python = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    say(python == NULL ? "gone" : "still there");
    return failed;
}

int main(int argc, char **argv)
{
    int failed = argc != 2;

    start_driver();
    leak(100);
    for (int round = 0; round < 2 && !failed; round++)
        failed |= run_python(argv[1]);
    return failed;
}
