/* SPDX-License-Identifier: MIT */
/*
 * The program of the pool's tests: it allocates and frees as src/hook/pooled.c does for a real one,
 * on the fake driver, in contexts that a test makes and ends.
 */
#ifndef CW_TESTS_POOL_FIXTURE_H
#define CW_TESTS_POOL_FIXTURE_H

#include "core/context.h"
#include "core/pool.h"
#include "fake_driver.h"

#define KIB            ((uint64_t)1 << 10)
#define MIB            ((uint64_t)1 << 20)
#define GIB            ((uint64_t)1 << 30)
#define FIRST_CONTEXT  UINT64_C(0xc0)
#define SECOND_CONTEXT UINT64_C(0xc1)

/* Armed, one context (FIRST_CONTEXT on device 0), which is current. */
void pool_start(enum cw_free_sync free_sync);
/* Makes a context with the handle FIRST_CONTEXT + slot and tells the core; what is current stays.
 */
uint64_t pool_context(unsigned slot, unsigned device);
/* The core's index of a context. */
uint32_t pool_index(uint64_t handle);
/* The program ends the context: the driver's part is done with `outcome`. */
void pool_end_context(uint64_t handle, enum cw_context_outcome outcome);

/* Never fails. *out_served (may be NULL): 1 if no driver was asked. */
uint64_t pool_alloc(enum cw_pool_class class, uint64_t bytes, int *out_served);
uint64_t pool_get(uint64_t bytes); /* of device memory */
/* 1 if an idle block serves the request, which is then live; *out_key may be NULL. */
int pool_hits(enum cw_pool_class class, uint64_t bytes, uint64_t *out_key);
enum cw_pool_free pool_free(enum cw_pool_class class, uint64_t key, int *out_wait);
enum cw_pool_free pool_put(uint64_t key); /* of device memory */
/* As a request that finds no memory makes the pool do: all that is ready, then the rest. The bytes.
 */
uint64_t pool_reclaim(uint8_t device);
/* The program waits for the whole context. */
void pool_sync(uint64_t handle);

/* Over all records of buckets. */
struct pool_sums {
    uint64_t hits, misses, asked, given, kept, released, released_bytes, idle_blocks, idle_bytes;
};
struct pool_sums pool_sums(void);
uint64_t pool_bypassed(enum cw_bypass why);
const struct cw_live_pool *pool_counters(uint8_t device);

/* Blocks in the state, by their records. */
uint64_t pool_count(enum cw_block_state state);
/* 0 if the sums of the tracker, of the buckets and of the driver agree with the blocks, else -1 and
 * on stderr what does not. Nobody else may be at work. */
int pool_check(void);

#endif
