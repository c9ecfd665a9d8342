/* SPDX-License-Identifier: MIT */
/* Libraries of a program, without loading them. See needed.h. */
#include "cli/doctor/needed.h"

#include <stdlib.h>
#include <string.h>

#include "cli/doctor/sysroot.h"

static int is_known(const struct cw_needed *needed, const char *name)
{
    for (unsigned i = 0; i < needed->count; i++) {
        if (strcmp(needed->library[i].name, name) == 0)
            return 1;
    }
    return 0;
}

static void add_all(struct cw_needed *needed, const struct cw_loader *loader, unsigned by,
                    const char *path, const struct cw_elf_facts *facts)
{
    char found[PATH_MAX];

    for (unsigned i = 0; i < facts->needed_count && needed->count < CW_NEEDED_MAX; i++) {
        struct cw_needed_library *library = &needed->library[needed->count];

        if (is_known(needed, facts->needed[i]))
            continue;
        library->name = strdup(facts->needed[i]);
        if (!library->name)
            return;
        library->by = by;
        library->how = cw_loader_find(loader, facts->needed[i], path, facts, found);
        if (library->how)
            library->path = strdup(found);
        needed->count++;
    }
}

static void look_into(struct cw_needed *needed, const struct cw_loader *loader, unsigned index)
{
    struct cw_needed_library *library = &needed->library[index];
    struct cw_elf_facts facts;
    char outside[PATH_MAX];

    if (!library->path ||
        cw_sysroot_outside(loader->root, library->path, outside, sizeof(outside)) != 0 ||
        cw_elf_facts_read(&facts, outside) != 0)
        return;
    library->defines_runtime = facts.defines_runtime;
    library->exports_runtime = facts.exports_runtime;
    library->is_symbolic = facts.is_symbolic;
    library->glibc_minor = facts.glibc_minor;
    add_all(needed, loader, index, library->path, &facts);
    cw_elf_facts_free(&facts);
}

struct cw_needed *cw_needed_read(const struct cw_loader *loader, const char *path,
                                 const struct cw_elf_facts *facts)
{
    struct cw_needed *needed = calloc(1, sizeof(*needed));

    if (!needed)
        return NULL;
    add_all(needed, loader, CW_NEEDED_MAX, path, facts);
    for (unsigned i = 0; i < needed->count; i++)
        look_into(needed, loader, i);
    return needed;
}

const struct cw_needed_library *cw_needed_find(const struct cw_needed *needed, const char *prefix)
{
    for (unsigned i = 0; i < needed->count; i++) {
        if (strncmp(needed->library[i].name, prefix, strlen(prefix)) == 0)
            return &needed->library[i];
    }
    return NULL;
}

void cw_needed_free(struct cw_needed *needed)
{
    for (unsigned i = 0; needed && i < needed->count; i++) {
        free(needed->library[i].name);
        free(needed->library[i].path);
    }
    free(needed);
}
