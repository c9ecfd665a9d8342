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
    memcpy(uuid, "cusim device 000", 16);
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

/* The device of a word; -1: none. The beginning of a UUID is enough. Nothing is divided: an
 * instance is all of device 0. */
static int find_device(const char *word, size_t length)
{
    char text[SIM_UUID_TEXT], *end;
    long number = strtol(word, &end, 10);

    if (length > 0 && end == word + length)
        return number >= 0 && number < sim_world_devices() ? (int)number : -1;
    if (length > 4 && strncmp(word, "MIG-", 4) == 0)
        return 0;
    for (int i = 0; i < sim_world_devices(); i++) {
        sim_world_uuid_text(i, text);
        if (length > 4 && strncmp(word, text, length) == 0)
            return i;
    }
    return -1;
}

int sim_world_visible(int device[SIM_MAX_DEVICES])
{
    const char *word = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0;

    for (; !word && count < sim_world_devices(); count++)
        device[count] = count;
    while (word && count < SIM_MAX_DEVICES) {
        size_t length = strcspn(word, ",");

        device[count] = find_device(word, length);
        if (device[count] < 0)
            break;
        count++;
        word = word[length] ? word + length + 1 : NULL;
    }
    return count;
}
