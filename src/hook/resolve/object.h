/* SPDX-License-Identifier: MIT */
/*
 * The loaded objects of the process and the symbols that they define, read from the loader's list
 * and from the objects' own dynamic sections, without a call to dlsym, which we replace.
 *
 * The list is walked with dl_iterate_phdr, which takes a lock of the loader and is therefore never
 * called while we hold one of ours. It is not the lock that dlopen holds while constructors run,
 * for which dlsym and dlvsym wait. Only the way to libc is walked without: the program's own
 * dl_iterate_phdr may call dlsym, and ours needs libc's first.
 */
#ifndef CW_HOOK_OBJECT_H
#define CW_HOOK_OBJECT_H

#include <link.h>
#include <stdint.h>

struct cw_object {
    uint64_t base, end;        /* mapped range */
    uint64_t bias;             /* l_addr */
    uint64_t relro, relro_end; /* the loader has made it read-only after relocation; or 0 */
    const char *name; /* as the loader has it; "" for the program; valid while it stays loaded */
    const ElfW(Dyn) * dynamic;
};

/* In the order in which the loader searches; visit returns non-zero to stop, which is returned. */
int cw_object_visit(int (*visit)(const struct cw_object *object, void *arg), void *arg);

/* The object that address lies in: 0, or -1. */
int cw_object_at(const void *address, struct cw_object *out);

/* The symbol tables of the dynamic section; good while the object stays loaded. */
struct cw_object_symbols {
    uint64_t bias; /* of the object */
    const ElfW(Sym) * table;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
    const uint16_t *versions;
    const ElfW(Verdef) * defined;
    const ElfW(Verneed) * needed;
    const char *soname;
    /* Relocations of data, and of calls; where there are any in code, `is_code_relocated`. */
    struct {
        const ElfW(Rela) * row;
        uint64_t bytes;
    } relocations[2];
    int is_code_relocated;
};

/* For a caller that looks up many. */
void cw_object_read(const struct cw_object *object, struct cw_object_symbols *out);
/* As cw_object_symbol. */
void *cw_object_find(const struct cw_object_symbols *symbols, const char *name);
/* The definition that satisfies a reference to this version (NULL: to none), or NULL. */
void *cw_object_find_version(const struct cw_object_symbols *symbols, const char *name,
                             const char *version);
/* The version that undefined symbol `index` asks for, or NULL. */
const char *cw_object_version_wanted(const struct cw_object_symbols *symbols, uint32_t index);

/* Not by strcmp: AddressSanitizer looks names up by our dlsym before its own strcmp is ready. */
static inline int cw_object_same_name(const char *one, const char *other)
{
    while (*one != '\0' && *one == *other) {
        one++;
        other++;
    }
    return *one == *other;
}

/* Address of the symbol's default version in this object, or NULL. */
void *cw_object_symbol(const struct cw_object *object, const char *name);
/* Its size in bytes too. */
void *cw_object_sized_symbol(const struct cw_object *object, const char *name, uint64_t *out_size);
/* Name under which the object exports exactly this address, or NULL. Slow: reads every symbol. */
const char *cw_object_name_of(const struct cw_object *object, const void *address);

/* The symbol in the first object after this library in search order, or NULL. */
void *cw_object_next_symbol(const char *name);

enum cw_objects { CW_OBJECTS_BEFORE, CW_OBJECTS_AFTER };

/* Those before, or after, this library as far as the C library: what is preloaded, and what the
 * program itself links. None where the library itself comes after. Takes no lock: they stay. visit
 * as for cw_object_visit. */
int cw_object_visit_preloaded(enum cw_objects which,
                              int (*visit)(const struct cw_object *object, void *arg), void *arg);

/* The version under which the object itself refers to a symbol that it does not define, or NULL. */
const char *cw_object_wanted_version(const struct cw_object *object, const char *name);

const char *cw_object_basename(const struct cw_object *object);
int cw_object_is_self(const struct cw_object *object);
int cw_object_is_libc(const struct cw_object *object);

#endif
