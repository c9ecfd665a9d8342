/* SPDX-License-Identifier: MIT */
/*
 * The libraries that a program needs, directly and indirectly, in the dynamic linker's load order.
 */
#ifndef CW_CLI_NEEDED_H
#define CW_CLI_NEEDED_H

#include "cli/doctor/loader.h"

#define CW_NEEDED_MAX 1024 /* maximum number of libraries per program */

struct cw_needed_library {
    char *name; /* as requested */
    char *path; /* inside the system; NULL: not found */
    const char *how;
    unsigned by; /* index of the library that needs it; CW_NEEDED_MAX: the program */
    int defines_runtime, exports_runtime, is_symbolic;
    unsigned glibc_minor;
};

struct cw_needed {
    struct cw_needed_library library[CW_NEEDED_MAX];
    unsigned count;
};

/* For the program at `path` inside the system; NULL if out of memory. */
struct cw_needed *cw_needed_read(const struct cw_loader *loader, const char *path,
                                 const struct cw_elf_facts *facts);
void cw_needed_free(struct cw_needed *needed);

/* The first one whose name has this prefix, or NULL. */
const struct cw_needed_library *cw_needed_find(const struct cw_needed *needed, const char *prefix);

#endif
