/* SPDX-License-Identifier: MIT */
/* Our functions, and when callers get them. See answer.h. */
#include "hook/answers/answer.h"

#include <stddef.h>

#include "hook/resolve/nvml_types.h"
#include "hook/resolve/object.h"
#include "hook/resolve/resolve.h"

void *const cw_answer_ours[CW_HOOK_COUNT] = {
#define HOOK(symbol, base, since, stream, family) [CW_HOOK_##symbol] = (void *)&symbol,
#include "hook/hooks.def"
#define NVML(symbol) [CW_HOOK_##symbol] = (void *)&symbol,
#include "hook/hooks.def"
};

/* The driver may answer with another address than the one it exports. If that address is an export
 * of another name, it is that function, whatever name and version say. */
static int row_by_name(void *pfn, const char *name, int version, uint64_t flags)
{
    struct cw_object object;
    const char *exported;

    if (cw_object_at(pfn, &object) != 0 || cw_object_is_self(&object))
        return -1;
    exported = cw_object_name_of(&object, pfn);
    if (exported != NULL)
        return cw_resolve_is_library(&object, CW_LIBRARY_DRIVER) ? cw_hook_find(exported) : -1;
    return cw_hook_find_versioned(name, version,
                                  flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                      ? CW_STREAM_THREAD
                                      : CW_STREAM_LEGACY);
}

void *cw_answer_instead(void *pfn, const char *name, int version, uint64_t flags)
{
    int row = cw_resolve_row_at(pfn);

    if (!cw_resolve_is_loaded(CW_LIBRARY_DRIVER))
        cw_resolve_libraries();
    if (!cw_resolve_is_loaded(CW_LIBRARY_DRIVER)) /* whoever answers may call what we export */
        return pfn;
    if (row < 0 && name != NULL && name[0] == 'c' && name[1] == 'u')
        row = row_by_name(pfn, name, version, flags);
    if (row < 0)
        return pfn;
    /* Not exported, but available here: from now on this is the real one. */
    if (atomic_load_explicit(&cw_real[row], memory_order_relaxed) == NULL)
        atomic_store_explicit(&cw_real[row], pfn, memory_order_relaxed);
    return cw_answer_ours[row];
}
