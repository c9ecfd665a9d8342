/* SPDX-License-Identifier: MIT */
/* Reading of loaded ELF objects. See object.h. */
#include "hook/resolve/object.h"

#include <string.h>

#include "base/compiler.h"
#include "core/process/loader.h"

struct visit_state {
    int (*visit)(const struct cw_object *object, void *arg);
    void *arg;
};

static int visit_one(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct visit_state *state = arg;
    struct cw_object object = {.base = UINT64_MAX, .bias = info->dlpi_addr};

    (void)size;
    object.name = info->dlpi_name ? info->dlpi_name : "";
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_DYNAMIC)
            object.dynamic = (const ElfW(Dyn) *)(uintptr_t)start;
        if (segment->p_type == PT_GNU_RELRO) {
            object.relro = start;
            object.relro_end = start + segment->p_memsz;
        }
        if (segment->p_type != PT_LOAD)
            continue;
        if (start < object.base)
            object.base = start;
        if (start + segment->p_memsz > object.end)
            object.end = start + segment->p_memsz;
    }
    return object.dynamic != NULL ? state->visit(&object, state->arg) : 0;
}

int cw_object_visit(int (*visit)(const struct cw_object *object, void *arg), void *arg)
{
    struct visit_state state = {.visit = visit, .arg = arg};

    return cw_loader_visit(visit_one, &state);
}

const char *cw_object_basename(const struct cw_object *object)
{
    const char *slash = strrchr(object->name, '/');

    return slash ? slash + 1 : object->name;
}

static int contains(const struct cw_object *object, const void *address)
{
    return (uint64_t)(uintptr_t)address >= object->base &&
           (uint64_t)(uintptr_t)address < object->end;
}

int cw_object_is_self(const struct cw_object *object)
{
    return object->dynamic == _DYNAMIC;
}

struct at_query {
    const void *address;
    struct cw_object *out;
};

static int match_address(const struct cw_object *object, void *arg)
{
    const struct at_query *query = arg;

    if (!contains(object, query->address))
        return 0;
    *query->out = *object;
    return 1;
}

int cw_object_at(const void *address, struct cw_object *out)
{
    struct at_query query = {.address = address, .out = out};

    return cw_object_visit(match_address, &query) ? 0 : -1;
}

/* ---- symbols ---- */

/* The loader relocates these pointers in place, except in objects that it did not load itself: the
 * vdso, which is linked at 0 in Linux and below the end of the address space in gVisor. NULL: into
 * no part of the object. */
static const void *pointer(const struct cw_object *object, uint64_t value)
{
    if (!contains(object, (const void *)(uintptr_t)value))
        value += object->bias;
    return contains(object, (const void *)(uintptr_t)value) ? (const void *)(uintptr_t)value : NULL;
}

static void read_relocations(const struct cw_object *object, const ElfW(Dyn) * d,
                             struct cw_object_symbols *out)
{
    switch (d->d_tag) {
    case DT_RELA:
        out->relocations[0].row = pointer(object, d->d_un.d_ptr);
        break;
    case DT_RELASZ:
        out->relocations[0].bytes = d->d_un.d_val;
        break;
    case DT_JMPREL:
        out->relocations[1].row = pointer(object, d->d_un.d_ptr);
        break;
    case DT_PLTRELSZ:
        out->relocations[1].bytes = d->d_un.d_val;
        break;
    case DT_TEXTREL:
        out->is_code_relocated = 1;
        break;
    case DT_FLAGS:
        out->is_code_relocated |= (d->d_un.d_val & DF_TEXTREL) != 0;
        break;
    default:
        break;
    }
}

