/* SPDX-License-Identifier: MIT */
/*
 * Who is behind us, and who comes to us: the real driver's functions, and the answers of dlsym and
 * cuGetProcAddress.
 *
 * Always: the real resolver is asked first, and a pointer is replaced by ours only if it is an
 * export of the loaded driver that has a row. A lookup that fails natively fails here too.
 */
#ifndef CW_HOOK_RESOLVE_H
#define CW_HOOK_RESOLVE_H

#include <stdint.h>

#include "hook/resolve/hook_table.h"

/* Finds libcuda and libnvidia-ml among the loaded objects and fills cw_real[]. Cheap when nothing
 * is new. */
void cw_resolve_libraries(void);
/* After a dlclose: a driver that was unloaded must not be called any more. */
void cw_resolve_forget_unloaded(void);
/* In a forked child. */
void cw_resolve_reset(void);
int cw_resolve_is_loaded(unsigned library);

/* What to answer instead of a pointer that the driver's cuGetProcAddress (or the runtime's entry
 * point query) gave: ours, or the same pointer. version 0: not known, then only exact exports are
 * replaced. */
void *cw_resolve_substitute(void *pfn, const char *name, int version, uint64_t flags);

/*
 * Called by the assembly of dlsym and dlvsym. jump != NULL: go on there with the caller's registers
 * and stack untouched. Else return value.
 */
struct cw_dlsym_answer {
    void *jump;
    void *value;
};
struct cw_dlsym_answer cw_dlsym_filter(void *handle, const char *name, const void *caller);
struct cw_dlsym_answer cw_dlvsym_filter(void *handle, const char *name, const char *version,
                                        const void *caller);

/* The function of a runtime (cudart) that the module of `caller` would have bound to, or NULL. */
void *cw_resolve_runtime(const char *name, const void *caller);

#endif
