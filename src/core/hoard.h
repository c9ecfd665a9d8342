/* SPDX-License-Identifier: MIT */
/*
 * Hoards: what each thread keeps to itself.
 *
 * A thread with a slot (core/slot.h) keeps a few ready blocks of each size up to 1 MiB, and the
 * open batch of its frees whose device work may still run (core/pending.c). It works on them inside
 * its slot, without a lock or a locked instruction; another thread that needs them stops the slot.
 * Always: a ready block in a hoard belongs to the pool that the set names, whose realm was open
 * when it came in.
 */
#ifndef CW_CORE_HOARD_H
#define CW_CORE_HOARD_H

#include <stdint.h>

#include "core/bucket.h"
#include "core/slot.h"

#define CW_HOARD_LARGEST ((uint64_t)1 << 20)

/* bytes: at most so many in one hoard; 0: threads keep nothing. Set before arming. */
void cw_hoard_init(uint64_t bytes);
void cw_hoard_reset(void);

/* Of the cells in which a thread keeps blocks, that of a block of so many bytes; CW_HOARD_NONE for
 * one that is too large, or that must be looked for by its exact size. */
#define CW_HOARD_CELLS 72u /* up to CW_HOARD_LARGEST: 8 + 8 * 8 */
#define CW_HOARD_NONE  255u

static inline uint8_t cw_hoard_cell(uint8_t class, uint64_t held)
{
    unsigned size_class =
        held < CW_SIZE_LEAST || held > CW_SIZE_MOST ? CW_SIZE_CLASSES : cw_size_class_down(held);

    return class != CW_POOL_PITCHED && size_class < CW_HOARD_CELLS ? (uint8_t)size_class
                                                                   : CW_HOARD_NONE;
}

/* The same as take and put below, inside the slot and for what is usual; 0: nothing is changed, and
 * the other functions may do it yet. A block that is put was just freed. */
uint32_t cw_hoard_take_inside(const struct cw_slot *slot, const struct cw_pool *pool,
                              unsigned size_class, uint64_t bytes);
int cw_hoard_put_inside(const struct cw_slot *slot, const struct cw_pool *pool, uint32_t block,
                        struct cw_live_block *record, uint64_t held);

/* A ready block of the calling thread's own for a request of this class, 0 for none; counts a
 * hit. */
uint32_t cw_hoard_take(struct cw_pool *pool, unsigned size_class, uint64_t bytes);

/*
 * Keeps a ready block. 1, or 0 if the block is not for hoards or the thread has none. What had to
 * make room is linked in *out_spill, to go to the shared buckets. `freed`: counts a kept free.
 */
int cw_hoard_put(struct cw_pool *pool, uint32_t block, int freed, uint32_t *out_spill);
/* Keeps a linked list of ready blocks of one class that came from the shared bucket. What does not
 * fit is left in the list. */
uint32_t cw_hoard_refill(struct cw_pool *pool, unsigned size_class, uint32_t list, uint32_t count);

/*
 * Takes from all other threads what fits no use there: every block of the pool (NULL: of all pools)
 * and size class (CW_SIZE_CLASSES: of all), linked, still counted as idle in the records.
 */
uint32_t cw_hoard_seize(const struct cw_pool *pool, unsigned size_class);

/* The calling thread ends: its blocks. */
uint32_t cw_hoard_empty(void);

/* ---- the open batch ---- */

struct cw_batch;
/* The batch of the calling thread's slot; to be used inside. */
struct cw_batch **cw_hoard_batch(unsigned slot);

#endif
