/* SPDX-License-Identifier: MIT */
/*
 * The core's state of a thread: where the thread is (inside a hook, under which name), and small
 * caches that save the shared tables a visit. No lock: a thread sees only its own.
 *
 * A cache entry is good while its epoch equals cw_epoch: whatever could make one wrong (a module
 * unloaded, a context destroyed, a fork) moves the epoch on.
 */
#ifndef CW_CORE_THREAD_H
#define CW_CORE_THREAD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "live/layout.h"

#define CW_STACK_CACHE  256 /* entries; powers of two */
#define CW_SITE_CACHE   128
#define CW_SPARE_BLOCKS 32

/* Walks that the thread has made (core/stacks/walk_cache.h). */
#define CW_WALK_CACHE_STACKS 256 /* powers of two */
#define CW_WALK_CACHE_SLOTS                                                                        \
    4096 /* words of all stacks together; a new stack takes the oldest's room */

struct cw_walk_cache_entry {
    uint64_t frame; /* address of the frame in which the walk began */
    uint64_t first; /* its words, counted from the first ever noted */
    uint32_t count;
    uint32_t stack; /* what the caller noted for the walk; 0: nothing */
    uint32_t epoch;
};

struct cw_walk_cache {
    uint64_t noted; /* words ever noted */
    struct cw_walk_cache_entry entry[CW_WALK_CACHE_STACKS];
    uint32_t offset[CW_WALK_CACHE_SLOTS]; /* from the frame, in bytes */
    uint64_t value[CW_WALK_CACHE_SLOTS];
};

struct cw_stack_cache_entry {
    uint64_t hash;
    uint32_t stack;
    uint32_t epoch;
};

/* Without an epoch: equal values in all three always mean this site. */
struct cw_site_cache_entry {
    uint32_t stack, api, where, site; /* where: tag, context, kind, device; site 0: none */
};

/* Not in thread-local storage itself: that comes out of every thread's stack, also of threads that
 * never call CUDA. */
struct cw_thread_caches {
    struct cw_walk_cache walk_cache;
    struct cw_stack_cache_entry stack[CW_STACK_CACHE];
    struct cw_site_cache_entry site[CW_SITE_CACHE];
};
_Static_assert(sizeof(struct cw_thread_caches) <= 64 * 1024, "what a thread may cost");

/* In `depth`, until the program's call ends: it has done its part of what nobody waits for. */
#define CW_THREAD_RELIEVED (1u << 31)

struct CW_ALIGNED_TLS cw_thread {
    /* The first line: what every call goes through. */
    unsigned
        depth;    /* hooks of the driver layer that this thread is inside, and CW_THREAD_RELIEVED */
    uint32_t api; /* the hook layer's: runtime function that the program called, 0: none */
    uint32_t tid; /* kernel's, 0: not asked yet */
    uint32_t frees;  /* kept by the pool */
    uint32_t served; /* block of served_key, a hint: what is taken last is often freed first */
    uint8_t slot;    /* this thread's own, 1..63; 0: shared or not asked yet */
    uint8_t slot_asked;
    uint8_t context_device; /* of context_index */
    uint8_t is_helper;      /* our own thread, not one of the program's */
    uint64_t served_key;
    void *caller;              /* return address of the outermost hook */
    uint64_t context_identity; /* of context_index */
    uint32_t context_index;
    uint32_t context_epoch;
    struct cw_thread_caches
        *caches; /* NULL: not made yet, or no memory; see cw_thread_caches_here */

    unsigned accounted;        /* allocations and frees that the driver layer saw on this thread */
    uint32_t epoch;            /* of the spare blocks: a forked child must not use its parent's */
    uint64_t stream;           /* the hook layer's: that the call names, 0: none; for the trace */
    uint64_t next_id, ids_end; /* ids that it may give out (core/account/owner.h) */
    struct cw_pool_context *freeing; /* where it is inside a free by the driver, or NULL */
    uint32_t id_epoch;
    uint16_t batches; /* of frees that the program has begun (core/pool/pool.h) */
    uint8_t ended;    /* cw_thread_ends was called: nobody frees what is made now */
    uint32_t spares;
    uint32_t spare[CW_SPARE_BLOCKS]; /* free block records owned by this thread */
};
_Static_assert(offsetof(struct cw_thread, accounted) == CW_CACHE_LINE, "one line");

extern CW_HIDDEN CW_TLS struct cw_thread cw_thread;

extern CW_HIDDEN _Atomic uint32_t cw_epoch; /* starts at 1, so that zeroed entries are stale */
void cw_epoch_advance(void);

CW_COLD uint32_t cw_thread_ask_tid(void);

static inline uint32_t cw_thread_tid(void)
{
    return CW_LIKELY(cw_thread.tid != 0) ? cw_thread.tid : cw_thread_ask_tid();
}

/* The slot of the calling thread: 1..CW_SLOTS-1 belongs to it alone until it ends; threads that
 * found all of them taken share 0. */
CW_COLD uint8_t cw_thread_slot_slowly(void);

/* The calling thread's slot and caches are free for others. */
void cw_thread_ends(void);

static inline uint8_t cw_thread_slot(void)
{
    return CW_LIKELY(cw_thread.slot != 0) || cw_thread.slot_asked ? cw_thread.slot
                                                                  : cw_thread_slot_slowly();
}

CW_COLD struct cw_thread_caches *cw_thread_make_caches(void);

/* The calling thread's caches, made at first use; NULL without memory. No lock held but of lower
 * rank than CW_RANK_MEM. */
static inline struct cw_thread_caches *cw_thread_caches_here(void)
{
    return CW_LIKELY(cw_thread.caches != NULL) ? cw_thread.caches : cw_thread_make_caches();
}

/* In a forked child: the calling thread is the only one. */
void cw_thread_reset(void);

#endif
