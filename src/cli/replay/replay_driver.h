/* SPDX-License-Identifier: MIT */
/*
 * The driver of a replay: devices of equal size (cli/replay/replay_memory.h), unlimited host
 * memory, one context per device, and the clock of the trace. One per process, one thread.
 *
 * A trace does not contain the device's work. It is assumed to use a block until CW_REPLAY_LAG_NS
 * after its free, unless it was waited for; a wait takes no time. The clock is the later of the
 * trace's and its own, which advances by a tick each time it is read.
 */
#ifndef CW_CLI_REPLAY_DRIVER_H
#define CW_CLI_REPLAY_DRIVER_H

#include <stdint.h>

#include "core/process/driver_ops.h"

#define CW_REPLAY_LAG_NS  UINT64_C(100000)
#define CW_REPLAY_TICK_NS UINT64_C(1000)

struct cw_replay_calls {
    uint64_t allocs, frees; /* of device and pinned memory */
    uint64_t refused;       /* allocations that did not fit */
    uint64_t waits, events; /* waits for a context; events recorded and queried */
};

extern const struct cw_driver_ops cw_replay_ops;

void cw_replay_driver_start(uint64_t device_bytes);
void cw_replay_driver_stop(void);

void cw_replay_driver_set_time(uint64_t ns);
/* The program frees a block that work may still use. */
void cw_replay_driver_submit(void);
/* Sets the device whose context is current. */
void cw_replay_driver_select(uint8_t device);

/* Like the program's own call. device: ordinal or CW_DEVICE_HOST. Returns the address, or 0. */
uint64_t cw_replay_driver_alloc(uint8_t device, uint64_t bytes);
void cw_replay_driver_free(uint64_t address);

const struct cw_replay_calls *cw_replay_driver_calls(void);
uint64_t cw_replay_driver_total(void); /* of each device */
/* The device's free memory: total, and the largest piece. */
uint64_t cw_replay_driver_free_bytes(uint8_t device);
uint64_t cw_replay_driver_largest(uint8_t device);

#endif
