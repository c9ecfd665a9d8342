/* SPDX-License-Identifier: MIT */
/*
 * Pressure: how scarce memory is on each device, in four levels (live/layout.h: CW_LEVELS).
 *
 * The level follows the largest of three shares: use of the whole device by anybody, as last
 * sampled, and what this process holds of its limit and of its nearest bound (core/limits/bound.h).
 * A level is entered at its threshold (PRESSURE) and left CW_PRESSURE_HYSTERESIS points below it.
 * Every change is an event. core/reclaim/reclaim_turn.c acts on it: this module only marks what is
 * due (core/limits/reclaim_due.h). No lock: one thread at a time settles a device, others leave it
 * to that one.
 */
#ifndef CW_CORE_PRESSURE_H
#define CW_CORE_PRESSURE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "live/arena.h"

#define CW_PRESSURE_HYSTERESIS 5 /* points */

void cw_pressure_init(const struct cw_options *options);
void cw_pressure_reset(void);

/* Works the level out anew from what is known now. api: of the call that looked, 0 for none. Not
 * under a lock, not inside a slot. */
void cw_pressure_update(uint8_t device, uint32_t api, uint64_t now_ns);

extern CW_HIDDEN _Atomic uint8_t cw_pressure_levels[CW_DEVICES]; /* enum cw_level */

static inline enum cw_level cw_pressure_level(uint8_t device)
{
    return (enum cw_level)atomic_load_explicit(&cw_pressure_levels[device], memory_order_relaxed);
}

extern CW_HIDDEN _Atomic uint8_t cw_pressure_followed[CW_DEVICES];

/* 1 where the level has risen, or there may be a bound: it is worked out after each call. */
static inline int cw_pressure_is_followed(uint8_t device)
{
    return atomic_load_explicit(&cw_pressure_followed[device], memory_order_relaxed);
}

/* The shares by which the level is decided, as far as is known now. */
struct cw_pressure_state {
    uint64_t device_used, device_total; /* by anybody; total 0: not known */
    uint64_t held, limit;               /* by this process; limit 0: none */
    unsigned share;                     /* the largest, that of a bound included, in 1/10000 */
};
void cw_pressure_read(uint8_t device, struct cw_pressure_state *out);

/* 1 if the level is HIGH or more, and not by this process's own limit. */
int cw_pressure_is_of_device(uint8_t device);

/* Bytes to give back so that the level falls below HIGH, by each share; 0: it is below. */
uint64_t cw_pressure_excess(uint8_t device);

/* Bytes that this process may hold while the level stays LOW, by each share; 0: it has risen. */
uint64_t cw_pressure_most_at_low(uint8_t device);

/* An idle block was given back because of the level: the event that changed it says how much. */
void cw_pressure_relieved(uint8_t device, uint64_t bytes);

#endif
