/* SPDX-License-Identifier: MIT */
/*
 * Finds the interpreter at the right moments. See python_watch.h.
 *
 * Owns whether one was found, and whether it can be unloaded: guarded by one lock (CW_RANK_PYTHON),
 * never held across the loader. Mostly the interpreter is the program or a library that it needs,
 * and stays. One loaded on demand is dropped before any unloading, and found again if it is still
 * there once none is under way: its memory must not be read after it was unloaded. What a look has
 * found counts only if no unloading has begun meanwhile.
 */
#include "hook/tools/python_watch.h"

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"
#include "core/stacks/module.h"
#include "core/python/python.h"
#include "core/stacks/stack.h"
#include "hook/resolve/object.h"
#include "hook/resolve/searchlist.h"
#include "hook/tools/python_find.h"

static _Atomic int is_wanted;

static struct cw_lock lock = CW_LOCK_INIT(CW_RANK_PYTHON); /* guards what follows */
static int is_found, can_go;
static int is_due;         /* a look, once no unloading is under way */
static uint64_t begun;     /* unloadings, ever */
static unsigned under_way; /* of them */

static CW_TLS unsigned mine; /* of those under way: a destructor may unload too, or fork */

/* 1: there is none yet, and nothing is being unloaded. */
static int may_look(uint64_t *out_begun)
{
    int may;

    cw_lock_acquire(&lock);
    *out_begun = begun;
    may = !is_found && under_way == 0;
    is_due |= under_way != 0;
    cw_lock_release(&lock);
    return may;
}

/* 0: an unloading has begun since. */
static int take(const struct cw_python_symbols *symbols, int stays, uint64_t since)
{
    int is_good;

    cw_lock_acquire(&lock);
    is_good = begun == since;
    if (is_good && !is_found) {
        is_found = 1;
        can_go = !stays;
        cw_python_set_symbols(symbols);
    }
    cw_lock_release(&lock);
    return is_good;
}

static void look(void)
{
    struct cw_python_symbols symbols;
    uint64_t since;

    if (!atomic_load(&is_wanted))
        return;
    do {
        if (!may_look(&since) || cw_python_find(&symbols) != 0)
            return;
    } while (!take(&symbols, cw_searchlist_program_symbol("_PyRuntime") != NULL, since));
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

void cw_python_unload_begin(void)
{
    mine++;
    cw_lock_acquire(&lock);
    begun++;
    under_way++;
    if (is_found && can_go) {
        is_found = 0;
        is_due = 1;
        cw_python_set_symbols(NULL);
    }
    cw_lock_release(&lock);
}

void cw_python_unload_end(void)
{
    int is_time;

    mine--;
    cw_lock_acquire(&lock);
    is_time = --under_way == 0 && is_due;
    if (is_time)
        is_due = 0;
    cw_lock_release(&lock);
    if (is_time)
        look();
}

/* One that another thread had only begun to make known is to be found again. */
void cw_python_watch_reset(void)
{
    cw_lock_reset(&lock);
    under_way = mine;
    cw_python_reset();
    if (!atomic_load(&cw_python_is_armed))
        is_found = 0;
}