void cw_object_read(const struct cw_object *object, struct cw_object_symbols *out)
{
    uint64_t soname = 0;

    *out = (struct cw_object_symbols){.bias = object->bias};
    for (const ElfW(Dyn) *d = object->dynamic; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_SYMTAB:
            out->table = pointer(object, d->d_un.d_ptr);
            break;
        case DT_STRTAB:
            out->strings = pointer(object, d->d_un.d_ptr);
            break;
        case DT_GNU_HASH:
            out->gnu_hash = pointer(object, d->d_un.d_ptr);
            break;
        case DT_HASH:
            out->hash = pointer(object, d->d_un.d_ptr);
            break;
        case DT_VERSYM:
            out->versions = pointer(object, d->d_un.d_ptr);
            break;
        case DT_VERDEF:
            out->defined = pointer(object, d->d_un.d_ptr);
            break;
        case DT_VERNEED:
            out->needed = pointer(object, d->d_un.d_ptr);
            break;
        case DT_SONAME:
            soname = d->d_un.d_val;
            break;
        default:
            read_relocations(object, d, out);
            break;
        }
    }
    if (soname != 0 && out->strings != NULL)
        out->soname = out->strings + soname;
}

static int is_definition(const struct cw_object_symbols *symbols, uint32_t index)
{
    const ElfW(Sym) *symbol = &symbols->table[index];
    unsigned type = ELF64_ST_TYPE(symbol->st_info);

    if (symbol->st_shndx == SHN_UNDEF ||
        (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE))
        return 0;
    /* The top bit hides a version that is there for old binaries only. */
    return symbols->versions == NULL || !(symbols->versions[index] & 0x8000);
}

static int is_named(const struct cw_object_symbols *symbols, uint32_t index, const char *name)
{
    return is_definition(symbols, index) &&
           cw_object_same_name(symbols->strings + symbols->table[index].st_name, name);
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t h = 5381;

    for (const unsigned char *p = (const unsigned char *)name; *p != '\0'; p++)
        h = h * 33 + *p;
    return h;
}

static uint32_t find_gnu(const struct cw_object_symbols *symbols, const char *name)
{
    const uint32_t *table = symbols->gnu_hash;
    uint32_t nbuckets = table[0], first = table[1], bloom_words = table[2];
    const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = buckets + nbuckets;
    uint32_t hash = gnu_hash_of(name);
    uint32_t i = nbuckets ? buckets[hash % nbuckets] : 0;

    if (i < first)
        return 0;
    for (;; i++) {
        if ((chain[i - first] | 1) == (hash | 1) && is_named(symbols, i, name))
            return i;
        if (chain[i - first] & 1)
            return 0;
    }
}

static uint32_t sysv_hash_of(const char *name)
{
    uint32_t h = 0;

    for (const unsigned char *p = (const unsigned char *)name; *p != '\0'; p++) {
        h = (h << 4) + *p;
        h ^= (h >> 24) & 0xf0;
    }
    return h & 0x0fffffff;
}

static uint32_t find_sysv(const struct cw_object_symbols *symbols, const char *name)
{
    uint32_t nbuckets = symbols->hash[0];
    const uint32_t *buckets = symbols->hash + 2, *chain = buckets + nbuckets;
    uint32_t i = nbuckets ? buckets[sysv_hash_of(name) % nbuckets] : 0;

    while (i != 0 && !is_named(symbols, i, name))
        i = chain[i];
    return i;
}

/* The definition, or NULL. */
static const ElfW(Sym) * find_symbol(const struct cw_object_symbols *symbols, const char *name)
{
    uint32_t index = 0;

    if (symbols->table == NULL || symbols->strings == NULL)
        return NULL;
    if (symbols->gnu_hash != NULL)
        index = find_gnu(symbols, name);
    else if (symbols->hash != NULL)
        index = find_sysv(symbols, name);
    return index ? &symbols->table[index] : NULL;
}

static void *address_of(const struct cw_object_symbols *symbols, const ElfW(Sym) * symbol)
{
    return symbol != NULL ? (void *)(uintptr_t)(symbols->bias + symbol->st_value) : NULL;
}

void *cw_object_find(const struct cw_object_symbols *symbols, const char *name)
{
    return address_of(symbols, find_symbol(symbols, name));
}

