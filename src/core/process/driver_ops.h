/* SPDX-License-Identifier: MIT */
/*
 * What the core asks of the driver, clock included. The hook layer gives the real one, unit tests a
 * fake; the core knows no other way out.
 *
 * Contract, for every member: never NULL; called without any lock of ours held; may be called on
 * any thread; leaves the program's error state alone; returns 0 or -1, and writes its
 * out-parameters on 0 only. context_current and context_identity may be called at any time, even
 * during a capture: they read what the driver knows of the thread, or of a handle. All others are
 * called only between cw_gate_enter and cw_gate_leave.
 */
#ifndef CW_CORE_DRIVER_OPS_H
#define CW_CORE_DRIVER_OPS_H

#include <stdint.h>

#include "live/layout.h"

struct cw_context_facts {
    uint64_t id;     /* unique over the life of the process; 0 where the driver cannot say */
    unsigned device; /* ordinal */
};

/* A context for a call of ours. The driver gives a handle out again when its context has ended;
 * with an id, the call fails unless the handle is still this context's. id 0: not known. */
struct cw_context_name {
    uint64_t handle, id;
};

struct cw_device_facts {
    uint64_t total; /* bytes */
    uint8_t uuid[16];
    char name[96];
};

#define CW_DRIVER_POOLS 2

struct cw_driver_ops {
    /* CLOCK_MONOTONIC in ns; a resolution of some ms will do. Cannot fail. */
    uint64_t (*now_ns)(void);
    /* The same, exact: how long calls of ours have taken. */
    uint64_t (*exact_ns)(void);
    /* Processor time of the calling thread in ns, exact: what our own work costs. */
    uint64_t (*work_ns)(void);
    /* Handle of the calling thread's current context, 0 for none. */
    int (*context_current)(uint64_t *out_handle);
    /* 1 if the driver numbers contexts (12.0). May be called at any time. */
    int (*has_context_ids)(void);
    /* The id of a context, 0 for the calling thread's current one; its handle where the driver has
     * no ids; 0 where it does not say, as of a context that has failed. -1: there is no such
     * context. */
    int (*context_identity)(uint64_t handle, uint64_t *out_identity);
    /* Identity of the calling thread's current context. */
    int (*context_facts)(uint64_t handle, struct cw_context_facts *out);
    int (*device_facts)(unsigned device, struct cw_device_facts *out);
    int (*device_count)(unsigned *out_count);

    /* Contexts below need not be current; a call may make one current for its own time. */

    /* Memory of the context's device, over all processes; handle 0 for the current context. */
    int (*memory_info)(struct cw_context_name context, uint64_t *out_free, uint64_t *out_total);
    /* Waits for all work of the context; the driver's code, 0 for success. Fails if the calling
     * thread has no context current, or one that is destroyed. Called between cw_gate_enter_wait
     * and cw_gate_leave_wait. */
    int (*context_wait)(struct cw_context_name context);
    /* 1 if the driver has events of a whole context. May be called at any time. */
    int (*has_context_events)(void);
    int (*event_create)(struct cw_context_name context, uint64_t *out_event);
    /* The event stands for all work that the context has at this moment. */
    int (*event_record)(struct cw_context_name context, uint64_t event);
    /* 1: all that it stands for is done, or its context is no more; 0: not yet; -1: failed. */
    int (*event_query)(struct cw_context_name context, uint64_t event);
    /* The same, waiting: 1 or -1. Called between cw_gate_enter_wait and cw_gate_leave_wait. */
    int (*event_wait)(struct cw_context_name context, uint64_t event);
    /* Takes a block of CW_KIND_DEVICE in the calling thread's current context. */
    int (*block_alloc)(uint64_t bytes, uint64_t *out_key);
    /* Gives back a block of CW_KIND_DEVICE, PITCHED or PINNED. */
    int (*block_free)(struct cw_context_name context, enum cw_kind kind, uint64_t key);
    /* Managed memory that prefers the host and that the device reaches there, in the current
     * context; freed as CW_KIND_DEVICE. Fails where the device cannot. */
    int (*fallback_alloc)(unsigned device, uint64_t bytes, uint64_t *out_key);

    /* The driver's own pools of stream-ordered memory: those that a device has from the start or
     * allocates from now, at most CW_DRIVER_POOLS; what one holds of the device, and how much of
     * that is in use; and to make it give the rest back. */
    int (*driver_pools)(unsigned device, uint64_t out_pool[CW_DRIVER_POOLS], unsigned *out_count);
    int (*driver_pool_use)(uint64_t pool, uint64_t *out_held, uint64_t *out_used);
    int (*driver_pool_trim)(uint64_t pool);
};

#endif
