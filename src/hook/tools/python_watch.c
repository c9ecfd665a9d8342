/* SPDX-License-Identifier: MIT */
/*
 * Finds the interpreter at the right moments. See python_watch.h.
 *
 * Owns whether one was found, and whether it can be unloaded. Mostly the interpreter is the program
 * or a library that it needs, and stays. One loaded on demand is dropped before any unloading, and
 * found again if it is still there: its memory must not be read after it was unloaded.
 */
#include "hook/tools/python_watch.h"

#include <stdatomic.h>

#include "base/log.h"
#include "core/stacks/module.h"
#include "core/python/python.h"
#include "core/stacks/stack.h"
#include "hook/resolve/object.h"
#include "hook/tools/python_find.h"

static _Atomic int is_wanted;
static _Atomic int is_found;
static _Atomic int can_go;

static int take_first(const struct cw_object *object, void *arg)
{
    *(struct cw_object *)arg = *object;
    return 1;
}

static int is_needed_by_program(void)
{
    struct cw_object program;

    return cw_object_visit(take_first, &program) &&
           cw_object_needed_symbol(&program, "_PyRuntime", NULL) != NULL;
}

static void look(void)
{
    struct cw_python_symbols symbols;

    if (!atomic_load(&is_wanted) || atomic_load(&is_found) || cw_python_find(&symbols) != 0 ||
        atomic_exchange(&is_found, 1))
        return;
    atomic_store(&can_go, !is_needed_by_program());
    cw_python_set_symbols(&symbols);
    if (!cw_python_is_missing())
        return;
    cw_log(CW_LOG_INFO, "%s: call stacks have native frames only", cw_python_status());
    cw_stack_note_python();
}

void cw_python_watch(const struct cw_options *options)
{
    if (options->python != CW_PYTHON_AUTO || options->stacks == CW_STACKS_OFF)
        return;
    atomic_store(&is_wanted, 1);
    cw_module_set_watch(look);
    look();
}

int cw_python_unload_begin(void)
{
    if (!atomic_exchange(&can_go, 0))
        return 0;
    cw_python_set_symbols(NULL);
    return 1;
}

void cw_python_unload_end(void)
{
    atomic_store(&is_found, 0);
    look();
}

/* One that another thread had only begun to make known is to be found again. */
void cw_python_watch_reset(void)
{
    cw_python_reset();
    if (!atomic_load(&cw_python_is_armed))
        atomic_store(&is_found, 0);
}
