/* SPDX-License-Identifier: MIT */
/*
 * Pool contexts: the contexts as the pool sees them.
 *
 * A pool_context is made with its context and lasts as long as the process. It owns the context's
 * pools (core/cache/bucket.h), its events, and the number of the last synchronisation that it has
 * passed. Its state says that the context is closing before the end waits for our calls in flight
 * (core/process/gate.h), so who looks at it inside the gate touches no context that has ended; what
 * still comes in then waits in limbo for the outcome. Which pool_contexts are live is a list
 * under CW_RANK_POOL.
 *
 * It is not used again for another context. A thread looks it up and goes on with the pointer, or
 * with that of a pool, under no lock and across calls of the driver: a request until the driver
 * has answered, a free during its wait, a batch in the marks of its events, a walk in between two
 * blocks that it releases. Nobody counts who does, because that would cost every hit, and the end
 * of a context waits a second for them, not for ever. Whoever comes late must find this context
 * dead, not another one open: else a block of the dead one is freed by its address, which may be
 * another block's by then. So of a dead one stay these 256 bytes and the heads of its pools, and
 * what is large goes on to the next: the pools' buckets (core/cache/spare_buckets.h). Walks
 * (core/device/living.h) visit the living only.
 */
#ifndef CW_CORE_POOL_CONTEXT_H
#define CW_CORE_POOL_CONTEXT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/cache/bucket.h"
#include "core/device/context.h"

/* With more live contexts nothing is kept, because a block would have to wait for each of them. */
#define CW_POOL_CONTEXTS_LIVE 16
/* Pool contexts are allocated in chunks of so many; contexts beyond the last chunk have no pool. */
#define CW_POOL_CONTEXT_CHUNK  1024u
#define CW_POOL_CONTEXT_CHUNKS 1024u

enum cw_pool_context_state { CW_POOL_CONTEXT_OPEN, CW_POOL_CONTEXT_CLOSING, CW_POOL_CONTEXT_DEAD };

struct CW_ALIGNED_LINE cw_pool_context {
    uint32_t context;
    uint8_t device;
    _Atomic uint8_t warmed; /* blocks of PREWARM were taken */
    _Atomic uint8_t busy;   /* core/pending/patience.h has what concerns it */
    _Atomic uint8_t failed; /* a request met a batch whose events fail: cw_pending_give_up */
    _Atomic uint32_t state; /* enum cw_pool_context_state */
    struct cw_live_context *record;
    _Atomic uint64_t synced; /* ticket of the last synchronisation that is known to be over */
    _Atomic(struct cw_pool *) pool[CW_POOL_CLASSES];
    _Atomic uint64_t busy_since; /* ticket: later frees were beside that work */
    /* The largest block that the driver freed without a wait: of the device, pinned. */
    CW_ALIGNED_LINE _Atomic uint64_t unwaited[2];
    _Atomic uint32_t in_hand;    /* batches of it that are in a thread's hands now */
    _Atomic uint32_t freeing;    /* threads that are releasing a block of it now */
    _Atomic uint32_t inside;     /* and threads in any free by the driver of a block of it */
    _Atomic uint32_t passed;     /* how many of these have come back and freed it */
    _Atomic uint64_t listed[2];  /* bytes in the batches below: of the device, pinned */
    _Atomic uint64_t stood_back; /* when the last time began for frees to stand back */
    /* Guarded by the lock of pool_contexts: */
    struct cw_pool_context *next_live, *previous_live;
    struct cw_batch *first, *last; /* of blocks that wait for the device, oldest first */
    uint32_t limbo;                /* blocks that came in while it was closing, linked */
    uint32_t events;
    uint64_t *event; /* not in use */
    uint32_t event_room;
};
_Static_assert(sizeof(struct cw_pool_context) <= 256, "what stays of each context");

void cw_pool_context_reset(void);

typedef _Atomic(struct cw_pool_context *) cw_pool_context_slot;
extern CW_HIDDEN _Atomic(cw_pool_context_slot *) cw_pool_context_chunks[CW_POOL_CONTEXT_CHUNKS];

/* The pool_context of a context record, NULL when it has none. */
static inline struct cw_pool_context *cw_pool_context_of(uint32_t context)
{
    cw_pool_context_slot *chunk;

    if (CW_UNLIKELY(context >= CW_POOL_CONTEXT_CHUNK * CW_POOL_CONTEXT_CHUNKS))
        return NULL;
    chunk = atomic_load_explicit(&cw_pool_context_chunks[context / CW_POOL_CONTEXT_CHUNK],
                                 memory_order_acquire);
    return chunk != NULL
               ? atomic_load_explicit(&chunk[context % CW_POOL_CONTEXT_CHUNK], memory_order_acquire)
               : NULL;
}

/* Number of live contexts, used or not. One without a pool context, for lack of memory, counts as
 * too many for good: blocks cannot wait for it. */
