/* SPDX-License-Identifier: MIT */
/*
 * Which files have the debug information of a module: the module itself, or one apart, known by its
 * build-id or, where there is none, by the checksum in .gnu_debuglink.
 *
 * Only files of this machine. A file is opened only if it is a regular one: a FIFO would block.
 */
#ifndef CW_CLI_DEBUG_FILES_H
#define CW_CLI_DEBUG_FILES_H

#include <stddef.h>
#include <stdint.h>

struct cw_debug_options {
    const char **dir; /* searched before /usr/lib/debug */
    size_t dirs;
    const char *sysroot; /* the modules' paths begin with it already; "" */
    int may_download;    /* debuginfod may be asked */
};

/* What tells one build of a file from another. */
struct cw_debug_key {
    const uint8_t *build_id;
    size_t build_id_len; /* 0: none is known */
};

/* The module's file, if it is of this build; a descriptor, or -1. */
int cw_debug_open_module(const char *path, const struct cw_debug_key *key);

/* By build-id; a descriptor and its name from malloc, or -1 and NULL. */
int cw_debug_open_by_id(const struct cw_debug_options *options, const struct cw_debug_key *key,
                        char **name);

/* By the name and checksum in the module's .gnu_debuglink; must be of the build-id too if there is
 * one, and then the checksum is not looked at. As above. */
int cw_debug_open_by_link(const struct cw_debug_options *options, const struct cw_debug_key *key,
                          const char *module_path, const char *link, uint32_t checksum,
                          char **name);

#endif
