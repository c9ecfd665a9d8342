/* SPDX-License-Identifier: MIT */
/*
 * The devices as the driver tells them. See devices.h.
 *
 * Free memory is only told within a context, which takes some hundred MiB itself; so a child asks,
 * whose contexts end with it, and what it is told is what is left beside such a context. The
 * declarations are our own, of the driver's published interface (CUDA Driver API reference).
 */
#include "cli/devices/devices.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/host_memory.h"
#include "base/out.h"

#define NO_DEVICE  100 /* CUDA_ERROR_NO_DEVICE */
#define INTEGRATED 18  /* CU_DEVICE_ATTRIBUTE_INTEGRATED */

struct driver {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*device)(int *device, int ordinal);
    int (*attribute)(int *value, int attribute, int device);
    int (*name)(char *name, int len, int device);
    int (*uuid)(unsigned char uuid[16], int device);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*current)(void *context);
    int (*memory)(size_t *free, size_t *total);
};

/* What the child says. */
struct answer {
    enum { ANSWER_NONE, ANSWER_LIST, ANSWER_NO_LIBRARY, ANSWER_OLD, ANSWER_FAILED } kind;
    int code; /* of the driver */
    struct cw_devices devices;
};

static int load(struct driver *driver, void *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
        {"cuInit", offsetof(struct driver, init)},
        {"cuDeviceGetCount", offsetof(struct driver, count)},
        {"cuDeviceGet", offsetof(struct driver, device)},
        {"cuDeviceGetAttribute", offsetof(struct driver, attribute)},
        {"cuDeviceGetName", offsetof(struct driver, name)},
        {"cuDeviceGetUuid_v2", offsetof(struct driver, uuid)}, /* those of MIG instances, too */
        {"cuDevicePrimaryCtxRetain", offsetof(struct driver, retain)},
        {"cuDevicePrimaryCtxRelease_v2", offsetof(struct driver, release)},
        {"cuCtxSetCurrent", offsetof(struct driver, current)},
        {"cuMemGetInfo_v2", offsetof(struct driver, memory)},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(functions); i++) {
        void *function = dlsym(library, functions[i].name);

        if (!function)
            return -1;
        *(void **)((char *)driver + functions[i].offset) = function;
    }
    return 0;
}

static void write_uuid(struct cw_device_memory *device, const unsigned char uuid[16])
{
    size_t len = cw_format(device->uuid, sizeof(device->uuid), device->is_mig ? "MIG-" : "GPU-");

    for (int i = 0; i < 16; i++)
        len += cw_format(device->uuid + len, sizeof(device->uuid) - len, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* A device without room for a context has none for a program. */
static void ask_memory(const struct driver *driver, int handle, struct cw_device_memory *device)
{
    size_t free_bytes = 0, total = 0;
    void *context;

    if (driver->retain(&context, handle) != 0)
        return;
    if (driver->current(context) == 0 && driver->memory(&free_bytes, &total) == 0) {
        device->free = free_bytes;
        device->total = total;
    }
    (void)driver->current(NULL);
    (void)driver->release(handle);
}

/* The driver does not count what the kernel's caches would give up. */
static void ask_kernel(const struct driver *driver, int handle, struct cw_device_memory *device)
{
    struct cw_host_memory host;
    int is_integrated = 0;

    if (driver->attribute(&is_integrated, INTEGRATED, handle) == 0 && is_integrated &&
        cw_host_memory_of(CW_HOST_MEMORY_ALL, &host) == 0)
        device->free = host.available < device->total ? host.available : device->total;
}

static int ask_devices(const struct driver *driver, struct cw_devices *devices)
{
    int count = 0, rc = driver->init(0);

    if (rc == 0)
        rc = driver->count(&count);
    for (int i = 0; i < count && i < CW_DEVICES_MAX && rc == 0; i++) {
        struct cw_device_memory *device = &devices->device[devices->count];
        unsigned char uuid[16];
        int handle;

        device->index = (uint32_t)i;
        rc = driver->device(&handle, i);
        if (rc != 0 || driver->uuid(uuid, handle) != 0 ||
            driver->name(device->name, sizeof(device->name), handle) != 0)
            break;
        device->is_mig = strstr(device->name, " MIG ") != NULL;
        write_uuid(device, uuid);
        ask_memory(driver, handle, device);
        ask_kernel(driver, handle, device);
        devices->count++;
    }
    return rc;
}

static void answer(struct answer *out)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct driver driver;

    if (!library) {
        out->kind = ANSWER_NO_LIBRARY;
    } else if (load(&driver, library) != 0) {
        out->kind = ANSWER_OLD;
    } else {
        out->code = ask_devices(&driver, &out->devices);
        out->kind = out->code == 0 ? ANSWER_LIST : ANSWER_FAILED;
    }
}

/* ---- the child ---- */

static int take_all(int fd, void *to, size_t len)
{
    size_t done = 0;
    ssize_t got = 1;

    while (done < len && got != 0) {
        got = read(fd, (char *)to + done, len - done);
        if (got < 0 && errno != EINTR)
            return -1;
        done += got > 0 ? (size_t)got : 0;
    }
    return done == len ? 0 : -1;
}

static int ask_child(struct answer *out)
{
    int pipes[2], status, rc;
    pid_t child;

    if (pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        answer(out);
        _exit(cw_write(pipes[1], out, sizeof(*out), 0) != 0);
    }
    close(pipes[1]);
    rc = child > 0 ? take_all(pipes[0], out, sizeof(*out)) : -1;
    close(pipes[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return rc;
}

static void say_none(char *why, size_t cap)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (visible)
        snprintf(why, cap, "the CUDA driver shows no GPU with CUDA_VISIBLE_DEVICES='%.100s'",
                 visible);
    else
        snprintf(why, cap, "the CUDA driver shows no GPU; 'cuwarden doctor' says what to do");
}

int cw_devices_by_driver(struct cw_devices *devices, char *why, size_t cap)
{
    static struct answer answer_;

    answer_ = (struct answer){.kind = ANSWER_NONE};
    devices->count = 0;
    if (ask_child(&answer_) != 0)
        snprintf(why, cap, "the CUDA driver could not be asked: the process that asked it ended");
    else if (answer_.kind == ANSWER_NO_LIBRARY)
        snprintf(why, cap,
                 "no CUDA driver here: neither libnvidia-ml.so.1 nor libcuda.so.1 can be loaded; "
                 "'cuwarden doctor' says what to do");
    else if (answer_.kind == ANSWER_OLD)
        snprintf(why, cap, "the CUDA driver is older than 11.4, and NVML is not there");
    else if (answer_.kind == ANSWER_FAILED && answer_.code != NO_DEVICE)
        snprintf(why, cap, "the CUDA driver cannot be used: error %d", answer_.code);
    else if (answer_.devices.count == 0)
        say_none(why, cap);
    else {
        *devices = answer_.devices;
        return 0;
    }
    return -1;
}
