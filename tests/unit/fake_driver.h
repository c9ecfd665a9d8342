/* SPDX-License-Identifier: MIT */
/*
 * A driver for tests of the core: a clock, contexts, devices and memory figures that a test sets,
 * calls that fail on demand and are counted. It stops the program when the core breaks the contract
 * of core/driver_ops.h: a call while the gate is closed, one for a context that is not current, or
 * (debug builds) one under a lock.
 */
#ifndef CW_TESTS_FAKE_DRIVER_H
#define CW_TESTS_FAKE_DRIVER_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/driver_ops.h"
#include "core/types.h"
#include "live/arena.h"
#include "live/view.h"

#define FAKE_CONTEXTS 8
#define FAKE_START_NS UINT64_C(5000000000)
#define FAKE_MS       UINT64_C(1000000)

enum fake_call {
    FAKE_CURRENT,
    FAKE_CONTEXT_FACTS,
    FAKE_DEVICE_FACTS,
    FAKE_MEMORY_INFO,
    FAKE_CALLS
};

struct fake_driver {
    _Atomic uint64_t now_ns;
    struct fake_context {
        uint64_t handle, id;
        unsigned device;
    } context[FAKE_CONTEXTS]; /* handle 0: none */
    uint64_t free_bytes, total_bytes;
    int fails[FAKE_CALLS]; /* 1: returns -1 and leaves its out-parameters alone */
    _Atomic unsigned calls[FAKE_CALLS];
    void (*inside)(enum fake_call call); /* if set: runs in the middle of each call */
    int gate_may_close;                  /* somebody is known to wait for the call that is inside */
};

extern struct fake_driver fake_driver;
extern const struct cw_driver_ops fake_driver_ops;

void fake_driver_init(void);
void fake_context(unsigned slot, uint64_t handle, uint64_t id, unsigned device);
/* Of the calling thread. */
void fake_set_current(uint64_t handle);
/* Calls that need the gate, so far. */
unsigned fake_gated_calls(void);

/* ---- the core on top of it ---- */

/* The whole session, armed, without stacks. */
void core_arm(void);
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
