/* SPDX-License-Identifier: MIT */
/* The devices that a program could use. See devices.h. Owns nothing. */
#include "cli/devices/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/option_values.h"
#include "base/out.h"
#include "base/printable.h"
#include "cli/devices/nvml.h"
#include "cli/ui/message.h"

#define WHY_MAX  320
#define LIST_MAX 160

/* ---- NVML ---- */

static void add(const struct cw_nvml *nvml, void *handle, uint32_t index, int is_mig,
                struct cw_devices *devices)
{
    struct cw_device_memory *device = &devices->device[devices->count];
    struct cw_nvml_memory memory;

    if (devices->count == CW_DEVICES_MAX)
        return;
    *device = (struct cw_device_memory){.index = index, .is_mig = (uint8_t)is_mig};
    if (cw_nvml_memory_of(nvml, handle, &memory) != 0 ||
        nvml->uuid(handle, device->uuid, sizeof(device->uuid)) != 0)
        return;
    if (!nvml->name || nvml->name(handle, device->name, sizeof(device->name)) != 0)
        device->name[0] = '\0';
    device->uuid[sizeof(device->uuid) - 1] = device->name[sizeof(device->name) - 1] = '\0';
    device->total = memory.total;
    device->free = memory.free;
    devices->count++;
}

/* 1 if the GPU is divided: then it cannot be used as a whole. */
static int add_instances(const struct cw_nvml *nvml, void *handle, uint32_t index,
                         struct cw_devices *devices)
{
    unsigned int current = 0, pending = 0, count = 0;

    if (!nvml->mig_mode || !nvml->mig_count || !nvml->mig_handle ||
        nvml->mig_mode(handle, &current, &pending) != 0 || current == 0)
        return 0;
    (void)nvml->mig_count(handle, &count);
    for (unsigned int i = 0; i < count; i++) {
        void *instance;

        if (nvml->mig_handle(handle, i, &instance) == 0) /* not all of them exist */
            add(nvml, instance, index, 1, devices);
    }
    return 1;
}

int cw_devices_by_nvml(struct cw_devices *devices)
{
    const struct cw_nvml *nvml = cw_nvml();
    unsigned int count = 0;

    devices->count = 0;
    if (!nvml || nvml->count(&count) != 0)
        return -1;
    for (unsigned int i = 0; i < count; i++) {
        void *handle;

        if (nvml->handle(i, &handle) == 0 && !add_instances(nvml, handle, i, devices))
            add(nvml, handle, i, 0, devices);
    }
    return devices->count > 0 ? 0 : -1;
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

static const struct cw_device_memory *by_index(const struct cw_devices *devices, const char *word)
{
    uint64_t index;

    if (cw_count_parse(word, &index) != 0)
        return NULL;
    for (unsigned i = 0; i < devices->count; i++)
        if (devices->device[i].index == index)
            return &devices->device[i]; /* of a divided GPU the first, as CUDA takes */
    return NULL;
}

/* The beginning of a UUID is enough if it is one device's alone. */
static const struct cw_device_memory *by_uuid(const struct cw_devices *devices, const char *word)
{
    const struct cw_device_memory *found = NULL;
    size_t len = strlen(word);

    for (unsigned i = 0; i < devices->count; i++) {
        if (strncmp(devices->device[i].uuid, word, len) != 0)
            continue;
        if (found)
            return NULL;
        found = &devices->device[i];
    }
    return found;
}

static const struct cw_device_memory *find(const struct cw_devices *devices, const char *word)
{
    return strncmp(word, "GPU-", 4) == 0 || strncmp(word, "MIG-", 4) == 0 ? by_uuid(devices, word)
                                                                          : by_index(devices, word);
}

static int is_in(const struct cw_devices *devices, const char *uuid)
{
    for (unsigned i = 0; i < devices->count; i++)
        if (strcmp(devices->device[i].uuid, uuid) == 0)
            return 1;
    return 0;
}

/* "is only GPU 2", "are only GPUs 0, 1, 3". Returns buf. */
static const char *list_all(const struct cw_devices *devices, char *buf, size_t cap)
{
    int is_one =
        devices->count > 0 && devices->device[0].index == devices->device[devices->count - 1].index;
    size_t len = cw_format(buf, cap, "%s", is_one ? "is only GPU" : "are only GPUs");

    for (unsigned i = 0; i < devices->count && len < cap; i++)
        if (i == 0 || devices->device[i].index != devices->device[i - 1].index)
            len += cw_format(buf + len, cap - len, "%s %u", i > 0 ? "," : "",
                             (unsigned)devices->device[i].index);
    return buf;
}

static int say_unknown(const struct cw_devices *devices, const char *word, char *why, size_t cap)
{
    char list[LIST_MAX];

    if (strchr(word, '-'))
        snprintf(why, cap,
                 "names '%.100s', which is no device here, or several; 'nvidia-smi -L' lists them",
                 word);
    else
        snprintf(why, cap, "names '%.100s', but there %s", word,
                 list_all(devices, list, sizeof(list)));
    return -1;
}

int cw_devices_keep(struct cw_devices *devices, const char *visible, char *why, size_t cap)
{
    static struct cw_devices all;
    char *words = strdup(visible), *rest = words, *word;

    all = *devices;
    devices->count = 0;
    while (words && (word = strsep(&rest, ","))) {
        const struct cw_device_memory *found;

        word += strspn(word, " ");
        word[strcspn(word, " ")] = '\0';
        if (*word == '\0' || strncmp(word, "-", 1) == 0)
            break; /* CUDA ignores what follows */
        found = find(&all, word);
        if (!found) {
            (void)say_unknown(&all, cw_printable_clean_string(word), why, cap);
            free(words);
            return -1;
        }
        if (!is_in(devices, found->uuid))
            devices->device[devices->count++] = *found;
    }
    free(words);
    if (devices->count > 0)
        return 0;
    snprintf(why, cap, "is '%.100s', which leaves no device", visible);
    return -1;
}

/* ---- the environment ---- */

/* Whether numbers mean to CUDA what they mean to NVML, which orders by PCI bus: CUDA takes the
 * fastest first, unless all are alike (CUDA C Programming Guide, "Environment Variables"). */
static int has_order_of_nvml(const struct cw_devices *devices, const char *visible)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");

    if (visible[strcspn(visible, "0123456789")] == '\0' || strstr(visible, "GPU-") ||
        strstr(visible, "MIG-") || (order && strcmp(order, "PCI_BUS_ID") == 0))
        return 1;
    for (unsigned i = 1; i < devices->count; i++)
        if (strcmp(devices->device[i].name, devices->device[0].name) != 0)
            return 0;
    return 1;
}

static int look_by_driver(struct cw_devices *devices)
{
    char why[WHY_MAX];

    if (cw_devices_by_driver(devices, why, sizeof(why)) == 0)
        return 0;
    cw_cli_error("%s", why);
    return -1;
}

int cw_devices_look(struct cw_devices *devices)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char why[WHY_MAX];

    if (cw_devices_by_nvml(devices) != 0)
        return look_by_driver(devices);
    if (!visible)
        return 0;
    if (!has_order_of_nvml(devices, visible))
        return look_by_driver(devices);
    if (cw_devices_keep(devices, visible, why, sizeof(why)) == 0)
        return 0;
    cw_cli_error("CUDA_VISIBLE_DEVICES %s", why);
    return -1;
}

const char *cw_device_label(const struct cw_device_memory *device, char *buf, size_t cap)
{
    snprintf(buf, cap, "GPU %u%s", (unsigned)device->index, device->is_mig ? " (MIG)" : "");
    return buf;
}
