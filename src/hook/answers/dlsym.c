/* SPDX-License-Identifier: MIT */
/* The objects whose look-ups get our functions. See dlsym.h. */
#include "hook/answers/dlsym.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/out.h"
#include "core/process/session.h"
#include "hook/answers/answer.h"
#include "hook/resolve/next.h"
#include "hook/resolve/object.h"
#include "hook/resolve/resolve.h"
#include "hook/resolve/searchlist.h"

static int is_hooked_name(const char *name)
{
    if (name == NULL)
        return 0;
    /* "cu" and a capital: not cublas, cudnn, curl. */
    if (name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z')
        return cw_hook_find(name) >= 0;
    return strncmp(name, "nvml", 4) == 0 && cw_hook_find(name) >= 0;
}

/* Names that we export in front of a runtime. A lookup must find the runtime's, and fail where
 * there is no runtime, never ours (see hooks_runtime.c). */
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

/* ---- what dlerror says ---- */

/*
 * A look-up that we make in the program's place and that fails names this library as the one that
 * asked. So the failure remembers who did, and dlerror puts that name there.
 */
static CW_TLS struct {
    int has_name;
    char words[256]; /* the name, then all that dlerror says */
} failure;

typedef char *(*dlerror_fn)(void);

static char *real_dlerror(void)
{
    static _Atomic(void *) next;
    void *real = atomic_load_explicit(&next, memory_order_relaxed);

    if (real == NULL) {
        real = cw_object_next_symbol("dlerror");
        atomic_store_explicit(&next, real, memory_order_relaxed);
    }
    return real != NULL ? ((dlerror_fn)real)() : NULL;
}

/* name "": the program's. */
static void failed_for(const char *name)
{
    cw_format(failure.words, sizeof(failure.words), "%s",
              name[0] != '\0' ? name : program_invocation_name);
    failure.has_name = 1;
}

/* What follows our own name, if that is how the text begins. */
static const char *after_own_name(const char *said)
{
    struct cw_object self;
    size_t len;

    if (cw_object_at((const void *)&after_own_name, &self) != 0)
        return NULL;
    len = strlen(self.name);
    return len != 0 && strncmp(said, self.name, len) == 0 && said[len] == ':' ? said + len : NULL;
}

CW_EXPORT char *dlerror(void)
{
    char *said = real_dlerror();
    const char *rest = said != NULL && failure.has_name ? after_own_name(said) : NULL;
    size_t len;

    failure.has_name = 0;
    if (rest == NULL)
        return said;
    len = strlen(failure.words);
    cw_format(failure.words + len, sizeof(failure.words) - len, "%s", rest);
    return failure.words;
}

/* ---- look-ups ---- */

struct next_query {
    const struct cw_object *caller;
    const char *name;
    int is_after; /* the caller was seen */
    void *found;
};

/* Stops at our library. */
static int match_between(const struct cw_object *object, void *arg)
{
    struct next_query *query = arg;

    if (cw_object_is_self(object))
        return 1;
    if (query->is_after)
        query->found = cw_object_symbol(object, query->name);
    query->is_after |= object->base == query->caller->base;
    return query->found != NULL;
}

/* RTLD_DEFAULT, without finding our own exports: what is before us, then what is after. */
static void *ask_default(const struct cw_next_query *query, const struct cw_object *caller)
{
    struct next_query before = {.caller = caller, .name = query->name, .is_after = 1};
    void *found;

    cw_object_visit(match_between, &before);
    if (before.found != NULL)
        return before.found;
    found = cw_next_ask(RTLD_NEXT, query);
    /* What brought the caller is in its scope, though not in the global one, which was asked. */
    if (found != NULL)
        return found;
    found = cw_searchlist_brought_symbol(caller, query->name, query->version);
    if (found != NULL)
        real_dlerror(); /* a program that calls it must not see our failed attempt */
    else
        failed_for(caller->name);
    return found;
}

static void *ask_real(const struct cw_next_query *query, const struct cw_object *caller)
{
    struct cw_object owner;
    void *found;

    if (query->handle == RTLD_DEFAULT)
        return ask_default(query, caller);
    found = cw_next_ask(query->handle, query);
    if (found == NULL || cw_object_at(found, &owner) != 0 || !cw_object_is_self(&owner))
        return found;
    /* The handle's scope contains our library: looks for a real one after it. */
    found = cw_next_ask(RTLD_NEXT, query);
    if (found == NULL)
        failed_for(""); /* it is the program's, as a rule */
    return found;
}

/* RTLD_NEXT of a caller before us finds our exports. Where it would find nothing if we were not
 * there, "is there a driver?" has to be answered by no. 1: the answer is NULL, and dlerror is set.
 */
static int is_nothing_next(const struct cw_next_query *query, const struct cw_object *caller)
{
    struct next_query next = {.caller = caller, .name = query->name};

    cw_object_visit(match_between, &next);
    if (!next.is_after || next.found != NULL || cw_next_ask(RTLD_NEXT, query) != NULL)
        return 0;
    failed_for(caller->name);
    return 1;
}

static void *substitute_export(void *found, const char *name)
{
    struct cw_object owner;
    int row = cw_hook_find(name);
    unsigned library = cw_hook_rows[row].library;

    if (found == NULL || cw_object_at(found, &owner) != 0 ||
        !cw_resolve_is_library(&owner, library) || cw_object_symbol(&owner, name) != found)
        return found;
    cw_resolve_libraries(); /* the first is whose linked callers call */
    if (!cw_resolve_is_loaded(library))
        cw_resolve_adopt(&owner, library);
    if (cw_resolve_is_served(&owner, library))
        return cw_answer_ours[row];
    if (library == CW_LIBRARY_DRIVER && cw_session_is_armed())
        cw_resolve_tell_second();
    return found;
}

static struct cw_dlsym_answer filter(const struct cw_next_query *query, void *next,
                                     const void *caller)
{
    int hooked = is_hooked_name(query->name);
    struct cw_object from;

    if ((!hooked && !is_runtime_name(query->name)) || cw_object_at(caller, &from) != 0 ||
        cw_resolve_is_driver_part(&from) ||
        (query->handle == RTLD_NEXT && !is_nothing_next(query, &from)))
        return (struct cw_dlsym_answer){.jump = next};
    if (query->handle == RTLD_NEXT)
        return (struct cw_dlsym_answer){.value = NULL};
    if (!hooked)
        return (struct cw_dlsym_answer){.value = ask_real(query, &from)};
    return (struct cw_dlsym_answer){.value =
                                        substitute_export(ask_real(query, &from), query->name)};
}

struct cw_dlsym_answer cw_dlsym_filter(void *handle, const char *name, const void *caller)
{
    struct cw_next_query query = {.handle = handle, .name = name};

    return filter(&query, cw_next_dlsym(), caller);
}

struct cw_dlsym_answer cw_dlvsym_filter(void *handle, const char *name, const char *version,
                                        const void *caller)
{
    struct cw_next_query query = {.handle = handle, .name = name, .version = version};

    return filter(&query, cw_next_dlvsym(), caller);
}
