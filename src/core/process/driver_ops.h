/* SPDX-License-Identifier: MIT */
/*
 * What the core needs of the driver, and the clocks. The hook layer gives the real one, a replay
 * one of its own, unit tests a fake behind a double that checks every condition below and records
 * the calls (tests/unit/fixtures/fake_trace.h); the core knows no other way out.
 *
 * For every function:
 *   - The pointer is never NULL.
 *   - Any thread may call, with no lock of ours held and not inside a slot.
 *   - It leaves the program's error state and its current context as they were.
 *   - Unless said otherwise it returns 0 or -1, and writes its out-parameters on 0 only.
 *   - A context named by handle and id need not be current. If it has ended, whoever has its handle
 *     now, the call fails and touches nothing.
 *
 * When it may be called (core/process/gate.h):
 *   any time   also during a capture, and while a context ends: it reads what the driver knows of
 *              the thread, or of a handle.
 *   gated      between cw_gate_enter, or enter_beside, which did not return 0, and the leave of
 *              that. It does not wait for the device.
 *   waiting    between cw_gate_enter_wait and leave_wait in the same way. It may wait for work of
 *              the device for as long as that lasts.
 * Beside a capture: not event_record, context_poll and context_wait, which name a whole context.
 */
#ifndef CW_CORE_DRIVER_OPS_H
#define CW_CORE_DRIVER_OPS_H

#include <stdint.h>

#include "base/device_properties.h"
#include "live/layout.h"

struct cw_context_facts {
    uint64_t id;     /* unique over the life of the process; 0 where the driver cannot say */
    unsigned device; /* ordinal */
};

/* The context of one of our calls. The driver reuses handles of ended contexts; with an id, the
 * call fails unless the handle still belongs to this context. id 0: not known. */
struct cw_context_name {
    uint64_t handle, id;
};

/* Whose memory a device's is. */
enum cw_device_memory {
    CW_DEVICE_MEMORY_OWN,
    CW_DEVICE_MEMORY_HOST, /* the host's */
    CW_DEVICE_MEMORY_NODE, /* a NUMA node, with which the kernel does as with others */
};

struct cw_device_facts {
    uint64_t total; /* bytes */
    enum cw_device_memory memory;
    int node; /* of CW_DEVICE_MEMORY_NODE */
    struct cw_device_properties properties;
    uint8_t uuid[16];
    char name[96];
};

/* Instead of 0 and 1. */
enum cw_event_answer {
    CW_EVENT_REFUSED = -1, /* the driver has no events of a whole context here */
    CW_EVENT_USELESS = -2, /* it is taken down, or the context has ended meanwhile */
};

#define CW_DRIVER_POOLS 2

struct cw_driver_ops {
    /* ---- clocks: any time, cannot fail ---- */

    /* CLOCK_MONOTONIC in ns; a resolution of some ms will do. Never goes back. */
    uint64_t (*now_ns)(void);
    /* The same, exact: for the duration of our calls. */
    uint64_t (*exact_ns)(void);
    /* Processor time of the calling thread in ns, exact: for the cost of our own work. */
    uint64_t (*work_ns)(void);

    /* ---- what the driver can do: any time, 1 or 0, always the same ---- */

    /* It numbers contexts (12.0). */
    int (*has_context_ids)(void);
    /* It has events of a whole context (12.5). Without, no event_... is called. */
    int (*has_context_events)(void);

    /* ---- captures: any time ---- */

    /* The calling thread's mode, of enum CUstreamCaptureMode, is `mode` from now on. The mode that
     * it had; -1: it still has it. */
    int (*exchange_capture_mode)(int mode);

    /* ---- who is who ---- */

