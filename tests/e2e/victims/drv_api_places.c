/* SPDX-License-Identifier: MIT */
/*
 * The best device (include/cuwarden/cuwarden.h): does what its words say, in order, and says what
 * was answered. Sizes are in MiB; a name of "-" is none.
 *
 *   pick:NAME:SIZE  alloc:NAME:SIZE  take:DEVICE:SIZE  give:DEVICE (what was taken last there)
 * use:DEVICE (its primary context becomes current)  none (no context) own:DEVICE (a context of the
 * program's own)  fill:SIZE (in the current context)  here (its device) free (the last block of
 * alloc)  limit:DEVICE:SIZE  held:DEVICE  active:DEVICE release:DEVICE reset:DEVICE  rest  fork (in
 * a child: pick of "a")  threads (of eight, each 200 times, of names of their own)
 */
#include "victim.h"

#include <cuwarden/cuwarden.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static CUdeviceptr last;
static char name[64];
static uint64_t number, size;

static const char *its_name(void)
{
    return strcmp(name, "-") == 0 ? NULL : name;
}

static void answer(const char *word, int error, int device)
{
    if (error == CUWARDEN_OK)
        printf("%s %s %ju: device %d\n", word, name, (uintmax_t)size, device);
    else
        printf("%s %s %ju: error %d: %s\n", word, name, (uintmax_t)size, error,
               cuwarden_error_text(error));
}

static void run_pick(void)
{
    int32_t device = -1;
    int error = cuwarden_device_pick(its_name(), size * MIB, &device);

    answer("pick", error, device);
}

static void run_alloc(void)
{
    int32_t device = -1;
    void *block = NULL;
    int error = cuwarden_device_alloc(its_name(), size * MIB, &device, &block), where = -1;

    if (error == CUWARDEN_OK) {
        last = (CUdeviceptr)(uintptr_t)block;
        MUST(cuPointerGetAttribute(&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, last));
        if (where != device)
            printf("it is on device %d\n", where);
    }
    answer("alloc", error, device);
}

static void run_use(void)
{
    use_device((int)number);
}

static void run_own(void)
{
    CUcontext context;

    MUST(cuCtxCreate_v2(&context, 0, (CUdevice)number));
}

static void run_none(void)
{
    MUST(cuCtxSetCurrent(NULL));
}

static void run_fill(void)
{
    CUdeviceptr block;

    MUST(cuMemAlloc(&block, number * MIB));
}

static void run_here(void)
{
    CUdevice device = -1;
    CUcontext context = NULL;

    MUST(cuCtxGetCurrent(&context));
    if (context != NULL)
        MUST(cuCtxGetDevice(&device));
    printf("here: device %d\n", device);
}

static struct {
    CUdeviceptr block[8];
    unsigned count;
} taken[4];

static void run_take(void)
{
    use_device((int)number);
    MUST(cuMemAlloc(&taken[number].block[taken[number].count++], size * MIB));
}

static void run_give(void)
{
    MUST(cuMemFree(taken[number].block[--taken[number].count]));
}

static void run_free(void)
{
    MUST(cuMemFree(last));
}

static void run_limit(void)
{
    if (cuwarden_limit_set((int)number, size * MIB) != CUWARDEN_OK)
        printf("limit: %s\n", cuwarden_error_text(CUWARDEN_DRIVER));
}

static void run_active(void)
{
    unsigned flags;
    int is_active;

    MUST(cuDevicePrimaryCtxGetState((CUdevice)number, &flags, &is_active));
    printf("device %d is %s\n", (int)number, is_active ? "active" : "not active");
}

static void run_release(void)
{
    MUST(cuDevicePrimaryCtxRelease((CUdevice)number));
}

static void run_reset(void)
{
    MUST(cuDevicePrimaryCtxReset((CUdevice)number));
}

/* So long that the library looks at the devices anew. */
static void run_rest(void)
{
    usleep(150000);
    MUST(cuCtxSynchronize());
}

static void run_fork(void)
{
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        int32_t device = -1;

        printf("child: error %d\n", cuwarden_device_pick("a", MIB, &device));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void *pick_many(void *arg)
{
    char own[16];
    int32_t device, first = -1;

    use_device((int)(intptr_t)arg % 3);
    snprintf(own, sizeof(own), "t%d", (int)(intptr_t)arg);
    for (unsigned i = 0; i < 200; i++) {
        void *block;

        if (cuwarden_device_alloc(own, MIB, &device, &block) != CUWARDEN_OK)
            exit(99);
        if (first < 0)
            first = device;
        if (device != first)
            exit(98);
        MUST(cuMemFree((CUdeviceptr)(uintptr_t)block));
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t thread[8];

    for (int i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, pick_many, (void *)(intptr_t)i);
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
}

static const struct {
    const char *word;
    void (*run)(void);
} words[] = {
    {"pick", run_pick},   {"alloc", run_alloc},   {"use", run_use},         {"own", run_own},
    {"none", run_none},   {"fill", run_fill},     {"here", run_here},       {"free", run_free},
    {"limit", run_limit}, {"active", run_active}, {"release", run_release}, {"reset", run_reset},
    {"fork", run_fork},   {"rest", run_rest},     {"threads", run_threads}, {"take", run_take},
    {"give", run_give},
};

int main(int argc, char **argv)
{
    MUST(cuInit(0));
    for (int i = 1; i < argc; i++) {
        const char *word = strsep(&argv[i], ":"), *one = strsep(&argv[i], ":"),
                   *two = strsep(&argv[i], ":");

        snprintf(name, sizeof(name), "%s", one ? one : "");
        number = one ? strtoull(one, NULL, 10) : 0;
        size = two ? strtoull(two, NULL, 10) : 0;
        for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
            if (strcmp(words[k].word, word) == 0)
                words[k].run();
    }
    return 0;
}