extern CW_HIDDEN _Atomic uint32_t cw_pool_contexts_live;

/* There is only one context: no other can have used its blocks. */
static inline int cw_pool_context_is_alone(void)
{
    return CW_LIKELY(atomic_load_explicit(&cw_pool_contexts_live, memory_order_relaxed) == 1);
}

/* Fills in at most `max` live pool contexts, and NULL for the rest. Returns how many are live. */
uint32_t cw_pool_context_list(struct cw_pool_context **out, uint32_t max);

/* ---- the life of a context: core/pool/context_life.c says in which order, under no lock ---- */

void cw_pool_context_make(uint32_t context, struct cw_live_context *record);
/* With the gate shut: from now on blocks that come in go to limbo, and no free of ours begins. */
void cw_pool_context_close(struct cw_pool_context *pool_context);
/* Those that had begun are over. */
void cw_pool_context_await_frees(const struct cw_pool_context *pool_context);
/* Linked idle blocks of a pool_context that is closing wait for the outcome. Returns them if
 * another thread has found out that it is dead: nobody else will forget them. */
uint32_t cw_pool_context_to_limbo(struct cw_pool_context *pool_context, uint32_t list);
/* The context stays. Returns what was in limbo, ready or not, linked. */
uint32_t cw_pool_context_reopen(struct cw_pool_context *pool_context);
/* Its memory and events are gone. Returns what was in limbo, linked. */
uint32_t cw_pool_context_die(struct cw_pool_context *pool_context);

/* ---- for the pool ---- */

/* The context is usable: not failed, not ending, and known by handle. */
static inline int cw_pool_context_is_usable(const struct cw_pool_context *pool_context)
{
    return atomic_load_explicit(&pool_context->state, memory_order_acquire) ==
               CW_POOL_CONTEXT_OPEN &&
           atomic_load_explicit(&pool_context->record->fatal, memory_order_relaxed) == 0 &&
           pool_context->record->handle != 0;
}

CW_COLD struct cw_pool *cw_pool_context_make_pool(struct cw_pool_context *pool_context,
                                                  enum cw_pool_class class);

/* The pool of a class, made at first use; NULL without memory. */
static inline struct cw_pool *cw_pool_context_pool(struct cw_pool_context *pool_context,
                                                   enum cw_pool_class class)
{
    struct cw_pool *pool = atomic_load_explicit(&pool_context->pool[class], memory_order_acquire);

    return CW_LIKELY(pool != NULL) ? pool : cw_pool_context_make_pool(pool_context, class);
}

/* Around the driver's free of a block of ours, which may wait for the device (cw_gate_enter_wait):
 * the end of this context waits for it, however late it comes to the driver. is_owed: the program
 * relies on it, so it passes beside whatever keeps the gate shut. Enter 0: the gate is shut, or the
 * context is closing or dead; else for leave. */
unsigned cw_pool_context_enter_free(struct cw_pool_context *pool_context, int is_owed);
void cw_pool_context_leave_free(struct cw_pool_context *pool_context, unsigned passed);

/*
 * Around any free by the driver, of ours or the program's. It waits for the context's work, and
 * whatever another thread does in that context waits for the free (`*-beside-a-free` in
 * docs/measurements.md), as without us. But a thread at work in another context does not, and its
 * blocks wait for this context, too: an event recorded here would keep it for as long as a kernel
 * runs, which may be until that very thread does something more; and inside the gate, so that no
 * capture could begin anywhere. So events are made and recorded inside the gate only if nobody is
 * inside a free; enter lets those pass that were quicker.
 */
void cw_pool_context_enter_driver(struct cw_pool_context *pool_context);
/* has_freed: the driver did it, and so has waited for what it waits for. */
void cw_pool_context_leave_driver(struct cw_pool_context *pool_context, int has_freed);
/* The calling thread ends, perhaps cancelled inside one. */
void cw_pool_context_thread_ends(void);

static inline int cw_pool_context_is_in_free(const struct cw_pool_context *pool_context)
{
    return CW_UNLIKELY(atomic_load(&pool_context->inside) != 0);
}

/* Linked idle blocks come in: they are in limbo if the result is CW_POOL_CONTEXT_CLOSING; else they
 * are still the caller's, to forget or, the context was kept, to wait again. */
enum cw_pool_context_state cw_pool_context_park(struct cw_pool_context *pool_context,
                                                uint32_t list);
/* Linked idle blocks whose memory went with their context. */
void cw_pool_context_forget(struct cw_pool_context *pool_context, uint32_t list);

/* An event of the context that nobody uses, or 0. Inside the gate. */
uint64_t cw_pool_context_acquire_event(struct cw_pool_context *pool_context);
void cw_pool_context_release_event(struct cw_pool_context *pool_context, uint64_t event);

/* The lock of pool_contexts and of what waits (core/pending/waiting.h): CW_RANK_POOL. */
extern CW_HIDDEN struct cw_lock cw_pool_context_lock;

#endif
