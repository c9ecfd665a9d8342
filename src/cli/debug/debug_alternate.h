/* SPDX-License-Identifier: MIT */
/*
 * The file that dwz moved shared debug information to, which a module names in .gnu_debugaltlink.
 *
 * libdw opens that file by itself when an entry refers to it, whatever it is by then: it would wait
 * at a FIFO. It does not where a module already has an alternate file, so each module gets one: the
 * file that was found here, or an empty one.
 */
#ifndef CW_CLI_DEBUG_ALTERNATE_H
#define CW_CLI_DEBUG_ALTERNATE_H

#include <elfutils/libdw.h>

#include "cli/debug/debug_files.h"

/* All zero: none. */
struct cw_debug_alternate {
    int fd; /* 0: in memory */
    Elf *elf;
    Dwarf *dwarf;
};

/* An empty one. 0, or -1 if out of memory. */
int cw_debug_alternate_init(struct cw_debug_alternate *none);

/* Gives `dwarf`, which was read from `file`, its alternate file, or `none` where there is no file
 * of this name and build. `out` must be all zero and outlive `dwarf`. */
void cw_debug_alternate_set(Dwarf *dwarf, const char *file, const struct cw_debug_options *options,
                            const struct cw_debug_alternate *none, struct cw_debug_alternate *out);

void cw_debug_alternate_fini(struct cw_debug_alternate *alternate);

#endif
