/* SPDX-License-Identifier: MIT */
/*
 * The libraries that a program is linked with, directly and by way of others, in the order in which
 * the dynamic linker loads them.
 */
#ifndef CW_CLI_NEEDED_H
#define CW_CLI_NEEDED_H

#include "cli/doctor/loader.h"

#define CW_NEEDED_MAX 1024 /* libraries of one program that are looked at */

struct cw_needed_library {
    char *name; /* as it is asked for */
    char *path; /* inside the system; NULL: not found */
    const char *how;
    unsigned by; /* index of the one that needs it; CW_NEEDED_MAX: the program */
    int defines_runtime, exports_runtime, is_symbolic;
    unsigned glibc_minor;
};

struct cw_needed {
    struct cw_needed_library library[CW_NEEDED_MAX];
    unsigned count;
};

/* Of the program at `path` inside the system; NULL without memory. */
struct cw_needed *cw_needed_read(const struct cw_loader *loader, const char *path,
                                 const struct cw_elf_facts *facts);
void cw_needed_free(struct cw_needed *needed);

/* The first whose name begins so; NULL: there is none. */
const struct cw_needed_library *cw_needed_find(const struct cw_needed *needed, const char *prefix);

#endif
