/* SPDX-License-Identifier: MIT */
/* Proves that the stand-in for NVML says what the simulated driver says, or the environment where
 * there is no driver in the process. Links neither; run with both on LD_LIBRARY_PATH, once plain
 * and once with CUSIM_SHARED and the argument `shared`. Prints TAP; exits 1 if a test fails.
 */
#include "selftest.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MiB 1048576ull

struct memory {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

static struct {
    int (*init)(void), (*shutdown)(void);
    int (*count)(unsigned *), (*by_index)(unsigned, void **), (*by_uuid)(const char *, void **);
    int (*uuid)(void *, char *, unsigned), (*memory)(void *, struct memory *);
    int (*memory_v2)(void *, struct memory_v2 *);
    int (*by_bus)(const char *, void **), (*driver)(int *),
        (*processes)(void *, unsigned *, void *);
    const char *(*text)(int);
} nvml;

static void load(void)
{
    static const struct {
        const char *name;
        void *slot;
    } functions[] = {
        {"nvmlInit_v2", &nvml.init},
        {"nvmlShutdown", &nvml.shutdown},
        {"nvmlDeviceGetCount_v2", &nvml.count},
        {"nvmlDeviceGetHandleByIndex_v2", &nvml.by_index},
        {"nvmlDeviceGetHandleByUUID", &nvml.by_uuid},
        {"nvmlDeviceGetUUID", &nvml.uuid},
        {"nvmlDeviceGetMemoryInfo", &nvml.memory},
        {"nvmlDeviceGetMemoryInfo_v2", &nvml.memory_v2},
        {"nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_bus},
        {"nvmlSystemGetCudaDriverVersion_v2", &nvml.driver},
        {"nvmlDeviceGetComputeRunningProcesses", &nvml.processes},
        {"nvmlErrorString", &nvml.text},
    };
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

    for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].name);

        memcpy(functions[i].slot, &address, sizeof address);
    }
    if (!library || !nvml.text) {
        printf("Bail out! %s\n", dlerror());
        exit(1);
    }
}

static struct memory memory_of(unsigned index)
{
    struct memory memory = {0};
    void *device = NULL;

    if (nvml.by_index(index, &device) != 0 || nvml.memory(device, &memory) != 0)
        printf("# no answer for device %u\n", index);
    return memory;
}

static bool is_memory(unsigned index, unsigned long long total, unsigned long long used)
{
    struct memory memory = memory_of(index);

    return memory.total == total && memory.used == used && memory.free == total - used;
}

static void test_errors(void)
{
    struct memory_v2 newer = {.version = sizeof newer | 2u << 24};
    char text[64] = "";
    void *device, *same;
    unsigned n = 0;
    int version = 0;

    ok(nvml.count(&n) == 1 && nvml.shutdown() == 1, "before nvmlInit nothing works");
    ok(nvml.init() == 0 && nvml.count(&n) == 0 && n == 2, "then there are the devices");
    ok(nvml.by_index(2, &device) == 2 && nvml.by_index(0, NULL) == 2 && nvml.count(NULL) == 2,
       "no others, and nothing for no result");
    ok(nvml.by_index(1, &device) == 0 && nvml.uuid(device, text, 40) == 7 &&
           nvml.uuid(device, NULL, 64) == 2 && nvml.uuid(device, text, 41) == 0,
       "a UUID needs its room");
    ok(strcmp(text, "GPU-63757369-6d20-6465-7669-636520303031") == 0, "and looks like one");
    ok(nvml.by_uuid(text, &same) == 0 && same == device && nvml.by_uuid("GPU-1", &same) == 6 &&
           nvml.by_uuid(NULL, &same) == 2 && nvml.by_uuid(text, NULL) == 2,
       "a device is found by it");
    ok(nvml.by_bus("0000:02:00.0", &same) == 0 && same == device &&
           nvml.by_bus("00000000:02:00.0", &same) == 0 && same == device &&
           nvml.by_bus("02:00.0", &same) == 0 && same == device,
       "and by where it is plugged in");
    ok(nvml.by_bus("0000:03:00.0", &same) == 6 && nvml.by_bus("0001:01:00.0", &same) == 6 &&
           nvml.by_bus("x", &same) == 2 && nvml.by_bus(NULL, &same) == 2,
       "but not elsewhere");
    ok(nvml.driver(&version) == 0 && version == 13000 && nvml.driver(NULL) == 2,
       "the driver has a version");
    ok(nvml.processes(device, &n, NULL) == 3 && nvml.processes(NULL, &n, NULL) == 2,
       "nobody knows of processes");
    ok(nvml.memory(device, NULL) == 2 && nvml.memory(NULL, (struct memory *)&newer) == 2 &&
           nvml.memory_v2(device, NULL) == 2 && nvml.memory_v2(NULL, &newer) == 2,
       "memory of nothing, and for nothing, is refused");
    ok(nvml.memory_v2(device, &newer) == 0 && newer.total == 32 * MiB && newer.free == 32 * MiB &&
           newer.reserved == 0 && newer.used == 0,
       "the newer call answers its own version");
    newer.version = sizeof newer | 1u << 24;
    ok(nvml.memory_v2(device, &newer) == 25, "and no other");
    ok(strcmp(nvml.text(0), nvml.text(2)) != 0 && nvml.text(12345) != NULL, "errors have names");
}

/* ---- with a driver ---- */

static void *find(void *driver, const char *name)
{
    void *address = dlsym(driver, name);

    if (!address) {
        printf("Bail out! no %s\n", name);
        exit(1);
    }
    return address;
}

static void use_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUdeviceptr block;
    CUcontext ctx;

    must(((CUresult(*)(unsigned))find(driver, "cuInit"))(0));
    must(((CUresult(*)(CUcontext *, unsigned, int))find(driver, "cuCtxCreate_v2"))(&ctx, 0, 0));
    must(((CUresult(*)(CUdeviceptr *, size_t))find(driver, "cuMemAlloc_v2"))(&block, 10 * MiB));
}

static void test_driver(void)
{
    ok(is_memory(0, 64 * MiB, 0) && is_memory(1, 32 * MiB, 0),
       "without a driver all memory is free");
    ok(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "and none is loaded");
    use_driver();
    ok(is_memory(0, 64 * MiB, 11 * MiB) && is_memory(1, 32 * MiB, 0),
       "with one, what it says is in use");
}

static void test_shared(void)
{
    int ends[2];
    char byte;
    pid_t pid;

    ok(nvml.init() == 0 && is_memory(0, 64 * MiB, 0), "an onlooker sees a free device");
    if (pipe(ends) != 0)
        exit(99);
    pid = fork();
    if (pid == 0) {
        use_driver();
        if (write(ends[1], "x", 1) != 1)
            _exit(1);
        pause();
    }
    if (read(ends[0], &byte, 1) != 1)
        exit(99);
    ok(is_memory(0, 64 * MiB, 11 * MiB), "and what other processes have of it");
    use_driver();
    ok(is_memory(0, 64 * MiB, 22 * MiB), "its own driver adds to it");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ok(is_memory(0, 64 * MiB, 11 * MiB), "what a killed process had is free again");
}

int main(int argc, char **argv)
{
    setenv("CUSIM_MEMORY", "64M,32M", 1);
    setenv("CUSIM_CONTEXT_BYTES", "1M", 1);
    load();
    if (argc > 1 && !strcmp(argv[1], "shared")) {
        test_shared();
    } else {
        test_errors();
        test_driver();
    }
    printf("1..%u\n", ntests);
    return nfailures > 0;
}
