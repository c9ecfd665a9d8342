/* SPDX-License-Identifier: MIT */
/*
 * Bounds: what the user's platform, and SOFT_LIMIT, say of a device's memory (base/bounds.h).
 *
 * They are in the options and in the environment, and the host knows those of the process's group
 * (core/process/host.h), of which the device's other users in the group take their part.
 *
 * A bound refuses nothing. It is a cause of pressure (core/limits/pressure.h) and bounds what the
 * pool makes the process hold (core/limits/demand.h); what is held beyond a soft one is borrowed.
 * Owns the bounds in force, by device; the device's record has copies for readers. No lock. Nothing
 * is looked up while nobody has set any.
 */
#ifndef CW_CORE_BOUND_H
#define CW_CORE_BOUND_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/bounds.h"
#include "base/compiler.h"
#include "base/options/options.h"

/* Before the session is armed, and again in a forked child. */
void cw_bound_init(const struct cw_options *options);
void cw_bound_reset(void);

extern CW_HIDDEN _Atomic int cw_bounds_on;

/* 1 if any device has a bound. */
static inline int cw_bound_is_on(void)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_bounds_on, memory_order_relaxed));
}

/* Asks the host, if that is due, for what it has of the device. One thread at a time for a device;
 * any time. */
void cw_bound_look(uint8_t device, uint64_t held, uint64_t now_ns);

/* The bound of the device that is used up most, for a process that holds so much there. */
struct cw_bound_use {
    uint64_t used, bytes; /* bytes 0: there is none */
    enum cw_bound bound;
};
struct cw_bound_use cw_bound_nearest(uint8_t device, uint64_t held);

/* The most that may be held there without going beyond any; UINT64_MAX: there is none. */
uint64_t cw_bound_most(uint8_t device);

/* What a process that holds so much there has borrowed, and beyond which soft bound. */
uint64_t cw_bound_borrowed(uint8_t device, uint64_t held, enum cw_bound *out_bound);

/* Those that refuse with LIMIT=platform; 0: none. */
struct cw_bound_limits {
    uint64_t least;  /* of all of them */
    uint64_t of_all; /* of those that are for more than one process */
};
void cw_bound_limits(uint8_t device, struct cw_bound_limits *out);

/* Keeps for the report how much is borrowed at most. */
void cw_bound_note(uint8_t device, uint64_t held);

#endif
