/* SPDX-License-Identifier: MIT */
/*
 * Looks for the interpreter among the loaded objects. See python_find.h. No state.
 *
 * Reads only data and the presence of functions. Each symbol comes from the first object that
 * defines it, as for the loader: a program may hold a copy of libpython's data.
 */
#include "hook/tools/python_find.h"

#include <string.h>

#include "base/compiler.h"
#include "hook/resolve/object.h"

/* Versions without Py_Version are recognised by functions that they introduced. */
static const struct {
    const char *name;
    uint32_t version;
} since[] = {
    {"Py_NewRef", 0x030a0000},
    {"PyFrame_GetBack", 0x03090000},
};

static uint32_t version_of(const struct cw_object *object)
{
    const unsigned long *version = cw_object_symbol(object, "Py_Version");

    if (version != NULL)
        return (uint32_t)*version;
    for (size_t i = 0; i < CW_ARRAY_LEN(since); i++)
        if (cw_object_symbol(object, since[i].name) != NULL)
            return since[i].version;
    return 0;
}

static void find_first(const struct cw_object *object, const char *name, const void **found)
{
    if (*found == NULL)
        *found = cw_object_symbol(object, name);
}

/* The function, and the object that it lies in. */
static void find_evaluator(const struct cw_object *object, struct cw_python_symbols *out)
{
    uint64_t size;
    const void *start;

    if (out->object != 0)
        return;
    start = cw_object_sized_symbol(object, "_PyEval_EvalFrameDefault", &size);
    if (start == NULL)
        return;
    out->evaluator = (uint64_t)(uintptr_t)start;
    out->evaluator_end = out->evaluator + size;
    out->object = object->base;
    out->object_end = object->end;
    out->thread_state = (void *(*)(void))cw_object_symbol(object, "PyGILState_GetThisThreadState");
}

static int look(const struct cw_object *object, void *arg)
{
    struct cw_python_symbols *out = arg;

    find_first(object, "_PyRuntime", &out->runtime);
    find_first(object, "PyCode_Type", &out->code_type);
    find_first(object, "PyUnicode_Type", &out->unicode_type);
    find_evaluator(object, out);
    if (out->version == 0 && cw_object_symbol(object, "Py_GetVersion") != NULL)
        out->version = version_of(object);
    return out->version != 0 && out->runtime != NULL && out->code_type != NULL &&
           out->unicode_type != NULL && out->object != 0;
}

/* Most processes have none: one look at each object is enough to tell. */
static int has_interpreter(const struct cw_object *object, void *arg)
{
    (void)arg;
    return cw_object_symbol(object, "Py_GetVersion") != NULL;
}

int cw_python_find(struct cw_python_symbols *out)
{
    *out = (struct cw_python_symbols){0};
    if (!cw_object_visit(has_interpreter, NULL))
        return -1;
    cw_object_visit(look, out);
    if (out->runtime == NULL)
        return -1;
    out->thread_value = (void *(*)(unsigned))cw_object_next_symbol("pthread_getspecific");
    out->thread_self = (unsigned long (*)(void))cw_object_next_symbol("pthread_self");
    return 0;
}
