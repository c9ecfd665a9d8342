/* SPDX-License-Identifier: MIT */
/*
 * Ranked mutexes on a futex, and one-time initialisation.
 *
 * Not pthread mutexes: glibc moved those symbols between libraries (2.34), and a symbol version
 * that is missing kills every program that is preloaded. The order of the enum is the order of
 * acquisition: a thread that holds a lock may take only locks of a higher rank. Builds with
 * CW_DEBUG check that on every acquisition. The driver and the program are never called under one.
 */
#ifndef CW_BASE_LOCK_H
#define CW_BASE_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

enum cw_lock_rank {
    CW_RANK_BUFFER,      /* names of growable buffers (api/buffers.c) */
    CW_RANK_ROWS,        /* downloads, bridges, stream sets, prefetches (api/rows.c) */
    CW_RANK_PLACEMENT,   /* names and their devices (api/placements.c) */
    CW_RANK_SESSION,     /* arming, disarming, the report at the end */
    CW_RANK_RESOLVE,     /* which driver is loaded, the table of real functions */
    CW_RANK_PYTHON,      /* whether an interpreter may be read (hook/tools/python_watch.c) */
    CW_RANK_GRAPH,       /* graphs, executable graphs and captures (core/device/graph.c) */
    CW_RANK_VMM,         /* virtual memory handles and mappings (core/device/vmm.c) */
    CW_RANK_VARIABLE,    /* variables of modules (core/device/variable.c) */
    CW_RANK_CONTEXT,     /* the table of contexts */
    CW_RANK_LIVING,      /* which contexts have not ended (core/device/living.c) */
    CW_RANK_POOL,        /* which pools there are; batches of frees that wait for the device */
    CW_RANK_DRIVER_POOL, /* the list of the driver's pools (core/device/driver_pool.c) */
    CW_RANK_BUDGET,      /* budgets of tags (core/account/budget.c) */
    CW_RANK_SCOPE,       /* what this process shows of itself to its like (core/limits/scope.c) */
    CW_RANK_PEAK,        /* a new peak of a device or the process (core/account/usage.c) */
    CW_RANK_SLOT,        /* held while slots of other threads are stopped (core/process/slot.c) */
    CW_RANK_BUCKET,      /* one bucket of idle blocks (core/cache/bucket.c) */
    CW_RANK_INDEX,       /* one shard of the index of blocks by key (core/account/index.c) */
    CW_RANK_REGROWTH, /* copies to larger blocks, and what was replaced (core/account/regrowth.c) */
    CW_RANK_SITE,     /* interning of sites, stacks and modules */
    CW_RANK_TAG,      /* names of ranges and marks (core/tags/tag_name.c) */
    CW_RANK_STEPS,    /* the counters of one name; of a pattern after those of a name */
    CW_RANK_TRACE,    /* the window of the trace (core/account/trace.c) */
    CW_RANK_AUDIT,    /* what the two sides of an audit have not settled (core/account/audit.c) */
    CW_RANK_ARENA,    /* growth of the live arena's tables */
    CW_RANK_MEM,      /* the internal heap of cold maps */
    CW_RANK_COUNT
};

struct cw_lock {
    _Atomic uint32_t word; /* 0 free, 1 held, 2 held and somebody may wait */
    uint32_t rank;
};

#define CW_LOCK_INIT(lock_rank)                                                                    \
    {                                                                                              \
        .word = 0, .rank = (lock_rank)                                                             \
    }

void cw_lock_init(struct cw_lock *lock, enum cw_lock_rank rank);
void cw_lock_acquire(struct cw_lock *lock);
void cw_lock_release(struct cw_lock *lock);

/* In a forked child: the holder may be a thread that no longer exists. */
void cw_lock_reset(struct cw_lock *lock);
/* In a forked child: forget which ranks the calling thread held (debug builds). */
void cw_lock_reset_thread(void);

/* One turn of waiting for another thread that needs a moment and no lock: gives up the processor,
 * and from some hundred turns on sleeps for some microseconds, because a thread of lower priority
 * is not run by giving up. *turns starts at 0. errno is preserved. */
void cw_lock_relax(unsigned *turns);

/* The same between two looks at something that may take long: some quick turns, then naps that grow
 * a little with each, so that 20 ms take about a hundred looks and what is waited for is seen some
 * hundredths of its time late. */
void cw_lock_doze(unsigned *turns);

/*
 * One-time initialisation. cw_once_begin returns 1 to the one caller that must do the work and then
 * call cw_once_end; every other caller waits for it and gets 0. A nested call by the thread that is
 * doing the work returns 0 at once.
 */
struct cw_once {
    _Atomic uint32_t state; /* 0 new, 1 running, 2 done */
    _Atomic uint32_t owner_tid;
};

int cw_once_begin(struct cw_once *once);
void cw_once_end(struct cw_once *once);

static inline int cw_once_is_done(const struct cw_once *once)
{
    return atomic_load_explicit(&once->state, memory_order_acquire) == 2;
}

#endif
