/* SPDX-License-Identifier: MIT */
/*
 * A list of devices as CUDA_VISIBLE_DEVICES has it, and what it names (CUDA Programming Guide,
 * "CUDA Environment Variables"): numbers, or UUIDs, of which the beginning is enough. To CUDA the
 * list ends at the first name that is none. Here a negative number or nothing ends it, as people
 * write it on purpose, and any other name that is none is refused.
 */
#ifndef CW_CLI_VISIBLE_H
#define CW_CLI_VISIBLE_H

#include "cli/devices/devices.h"

#define CW_VISIBLE_TEXT ((CW_DEVICE_UUID_MAX + 1) * CW_DEVICES_MAX)

struct cw_visible {
    char text[CW_VISIBLE_TEXT];
    const char *name[CW_DEVICES_MAX]; /* in the text, without blanks */
    unsigned count;
};

/* Up to the end of the list. 0, or -1 with the reason in `why`, to follow the name of what holds
 * the value; so below. */
int cw_visible_read(const char *value, struct cw_visible *out, char *why, size_t cap);

/* Refuses what no device of `all` can be called, and a device that is named again, for which CUDA
 * shows none. */
int cw_visible_check(const struct cw_visible *visible, const struct cw_devices *all, char *why,
                     size_t cap);

/* 1 if the names mean to CUDA what they mean here: UUIDs; and numbers, which count by PCI bus here,
 * where CUDA counts so too. */
int cw_visible_is_plain(const struct cw_visible *visible, const struct cw_devices *all);

/* The named of all devices, each once, in the order of the names. */
int cw_visible_find(const struct cw_visible *visible, const struct cw_devices *all,
                    struct cw_devices *out, char *why, size_t cap);

/* `name` is what the driver did not show. Returns -1. */
int cw_visible_say_hidden(const struct cw_devices *all, const char *name, char *why, size_t cap);

/* The names as CUDA_VISIBLE_DEVICES would have them. Returns buf. */
const char *cw_visible_print(const struct cw_visible *visible, char *buf, size_t cap);

#endif
