/* SPDX-License-Identifier: MIT */
/* A stand-in for libnvidia-ml.so.1: the devices of the simulated GPU and the memory that is in use.
 *
 * What the simulated libcuda of the process says is true; where there is none, the environment and
 * the file of CUSIM_SHARED are asked. This library never loads libcuda itself. The declarations are
 * its own, of the functions' published interface. Guarded by `lock`, which is not held while
 * libcuda is asked.
 */
#include "sim_world.h"

#include "cusim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
};

#define UUID_TEXT     SIM_UUID_TEXT
#define INSTANCES_MAX 7

typedef struct device {
    int ordinal;
    int instances; /* of an instance: how many the device is divided into */
} * nvmlDevice_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

#define MEMORY_V2 ((unsigned)sizeof(nvmlMemory_v2_t) | 2u << 24)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct device devices[SIM_MAX_DEVICES];
static struct device instances[INSTANCES_MAX]; /* of the device that CUSIM_MIG names */

static bool is_initialised(void)
{
    bool is;

    pthread_mutex_lock(&lock);
    is = users > 0;
    pthread_mutex_unlock(&lock);
    return is;
}

static bool is_device(nvmlDevice_t device)
{
    return (device >= devices && device < devices + SIM_MAX_DEVICES) ||
           (device >= instances && device < instances + INSTANCES_MAX && device->instances != 0);
}

/* ---- where the answers come from ---- */

/* A function of the libcuda that is in the process; NULL if there is none, or another one. */
static void *ask_driver(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *function = driver ? dlsym(driver, name) : NULL;

    if (driver)
        dlclose(driver);
    return function;
}

/* The driver's number of a device of the machine; -1: it has no such. */
static int find_ordinal(int number)
{
    __typeof__(cusim_uuid) *ask = (__typeof__(cusim_uuid) *)ask_driver("cusim_uuid");
    unsigned char wanted[16], uuid[16];

    sim_world_uuid(number, wanted);
    for (int i = 0; ask && i < SIM_MAX_DEVICES && ask(i, uuid) == 0; i++)
        if (memcmp(uuid, wanted, sizeof uuid) == 0)
            return i;
    return -1;
}

static void ask_world(int ordinal, unsigned long long *used, unsigned long long *total)
{
    size_t memory[SIM_MAX_DEVICES];

    sim_world_memory(memory);
    *total = memory[ordinal];
    *used = 0;
    pthread_mutex_lock(&lock);
    sim_share_open();
    if (sim_share_is_on()) {
        sim_share_lock();
        *used = sim_share_sum(ordinal);
        sim_share_unlock();
    }
    pthread_mutex_unlock(&lock);
}

