/* SPDX-License-Identifier: MIT */
/*
 * Resolution. See resolve.h.
 *
 * Owns which driver is in use (`libraries`) and the table from its exports' addresses to rows. Both
 * are filled under resolve_lock from addresses that were collected without it (the loader's lock is
 * taken by the walk) and are read without one: an entry is written before the slot that names it.
 */
#include "hook/resolve/resolve.h"

#include <stddef.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "hook/resolve/searchlist.h"

struct library {
    const char *prefix;    /* of the file's name */
    const char *probe;     /* a symbol that the real one exports */
    _Atomic uint64_t base; /* of the loaded object, 0: none */
};

static struct library libraries[CW_LIBRARY_COUNT] = {
    [CW_LIBRARY_DRIVER] = {.prefix = "libcuda.so", .probe = "cuInit"},
    [CW_LIBRARY_NVML] = {.prefix = "libnvidia-ml.so", .probe = "nvmlInit_v2"},
};

static struct cw_lock resolve_lock = CW_LOCK_INIT(CW_RANK_RESOLVE);

/* From a real address to its row, open addressing; a slot's row is written before its address.
 * Separate and small, because every process that calls CUDA touches all of it. */
#define ADDRESS_SLOTS 1024
static struct {
    _Atomic(void *) at[ADDRESS_SLOTS];
    _Atomic uint16_t row[ADDRESS_SLOTS];
} addresses;

_Static_assert(CW_HOOK_COUNT < ADDRESS_SLOTS / 2, "grow ADDRESS_SLOTS");

