/* SPDX-License-Identifier: MIT */
/*
 * Contexts: who they are, and their end.
 *
 * A context is known by the driver's id, or by a number of our own where the driver has none,
 * because handles are recycled. Green contexts fold into the primary context of their device, where
 * their memory lives. Records are append-only; which record a handle means now is in one map under
 * CW_RANK_CONTEXT, and in a per-thread cache that cw_epoch invalidates.
 *
 * Always: where the driver has ids, a reused handle is never mistaken for its former context. A
 * look-up compares ids, so a context that ended unseen (dlsym(RTLD_NEXT), another interposer) is
 * buried when its handle next appears, and none of its blocks is served.
 */
#ifndef CW_CORE_CONTEXT_H
#define CW_CORE_CONTEXT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "core/process/driver_ops.h"
#include "core/process/thread.h"
#include "live/arena.h"

void cw_context_init(struct cw_arena *arena, const struct cw_driver_ops *ops);
void cw_context_reset(void);

/* Callbacks for the life of a context. Set once, before the first context
 * (core/control/lifecycle.c); there may be none. Called under no lock. */
struct cw_context_listener {
    /* The context is new and has a record. */
    void (*made)(uint32_t context, struct cw_live_context *record);
    /* Before its end. Blocks that the program has freed and other contexts may
     * still use go through the driver's own free, which waits for those contexts, as the program's
     * free would have. Waits for work of the context itself. Returns how many blocks had to stay:
     * the process ends, too. */
    uint32_t (*drain)(uint32_t context);
    /* Before the driver is asked to end it, with the gate shut: no call of ours begins that
     * concerns it, and the pool serves nothing from it any more. */
    void (*closing)(uint32_t context);
    /* And once no such call is in flight: what is idle there is out of everybody's hands. */
    void (*closed)(uint32_t context);
    /* After the driver has answered, with the gate closed. gone: the context's memory is freed. */
    void (*ended)(uint32_t context, int gone);
};
void cw_context_set_listener(const struct cw_context_listener *listener);

extern CW_HIDDEN const struct cw_driver_ops *cw_context_ops;

/* cw_context_current for a context that is not the thread's last one. */
CW_NOINLINE uint32_t cw_context_meet(uint64_t identity, uint8_t *out_device);

/* The calling thread's current context, 0 for none or unknown. *out_device: its ordinal, else 0. */
static inline uint32_t cw_context_current(uint8_t *out_device)
{
    uint64_t identity = 0;

    *out_device = 0;
    if (CW_UNLIKELY(cw_context_ops->context_identity(0, &identity) != 0 || identity == 0))
        return 0;
    if (CW_LIKELY(cw_thread.context_identity == identity &&
                  cw_thread.context_epoch ==
                      atomic_load_explicit(&cw_epoch, memory_order_relaxed))) {
        *out_device = cw_thread.context_device;
        return cw_thread.context_index;
    }
    return cw_context_meet(identity, out_device);
}

/* The context of a handle that need not be current; 0: it was never seen, or belongs to another
 * context now. No lock held, not inside the gate: burying the former context closes it. */
uint32_t cw_context_of(uint64_t handle, uint8_t *out_device);

/* The same for a CUgreenCtx, a handle about which the driver cannot be asked here. */
uint32_t cw_context_of_green(uint64_t green, uint8_t *out_device);

/* The same for a handle that is the context's own: 0 for that of a green context. */
uint32_t cw_context_of_own_handle(uint64_t handle, uint8_t *out_device);

/* A context was created on the device, or its primary context was retained. */
void cw_context_created(uint64_t handle, unsigned device);
void cw_context_retained(uint64_t handle, unsigned device);
/* A green context's handle: from now on it means the primary context of the device. */
void cw_context_folded(uint64_t green_handle, unsigned device);
void cw_context_unfolded(uint64_t green_handle);

/*
 * The end of a context, around the driver's call: begin releases blocks that others may still use,
 * closes the gate and marks the context; finish takes the outcome, closes the records of what went
 * with it, and opens the gate. In between, frees still find the blocks: only the driver knows
 * whether the context really ends. An address that the driver gives out again meanwhile closes its
 * old record by itself. `context` 0 is allowed and does nothing.
 */
struct cw_context_ending {
    uint32_t context;
    uint32_t parked; /* freed blocks that could not be waited for */
};
void cw_context_end_begin(uint32_t context, struct cw_context_ending *out);
enum cw_context_outcome {
    CW_CONTEXT_KEPT,      /* the driver refused, or others still hold it */
    CW_CONTEXT_DESTROYED, /* the handle means nothing any more */
    CW_CONTEXT_RENEWED,   /* a reset: all memory gone, handle and retains stay */
};
void cw_context_end_finish(const struct cw_context_ending *ending, enum cw_context_outcome outcome);

/* The primary context of the device as last seen, 0 if none. */
uint32_t cw_context_primary(unsigned device);
/* A release of the primary context: 1 if, as far as seen, it is the last one. */
int cw_context_is_last_release(unsigned device);
void cw_context_released(unsigned device);

/* References to a context that is not primary, beside the one that creation made. */
void cw_context_attached(uint32_t context);
int cw_context_is_attached(uint32_t context);
void cw_context_detached(uint32_t context);

/* Its device, where the context is known. */
void cw_context_device(uint32_t context, uint8_t *out_device);

/* For calls of our own (core/process/driver_ops.h). */
#define CW_CONTEXT_OWN_ID ((uint64_t)1 << 63) /* of an id: the driver has given none */

static inline struct cw_context_name cw_context_name(const struct cw_live_context *record)
{
    uint64_t id = atomic_load_explicit(&record->id, memory_order_relaxed);

    return (struct cw_context_name){.handle = record->handle,
                                    .id = (id & CW_CONTEXT_OWN_ID) == 0 ? id : 0};
}

/* A live context on the device that has not failed; handle 0 for none. */
struct cw_context_name cw_context_on(unsigned device);

/* Waits for all work of the device's contexts. 0; -1: not now (a capture, or the end of a context),
 * or one has failed. No lock held, not inside the gate. */
int cw_context_wait_on(unsigned device);

/* 0: the driver says that the context has ended, or that its handle is another one's. */
int cw_context_is_there(const struct cw_live_context *record);

/* Buries all contexts that the driver says are gone: before the program is told how much is free,
 * and after one of our calls about a context has failed. No lock held, not inside the gate. */
void cw_context_check_all(void);

/* The driver reported a fatal error of this context; 1 for the first time. */
int cw_context_set_fatal(uint32_t context, int code);
/* Its code, 0: none. */
int cw_context_fatal(uint32_t context);

#endif