void *cw_object_sized_symbol(const struct cw_object *object, const char *name, uint64_t *out_size)
{
    struct cw_object_symbols symbols;
    const ElfW(Sym) * symbol;

    cw_object_read(object, &symbols);
    symbol = find_symbol(&symbols, name);
    *out_size = symbol ? symbol->st_size : 0;
    return address_of(&symbols, symbol);
}

void *cw_object_symbol(const struct cw_object *object, const char *name)
{
    uint64_t size;

    return cw_object_sized_symbol(object, name, &size);
}

/* Number of dynamic symbols: the last one that a chain of the hash table reaches. */
static uint32_t symbol_count(const struct cw_object_symbols *symbols)
{
    const uint32_t *table = symbols->gnu_hash, *buckets, *chain;
    uint32_t last = 0;

    if (table == NULL)
        return symbols->hash ? symbols->hash[1] : 0;
    buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / 4);
    chain = buckets + table[0];
    for (uint32_t i = 0; i < table[0]; i++)
        if (buckets[i] > last)
            last = buckets[i];
    if (last < table[1])
        return table[1];
    while (!(chain[last - table[1]] & 1))
        last++;
    return last + 1;
}

const char *cw_object_name_of(const struct cw_object *object, const void *address)
{
    struct cw_object_symbols symbols;
    uint32_t count;

    cw_object_read(object, &symbols);
    if (symbols.table == NULL || symbols.strings == NULL)
        return NULL;
    count = symbol_count(&symbols);
    for (uint32_t i = 1; i < count; i++)
        if (object->bias + symbols.table[i].st_value == (uint64_t)(uintptr_t)address &&
            is_definition(&symbols, i))
            return symbols.strings + symbols.table[i].st_name;
    return NULL;
}

/* ---- symbol versions ---- */

/* The name of the version that an undefined symbol of this index asks for, or NULL. */
static const char *needed_version(const struct cw_object_symbols *symbols, uint16_t version)
{
    const char *at = (const char *)symbols->needed;

    while (at != NULL) {
        const ElfW(Verneed) *need = (const void *)at;
        const char *aux = at + need->vn_aux;

        for (unsigned i = 0; i < need->vn_cnt; i++) {
            const ElfW(Vernaux) *entry = (const void *)aux;

            if (entry->vna_other == version)
                return symbols->strings + entry->vna_name;
            aux += entry->vna_next;
        }
        at = need->vn_next ? at + need->vn_next : NULL;
    }
    return NULL;
}

static const char *defined_version(const struct cw_object_symbols *symbols, uint16_t version)
{
    const char *at = (const char *)symbols->defined;

    while (at != NULL) {
        const ElfW(Verdef) *def = (const void *)at;
        const ElfW(Verdaux) *name = (const void *)(at + def->vd_aux);

        if (def->vd_ndx == version)
            return symbols->strings + name->vda_name;
        at = def->vd_next ? at + def->vd_next : NULL;
    }
    return NULL;
}

const char *cw_object_version_wanted(const struct cw_object_symbols *symbols, uint32_t index)
{
    return symbols->versions != NULL ? needed_version(symbols, symbols->versions[index] & 0x7fff)
                                     : NULL;
}

const char *cw_object_wanted_version(const struct cw_object *object, const char *name)
{
    struct cw_object_symbols symbols;
    uint32_t undefined;

    cw_object_read(object, &symbols);
    if (symbols.table == NULL || symbols.strings == NULL || symbols.versions == NULL)
        return NULL;
    /* GNU hash chains leave out undefined symbols, which precede all others. */
    undefined = symbols.gnu_hash != NULL ? symbols.gnu_hash[1] : symbol_count(&symbols);
    for (uint32_t i = 1; i < undefined; i++)
        if (symbols.table[i].st_shndx == SHN_UNDEF &&
            strcmp(symbols.strings + symbols.table[i].st_name, name) == 0)
            return cw_object_version_wanted(&symbols, i);
    return NULL;
}

