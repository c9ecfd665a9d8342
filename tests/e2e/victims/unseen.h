/* SPDX-License-Identifier: MIT */
/* The driver's own functions, past whatever is preloaded: as an overlay or a profiler finds them,
 * in the tables of the loaded library, or by the RTLD_NEXT of a library that is preloaded behind.
 */
#ifndef UNSEEN_H
#define UNSEEN_H

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a library behind all others (probe_unseen.c), where there is one. */
void *probe_next_of(const char *name) __attribute__((weak));

struct unseen_tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *hash; /* DT_GNU_HASH */
};

static inline uintptr_t unseen_entry(const struct link_map *map, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_ptr;
    return 0;
}

static inline uint32_t unseen_hash(const char *name)
{
    uint32_t hash = 5381;

    while (*name)
        hash = hash * 33 + (unsigned char)*name++;
    return hash;
}

/* The table: number of buckets, first symbol, words of the filter, its shift; then the filter in
 * words of the machine, the buckets and the chains, in which the last one's lowest bit is set. */
static inline const ElfW(Sym) * unseen_symbol(const struct unseen_tables *tables, const char *name)
{
    const uint32_t *head = tables->hash, wanted = unseen_hash(name);
    const uint32_t *buckets = (const uint32_t *)((const ElfW(Addr) *)(head + 4) + head[2]);
    const uint32_t *chains = buckets + head[0];
    uint32_t i = buckets[wanted % head[0]];

    for (; i >= head[1]; i++) {
        if ((chains[i - head[1]] | 1) == (wanted | 1) &&
            strcmp(tables->names + tables->symbols[i].st_name, name) == 0)
            return &tables->symbols[i];
        if (chains[i - head[1]] & 1)
            break;
    }
    return NULL;
}

static inline void *unseen(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    struct link_map *map = NULL;
    struct unseen_tables tables;
    const ElfW(Sym) * symbol;

    if (probe_next_of)
        return probe_next_of(name);
    if (!driver || dlinfo(driver, RTLD_DI_LINKMAP, &map) != 0)
        exit(98);
    tables.symbols = (const ElfW(Sym) *)unseen_entry(map, DT_SYMTAB);
    tables.names = (const char *)unseen_entry(map, DT_STRTAB);
    tables.hash = (const uint32_t *)unseen_entry(map, DT_GNU_HASH);
    symbol = tables.hash ? unseen_symbol(&tables, name) : NULL;
    if (!symbol) {
        fprintf(stderr, "no %s in the tables of libcuda.so.1\n", name);
        exit(98);
    }
    return (void *)(map->l_addr + symbol->st_value);
}

#endif
