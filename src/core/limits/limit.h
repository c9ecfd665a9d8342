/* SPDX-License-Identifier: MIT */
/*
 * Limits: what this process may hold on a device (LIMIT), and what must stay free there (MIN_FREE).
 *
 * Everything that the process holds counts: live, idle in the pool, and unused in the driver's own
 * stream-ordered pools as far as they are seen. A call that takes device memory reserves its bytes
 * before it asks the driver: they count as held from then on (core/account/usage.h), so threads
 * never overshoot together. Then either its block takes the reservation over (cw_request.reserved),
 * or it is cancelled. Always: what is reserved and held is at most the limit, unless the limit was
 * lowered, or memory came without being asked for (a graph launch). No lock; nothing is reserved
 * while no device has a limit.
 */
#ifndef CW_CORE_LIMIT_H
#define CW_CORE_LIMIT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/options/options.h"
#include "live/arena.h"

/* Before the session is armed, and again in a forked child. */
void cw_limit_init(const struct cw_options *options);
void cw_limit_reset(void);
/* Says which devices the options name that are not there. Once; when the driver can be asked. */
void cw_limit_check_devices(void);

extern CW_HIDDEN _Atomic int cw_limits_on;

/* 1 if any device has a limit or must keep something free. */
static inline int cw_limit_is_on(void)
{
    return CW_UNLIKELY(atomic_load_explicit(&cw_limits_on, memory_order_relaxed));
}

/* Stream-ordered memory may come out of what the driver's pools hold unused, but only the driver
 * knows: it counts as if it did not, and their unused memory must go first. 0: *out_reserved bytes,
 * all of them, count as held on the device from now on (none without a limit there). -1: they do
 * not fit, *out_cause says why. Not under a lock, not inside a slot; may ask the driver how things
 * stand. */
int cw_limit_reserve(uint8_t device, uint64_t bytes, uint64_t *out_reserved,
                     enum cw_cause *out_cause);
/* The driver did not give them after all. */
void cw_limit_cancel(uint8_t device, uint64_t bytes);
/* A block has taken them over. */
void cw_limit_committed(uint8_t device, uint64_t bytes);

/* How much has to be given back so that a request of so many bytes fits; 0: nothing. */
uint64_t cw_limit_shortfall(uint8_t device, uint64_t bytes);
/* The largest request that the limits would allow if nothing lay idle; UINT64_MAX: any. */
uint64_t cw_limit_room(uint8_t device);

/* The platform's limits may have changed (core/limits/bound.h): takes them over, with
 * LIMIT=platform. */
void cw_limit_follow_platform(uint8_t device);

/* LIMIT of the device, 0: none. */
uint64_t cw_limit_of(uint8_t device);
/* Changes the limit at run time; 0: none. Memory held beyond it stays, but none is added. */
void cw_limit_set(uint8_t device, uint64_t bytes);

/* The memory info that the program gets for a device with so many bytes, so many of them free to
 * the driver: idle memory is free, the limit is the total, and MIN_FREE cannot be taken. Never more
 * free than total. */
struct cw_memory_view {
    uint64_t free_bytes, total_bytes;
};
void cw_limit_view(uint8_t device, uint64_t driver_free, uint64_t driver_total,
                   struct cw_memory_view *out);
/* The same for the total alone. */
uint64_t cw_limit_total(uint8_t device, uint64_t driver_total);

#endif