/* As the loader matches: a definition without a version satisfies every reference. */
static int is_version(const struct cw_object_symbols *symbols, uint32_t index, const char *version)
{
    uint16_t number = symbols->versions[index] & 0x7fff;
    const char *defined = number > VER_NDX_GLOBAL ? defined_version(symbols, number) : NULL;

    return defined == NULL || strcmp(defined, version) == 0;
}

void *cw_object_find_version(const struct cw_object_symbols *symbols, const char *name,
                             const char *version)
{
    const ElfW(Sym) *symbol = find_symbol(symbols, name);
    uint32_t count;

    if (symbol == NULL || version == NULL || symbols->versions == NULL || symbols->defined == NULL)
        return address_of(symbols, symbol);
    count = symbol_count(symbols);
    for (uint32_t i = 1; i < count; i++)
        if (symbols->table[i].st_shndx != SHN_UNDEF &&
            strcmp(symbols->strings + symbols->table[i].st_name, name) == 0 &&
            is_version(symbols, i, version))
            return address_of(symbols, &symbols->table[i]);
    return NULL;
}

/* ---- search ---- */

struct next_query {
    const char *name;
    int passed_self;
    void *found;
};

static int match_symbol(const struct cw_object *object, void *arg)
{
    struct next_query *query = arg;

    query->found = cw_object_symbol(object, query->name);
    return query->found != NULL;
}

static int match_next(const struct cw_object *object, void *arg)
{
    struct next_query *query = arg;

    if (cw_object_is_self(object)) {
        query->passed_self = 1;
        return 0;
    }
    return query->passed_self && match_symbol(object, query);
}

/* glibc's alone: in a program of another C library this one does nothing, but must load. */
#pragma weak _r_debug

static const struct link_map *first_object(void)
{
    return &_r_debug == NULL ? NULL : _r_debug.r_map;
}

/* The loader has relocated its dynamic section: no address is outside. But for the vdso's, which
 * has no path, and stands after the program: 0. */
static int read_object(const struct link_map *map, struct cw_object *out)
{
    *out = (struct cw_object){.end = UINT64_MAX, .bias = map->l_addr, .name = map->l_name};
    out->dynamic = map->l_ld;
    return out->dynamic != NULL && (out->name[0] == '\0' || strchr(out->name, '/') != NULL);
}

int cw_object_is_libc(const struct cw_object *object)
{
    return cw_object_same_name(cw_object_basename(object), "libc.so.6");
}

/* Not where it was loaded later, by dlopen. */
static int is_preloaded(void)
{
    struct cw_object object;

    for (const struct link_map *map = first_object(); map != NULL; map = map->l_next) {
        if (!read_object(map, &object))
            continue;
        if (cw_object_is_self(&object) || cw_object_is_libc(&object))
            return cw_object_is_self(&object);
    }
    return 0;
}

int cw_object_visit_preloaded(enum cw_objects which,
                              int (*visit)(const struct cw_object *object, void *arg), void *arg)
{
    enum cw_objects now = CW_OBJECTS_BEFORE;
    int rc = 0, is_last = !is_preloaded();

    for (const struct link_map *map = first_object(); map != NULL && rc == 0 && !is_last;
         map = map->l_next) {
        struct cw_object object;

        if (!read_object(map, &object))
            continue;
        is_last = cw_object_is_libc(&object);
        if (cw_object_is_self(&object))
            now = CW_OBJECTS_AFTER;
        else if (now == which)
            rc = visit(&object, arg);
    }
    return rc;
}

void *cw_object_next_symbol(const char *name)
{
    struct next_query query = {.name = name};

    /* Without the loader's lock first: a program's own dl_iterate_phdr may call dlsym, for which
     * ours needs libc's. */
    if (!cw_object_visit_preloaded(CW_OBJECTS_AFTER, match_symbol, &query))
        cw_object_visit(match_next, &query);
    return query.found;
}
