/* SPDX-License-Identifier: MIT */
/*
 * Finds the file with a module's debug information: the module itself, or a separate file,
 * identified by its build-id or, if there is none, by the checksum in .gnu_debuglink.
 *
 * Only local files, and only those that base/regular_file.h opens. That is why this is not left to
 * libdwfl, whose search (dwfl_standard_find_debuginfo) finds the same files: it opens whatever has
 * the name, and a FIFO beside a program blocks it forever (elfutils 0.188). libdwfl only queries
 * debuginfod, where the options allow it.
 */
#ifndef CW_CLI_DEBUG_FILES_H
#define CW_CLI_DEBUG_FILES_H

#include <stddef.h>
#include <stdint.h>

struct cw_debug_options {
    const char **dir; /* searched before /usr/lib/debug */
    size_t dirs;
    const char *sysroot; /* already part of the modules' paths; "" */
    int may_download;    /* may query debuginfod */
};

/* Identifies a build of a file. */
struct cw_debug_key {
    const uint8_t *build_id;
    size_t build_id_len; /* 0: unknown */
};

/* Opens the module's file if it is of this build; a descriptor, or -1. */
int cw_debug_open_module(const char *path, const struct cw_debug_key *key);

/* By build-id; a descriptor and its name from malloc, or -1 and NULL. */
int cw_debug_open_by_id(const struct cw_debug_options *options, const struct cw_debug_key *key,
                        char **name);

/* By the name and checksum in the module's .gnu_debuglink; if there is a build-id, it must match
 * instead of the checksum. Returns as above. */
int cw_debug_open_by_link(const struct cw_debug_options *options, const struct cw_debug_key *key,
                          const char *module_path, const char *link, uint32_t checksum,
                          char **name);

/* The alternate file of this build-id, by the name in the .gnu_debugaltlink of `file`; a
 * descriptor, or -1. */
int cw_debug_open_alternate(const struct cw_debug_options *options, const struct cw_debug_key *key,
                            const char *file, const char *link);

#endif
