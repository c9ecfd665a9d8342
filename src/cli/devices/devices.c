/* SPDX-License-Identifier: MIT */
/* The devices that a program could use. See devices.h. Owns nothing. */
#include "cli/devices/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/devices/nvml.h"
#include "cli/devices/visible.h"
#include "cli/ui/message.h"

#define WHY_MAX 320

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

int cw_devices_keep(struct cw_devices *devices, const char *visible, char *why, size_t cap)
{
    static struct cw_visible names;
    static struct cw_devices all;

    all = *devices;
    return cw_visible_read(visible, &names, why, cap) == 0
               ? cw_visible_find(&names, &all, devices, why, cap)
               : -1;
}

static const struct cw_device_memory *twin_of(const struct cw_device_memory *device,
                                              const struct cw_devices *all)
{
    for (unsigned i = 0; i < all->count; i++)
        if (strcmp(all->device[i].uuid, device->uuid) == 0)
            return &all->device[i];
    return NULL;
}

/* Those that the driver shows, as NVML has them. */
static int adopt(struct cw_devices *devices, const struct cw_devices *all, char *why, size_t cap)
{
    for (unsigned i = 0; i < devices->count; i++) {
        const struct cw_device_memory *twin = twin_of(&devices->device[i], all);

        if (!twin) {
            snprintf(why, cap, "leaves %s, which NVML does not know", devices->device[i].uuid);
            return -1;
        }
        devices->device[i] = *twin;
    }
    return 0;
}

/* What the driver shows has no numbers but its own. */
static void number(struct cw_devices *devices, const struct cw_devices *all)
{
    for (unsigned i = 0; i < devices->count; i++) {
        devices->device[i].index = 0;
        for (unsigned k = 0; k < all->count; k++)
            devices->device[i].index += all->device[k].place < devices->device[i].place;
    }
}

/* Why the driver could not be asked what the names mean. */
static int say_unasked(int has_nvml, const char *reason, char *why, size_t cap)
{
    if (has_nvml)
        snprintf(why, cap,
                 "has numbers, which count in the order of the CUDA driver, and that cannot be "
                 "asked; name UUIDs ('nvidia-smi -L' lists them), or set "
                 "CUDA_DEVICE_ORDER=PCI_BUS_ID");
    else
        snprintf(why, cap, "cannot be read: %.200s", reason);
    return -1;
}

/* The driver says what the names mean. */
static int keep_shown(const struct cw_visible *visible, const struct cw_devices *all, int has_nvml,
                      struct cw_devices *devices, char *why, size_t cap)
{
    static char list[CW_VISIBLE_TEXT];
    char reason[WHY_MAX];

    if (cw_devices_by_driver(devices, cw_visible_print(visible, list, sizeof(list)), !has_nvml,
                             reason, sizeof(reason)) != 0)
        return say_unasked(has_nvml, reason, why, cap);
    if (devices->count < visible->count)
        return cw_visible_say_hidden(all, visible->name[devices->count], why, cap);
    if (has_nvml)
        return adopt(devices, all, why, cap);
    number(devices, all);
    return 0;
}

static int keep_visible(const char *value, const struct cw_devices *all, int has_nvml,
                        struct cw_devices *devices, char *why, size_t cap)
{
    static struct cw_visible visible;

    if (cw_visible_read(value, &visible, why, cap) != 0 ||
        cw_visible_check(&visible, all, why, cap) != 0)
        return -1;
    return has_nvml && cw_visible_is_plain(&visible, all)
               ? cw_visible_find(&visible, all, devices, why, cap)
               : keep_shown(&visible, all, has_nvml, devices, why, cap);
}

/* ---- the environment ---- */

/* All of the machine. */
static int look_by_driver(struct cw_devices *all, int has_memory)
{
    char why[WHY_MAX];

    if (cw_devices_by_driver(all, NULL, has_memory, why, sizeof(why)) != 0)
        cw_cli_error("%s", why);
    else if (all->count == 0)
        cw_cli_error("the CUDA driver shows no GPU; 'cuwarden doctor' says what to do");
    else
        return 0;
    return -1;
}

int cw_devices_look(struct cw_devices *devices)
{
    static struct cw_devices all;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int has_nvml = cw_devices_by_nvml(&all) == 0;
    char why[WHY_MAX];

    if (!has_nvml && look_by_driver(&all, visible == NULL) != 0)
        return -1;
    if (!visible) {
        *devices = all;
        return 0;
    }
    if (keep_visible(visible, &all, has_nvml, devices, why, sizeof(why)) == 0)
        return 0;
    cw_cli_error("CUDA_VISIBLE_DEVICES %s", why);
    return -1;
}

const char *cw_device_label(const struct cw_device_memory *device, char *buf, size_t cap)
{
    snprintf(buf, cap, "GPU %u%s", (unsigned)device->index, device->is_mig ? " (MIG)" : "");
    return buf;
}