    /* Any time. After 0: *out_handle is the calling thread's current context, 0 for none. */
    int (*context_current)(uint64_t *out_handle);
    /* Any time. handle 0: the calling thread's current context. After 0: *out_identity is its id;
     * its handle where the driver has no ids; 0 where it does not say, as of a context that has
     * failed. -1: there is no such context. */
    int (*context_identity)(uint64_t handle, uint64_t *out_identity);
    /* Gated. Before: handle is the calling thread's current context, not 0. After 0: *out is
     * complete. */
    int (*context_facts)(uint64_t handle, struct cw_context_facts *out);
    /* Gated. After 0: *out_count devices, 0 .. *out_count - 1 are their ordinals. */
    int (*device_count)(unsigned *out_count);
    /* Gated. After 0: *out is complete, and the same whenever it is asked. -1: no such device. */
    int (*device_facts)(unsigned device, struct cw_device_facts *out);

    /* ---- memory of a device ---- */

    /* Gated. Before: the handle is not 0, or the calling thread has a current context, which is
     * meant then. After 0: what is free of the context's device, over all processes. Nothing is
     * promised of the numbers: *out_free may be larger than *out_total. */
    int (*memory_info)(struct cw_context_name context, uint64_t *out_free, uint64_t *out_total);
    /* Waiting. Before: bytes is not 0; the calling thread has a current context. After 0: *out_key,
     * not 0, is a block of CW_KIND_DEVICE of that context, of at least so many bytes, for
     * block_free. */
    int (*block_alloc)(uint64_t bytes, uint64_t *out_key);
    /* Gated: it is several calls, none of which may come late. The same of managed memory that
     * prefers the host and that the device reaches there; its kind is CW_KIND_DEVICE for
     * block_free. -1 also where the device cannot. */
    int (*fallback_alloc)(unsigned device, uint64_t bytes, uint64_t *out_key);
    /* Waiting. Before: key is a block of the context of this kind (CW_KIND_DEVICE, PITCHED or
     * PINNED), which the program or block_alloc got and nobody has freed. After 0: it is gone, and
     * its address may be given out again. -1: the driver would not; the block is lost to us. */
    int (*block_free)(struct cw_context_name context, enum cw_kind kind, uint64_t key);

    /* ---- work of a context ---- */

    /* Waiting. Before: the handle is not 0. After 0: all work that the context had when it was
     * called is done. Else the driver's code: the calling thread has no context current, or the
     * context has failed or ended. */
    int (*context_wait)(struct cw_context_name context);
    /* Gated. After 0: *out_event, not 0, is an event of the context, which goes with it. */
    int (*event_create)(struct cw_context_name context, uint64_t *out_event);
    /* Gated. Before: the event is the context's. After 0: it stands for all work that the context
     * has at this moment, and for nothing else. 1: the driver refuses such an event here. */
    int (*event_record)(struct cw_context_name context, uint64_t event);
    /* Gated. Before: as of context_wait; the event is the context's. Records the event and asks
     * about it, without waiting. After 0: *out_passed is what event_query says, or one of enum
     * cw_event_answer. Else the driver's code, as from context_wait. */
    int (*context_poll)(struct cw_context_name context, uint64_t event, int *out_passed);
    /* Gated. Before: the event was recorded; one that was not reads as passed. 1: all the work that
     * it stands for is done, or its context has ended; 0: not yet; -1: it has failed. */
    int (*event_query)(struct cw_context_name context, uint64_t event);

    /* ---- the driver's own pools of stream-ordered memory ---- */

    /* Gated. After 0: out_pool[0 .. *out_count - 1] are those that the device has from the start or
     * allocates from now, at most CW_DRIVER_POOLS. */
    int (*driver_pools)(unsigned device, uint64_t out_pool[CW_DRIVER_POOLS], unsigned *out_count);
    /* Gated. After 0: what the pool holds of its device, and how much of that is in use: at most
     * all. */
    int (*driver_pool_use)(uint64_t pool, uint64_t *out_held, uint64_t *out_used);
    /* Gated. After 0: what was not in use is the device's again, as far as the driver could. */
    int (*driver_pool_trim)(uint64_t pool);
};

#endif
