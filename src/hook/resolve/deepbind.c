/* SPDX-License-Identifier: MIT */
/*
 * Finding and binding. See deepbind.h.
 *
 * Owns what was opened, as atomics, and the name of what was found, written once. No lock: binding
 * runs under the loader's own, which the thread in dlopen holds, so that it sees no object that
 * another thread is relocating.
 */
#include "hook/resolve/deepbind.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/out.h"
#include "base/reason.h"
#include "core/process/loader.h"
#include "hook/resolve/object.h"
#include "hook/resolve/reference.h"
#include "hook/resolve/resolve.h"

static struct {
    _Atomic pid_t pid;        /* that has opened an object so; 0: none has */
    _Atomic int is_patched;   /* they are to be bound to us */
    _Atomic uint64_t settled; /* objects that were ever loaded, when they last were */
    _Atomic int has_driver;   /* it was loaded, when that was last asked */
    char name[96];            /* of the one that was found */
    struct cw_once naming;
} deep;

_Atomic int cw_deepbind_found;

void cw_deepbind_opening(int is_patched)
{
    atomic_store(&deep.is_patched, is_patched);
    if (atomic_load(&deep.pid) == 0)
        atomic_store(&deep.pid, getpid());
}

/* Parts of the driver are its own business, and the C library refers to itself. */
static int is_out_of_bounds(const struct cw_object *object)
{
    return cw_object_is_self(object) || cw_resolve_is_driver_part(object);
}

/* ---- looking ---- */

struct use {
    int is_linked;  /* refers to a function of CUDA */
    int is_looking; /* refers to dlsym or dlvsym */
};

static int match_use(const struct cw_reference *reference, void *arg)
{
    struct use *use = arg;

    if (!cw_reference_escapes(reference))
        return 0;
    use->is_linked |= strncmp(reference->name, "cu", 2) == 0;
    use->is_looking |=
        strcmp(reference->name, "dlsym") == 0 || strcmp(reference->name, "dlvsym") == 0;
    return use->is_linked;
}

/* Whoever looks CUDA's driver up has its functions' names in his constants. */
static int match_name(struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char wanted[] = "cuInit"; /* with its NUL */
    const struct cw_object *object = arg;

    (void)size;
    if (info->dlpi_addr != object->bias)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD && (segment->p_flags & (PF_R | PF_W)) == PF_R &&
            memmem((const void *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr), segment->p_filesz,
                   wanted, sizeof(wanted)) != NULL)
            return 1;
    }
    return -1;
}

static int match_unseen(const struct cw_object *object, void *arg)
{
    struct use use = {.is_linked = 0};

    (void)arg;
    if (is_out_of_bounds(object))
        return 0;
    cw_reference_visit(object, match_use, &use);
    if (!use.is_linked &&
        !(use.is_looking && cw_loader_visit(match_name, (void *)(uintptr_t)object) > 0))
        return 0;
    if (cw_once_begin(&deep.naming)) {
        cw_format(deep.name, sizeof(deep.name), "%s", cw_object_basename(object));
        cw_once_end(&deep.naming);
        atomic_store(&cw_deepbind_found, 1);
    }
    return 1;
}

/* ---- binding ---- */

static int read_adds(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    *(uint64_t *)arg = info->dlpi_adds;
    return 1;
}

static int count_one(const struct cw_object *object, void *arg)
{
    (void)object;
    ++*(uint64_t *)arg;
    return 0;
}

struct settling {
    uint64_t older; /* objects still to be passed over */
    struct cw_object refused;
    int error; /* of that one; 0: none */
    int is_open;
};

static int bind_one(const struct cw_object *object, void *arg)
{
    struct settling *settling = arg;
    int error, is_open = 0;

    if (settling->older > 0) {
        settling->older--;
        return 0;
    }
    if (is_out_of_bounds(object))
        return 0;
    error = atomic_load(&deep.is_patched) ? cw_reference_bind(object, &is_open) : 0;
    if (!cw_deepbind_is_any())
        match_unseen(object, NULL);
    if (error != 0) {
        settling->refused = *object;
        settling->error = error;
        settling->is_open = is_open;
    }
    return 0;
}

/* New objects stand at the end of the loader's list. */
void cw_deepbind_loaded(void)
{
    struct settling settling = {.error = 0};
    uint64_t adds = 0, settled;

    if (CW_LIKELY(atomic_load_explicit(&deep.pid, memory_order_relaxed) == 0))
        return;
    cw_loader_visit(read_adds, &adds);
    settled = atomic_exchange(&deep.settled, adds);
    if (settled == adds)
        return;
    cw_object_visit(count_one, &settling.older);
    settling.older -= adds - settled < settling.older ? adds - settled : settling.older;
    cw_object_visit(bind_one, &settling);
    if (settling.error != 0)
        cw_log(CW_LOG_WARN,
               "CUWARDEN_DEEPBIND=patch: the memory of '%s' cannot be %s: %s (errno %d)%s",
               settling.refused.name, settling.is_open ? "protected again" : "changed",
               cw_reason(settling.error), settling.error,
               settling.is_open ? "" : "; what it calls of CUDA does not come here");
}

/* ---- the end ---- */

void cw_deepbind_look(void)
{
    pid_t pid = atomic_load_explicit(&deep.pid, memory_order_relaxed);

    if (CW_LIKELY(pid == 0) || pid != getpid()) /* a vfork child shares our memory */
        return;
    cw_resolve_libraries();
    if (!cw_resolve_is_loaded(CW_LIBRARY_DRIVER))
        return;
    atomic_store(&deep.has_driver, 1);
    if (!cw_deepbind_is_any())
        cw_object_visit(match_unseen, NULL);
}

const char *cw_deepbind_unseen(void)
{
    return cw_deepbind_is_any() && atomic_load(&deep.has_driver) ? deep.name : NULL;
}

void cw_deepbind_reset(void)
{
    if (atomic_load(&deep.pid) != 0)
        atomic_store(&deep.pid, getpid());
}
