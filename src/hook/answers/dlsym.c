/* SPDX-License-Identifier: MIT */
/* The objects whose look-ups get our functions. See dlsym.h. */
#include "hook/answers/dlsym.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "hook/answers/answer.h"
#include "hook/resolve/next.h"
#include "hook/resolve/object.h"
#include "hook/resolve/resolve.h"

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

/* The look-up succeeded in the end: a program that calls dlerror must not see our failed
 * attempts. */
static void clear_dlerror(void)
{
    char *(*real)(void) = (char *(*)(void))cw_object_next_symbol("dlerror");

    if (real != NULL)
        real();
}

/* RTLD_DEFAULT, without finding our own exports. */
static void *ask_default(const struct cw_next_query *query, const struct cw_object *caller)
{
    struct program_query program = {.name = query->name};
    void *found;

    cw_object_visit(match_program, &program);
    if (program.found != NULL)
        return program.found;
    found = cw_next_ask(RTLD_NEXT, query);
    /* The caller's own dependencies are in its scope, though not in the global one. */
    if (found != NULL)
        return found;
    found = cw_object_needed_symbol(caller, query->name, query->version);
    if (found != NULL)
        clear_dlerror();
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
    return cw_next_ask(RTLD_NEXT, query);
}

static void *substitute_export(void *found, const char *name)
{
    struct cw_object owner;
    int row = cw_hook_find(name);
    unsigned library = cw_hook_rows[row].library;

    if (found == NULL || cw_object_at(found, &owner) != 0 ||
        !cw_resolve_is_library(&owner, library) || cw_object_symbol(&owner, name) != found)
        return found;
    cw_resolve_adopt(&owner, library);
    return cw_answer_ours[row];
}

static struct cw_dlsym_answer filter(const struct cw_next_query *query, void *next,
                                     const void *caller)
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
    struct cw_next_query query = {.handle = handle, .name = name};

    return filter(&query, cw_next_dlsym(), caller);
}

struct cw_dlsym_answer cw_dlvsym_filter(void *handle, const char *name, const char *version,
                                        const void *caller)
{
    struct cw_next_query query = {.handle = handle, .name = name, .version = version};

    return filter(&query, cw_next_dlvsym(), caller);
}
