/* SPDX-License-Identifier: MIT */
/*
 * Reads the functions that a libcuwarden.so exports, which its table for programs tells from other
 * libraries. dlopen() would be shorter, but would run the library's constructors in this process.
 */
#include "cli/doctor/exports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>

#include "cli/doctor/elf_facts.h"
#include "report/symbols/elf.h"

#define SYMBOLS_ONCE 512
#define NAME_CAP     1024
#define TABLE        "cuwarden_table_" /* and a number: src/api/table.c */

static int is_exported(const Elf64_Sym *symbol)
{
    unsigned binding = ELF64_ST_BIND(symbol->st_info);

    return symbol->st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK);
}

static int is_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);

    return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* 0, or -1 if out of memory. */
static int collect(struct cw_exports *exports, struct cw_elf *elf)
{
    Elf64_Sym symbol[SYMBOLS_ONCE];
    char name[NAME_CAP];
    size_t count;

    exports->name = calloc(elf->symbols + 1, sizeof(*exports->name));
    if (!exports->name)
        return -1;
    for (uint64_t first = 0; (count = cw_elf_read_symbols(elf, first, symbol, SYMBOLS_ONCE)) > 0;
         first += count) {
        for (size_t i = 0; i < count; i++) {
            if (!is_exported(&symbol[i]) ||
                cw_elf_read_name(elf, symbol[i].st_name, name, sizeof(name)) == 0)
                continue;
            exports->has_table |= strncmp(name, TABLE, strlen(TABLE)) == 0;
            if (!is_function(&symbol[i]))
                continue;
            exports->name[exports->count] = strdup(name);
            if (!exports->name[exports->count])
                return -1;
            exports->count++;
        }
    }
    qsort(exports->name, exports->count, sizeof(*exports->name), compare_names);
    return 0;
}

int cw_exports_read(struct cw_exports *exports, const char *path, char *why, size_t cap)
{
    struct cw_elf elf;
    int status = -1;

    *exports = (struct cw_exports){.name = NULL};
    if (cw_elf_open(&elf, path) != 0) {
        snprintf(why, cap, "cannot be read: %s", cw_elf_reason(errno));
        return -1;
    }
    snprintf(why, cap, "is not a 64-bit ELF library with dynamic exports");
    if (cw_elf_use_symbols(&elf, SHT_DYNSYM) == 0)
        status = collect(exports, &elf);
    cw_elf_close(&elf);
    if (status == 0 && !exports->has_table) {
        snprintf(why, cap, "is not libcuwarden.so");
        status = -1;
    }
    if (status != 0)
        cw_exports_destroy(exports);
    return status;
}

void cw_exports_destroy(struct cw_exports *exports)
{
    for (size_t i = 0; i < exports->count; i++)
        free(exports->name[i]);
    free(exports->name);
}
