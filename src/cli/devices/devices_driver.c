/* SPDX-License-Identifier: MIT */
/*
 * The devices as the driver tells them. See devices.h.
 *
 * A child asks, whose environment says which are shown. Free memory is only told within a context,
 * which takes some hundred MiB itself and ends with the child; what it is told is what is left
 * beside such a context. The declarations are our own, of the driver's published interface (CUDA
 * Driver API reference).
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

#define NO_DEVICE 100 /* CUDA_ERROR_NO_DEVICE */

/* CU_DEVICE_ATTRIBUTE_* */
enum { INTEGRATED = 18, PCI_BUS = 33, PCI_DEVICE = 34, PCI_DOMAIN = 50 };

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

/* What the child is to say. */
struct question {
    const char *visible; /* CUDA_VISIBLE_DEVICES; NULL: none */
    int has_memory;
};

/* What it says. */
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

static uint64_t ask_place(const struct driver *driver, int handle)
{
    static const int parts[] = {PCI_DOMAIN, PCI_BUS, PCI_DEVICE};
    uint64_t place = 0;

    for (size_t i = 0; i < CW_ARRAY_LEN(parts); i++) {
        int part = 0;

        (void)driver->attribute(&part, parts[i], handle);
        place = place << 16 | (uint16_t)part;
    }
    return place;
}

static int ask_devices(const struct driver *driver, int has_memory, struct cw_devices *devices)
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
        device->place = ask_place(driver, handle);
        if (has_memory) {
            ask_memory(driver, handle, device);
            ask_kernel(driver, handle, device);
        }
        devices->count++;
    }
    return rc;
}

/* The driver reads the environment once in a process. */
static void answer(const struct question *question, struct answer *out)
{
    int rc = question->visible ? setenv("CUDA_VISIBLE_DEVICES", question->visible, 1)
                               : unsetenv("CUDA_VISIBLE_DEVICES");
    void *library = rc == 0 ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    struct driver driver;

    if (rc != 0) {
        out->kind = ANSWER_NONE;
    } else if (!library) {
        out->kind = ANSWER_NO_LIBRARY;
    } else if (load(&driver, library) != 0) {
        out->kind = ANSWER_OLD;
    } else {
        out->code = ask_devices(&driver, question->has_memory, &out->devices);
        out->kind = out->code == 0 || out->code == NO_DEVICE ? ANSWER_LIST : ANSWER_FAILED;
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

static int ask_child(const struct question *question, struct answer *out)
{
    int pipes[2], status, rc;
    pid_t child;

    if (pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        answer(question, out);
        _exit(cw_write(pipes[1], out, sizeof(*out), 0) != 0);
    }
    close(pipes[1]);
    rc = child > 0 ? take_all(pipes[0], out, sizeof(*out)) : -1;
    close(pipes[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return rc;
}

/* ---- the list ---- */

static int compare_places(const void *a, const void *b)
{
    const struct cw_device_memory *left = a, *right = b;

    return left->place < right->place ? -1 : left->place > right->place;
}

static void sort(struct cw_devices *devices)
{
    qsort(devices->device, devices->count, sizeof(*devices->device), compare_places);
    for (unsigned i = 0; i < devices->count; i++)
        devices->device[i].index = i;
}

int cw_devices_by_driver(struct cw_devices *devices, const char *visible, int has_memory, char *why,
                         size_t cap)
{
    const struct question question = {.visible = visible, .has_memory = has_memory};
    static struct answer answer_;

    answer_ = (struct answer){.kind = ANSWER_NONE};
    if (ask_child(&question, &answer_) != 0 || answer_.kind == ANSWER_NONE)
        snprintf(why, cap, "the CUDA driver could not be asked: the process that asked it ended");
    else if (answer_.kind == ANSWER_NO_LIBRARY)
        snprintf(why, cap,
                 "no CUDA driver here: neither libnvidia-ml.so.1 nor libcuda.so.1 can be loaded; "
                 "'cuwarden doctor' says what to do");
    else if (answer_.kind == ANSWER_OLD)
        snprintf(why, cap, "the CUDA driver is older than 11.4, and NVML is not there");
    else if (answer_.kind == ANSWER_FAILED)
        snprintf(why, cap, "the CUDA driver cannot be used: error %d", answer_.code);
    else {
        *devices = answer_.devices;
        if (!visible)
            sort(devices);
        return 0;
    }
    devices->count = 0;
    return -1;
}
