/* SPDX-License-Identifier: MIT */
/*
 * Source lines and inlined functions from the debug information of modules (DWARF 4 and 5), for the
 * report's struct cw_symbol_ops. Read with elfutils' libdw; a command that was built without it has
 * debug_none.c in its place. Split DWARF (.dwo) gives lines and no inlined functions.
 *
 * Nothing outside of this machine is asked, whatever DEBUGINFOD_URLS says, unless the options allow
 * it. What a damaged file has is bounded by that file's size; what cannot be read is not known.
 */
#ifndef CW_CLI_DEBUG_INFO_H
#define CW_CLI_DEBUG_INFO_H

#include "cli/debug/debug_files.h"

struct cw_debug_info;
struct cw_symbol_ops;

/* Whether this command can read debug information at all. */
int cw_debug_info_is_supported(void);

/* NULL: no memory, or not supported. The options must stay. */
struct cw_debug_info *cw_debug_info_create(const struct cw_debug_options *options);
void cw_debug_info_destroy(struct cw_debug_info *info);

/* NULL of NULL. */
const struct cw_symbol_ops *cw_debug_info_ops(const struct cw_debug_info *info);

#endif