static int find_memory(nvmlDevice_t device, unsigned long long *used, unsigned long long *total)
{
    __typeof__(cusim_memory) *ask = (__typeof__(cusim_memory) *)ask_driver("cusim_memory");
    int ordinal;

    if (!is_initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!is_device(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sim_option_number("CUSIM_INTEGRATED", 0) != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    ordinal = device->instances == 0 ? find_ordinal(device->ordinal) : -1;
    if (ask && ordinal >= 0)
        return ask(ordinal, used, total) == 0 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
    ask_world(device->ordinal, used, total);
    if (device->instances != 0) {
        *total /= (unsigned)device->instances;
        *used = 0;
    }
    if (*used > *total)
        *used = *total;
    return NVML_SUCCESS;
}

static unsigned count_devices(void)
{
    return (unsigned)sim_world_devices();
}

/* That of an instance differs in a letter. */
static void write_uuid(nvmlDevice_t device, char text[UUID_TEXT])
{
    sim_world_uuid_text(device->ordinal, text);
    if (device->instances != 0) {
        memcpy(text, "MIG", 3);
        text[4] = (char)('a' + (device - instances));
    }
}

/* ---- entry points ---- */

#pragma GCC visibility push(default)

/* "ORDINAL:COUNT" */
static void divide(const char *text)
{
    int ordinal, count;

    if (!text || sscanf(text, "%d:%d", &ordinal, &count) != 2 || count > INSTANCES_MAX)
        return;
    for (int i = 0; i < count; i++)
        instances[i] = (struct device){.ordinal = ordinal, .instances = count};
}

int nvmlInit_v2(void)
{
    pthread_mutex_lock(&lock);
    users++;
    for (int i = 0; i < SIM_MAX_DEVICES; i++)
        devices[i].ordinal = i;
    divide(getenv("CUSIM_MIG"));
    pthread_mutex_unlock(&lock);
    return NVML_SUCCESS;
}

int nvmlShutdown(void)
{
    int status = NVML_SUCCESS;

    pthread_mutex_lock(&lock);
    if (users > 0)
        users--;
    else
        status = NVML_ERROR_UNINITIALIZED;
    pthread_mutex_unlock(&lock);
    return status;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (!is_initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = count_devices();
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *out)
{
    if (!is_initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!out || index >= count_devices())
        return NVML_ERROR_INVALID_ARGUMENT;
    *out = &devices[index];
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out)
{
    char text[UUID_TEXT];

    if (!is_initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!uuid || !out)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < count_devices(); i++) {
        sim_world_uuid_text((int)i, text);
        if (strcmp(text, uuid) == 0) {
            *out = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* Domain and function are 0, the bus is the ordinal and one; the domain may be left out. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *text, nvmlDevice_t *out)
{
    unsigned bus, slot, domain = 0;

    if (!is_initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!text || !out)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(text, "%x:%x", &bus, &slot) != 2)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (domain != 0 || slot != 0 || bus == 0 || bus > count_devices())
        return NVML_ERROR_NOT_FOUND;
    *out = &devices[bus - 1];
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    __typeof__(int(int *)) *ask = (__typeof__(int(int *)) *)ask_driver("cuDriverGetVersion");

    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (ask)
        return ask(version) == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
    *version = (int)sim_option_number("CUSIM_DRIVER_VERSION", 13000);
    return NVML_SUCCESS;
}

/* ---- what nothing is known of ---- */

static int is_unknown(nvmlDevice_t device)
{
    if (!is_initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!is_device(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, void *out)
{
    (void)count, (void)out;
    return is_unknown(device);
}

typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
} nvmlProcessInfo_t;

/* The processes of CUSIM_SHARED; without that there are none that could be known. */
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                            nvmlProcessInfo_t *out)
{
    int status = is_unknown(device);
    unsigned room = count ? *count : 0;

    if (status != NVML_ERROR_NOT_SUPPORTED || !count)
        return status == NVML_ERROR_NOT_SUPPORTED ? NVML_ERROR_INVALID_ARGUMENT : status;
    pthread_mutex_lock(&lock);
    sim_share_open();
    *count = 0;
    if (sim_share_is_on()) {
        int64_t pid;
        uint64_t used;

        sim_share_lock();
        for (int slot = 0; (slot = sim_share_user(slot, device->ordinal, &pid, &used)) > 0;) {
            if (*count < room)
                out[*count] = (nvmlProcessInfo_t){.pid = (unsigned)pid, .used = used};
            ++*count;
        }
        sim_share_unlock();
    }
    pthread_mutex_unlock(&lock);
    return *count <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

int nvmlDeviceGetName(nvmlDevice_t device, char *out, unsigned int length)
{
    int status = is_unknown(device);

    if (status != NVML_ERROR_NOT_SUPPORTED)
        return status;
    sim_world_name(device->ordinal, out, length);
    return NVML_SUCCESS;
}

/* ---- MIG ---- */

int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    int status = is_unknown(device);

    if (status != NVML_ERROR_NOT_SUPPORTED || instances[0].instances == 0)
        return status;
    if (!current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = device == &devices[instances[0].ordinal];
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    int status = is_unknown(device);

    if (status != NVML_ERROR_NOT_SUPPORTED || !count)
        return status == NVML_ERROR_NOT_SUPPORTED ? NVML_ERROR_INVALID_ARGUMENT : status;
    *count = INSTANCES_MAX;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *out)
{
    int status = is_unknown(device);

    if (status != NVML_ERROR_NOT_SUPPORTED)
        return status;
    if (!out || index >= INSTANCES_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (instances[index].instances == 0 || device != &devices[instances[0].ordinal])
        return NVML_ERROR_NOT_FOUND;
    *out = &instances[index];
    return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, void *out)
{
    (void)link, (void)out;
    return is_unknown(device);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, void *out)
{
    (void)link, (void)out;
    return is_unknown(device);
}

int nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, void *out)
{
    (void)out;
    return is_unknown(device);
}

int nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned int length)
{
    char text[UUID_TEXT];

    if (!is_initialised())
        return NVML_ERROR_UNINITIALIZED;
    if (!out || !is_device(device) || device->ordinal >= (int)count_devices())
        return NVML_ERROR_INVALID_ARGUMENT;
    if (length < UUID_TEXT)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    write_uuid(device, text);
    memcpy(out, text, UUID_TEXT);
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
    unsigned long long used, total;
    int status = find_memory(device, &used, &total);

    if (status == NVML_SUCCESS && !out)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS)
        *out = (nvmlMemory_t){.total = total, .free = total - used, .used = used};
    return status;
}

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out)
{
    unsigned long long used, total;
    int status = find_memory(device, &used, &total);

    if (status == NVML_SUCCESS && !out)
        status = NVML_ERROR_INVALID_ARGUMENT;
    if (status == NVML_SUCCESS && out->version != MEMORY_V2)
        status = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (status == NVML_SUCCESS)
        *out = (nvmlMemory_v2_t){
            .version = MEMORY_V2, .total = total, .free = total - used, .used = used};
    return status;
}

/* nvmlGetMemoryLimits_v1_t: limits of a control group, as the driver's own accounting has them. */
typedef struct {
    const char *nameSpace;
    unsigned long long softLimit, hardLimit, currentUsed;
} nvmlGetMemoryLimits_v1_t;

/* "GROUP:SOFT:HARD:USED" of CUSIM_GROUP_LIMITS, the numbers in bytes, HARD also max. */
int nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *out)
{
    const char *text = getenv("CUSIM_GROUP_LIMITS"), *end = text ? strchr(text, ':') : NULL;
    int status = is_unknown(device);
    char hard[32];

    if (status != NVML_ERROR_NOT_SUPPORTED || !end)
        return status;
    if (!out || !out->nameSpace)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device->instances != 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (strncmp(out->nameSpace, text, (size_t)(end - text)) != 0 ||
        out->nameSpace[end - text] != '\0' ||
        sscanf(end, ":%llu:%31[^:]:%llu", &out->softLimit, hard, &out->currentUsed) != 3)
        return NVML_ERROR_NOT_FOUND;
    out->hardLimit = strcmp(hard, "max") == 0 ? ~0ull : strtoull(hard, NULL, 10);
    return NVML_SUCCESS;
}

const char *nvmlErrorString(int result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "success";
    case NVML_ERROR_UNINITIALIZED:
        return "not initialised";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "invalid argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "not supported";
    case NVML_ERROR_NOT_FOUND:
        return "not found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "insufficient size";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "version of the argument not known";
    default:
        return "unknown error";
    }
}
