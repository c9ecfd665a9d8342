/* SPDX-License-Identifier: MIT */
/* The devices as the environment describes them, and how numbers and sizes are written there. */
#include "sim_world.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int unit_shift(char letter)
{
    switch (toupper((unsigned char)letter)) {
    case 'K':
        return 10;
    case 'M':
        return 20;
    case 'G':
        return 30;
    case 'T':
        return 40;
    default:
        return 0;
    }
}

bool sim_parse_size(const char *text, size_t *out, const char **end)
{
    char *after;
    unsigned long long value = strtoull(text, &after, 0);
    int shift = unit_shift(*after);

    if (after == text)
        return false;
    *out = (size_t)value << shift;
    *end = after + (shift != 0);
    return true;
}

size_t sim_option_size(const char *name, size_t fallback)
{
    const char *text = getenv(name), *end;
    size_t value;

    return text && sim_parse_size(text, &value, &end) ? value : fallback;
}

long sim_option_number(const char *name, long fallback)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 0) : fallback;
}

int sim_world_devices(void)
{
    long n = sim_option_number("CUSIM_DEVICES", 2);

    return n > SIM_MAX_DEVICES ? SIM_MAX_DEVICES : (int)n;
}

/* "8G,1G": one size per device, the last one for the rest. */
void sim_world_memory(size_t memory[SIM_MAX_DEVICES])
{
    const char *text = getenv("CUSIM_MEMORY");
    size_t size = (size_t)1 << 30;

    for (int i = 0; i < SIM_MAX_DEVICES; i++) {
        if (text && *text && sim_parse_size(text, &size, &text) && *text == ',')
            text++;
        memory[i] = size;
    }
}

void sim_world_uuid(int device, unsigned char uuid[16])
{
    const char *machine = getenv("CUSIM_UUID");

    memcpy(uuid, "cusim device 000", 16);
    if (machine)
        memcpy(uuid + 5, machine, strnlen(machine, 8));
    uuid[14] = (unsigned char)('0' + device / 10);
    uuid[15] = (unsigned char)('0' + device % 10);
}

void sim_world_uuid_text(int device, char text[SIM_UUID_TEXT])
{
    static const unsigned char dashes[16] = {[4] = 1, [6] = 1, [8] = 1, [10] = 1};
    unsigned char uuid[16];
    char *at = text + sprintf(text, "GPU-");

    sim_world_uuid(device, uuid);
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%s%02x", dashes[i] ? "-" : "", uuid[i]);
}

/* The driver's order: that of CUSIM_ORDER, unless the program asks for that of the bus. */
static void read_order(int order[SIM_MAX_DEVICES])
{
    const char *text = getenv("CUSIM_ORDER"), *wish = getenv("CUDA_DEVICE_ORDER");
    char *end;

    for (int i = 0; i < SIM_MAX_DEVICES; i++)
        order[i] = i;
    if (!text || (wish && strcmp(wish, "PCI_BUS_ID") == 0))
        return;
    for (int i = 0; i < sim_world_devices() && *text; i++) {
        long number = strtol(text, &end, 10);

        if (end != text && number >= 0 && number < sim_world_devices())
            order[i] = (int)number;
        text = end + (*end == ',');
    }
}

/* As strtoul reads it: what follows the digits is ignored. */
static int by_number(const char *word, const int order[SIM_MAX_DEVICES])
{
    char *end;
    long number = strtol(word, &end, 10);

    return end != word && number >= 0 && number < sim_world_devices() ? order[number] : -1;
}

/* The beginning is enough if it is one device's alone. */
static int by_uuid(const char *word, size_t length)
{
    char text[SIM_UUID_TEXT];
    int found = -1;

    for (int i = 0; length > 4 && i < sim_world_devices(); i++) {
        sim_world_uuid_text(i, text);
        if (strncmp(word, text, length) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

static bool has_prefix(const char *word, const char *prefix)
{
    return strncmp(word, prefix, strlen(prefix)) == 0;
}

/* The first word says of which kind all are: another one ends the list. One that names a device
 * again leaves none at all. Nothing is divided: an instance is all of device 0, and the only one.
 * (As PyTorch's torch/cuda/__init__.py has it, which follows what drivers do.) */
static int read_visible(const char *word, int device[SIM_MAX_DEVICES],
                        const int order[SIM_MAX_DEVICES])
{
    bool is_uuids = has_prefix(word, "GPU-");
    int count = 0;

    device[0] = 0;
    if (has_prefix(word, "MIG-"))
        return 1;
    while (word && count < SIM_MAX_DEVICES) {
        size_t length = strcspn(word, ",");

        device[count] = is_uuids ? by_uuid(word, length) : by_number(word, order);
        if (device[count] < 0)
            break;
        for (int i = 0; i < count; i++)
            if (device[i] == device[count])
                return 0;
        count++;
        word = word[length] ? word + length + 1 : NULL;
    }
    return count;
}

int sim_world_visible(int device[SIM_MAX_DEVICES])
{
    const char *words = getenv("CUDA_VISIBLE_DEVICES");
    int order[SIM_MAX_DEVICES];

    read_order(order);
    if (words)
        return read_visible(words, device, order);
    memcpy(device, order, sizeof order);
    return sim_world_devices();
}

void sim_world_name(int device, char *name, size_t size)
{
    const char *same = getenv("CUSIM_MODEL");

    if (same)
        snprintf(name, size, "%s", same);
    else
        snprintf(name, size, "Simulated GPU %d", device);
}
