/* SPDX-License-Identifier: MIT */
/*
 * Placements: which device has most room for an allocation, and which one a name had last.
 *
 * Room is what is free there by the last sample, and idle in the pool, as far as limits and
 * MIN_FREE leave it. A device that was never sampled, because the process has no context there, is
 * taken to be free but for the reserve of base/device_reserve.h: only a context would tell, and
 * costs hundreds of MiB. Devices at level HIGH and more come after the others, and for a second
 * those that gave no context (one that another process has for itself).
 *
 * A thread with a slot keeps its last answer and gives it again, for requests of up to 64 MiB,
 * while the clock has not ticked and it has itself taken and freed less than half the lead of the
 * device that it chose; what other threads do it sees at the tick. With a limit anywhere each
 * answer is worked out. Such an allocation goes to the pool at once, past the driver's layer.
 *
 * Owns the names and their devices, guarded by a lock (CW_RANK_PLACEMENT) that is held under no
 * call of the driver.
 */
#ifndef CW_API_PLACEMENTS_H
#define CW_API_PLACEMENTS_H

#include "api/api.h"
#include "api/buffer_ops.h"
#include "api/device_ops.h"

void cw_api_placements_init(const struct cw_buffer_ops *memory, const struct cw_device_ops *ops);
/* In a forked child. */
void cw_api_placements_reset(void);

int cw_api_device_pick(const char *name, uint64_t bytes, int32_t *out_device);
int cw_api_device_alloc(const char *name, uint64_t bytes, int32_t *out_device, void **out);

#endif
