/* SPDX-License-Identifier: MIT */
/*
 * Resolution. See resolve.h.
 *
 * Owns which driver is in use (`libraries`) and the table from its exports' addresses to rows. Both
 * are filled under resolve_lock from addresses that were collected without it (the loader's lock is
 * taken by the walk) and are read without one: an entry is written before the slot that names it.
 */
#include "hook/resolve/resolve.h"

#include <dlfcn.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "hook/resolve/object.h"

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
 * Apart, and no larger than need be: every process that calls CUDA touches all of it. */
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

static int row_of_address(const void *address)
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

/* ---- the driver --------------------------------------------------------------------------------
 */

static int is_library(const struct cw_object *object, unsigned library)
{
    return strncmp(cw_object_basename(object), libraries[library].prefix,
                   strlen(libraries[library].prefix)) == 0 &&
           !cw_object_is_self(object);
}

/* Takes the object's exports as the real functions. */
static void adopt(const struct cw_object *object, unsigned library)
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

    if (!is_library(object, query->library) ||
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
            adopt(&query.object, i);
    }
}

struct loaded_query {
    uint64_t base;
};

static int match_base(const struct cw_object *object, void *arg)
{
    return object->base == ((const struct loaded_query *)arg)->base;
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

/* ---- cuGetProcAddress --------------------------------------------------------------------------
 */

/* The driver may answer with another address than the one it exports. If that address is an export
 * of another name, it is that function, and name and version are not asked. */
static int row_by_name(void *pfn, const char *name, int version, uint64_t flags)
{
    struct cw_object object;
    const char *exported;

    if (cw_object_at(pfn, &object) != 0 || cw_object_is_self(&object))
        return -1;
    exported = cw_object_name_of(&object, pfn);
    if (exported != NULL)
        return is_library(&object, CW_LIBRARY_DRIVER) ? cw_hook_find(exported) : -1;
    return cw_hook_find_versioned(name, version,
                                  flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                      ? CW_STREAM_THREAD
                                      : CW_STREAM_LEGACY);
}

void *cw_resolve_substitute(void *pfn, const char *name, int version, uint64_t flags)
{
    int row = row_of_address(pfn);

    if (row < 0 && name != NULL && name[0] == 'c' && name[1] == 'u')
        row = row_by_name(pfn, name, version, flags);
    if (row < 0 || cw_hook_rows[row].ours == NULL)
        return pfn;
    /* Not exported, but to be had here: from now on this is the real one. */
    if (atomic_load_explicit(&cw_real[row], memory_order_relaxed) == NULL)
        atomic_store_explicit(&cw_real[row], pfn, memory_order_relaxed);
    return cw_hook_rows[row].ours;
}

/* ---- dlsym -------------------------------------------------------------------------------------
 */

typedef void *(*dlsym_fn)(void *, const char *);
typedef void *(*dlvsym_fn)(void *, const char *, const char *);

static _Atomic(void *) next_dlsym, next_dlvsym;

static void *missing_dlsym(void *handle, const char *name)
{
    (void)handle;
    (void)name;
    return NULL;
}

/* Before glibc 2.34 dlsym is in libdl, which may be loaded at any time: looked up when first
 * needed. */
static void *next_of(_Atomic(void *) *cache, const char *name)
{
    void *next = atomic_load_explicit(cache, memory_order_relaxed);

    if (CW_UNLIKELY(next == NULL)) {
        next = cw_object_next_symbol(name);
        if (next == NULL)
            return (void *)&missing_dlsym;
        atomic_store_explicit(cache, next, memory_order_relaxed);
    }
    return next;
}

struct query {
    void *handle;
    const char *name;
    const char *version; /* NULL for dlsym */
};

/* As called from this library: RTLD_NEXT means what comes after us. */
static void *ask_next(void *handle, const struct query *query)
{
    if (query->version == NULL)
        return ((dlsym_fn)next_of(&next_dlsym, "dlsym"))(handle, query->name);
    return ((dlvsym_fn)next_of(&next_dlvsym, "dlvsym"))(handle, query->name, query->version);
}

static int is_hooked_name(const char *name)
{
    if (name == NULL)
        return 0;
    /* "cu" and a capital: not cublas, cudnn, curl. */
    if (name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z')
        return cw_hook_find(name) >= 0;
    return strncmp(name, "nvml", 4) == 0 && cw_hook_find(name) >= 0;
}

/* Names that we export in front of a runtime. A lookup must not find ours: where there is no
 * runtime it has to fail, and where there is one it has to give that one's (see hooks_runtime.c).
 */
static int is_runtime_name(const char *name)
{
    static const char *const names[] = {
#define RUNTIME(symbol) #symbol,
#include "hook/hooks.def"
    };

    if (name == NULL || strncmp(name, "cuda", 4) != 0)
        return 0;
    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

/* The driver resolves its own parts by dlsym (WSL loads one libcuda from another): not our
 * business. */
static int is_driver_part(const struct cw_object *object)
{
    const char *name = cw_object_basename(object);

    return strncmp(name, "libcuda.so", 10) == 0 || strncmp(name, "libnvidia", 9) == 0;
}

struct program_query {
    const char *name;
    void *found;
};

static int match_program(const struct cw_object *object, void *arg)
{
    struct program_query *query = arg;

    query->found = cw_object_symbol(object, query->name);
    return 1; /* the first object is the program */
}

/* The look-up succeeded in the end: a program that asks dlerror, as it should, must not see our
 * tries. */
static void clear_dlerror(void)
{
    char *(*real)(void) = (char *(*)(void))cw_object_next_symbol("dlerror");

    if (real != NULL)
        real();
}

/* RTLD_DEFAULT, without finding our own exports. */
static void *ask_default(const struct query *query, const struct cw_object *caller)
{
    struct program_query program = {.name = query->name};
    void *found;

    cw_object_visit(match_program, &program);
    if (program.found != NULL)
        return program.found;
    found = ask_next(RTLD_NEXT, query);
    /* The caller's own dependencies are in its scope, though not in the global one. */
    if (found != NULL)
        return found;
    found = cw_object_needed_symbol(caller, query->name, query->version);
    if (found != NULL)
        clear_dlerror();
    return found;
}

static void *ask_real(const struct query *query, const struct cw_object *caller)
{
    struct cw_object owner;
    void *found;

    if (query->handle == RTLD_DEFAULT)
        return ask_default(query, caller);
    found = ask_next(query->handle, query);
    if (found == NULL || cw_object_at(found, &owner) != 0 || !cw_object_is_self(&owner))
        return found;
    /* The handle's scope has us in it: is there a real one behind? */
    return ask_next(RTLD_NEXT, query);
}

static void *substitute_export(void *found, const char *name)
{
    struct cw_object owner;
    int row = cw_hook_find(name);
    unsigned library = cw_hook_rows[row].library;

    if (found == NULL || cw_object_at(found, &owner) != 0 || !is_library(&owner, library) ||
        cw_object_symbol(&owner, name) != found)
        return found;
    adopt(&owner, library);
    return cw_hook_rows[row].ours;
}

static struct cw_dlsym_answer filter(const struct query *query, void *next, const void *caller)
{
    struct cw_object from;
    int hooked;

    if (query->handle == RTLD_NEXT)
        return (struct cw_dlsym_answer){.jump = next};
    hooked = is_hooked_name(query->name);
    if ((!hooked && !is_runtime_name(query->name)) || cw_object_at(caller, &from) != 0 ||
        is_driver_part(&from))
        return (struct cw_dlsym_answer){.jump = next};
    if (!hooked)
        return (struct cw_dlsym_answer){.value = ask_real(query, &from)};
    return (struct cw_dlsym_answer){.value =
                                        substitute_export(ask_real(query, &from), query->name)};
}

struct cw_dlsym_answer cw_dlsym_filter(void *handle, const char *name, const void *caller)
{
    struct query query = {.handle = handle, .name = name};

    return filter(&query, next_of(&next_dlsym, "dlsym"), caller);
}

struct cw_dlsym_answer cw_dlvsym_filter(void *handle, const char *name, const char *version,
                                        const void *caller)
{
    struct query query = {.handle = handle, .name = name, .version = version};

    return filter(&query, next_of(&next_dlvsym, "dlvsym"), caller);
}

/* ---- the runtime -------------------------------------------------------------------------------
 */

struct runtime_query {
    const char *name;
    const char *version;
    void *found;
};

static int match_any_runtime(const struct cw_object *object, void *arg)
{
    struct runtime_query *query = arg;

    if (strncmp(cw_object_basename(object), "libcudart", 9) != 0 ||
        !cw_object_has_version(object, query->name, query->version))
        return 0;
    query->found = cw_object_symbol(object, query->name);
    return query->found != NULL;
}

/* The version matters: every cudart names its functions after itself (cudaMalloc@libcudart.so.13),
 * and a process may have several. */
void *cw_resolve_runtime(const char *name, const void *caller)
{
    struct query query = {.name = name};
    struct runtime_query any = {.name = name};
    struct cw_object from;
    int has_caller = cw_object_at(caller, &from) == 0;
    void *found;

    if (has_caller)
        query.version = any.version = cw_object_wanted_version(&from, name);
    found = ask_next(RTLD_NEXT, &query);
    if (found == NULL && has_caller)
        found = cw_object_needed_symbol(&from, name, query.version);
    /* A plugin that names no cudart of its own and uses the one that its loader brought. */
    if (found == NULL && cw_object_visit(match_any_runtime, &any))
        found = any.found;
    return found;
}