static uint32_t address_slot(const void *address)
{
    uint64_t h = (uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15ull;

    return (uint32_t)(h >> 40) & (ADDRESS_SLOTS - 1);
}

int cw_resolve_row_at(const void *address)
{
    for (uint32_t i = address_slot(address), n = 0; n < ADDRESS_SLOTS; n++) {
        void *seen = atomic_load_explicit(&addresses.at[i], memory_order_acquire);

        if (seen == NULL)
            return -1;
        if (seen == address)
            return atomic_load_explicit(&addresses.row[i], memory_order_relaxed);
        i = (i + 1) & (ADDRESS_SLOTS - 1);
    }
    return -1;
}

static void remember_address_locked(void *address, int row)
{
    for (uint32_t i = address_slot(address), n = 0; n < ADDRESS_SLOTS; n++) {
        void *seen = atomic_load_explicit(&addresses.at[i], memory_order_relaxed);

        /* Two names of one address: the later row, which is the newer variant, was there first. */
        if (seen == address)
            return;
        if (seen == NULL) {
            atomic_store_explicit(&addresses.row[i], (uint16_t)row, memory_order_relaxed);
            atomic_store_explicit(&addresses.at[i], address, memory_order_release);
            return;
        }
        i = (i + 1) & (ADDRESS_SLOTS - 1);
    }
}

/* Empties the table and fills it again from what is left in cw_real. */
static void rebuild_addresses_locked(void)
{
    for (uint32_t i = 0; i < ADDRESS_SLOTS; i++)
        atomic_store_explicit(&addresses.at[i], NULL, memory_order_relaxed);
    for (int row = CW_HOOK_COUNT; row-- > 0;) {
        void *real = atomic_load_explicit(&cw_real[row], memory_order_relaxed);

        if (real != NULL)
            remember_address_locked(real, row);
    }
}

/* ---- the driver ---- */

int cw_resolve_is_library(const struct cw_object *object, unsigned library)
{
    return strncmp(cw_object_basename(object), libraries[library].prefix,
                   strlen(libraries[library].prefix)) == 0 &&
           !cw_object_is_self(object);
}

int cw_resolve_is_driver_part(const struct cw_object *object)
{
    const char *name = cw_object_basename(object);

    return strncmp(name, "libcuda.so", 10) == 0 || strncmp(name, "libnvidia", 9) == 0;
}

void cw_resolve_adopt(const struct cw_object *object, unsigned library)
{
    struct cw_object_symbols symbols;
    void *real[CW_REAL_COUNT];

    if (atomic_load(&libraries[library].base) == object->base)
        return;
    cw_object_read(object, &symbols);
    for (int row = 0; row < CW_REAL_COUNT; row++)
        real[row] = cw_hook_rows[row].library == library
                        ? cw_object_find(&symbols, cw_hook_rows[row].symbol)
                        : NULL;

    cw_lock_acquire(&resolve_lock);
    if (atomic_load(&libraries[library].base) != object->base) {
        for (int row = 0; row < CW_REAL_COUNT; row++)
            if (cw_hook_rows[row].library == library)
                atomic_store_explicit(&cw_real[row], real[row], memory_order_relaxed);
        rebuild_addresses_locked();
        atomic_store(&libraries[library].base, object->base);
    }
    cw_lock_release(&resolve_lock);
}

struct find_query {
    unsigned library;
    struct cw_object object;
};

static int match_library(const struct cw_object *object, void *arg)
{
    struct find_query *query = arg;

    if (!cw_resolve_is_library(object, query->library) ||
        cw_object_symbol(object, libraries[query->library].probe) == NULL)
        return 0;
    query->object = *object;
    return 1;
}

void cw_resolve_libraries(void)
{
    for (unsigned i = 0; i < CW_LIBRARY_COUNT; i++) {
        struct find_query query = {.library = i};

        if (atomic_load(&libraries[i].base) == 0 && cw_object_visit(match_library, &query))
            cw_resolve_adopt(&query.object, i);
    }
}

struct loaded_query {
    uint64_t base;
    const char *name; /* out */
};

static int match_base(const struct cw_object *object, void *arg)
{
    struct loaded_query *query = arg;

    query->name = object->name;
    return object->base == query->base;
}

/* In WSL libcuda.so, libcuda.so.1 and libcuda.so.1.1 are files of their own, and all of them hand
 * on to one driver in another directory. */
static int is_of_wsl(const char *name)
{
    return strstr(name, "/wsl/") != NULL;
}

int cw_resolve_is_served(const struct cw_object *object, unsigned library)
{
    struct loaded_query first = {.base = atomic_load(&libraries[library].base)};

    return first.base == object->base ||
           (is_of_wsl(object->name) && first.base != 0 && cw_object_visit(match_base, &first) &&
            is_of_wsl(first.name));
}

void cw_resolve_forget_unloaded(void)
{
    for (unsigned i = 0; i < CW_LIBRARY_COUNT; i++) {
        struct loaded_query query = {.base = atomic_load(&libraries[i].base)};

        if (query.base == 0 || cw_object_visit(match_base, &query))
            continue;
        cw_lock_acquire(&resolve_lock);
        for (int row = 0; row < CW_REAL_COUNT; row++)
            if (cw_hook_rows[row].library == i)
                atomic_store_explicit(&cw_real[row], NULL, memory_order_relaxed);
        rebuild_addresses_locked();
        atomic_store(&libraries[i].base, 0);
        cw_lock_release(&resolve_lock);
    }
}

void cw_resolve_reset(void)
{
    cw_lock_reset(&resolve_lock);
}

int cw_resolve_is_loaded(unsigned library)
{
    return library < CW_LIBRARY_COUNT && atomic_load(&libraries[library].base) != 0;
}

static int match_second(const struct cw_object *object, void *arg)
{
    struct find_query *query = arg;

    return !cw_resolve_is_served(object, query->library) && match_library(object, query);
}

void cw_resolve_tell_second(void)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct find_query second = {.library = CW_LIBRARY_DRIVER};
    struct loaded_query first = {.base = atomic_load(&libraries[CW_LIBRARY_DRIVER].base)};

    if (cw_object_visit(match_base, &first) && cw_object_visit(match_second, &second))
        cw_log_once(&said, CW_LOG_WARN,
                    "two drivers are loaded, '%s' and '%s'; only the first one's calls are seen; "
                    "let the dynamic linker find one of them only (LD_LIBRARY_PATH, "
                    "/etc/ld.so.conf.d)",
                    first.name, second.object.name);
}

struct interposer_query {
    struct cw_object *out;
    int is_found;
};

