/* SPDX-License-Identifier: MIT */
/* The part of the fake driver that has the memory: what its other part and the table of functions
 * need. Tests include fake_driver.h only. */
#ifndef CW_TESTS_FAKE_MEMORY_H
#define CW_TESTS_FAKE_MEMORY_H

#include "fake_driver.h"

/* Of fake_driver.c. */
void fake_broken(const char *what);
int fake_begin(enum fake_call call);
uint64_t fake_current(void);
/* The handle is still this context's. */
int fake_is_itself(struct cw_context_name name);

void fake_memory_init(void);
uint64_t fake_free_bytes(void);
void fake_forget_blocks(uint64_t handle);

int fake_block_alloc(uint64_t bytes, uint64_t *out_key);
int fake_block_free(struct cw_context_name name, enum cw_kind kind, uint64_t key);
int fake_fallback_alloc(unsigned device, uint64_t bytes, uint64_t *out_key);
int fake_driver_pools(unsigned device, uint64_t out_pool[CW_DRIVER_POOLS], unsigned *out_count);
int fake_driver_pool_use(uint64_t pool, uint64_t *out_held, uint64_t *out_used);
int fake_driver_pool_trim(uint64_t pool);

#endif
