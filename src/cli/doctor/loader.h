/* SPDX-License-Identifier: MIT */
/*
 * Finds a library where the dynamic linker would: reads what it reads (ld.so(8)), in the same
 * order, without loading anything.
 */
#ifndef CW_CLI_LOADER_H
#define CW_CLI_LOADER_H

#include <stddef.h>

#include "cli/doctor/elf_facts.h"

struct cw_loader {
    const char *root;         /* "": this system */
    const char *library_path; /* LD_LIBRARY_PATH, or NULL */
    char *cache;              /* ld.so.cache, NULL: not readable */
    size_t cache_size;
};

void cw_loader_init(struct cw_loader *loader, const char *root, const char *library_path);
void cw_loader_destroy(struct cw_loader *loader);

/*
 * Finds `name` on behalf of the file `from` (its path inside the system, and its facts; may be
 * NULL). The path, inside the system and links resolved, goes to buf of PATH_MAX bytes. Returns how
 * it was found, or NULL.
 */
const char *cw_loader_find(const struct cw_loader *loader, const char *name, const char *from,
                           const struct cw_elf_facts *facts, char *buf);

#endif
