/* SPDX-License-Identifier: MIT */
/*
 * A driver for tests of the core: a clock, contexts, devices and memory figures that a test sets,
 * calls that fail on demand and are counted. It stops the program when the core breaks the contract
 * of core/driver_ops.h: a call outside of the gate or while it is closed, one for a context that is
 * not current or has ended, a free of what is no block, or (debug builds) one under a lock.
 *
 * The work of a context is two counts: fake_submit makes work outstanding, fake_finish completes
 * all that was submitted. Waiting for a context completes its work too, so no test hangs. An event
 * stands for the count of submitted work at the moment when it was recorded; one that was never
 * recorded reads as passed, like the real driver's.
 */
#ifndef CW_TESTS_FAKE_DRIVER_H
#define CW_TESTS_FAKE_DRIVER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/options.h"
#include "core/driver_ops.h"
#include "core/types.h"
#include "live/arena.h"
#include "live/view.h"

#define FAKE_CONTEXTS             32
#define FAKE_EVENTS               65536
#define FAKE_BLOCKS               65536
#define FAKE_CONTEXT_IS_DESTROYED 709
#define FAKE_START_NS             UINT64_C(5000000000)
#define FAKE_MS                   UINT64_C(1000000)

enum fake_call {
    FAKE_CURRENT,
    FAKE_CONTEXT_FACTS,
    FAKE_DEVICE_FACTS,
    FAKE_MEMORY_INFO,
    FAKE_CONTEXT_WAIT,
    FAKE_EVENT_CREATE,
    FAKE_EVENT_RECORD,
    FAKE_EVENT_QUERY,
    FAKE_EVENT_WAIT,
    FAKE_BLOCK_ALLOC,
    FAKE_BLOCK_FREE,
    FAKE_DEVICE_COUNT,
    FAKE_FALLBACK_ALLOC,
    FAKE_DRIVER_POOLS,
    FAKE_POOL_SPARE,
    FAKE_POOL_TRIM,
    FAKE_CALLS
};

struct fake_driver {
    _Atomic uint64_t now_ns;
    uint64_t clock_step; /* each look at the clock moves it on by so much; 0 from the start */
    _Atomic uint64_t worked_ns; /* by any thread */
    uint64_t work_step;         /* so long does all work of ours seem to last */
    struct fake_context {
        _Atomic uint64_t handle;
        _Atomic uint64_t id;
        unsigned device;
        _Atomic uint32_t generation; /* counts the contexts that had this place */
        _Atomic uint64_t submitted, finished;
    } context[FAKE_CONTEXTS]; /* handle 0: none */
    uint64_t free_bytes, total_bytes;
    /* Not 0: the device has so much, and what is free follows from what is taken; pinned memory is
     * not of it. */
    _Atomic uint64_t capacity;
    _Atomic uint64_t others;      /* of it taken by other processes */
    _Atomic uint64_t taken_bytes; /* by this one, and the most that ever were */
    _Atomic uint64_t most_taken;
    uint64_t pool_used, pool_spare; /* of the driver's one pool; a trim gives the spare back */
    unsigned devices;               /* 2 from the start */
    int fails[FAKE_CALLS];          /* 1: returns -1 and leaves its out-parameters alone */
    _Atomic unsigned calls[FAKE_CALLS];
    int has_no_context_events; /* a driver before 12.5; may be set before arming */
    int has_no_context_ids;    /* before 12.0; the same */
    int wait_code;             /* what a wait returns, with nothing done, when not 0 */
    _Atomic uint64_t waited;   /* handle of the last wait */
    _Atomic int shut; /* set by a test while the gate is closed: no call may be under way, waits
                         apart */
    void (*inside)(enum fake_call call); /* if set: runs in the middle of each call */
    int gate_may_close;                  /* somebody is known to wait for the call that is inside */
};

extern struct fake_driver fake_driver;
extern const struct cw_driver_ops fake_driver_ops;

void fake_driver_init(void);
/* id 0: one that no other context has. */
void fake_context(unsigned slot, uint64_t handle, uint64_t id, unsigned device);
/* It is no more, nor are its events; its blocks are free to be given out again. */
void fake_context_end(uint64_t handle);
/* Of the calling thread. */
void fake_set_current(uint64_t handle);
/* Calls that need the gate, so far. */
unsigned fake_gated_calls(void);

/* ---- the work of contexts ---- */

/* The number of the work, which is outstanding until as many are finished. */
uint64_t fake_submit(uint64_t handle);
void fake_finish(uint64_t handle);
/* 1 if the work of this number is done, or the context is no more. `generation`: of the context. */
int fake_is_finished(unsigned slot, uint32_t generation, uint64_t work);
struct fake_context *fake_context_of(uint64_t handle);

/* ---- memory, as the program's own calls take and give it ---- */

/* A block of the context, 0 if there is no memory; the address that was given back last goes out
 * first. */
uint64_t fake_take(uint64_t handle, enum cw_kind kind, uint64_t bytes);
/* Waits for the context's work first. 0, or -1: no such block. */
int fake_give(uint64_t key);
/* 1 .. FAKE_BLOCKS - 1: a small number for each address. */
unsigned fake_number(uint64_t key);
/* Blocks that the driver has given and not taken back. */
unsigned fake_taken(void);

/* ---- the core on top of it ---- */

/* The whole session, armed, without stacks and without the pool. */
void core_arm(void);
/* With the pool; what the defaults of options should be instead may be set first. */
struct cw_options *core_options(void);
void core_arm_pool(void);
/* Arena, sites (without stacks), contexts and tracker alone. */
void core_start(struct cw_arena *out_arena, size_t reserve);

uint32_t core_site(const char *api, enum cw_kind kind, uint8_t device);
struct cw_request core_request(enum cw_kind kind, uint8_t device, uint64_t key, uint64_t bytes);
struct cw_site_sums core_sums(uint32_t site);
/* Of the arena that was started last: bytes live or held on a device, and live on all. */
uint64_t core_live(uint8_t device);
uint64_t core_held(uint8_t device);
uint64_t core_live_total(void);
/* A block of CW_SPACE_ADDRESS as the tracker inserts it, born at 10 ns. */
uint32_t core_put(uint32_t site, uint64_t key, uint64_t bytes);

/* ---- help ---- */

#define MAX_THREADS 128

/* Runs body(0) .. body(count - 1) at the same time, and waits for all of them. */
void run_threads(unsigned count, void (*body)(unsigned id));

/* Numbers that look random, and are the same in every run. */
uint64_t next_random(uint64_t *state);

#endif
