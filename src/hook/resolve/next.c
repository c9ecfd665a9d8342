/* SPDX-License-Identifier: MIT */
/* See next.h. */
#include "hook/resolve/next.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/compiler.h"
#include "hook/resolve/object.h"

typedef void *(*dlsym_fn)(void *, const char *);
typedef void *(*dlvsym_fn)(void *, const char *, const char *);

static _Atomic(void *) next_dlsym, next_dlvsym, next_dlopen;

static void *missing(void *handle, const char *name)
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
            return (void *)&missing;
        atomic_store_explicit(cache, next, memory_order_relaxed);
    }
    return next;
}

void *cw_next_dlsym(void)
{
    return next_of(&next_dlsym, "dlsym");
}

void *cw_next_dlvsym(void)
{
    return next_of(&next_dlvsym, "dlvsym");
}

void *cw_next_dlopen(void)
{
    return next_of(&next_dlopen, "dlopen");
}

void *cw_next_ask(void *handle, const struct cw_next_query *query)
{
    if (query->version == NULL)
        return ((dlsym_fn)cw_next_dlsym())(handle, query->name);
    return ((dlvsym_fn)cw_next_dlvsym())(handle, query->name, query->version);
}
