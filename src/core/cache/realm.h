/* SPDX-License-Identifier: MIT */
/*
 * Realms: the contexts as the pool sees them.
 *
 * A realm is made with its context and lasts as long as the process. It owns the context's pools
 * (core/cache/bucket.h), its events, and the number of the last synchronisation that it has passed.
 * Its state is written with the gate closed (core/process/gate.h) while a context ends: what still
 * comes in then waits in limbo for the outcome. Which realms are live is a list under CW_RANK_POOL.
 */
#ifndef CW_CORE_REALM_H
#define CW_CORE_REALM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/cache/bucket.h"
#include "core/device/context.h"

/* With more than so many live at once nothing is kept, because a block would have to wait for each
 * of them. */
#define CW_REALMS_LIVE 16
/* Context records are found in chunks of so many realms; beyond the last chunk there is no pool. */
#define CW_REALM_CHUNK  1024u
#define CW_REALM_CHUNKS 1024u

enum cw_realm_state { CW_REALM_OPEN, CW_REALM_CLOSING, CW_REALM_DEAD };

struct CW_ALIGNED_LINE cw_realm {
    uint32_t context;
    uint8_t device;
    _Atomic uint8_t warmed; /* blocks of PREWARM were taken */
    _Atomic uint32_t state; /* enum cw_realm_state */
    struct cw_live_context *record;
    _Atomic uint64_t synced; /* ticket of the last synchronisation that is known to be over */
    _Atomic(struct cw_pool *) pool[CW_POOL_CLASSES];
    _Atomic uint32_t in_hand; /* batches of it that are in no list at this moment */
    _Atomic uint32_t freeing; /* threads that give a block of it back at this moment */
    /* Guarded by the lock of realms: */
    struct cw_realm *next_live, *previous_live;
    struct cw_batch *first, *last; /* of blocks that wait for the device, oldest first */
    uint32_t limbo;                /* blocks that came in while it was closing, linked */
    uint32_t events;
    uint64_t *event; /* not in use */
    uint32_t event_room;
};

void cw_realm_reset(void);

typedef _Atomic(struct cw_realm *) cw_realm_slot;
extern CW_HIDDEN _Atomic(cw_realm_slot *) cw_realm_chunks[CW_REALM_CHUNKS];

/* The realm of a context record, NULL when it has none. */
static inline struct cw_realm *cw_realm_of(uint32_t context)
{
    cw_realm_slot *chunk;

    if (CW_UNLIKELY(context >= CW_REALM_CHUNK * CW_REALM_CHUNKS))
        return NULL;
    chunk = atomic_load_explicit(&cw_realm_chunks[context / CW_REALM_CHUNK], memory_order_acquire);
    return chunk != NULL
               ? atomic_load_explicit(&chunk[context % CW_REALM_CHUNK], memory_order_acquire)
               : NULL;
}

/* Live contexts, whether they were ever allocated in or not. One that could not be given a realm
 * stays among them for good and counts as too many: blocks cannot wait for it. */
extern CW_HIDDEN _Atomic uint32_t cw_realms_live;

/* There is one context: no other can have touched its blocks. */
static inline int cw_realm_is_alone(void)
{
    return CW_LIKELY(atomic_load_explicit(&cw_realms_live, memory_order_relaxed) == 1);
}

/* The live realms, at most `max`, and NULL for the rest; how many live contexts there are. */
uint32_t cw_realm_list(struct cw_realm **out, uint32_t max);

/* ---- the life of a context: core/pool/context_life.c says in which order, under no lock ---- */

void cw_realm_make(uint32_t context, struct cw_live_context *record);
/* With the gate closed: waits for frees in it, and nothing comes in from now on but to limbo. */
void cw_realm_close(struct cw_realm *realm);
/* Linked idle blocks of a realm that is closing wait for the outcome. */
void cw_realm_to_limbo(struct cw_realm *realm, uint32_t list);
/* The context stays: what was in limbo, ready or not, linked. */
uint32_t cw_realm_reopen(struct cw_realm *realm);
/* Its memory is gone, and the events with it: what was in limbo, linked. */
uint32_t cw_realm_die(struct cw_realm *realm);

/* ---- for the pool ---- */

/* The context can be worked with: not failed, not ending, and known by handle. */
static inline int cw_realm_is_usable(const struct cw_realm *realm)
{
    return atomic_load_explicit(&realm->state, memory_order_acquire) == CW_REALM_OPEN &&
           atomic_load_explicit(&realm->record->fatal, memory_order_relaxed) == 0 &&
           realm->record->handle != 0;
}

CW_COLD struct cw_pool *cw_realm_make_pool(struct cw_realm *realm, enum cw_pool_class class);

/* The pool of a class, made at first use; NULL without memory. */
static inline struct cw_pool *cw_realm_pool(struct cw_realm *realm, enum cw_pool_class class)
{
    struct cw_pool *pool = atomic_load_explicit(&realm->pool[class], memory_order_acquire);

    return CW_LIKELY(pool != NULL) ? pool : cw_realm_make_pool(realm, class);
}

/* Around a free of ours by the driver, which may wait for the device (cw_gate_enter_wait): the end
 * of this context waits for it, however late it comes to the driver. Enter 0: closed. */
int cw_realm_enter_free(struct cw_realm *realm);
void cw_realm_leave_free(struct cw_realm *realm);

/* Linked idle blocks come in: they are in limbo if the result is CW_REALM_CLOSING; else they are
 * still the caller's, to forget or, the context was kept, to wait again. */
enum cw_realm_state cw_realm_park(struct cw_realm *realm, uint32_t list);
/* Linked idle blocks whose memory went with their context. */
void cw_realm_forget(struct cw_realm *realm, uint32_t list);

/* An event of the context that nobody uses, or 0. Inside the gate. */
uint64_t cw_realm_acquire_event(struct cw_realm *realm);
void cw_realm_release_event(struct cw_realm *realm, uint64_t event);

/* The lock of realms and of what waits (core/pending/waiting.h): CW_RANK_POOL. */
extern CW_HIDDEN struct cw_lock cw_realm_lock;

#endif
