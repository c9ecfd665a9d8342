/* SPDX-License-Identifier: MIT */
/* What python_backward.py loads: work done by a thread of C, with a thread state of Python but not
 * the lock, as PyTorch's autograd does it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>

struct work {
    const char *name;
    size_t size;
    void *context;
};

static void *find(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (found == NULL)
        abort();
    return found;
}

__attribute__((noinline)) static int allocate(const struct work *work)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    int (*set_current)(void *) = dlsym(cuda, "cuCtxSetCurrent");
    int (*alloc)(uint64_t *, size_t) = dlsym(cuda, "cuMemAlloc_v2");
    uint64_t block;

    return set_current(work->context) != 0 || alloc(&block, work->size) != 0;
}

static void *run(void *arg)
{
    const struct work *work = arg;
    int (*ensure)(void) = find("PyGILState_Ensure");
    void (*release)(int) = find("PyGILState_Release");
    void *(*save)(void) = find("PyEval_SaveThread");
    void (*restore)(void *) = find("PyEval_RestoreThread");
    int state, failed;
    void *saved;

    prctl(PR_SET_NAME, work->name);
    state = ensure();
    saved = save();
    failed = allocate(work);
    restore(saved);
    release(state);
    return failed ? arg : NULL;
}

/* The caller waits, without the lock of Python: ctypes gave it up. */
__attribute__((visibility("default"))) int backward(const char *name, size_t size, void *context)
{
    struct work work = {name, size, context};
    pthread_t thread;
    void *failed = &work;

    if (pthread_create(&thread, NULL, run, &work) == 0)
        pthread_join(thread, &failed);
    return failed != NULL;
}
