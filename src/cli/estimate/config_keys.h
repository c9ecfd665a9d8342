/* SPDX-License-Identifier: MIT */
/*
 * Keys of a config.json that no table has: any may carry memory. They are collected while the file
 * is read, and judged when its family is known.
 */
#ifndef CW_CLI_CONFIG_KEYS_H
#define CW_CLI_CONFIG_KEYS_H

#include <stddef.h>

#define CW_UNKNOWN_TEXT 2048

/* Names, each with a blank behind it. */
struct cw_unknown_keys {
    char text[CW_UNKNOWN_TEXT];
    size_t len;
    unsigned lost; /* those for which there was no room */
};

/* Once for each name, unless config_keys.def has it. */
void cw_unknown_keys_add(struct cw_unknown_keys *keys, const char *key);
/* Appends "a, b and 3 more", without the words of `harmless`. Returns how many they are. */
unsigned cw_unknown_keys_list(const struct cw_unknown_keys *keys, const char *harmless, char *out,
                              size_t cap);

#endif