static int match_interposer(const struct cw_object *object, void *arg)
{
    /* One that has none of them sees little of a program's memory and work. */
    static const char *const names[] = {"cuMemAlloc_v2", "cuMemAllocAsync",    "cuMemCreate",
                                        "cuMemFree_v2",  "cuMemGetInfo_v2",    "cuLaunchKernel",
                                        "cuInit",        "cuGetProcAddress_v2"};
    struct interposer_query *query = arg;
    struct cw_object_symbols symbols;

    if (cw_resolve_is_library(object, CW_LIBRARY_DRIVER))
        return 1;
    cw_object_read(object, &symbols);
    for (size_t i = 0; i < CW_ARRAY_LEN(names) && !query->is_found; i++)
        query->is_found = cw_object_find(&symbols, names[i]) != NULL;
    *query->out = *object;
    return query->is_found;
}

int cw_resolve_interposer(struct cw_object *out)
{
    struct interposer_query query = {.out = out};

    cw_object_visit_preloaded(CW_OBJECTS_AFTER, match_interposer, &query);
    return query.is_found;
}

static int match_stand_in(const struct cw_object *object, void *arg)
{
    *(struct cw_object *)arg = *object;
    return cw_object_symbol(object, libraries[CW_LIBRARY_DRIVER].probe) != NULL;
}

int cw_resolve_stand_in(struct cw_object *out)
{
    return !cw_resolve_is_loaded(CW_LIBRARY_DRIVER) &&
           cw_object_visit_preloaded(CW_OBJECTS_AFTER, match_stand_in, out);
}

static int match_lookups(const struct cw_object *object, void *arg)
{
    *(struct cw_object *)arg = *object;
    return cw_object_symbol(object, "dlsym") != NULL;
}

int cw_resolve_other_dlsym(struct cw_object *out)
{
    return cw_object_visit_preloaded(CW_OBJECTS_BEFORE, match_lookups, out);
}

/* ---- the runtime ---- */

struct runtime_query {
    const char *name;
    const char *version;
    int is_after_us;
    void *found;
    unsigned definitions; /* by any object but ours */
    void *of_runtime;     /* the first one by a cudart */
};

static int is_defined_by(const struct cw_object *object, struct runtime_query *query)
{
    struct cw_object_symbols symbols;

    cw_object_read(object, &symbols);
    query->found = cw_object_find_version(&symbols, query->name, query->version);
    return query->found != NULL;
}

/* In what the program started with, as far as libc: nothing that was opened comes before that. */
static int match_linked(const struct cw_object *object, void *arg)
{
    struct runtime_query *query = arg;

    if (cw_object_is_libc(object))
        return -1;
    if (cw_object_is_self(object))
        query->is_after_us = 1;
    else if (query->is_after_us)
        return is_defined_by(object, query);
    return 0;
}

static int count_definition(const struct cw_object *object, void *arg)
{
    struct runtime_query *query = arg;

    if (cw_object_is_self(object) || !is_defined_by(object, query))
        return 0;
    query->definitions++;
    if (query->of_runtime == NULL && strncmp(cw_object_basename(object), "libcudart", 9) == 0)
        query->of_runtime = query->found;
    return 0;
}

/* The version matters: every cudart names its functions after itself (cudaMalloc@libcudart.so.13),
 * and a process may have several. Not by dlvsym: see searchlist.h. */
void *cw_resolve_runtime(const char *name, const char *version, const void *caller)
{
    struct runtime_query query = {.name = name, .version = version};
    struct cw_object from;
    int has_caller = cw_object_at(caller, &from) == 0;

    if (has_caller && version == NULL)
        query.version = cw_object_wanted_version(&from, name);
    if (cw_object_visit(match_linked, &query) > 0)
        return query.found;
    cw_object_visit(count_definition, &query);
    if (query.definitions == 0 || (query.definitions == 1 && query.of_runtime != NULL))
        return query.of_runtime;
    query.found = cw_searchlist_find(has_caller ? &from : NULL, name, query.version);
    /* A plugin that names no cudart of its own and uses the one that another one brought. */
    return query.found != NULL ? query.found : query.of_runtime;
}
