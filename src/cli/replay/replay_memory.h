/* SPDX-License-Identifier: MIT */
/*
 * A model of a device's memory: addresses handed out first-fit, in pages of 2 MiB.
 *
 * A block of more than 1 MiB takes contiguous whole pages; smaller ones share pages with others of
 * similar size, as in the driver. A request fails if no run of free pages is long enough, even if
 * there are enough pages: a real device may map scattered pages, so the model is conservative.
 * Address 0 is never handed out.
 */
#ifndef CW_CLI_REPLAY_MEMORY_H
#define CW_CLI_REPLAY_MEMORY_H

#include <stdint.h>

#define CW_REPLAY_PAGE (UINT64_C(2) << 20)
#define CW_REPLAY_MOST (UINT64_C(4) << 40) /* largest device */

struct cw_replay_memory;

/* `base`: of its addresses, a multiple of CW_REPLAY_MOST. NULL if out of memory. */
struct cw_replay_memory *cw_replay_memory_make(uint64_t base, uint64_t bytes);
void cw_replay_memory_destroy(struct cw_replay_memory *memory);

/* The address, or 0. */
uint64_t cw_replay_memory_take(struct cw_replay_memory *memory, uint64_t bytes);
/* 0, or -1 if there is no block at this address. */
int cw_replay_memory_give(struct cw_replay_memory *memory, uint64_t address);

uint64_t cw_replay_memory_free(const struct cw_replay_memory *memory);    /* bytes of free pages */
uint64_t cw_replay_memory_largest(const struct cw_replay_memory *memory); /* of contiguous ones */

#endif
