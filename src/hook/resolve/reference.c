/* SPDX-License-Identifier: MIT */
/* Reading and writing of the words that relocations filled. See reference.h. */
#include "hook/resolve/reference.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "hook/resolve/resolve.h"
#include "hook/resolve/searchlist.h"

#if defined(__x86_64__)
#define IS_ADDRESS(type)                                                                           \
    ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_ADDRESS(type)                                                                           \
    ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#endif

/* ---- reading ---- */

/* What all names of ours begin with. Most of a large object's names end here. */
static int may_be_ours(const char *name)
{
    return (name[0] == 'c' && name[1] == 'u') || (name[0] == 'd' && name[1] == 'l') ||
           (name[0] == 'n' && name[1] == 'v') || name[0] == '_';
}

struct reading {
    struct cw_object_symbols symbols, own;
    int (*visit)(const struct cw_reference *reference, void *arg);
    void *arg;
};

static int visit_row(const struct reading *reading, const ElfW(Rela) * row)
{
    const struct cw_object_symbols *symbols = &reading->symbols;
    uint32_t index = (uint32_t)ELF64_R_SYM(row->r_info);
    struct cw_reference reference;

    if (index == 0 || !IS_ADDRESS(ELF64_R_TYPE(row->r_info)) || row->r_addend != 0 ||
        symbols->table[index].st_shndx != SHN_UNDEF)
        return 0;
    reference.name = symbols->strings + symbols->table[index].st_name;
    if (!may_be_ours(reference.name) || cw_object_find(&reading->own, reference.name) == NULL)
        return 0;
    reference.version = cw_object_version_wanted(symbols, index);
    reference.ours = cw_object_find_version(&reading->own, reference.name, reference.version);
    reference.slot = (_Atomic(void *) *)(uintptr_t)(symbols->bias + row->r_offset);
    return reference.ours != NULL ? reading->visit(&reference, reading->arg) : 0;
}

int cw_reference_visit(const struct cw_object *object,
                       int (*visit)(const struct cw_reference *reference, void *arg), void *arg)
{
    struct reading reading = {.visit = visit, .arg = arg};
    struct cw_object self;
    int rc = 0;

    if (cw_object_at((const void *)&cw_reference_visit, &self) != 0)
        return 0;
    cw_object_read(&self, &reading.own);
    cw_object_read(object, &reading.symbols);
    /* Words in code may be anything, and are not writable. */
    if (reading.symbols.table == NULL || reading.symbols.strings == NULL ||
        reading.symbols.is_code_relocated)
        return 0;
    for (unsigned i = 0; i < CW_ARRAY_LEN(reading.symbols.relocations) && rc == 0; i++) {
        const ElfW(Rela) *row = reading.symbols.relocations[i].row;
        uint64_t count = row ? reading.symbols.relocations[i].bytes / sizeof(*row) : 0;

        for (; count > 0 && rc == 0; row++, count--)
            rc = visit_row(&reading, row);
    }
    return rc;
}

/* ---- where a reference leads ---- */

/* Who has the functions that ours stand in front of. */
static int is_behind_us(const struct cw_object *object)
{
    static const char *const prefixes[] = {"libcudart", "libc.so", "libdl.so", "libc-2.",
                                           "libdl-2."};
    const char *name = cw_object_basename(object);

    if (cw_resolve_is_library(object, CW_LIBRARY_DRIVER) ||
        cw_resolve_is_library(object, CW_LIBRARY_NVML))
        return 1;
    for (size_t i = 0; i < CW_ARRAY_LEN(prefixes); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return 1;
    return 0;
}

static int leads_past(const struct cw_reference *reference, const void *target)
{
    struct cw_object owner;

    return target != NULL && target != reference->ours && cw_object_at(target, &owner) == 0 &&
           is_behind_us(&owner);
}

int cw_reference_escapes(const struct cw_reference *reference)
{
    return leads_past(reference, atomic_load_explicit(reference->slot, memory_order_relaxed));
}

struct earlier_query {
    const char *name;
    int is_defined;
};

/* In the program, or in a library that comes before us: they would be asked first without
 * RTLD_DEEPBIND, too. Stops at our library. */
static int match_earlier(const struct cw_object *object, void *arg)
{
    struct earlier_query *query = arg;

    if (cw_object_is_self(object))
        return 1;
    query->is_defined |= cw_object_symbol(object, query->name) != NULL;
    return query->is_defined;
}

/* Its word still leads into the object itself, whose code there asks the loader at the first call.
 * Then the loader searches the object's own libraries. */
static int will_escape(const struct cw_object *object, const struct cw_reference *reference)
{
    uint64_t target =
        (uint64_t)(uintptr_t)atomic_load_explicit(reference->slot, memory_order_relaxed);
    struct earlier_query query = {.name = reference->name};

    if (target < object->base || target >= object->end)
        return 0;
    cw_object_visit(match_earlier, &query);
    return !query.is_defined &&
           leads_past(reference,
                      cw_searchlist_needed_symbol(object, reference->name, reference->version));
}

/* ---- writing ---- */

struct binding {
    const struct cw_object *object;
    uint64_t from, to; /* pages that the loader has protected */
    int is_open;
    int error;
};

static int protect(const struct binding *binding, int protection)
{
    int was = errno, error = 0;

    if (mprotect((void *)(uintptr_t)binding->from, binding->to - binding->from, protection) != 0)
        error = errno;
    errno = was;
    return error;
}

static int is_protected(const struct binding *binding, const struct cw_reference *reference)
{
    uint64_t address = (uint64_t)(uintptr_t)reference->slot;

    return address >= binding->from && address < binding->to;
}

static int bind(const struct cw_reference *reference, void *arg)
{
    struct binding *binding = arg;

    if (!cw_reference_escapes(reference) && !will_escape(binding->object, reference))
        return 0;
    if (is_protected(binding, reference) && !binding->is_open) {
        binding->error = protect(binding, PROT_READ | PROT_WRITE);
        if (binding->error != 0)
            return 1;
        binding->is_open = 1;
    }
    atomic_store_explicit(reference->slot, reference->ours, memory_order_release);
    return 0;
}

int cw_reference_bind(const struct cw_object *object, int *out_is_open)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct binding binding = {.object = object,
                              .from = object->relro & ~(page - 1),
                              .to = object->relro_end & ~(page - 1)};

    cw_reference_visit(object, bind, &binding);
    if (binding.is_open)
        binding.error = protect(&binding, PROT_READ);
    *out_is_open = binding.is_open;
    return binding.error;
}
