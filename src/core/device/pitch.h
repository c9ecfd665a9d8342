/* SPDX-License-Identifier: MIT */
/*
 * Pitches that the driver has given, by device, width and element size: a pitched request may be
 * served by the pool only with the pitch that the driver itself would give. Guarded by one lock,
 * CW_RANK_POOL.
 */
#ifndef CW_CORE_PITCH_H
#define CW_CORE_PITCH_H

#include <stdint.h>

/* 0: the driver has not been asked yet. */
uint64_t cw_pitch_find(uint8_t device, uint64_t width, unsigned element);
void cw_pitch_learn(uint8_t device, uint64_t width, unsigned element, uint64_t pitch);
/* In a forked child. */
void cw_pitch_reset(void);

#endif
