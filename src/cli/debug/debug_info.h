/* SPDX-License-Identifier: MIT */
/*
 * Source lines and inlined functions from the debug information of modules (DWARF 4 and 5), for the
 * report's struct cw_symbol_ops. Read with elfutils' libdw; a command built without it uses
 * debug_none.c instead. Split DWARF (.dwo) gives lines and no inlined functions.
 *
 * Other machines are never queried, whatever DEBUGINFOD_URLS says, unless the options allow it.
 * Work on a damaged file is bounded by the file's size; unreadable data counts as unknown.
 */
#ifndef CW_CLI_DEBUG_INFO_H
#define CW_CLI_DEBUG_INFO_H

#include "cli/debug/debug_files.h"

struct cw_debug_info;
struct cw_symbol_ops;

/* Whether this command supports debug information. */
int cw_debug_info_is_supported(void);

/* NULL: out of memory, or not supported. The options must stay valid. */
struct cw_debug_info *cw_debug_info_create(const struct cw_debug_options *options);
void cw_debug_info_destroy(struct cw_debug_info *info);

/*
 * What a command may spend on debug information, in CPU time and, where it waits for a disk, in
 * all: so a busy machine shows the same lines. After that, modules and addresses count as unknown,
 * and the report has the names of its symbols. One module is always read to its end. No limit where
 * the options allow downloads, which the user waits for.
 */
#define CW_DEBUG_CPU_SECONDS  2U
#define CW_DEBUG_WALL_SECONDS 10U
/* Whether something was left out for it. */
int cw_debug_info_is_cut(const struct cw_debug_info *info);

/* NULL of NULL. */
const struct cw_symbol_ops *cw_debug_info_ops(const struct cw_debug_info *info);

#endif
