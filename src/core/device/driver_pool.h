/* SPDX-License-Identifier: MIT */
/*
 * The driver's own pools of stream-ordered memory, as far as they are seen: what they hold and do
 * not use counts as held by this process.
 *
 * Owns the list of pools: a device's own from its first stream-ordered allocation on, and those
 * that the program makes. The list has one lock (CW_RANK_DRIVER_POOL), never held across the
 * driver; a pool is taken out, and our queries of it are over, before the driver is asked to
 * destroy it.
 */
#ifndef CW_CORE_DRIVER_POOL_H
#define CW_CORE_DRIVER_POOL_H

#include <stdint.h>

void cw_driver_pool_reset(void);

/* Stream-ordered memory is used on the device. */
void cw_driver_pool_used(uint8_t device);
/* The program has made a pool there. */
void cw_driver_pool_insert(uint8_t device, uint64_t pool);
/* Around the driver's destruction of one: in between we have no query in flight and start none. Not
 * between cw_gate_enter and leave. */
void cw_driver_pool_remove_begin(uint64_t pool);
void cw_driver_pool_remove_end(void);

/* Stream-ordered memory of the device: taken once it is held, and returned before it is not. */
void cw_driver_pool_taken(uint8_t device, uint64_t bytes);
void cw_driver_pool_returned(uint8_t device, uint64_t bytes);

/* Adds up what the pools of the device hold. Inside the gate. */
void cw_driver_pool_sample(uint8_t device);
/* The same from outside the gate; nothing while it is closed. */
void cw_driver_pool_refresh(uint8_t device);
/* Tells the pools to release it. Returns the bytes. Passes the gate. */
uint64_t cw_driver_pool_trim(uint8_t device);

/* What the pools may hold unused now; never too little. */
uint64_t cw_driver_pool_spare(uint8_t device);
/* The device whose own pool this is: 1, or 0 for another. */
int cw_driver_pool_find(uint64_t pool, uint8_t *out_device);

#endif
