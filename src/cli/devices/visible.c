/* SPDX-License-Identifier: MIT */
/* Lists of devices. See visible.h. Owns nothing. */
#include "cli/devices/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/option_values.h"
#include "base/out.h"
#include "base/printable.h"

#define LIST_MAX 160

/* What was named is in the reason. */
static int refuse(char *why)
{
    cw_printable_clean_string(why);
    return -1;
}

int cw_visible_read(const char *value, struct cw_visible *out, char *why, size_t cap)
{
    char *rest = out->text, *name;

    out->count = 0;
    if (strlen(value) >= sizeof(out->text)) {
        snprintf(why, cap, "is longer than any list of devices");
        return -1;
    }
    memcpy(out->text, value, strlen(value) + 1);
    while (out->count < CW_DEVICES_MAX && (name = strsep(&rest, ","))) {
        name += strspn(name, " ");
        name[strcspn(name, " ")] = '\0';
        if (*name == '\0' || *name == '-')
            break;
        out->name[out->count++] = name;
    }
    if (out->count > 0)
        return 0;
    snprintf(why, cap, "is '%.100s', which leaves no device", value);
    return refuse(why);
}

const char *cw_visible_print(const struct cw_visible *visible, char *buf, size_t cap)
{
    size_t len = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < visible->count && len < cap; i++)
        len += cw_format(buf + len, cap - len, "%s%s", i > 0 ? "," : "", visible->name[i]);
    return buf;
}

/* ---- names ---- */

static int is_mig(const char *name)
{
    return strncmp(name, "MIG-", 4) == 0;
}

static int is_uuid(const char *name)
{
    return strncmp(name, "GPU-", 4) == 0 || is_mig(name);
}

static const struct cw_device_memory *by_index(const struct cw_devices *devices, const char *name)
{
    uint64_t index;

    if (cw_count_parse(name, &index) != 0)
        return NULL;
    for (unsigned i = 0; i < devices->count; i++)
        if (devices->device[i].index == index)
            return &devices->device[i]; /* of a divided GPU the first, as CUDA takes */
    return NULL;
}

/* The beginning of a UUID is enough if it is one device's alone. */
static const struct cw_device_memory *by_uuid(const struct cw_devices *devices, const char *name)
{
    const struct cw_device_memory *found = NULL;
    size_t len = strlen(name);

    for (unsigned i = 0; i < devices->count; i++) {
        if (strncmp(devices->device[i].uuid, name, len) != 0)
            continue;
        if (found)
            return NULL;
        found = &devices->device[i];
    }
    return found;
}

static const struct cw_device_memory *find(const struct cw_devices *devices, const char *name)
{
    return is_uuid(name) ? by_uuid(devices, name) : by_index(devices, name);
}

/* ---- refusals ---- */

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

static int say_unknown(const struct cw_devices *all, const char *name, char *why, size_t cap)
{
    char list[LIST_MAX];

    if (strchr(name, '-'))
        snprintf(why, cap,
                 "names '%.100s', which is no device here, or several; 'nvidia-smi -L' lists them",
                 name);
    else
        snprintf(why, cap, "names '%.100s', but there %s", name, list_all(all, list, sizeof(list)));
    return refuse(why);
}

int cw_visible_say_hidden(const struct cw_devices *all, const char *name, char *why, size_t cap)
{
    if (!is_mig(name) && !find(all, name))
        return say_unknown(all, name, why, cap);
    snprintf(why, cap,
             "names '%.100s', which the CUDA driver does not show; to CUDA a list has numbers or "
             "UUIDs, or one MIG instance",
             name);
    return refuse(why);
}

static int is_again(const struct cw_visible *visible, unsigned i, const struct cw_devices *all)
{
    const struct cw_device_memory *device = find(all, visible->name[i]);

    for (unsigned k = 0; k < i; k++)
        if (strcmp(visible->name[k], visible->name[i]) == 0 ||
            (device && is_uuid(visible->name[k]) == is_uuid(visible->name[i]) &&
             find(all, visible->name[k]) == device))
            return 1;
    return 0;
}

/* Instances that the driver does not show of itself are not among `all` where it told them. */
int cw_visible_check(const struct cw_visible *visible, const struct cw_devices *all, char *why,
                     size_t cap)
{
    for (unsigned i = 0; i < visible->count; i++) {
        if (!is_mig(visible->name[i]) && !find(all, visible->name[i]))
            return say_unknown(all, visible->name[i], why, cap);
        if (is_again(visible, i, all)) {
            snprintf(why, cap, "names a device twice ('%.100s'), and CUDA then shows none",
                     visible->name[i]);
            return refuse(why);
        }
    }
    return 0;
}

/* ---- what is named ---- */

/* CUDA takes the fastest first, unless all are alike. */
static int has_order_of_bus(const struct cw_devices *all)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    const struct cw_device_memory *first = &all->device[0];

    if (order && strcmp(order, "PCI_BUS_ID") == 0)
        return 1;
    for (unsigned i = 1; i < all->count; i++) {
        const struct cw_device_memory *device = &all->device[i];

        if (device->index != first->index &&
            (first->name[0] == '\0' || strcmp(device->name, first->name) != 0 ||
             device->total != first->total))
            return 0;
    }
    return 1;
}

int cw_visible_is_plain(const struct cw_visible *visible, const struct cw_devices *all)
{
    unsigned numbers = 0;

    for (unsigned i = 0; i < visible->count; i++)
        numbers += !is_uuid(visible->name[i]);
    return numbers == 0 || (numbers == visible->count && has_order_of_bus(all));
}

static int is_in(const struct cw_devices *devices, const char *uuid)
{
    for (unsigned i = 0; i < devices->count; i++)
        if (strcmp(devices->device[i].uuid, uuid) == 0)
            return 1;
    return 0;
}

int cw_visible_find(const struct cw_visible *visible, const struct cw_devices *all,
                    struct cw_devices *out, char *why, size_t cap)
{
    out->count = 0;
    for (unsigned i = 0; i < visible->count; i++) {
        const struct cw_device_memory *found = find(all, visible->name[i]);

        if (!found)
            return say_unknown(all, visible->name[i], why, cap);
        if (!is_in(out, found->uuid))
            out->device[out->count++] = *found;
    }
    return 0;
}
