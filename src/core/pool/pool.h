/* SPDX-License-Identifier: MIT */
/*
 * The pool: serves requests with blocks that the program has freed.
 *
 * Whole driver blocks only. A block's record stays in the index while it is idle; a hit or a kept
 * free flips its state and rewrites who and when. Meanwhile it lies ready in its thread's cache
 * (core/cache/thread_cache.h) or in a shared bucket (core/cache/bucket.h), not ready in a batch
 * (core/pending/pending.h), or in limbo while its context ends (core/cache/pool_context.h). Blocks
 * kept beyond the bounds are released inside the program's own frees and synchronisations.
 *
 * Always: a block is handed out only for a request of its own context and class; never while a
 * capture runs, in a context that failed or ends, or when it was exported. No lock is held across
 * the driver.
 */
#ifndef CW_CORE_POOL_H
#define CW_CORE_POOL_H

#include <stdint.h>

#include "base/options/options.h"
#include "core/cache/bucket.h"
#include "core/process/types.h"

/* Before the session is armed, and again in a forked child. */
void cw_pool_init(struct cw_arena *arena, const struct cw_options *options);
void cw_pool_reset(void);

int cw_pool_is_on(void);

/* ---- an allocation ---- */

struct cw_pool_request {
    enum cw_pool_class class;
    uint64_t bytes; /* that the program asks for */
    uint64_t ask; /* out: bytes to ask the driver for on a miss; 0: the block is not for the pool */
    uint64_t excess; /* out: reserved for that (core/limits/excess.h); see granted and cancel */
    struct cw_pool *pool; /* out: NULL when ask is 0 */
};
/* The address of an idle block that serves the request, now the program's; 0: ask the driver. */
uint64_t cw_pool_alloc(struct cw_pool_request *request, uint32_t api);
/* The same for a request that has claimed its bytes of a budget: the block is expected
 * (core/account/budget.h). */
uint64_t cw_pool_alloc_claimed(struct cw_pool_request *request, uint32_t api,
                               const struct cw_budget_claim *claim);
/* Device memory of the thread's own cache, counted by the budget of the thread's tag. 0: there is
 * none, or the budget does not allow it, and nothing has been counted. */
uint64_t cw_pool_serve_counted(uint64_t bytes, uint32_t api);
/* The same, of device memory that the thread's own cache has, if the current context is of that
 * device. 0: not so, and nothing has been counted. now_ns: cw_session_now(). */
uint64_t cw_pool_serve(uint8_t device, uint64_t bytes, uint64_t now_ns, uint32_t api);
/* Makes a block that was taken (core/pool/search.h) the program's. claim: as above, or NULL. Its
 * address; 0: it could not be accounted for, and is idle again. */
uint64_t cw_pool_hand_out(struct cw_pool *pool, uint32_t block, uint64_t bytes, uint32_t api,
                          const struct cw_budget_claim *claim);
/* The pool of the current context for this class, NULL when it cannot be used here and now. */
struct cw_pool *cw_pool_here(enum cw_pool_class class);
/* The driver gave a block of `given` bytes on a miss: fills in what marks it as the pool's. */
void cw_pool_granted(struct cw_pool_request *request, uint64_t given, int is_exact,
                     struct cw_request *out);
/* The driver gave none, or the request was served in another way: releases the reservation. */
void cw_pool_cancel(struct cw_pool_request *request);

/* ---- a free ---- */

enum cw_pool_free {
    CW_POOL_DRIVER,  /* ask the driver, and tell cw_request_free_end */
    CW_POOL_KEPT,    /* the block is idle; the free has succeeded */
    CW_POOL_REFUSED, /* the block is idle or being freed already: a second free */
};
/* Frees other than CW_FREES_DEVICE and CW_FREES_HOST are the driver's to decide, if the block is
 * live. *out_wait is an error code of the driver, or 0. DRIVER: what the wait of a strict free
 * returned. REFUSED: the error that the block's context has failed with. KEPT: always 0. */
enum cw_pool_free cw_pool_free(enum cw_freeing how, uint64_t key, uint32_t api,
                               struct cw_request_free *out, int *out_wait);

/* ---- the program's synchronisations of a whole context ---- */

uint64_t cw_pool_sync_begin(void);
/* The context, once it has returned success; ticket as begin gave it. */
void cw_pool_sync_end(uint32_t context, uint64_t ticket);

/* ---- what the program sees ---- */

/* What the program may see of the pool's block with this address, live or idle. */
struct cw_pool_view {
    uint64_t bytes; /* that the program asked for; 0 while idle */
    uint64_t id; /* of the allocation (core/account/owner.h); 0: the memory had no owner before */
    uint32_t block;
};
int cw_pool_look(uint64_t key, struct cw_pool_view *out);

#endif
