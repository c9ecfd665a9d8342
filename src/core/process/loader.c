/* SPDX-License-Identifier: MIT */
/* One atomic word: walks under way below, forks that keep newcomers out above. See loader.h. */
#include "core/process/loader.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

#define ONE_FORK ((uint64_t)1 << 32)
/* A walk takes microseconds. If one does not end, its thread waits for a lock of the forking
 * thread: a risk for the child is better than a certain hang. */
#define PATIENCE 20000

static _Atomic uint64_t walks;
static CW_TLS unsigned mine; /* walks of this thread, one inside the other */

static void enter(void)
{
    uint64_t seen = atomic_load_explicit(&walks, memory_order_relaxed);

    if (mine++ != 0)
        return;
    for (unsigned tries = 0;; tries++) {
        if (seen >= ONE_FORK && tries < PATIENCE) {
            sched_yield();
            seen = atomic_load_explicit(&walks, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak(&walks, &seen, seen + 1)) {
            return;
        }
    }
}

static void leave(void)
{
    if (--mine == 0)
        atomic_fetch_sub(&walks, 1);
}

int cw_loader_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg)
{
    int rc;

    enter();
    rc = dl_iterate_phdr(visit, arg);
    leave();
    return rc;
}

void cw_loader_fork_begin(void)
{
    uint64_t own = mine != 0;

    atomic_fetch_add(&walks, ONE_FORK);
    for (unsigned tries = 0; tries < PATIENCE && (uint32_t)atomic_load(&walks) > own; tries++)
        sched_yield();
}

void cw_loader_fork_end_parent(void)
{
    atomic_fetch_sub(&walks, ONE_FORK);
}

void cw_loader_fork_end_child(void)
{
    atomic_store(&walks, mine != 0);
}
