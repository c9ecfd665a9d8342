/* SPDX-License-Identifier: MIT */
/*
 * The memory of one growable buffer: addresses into which memory is put piece by piece, or one
 * block that is replaced by another.
 *
 * Of one thread at a time (api/buffers.h sees to that); calls the driver, under no lock. Always: on
 * failure everything is as it was before.
 */
#ifndef CW_API_BUFFER_MEMORY_H
#define CW_API_BUFFER_MEMORY_H

#include "api/buffer_ops.h"

#define CW_BUFFER_PIECE_MAX ((uint64_t)64 << 20)

struct cw_buffer_memory {
    struct cw_buffer_place place;
    uint64_t address;  /* 0: none */
    uint64_t bytes;    /* that are there */
    uint64_t reserved; /* addresses; 0: one block */
    uint32_t name;     /* text of its blocks (core/account/owner.h) */
    uint32_t pieces, piece_room;
    uint64_t *piece; /* bytes of each, from cw_mem */
    /* What resizes have done. */
    uint64_t resizes, copies, copied_bytes;
    int has_block_grown; /* the block has replaced a smaller one */
};

/* What stays in a resize, and how a copy is made. */
struct cw_buffer_keep {
    uint64_t bytes;
    void *stream;
    int waits; /* until it is done */
};

/* What the functions of the driver are, once; NULL: none, so there are no buffers. */
void cw_buffer_memory_init(const struct cw_buffer_ops *ops);

/* Without memory, in the current context. may_map: addresses for most_bytes (0: for as much as the
 * device has) are reserved if it can. 0, or the driver's code. */
int cw_buffer_memory_begin(struct cw_buffer_memory *memory, uint64_t most_bytes, int may_map);

/* So many bytes as the memory would really have; bytes: not 0. */
uint64_t cw_buffer_memory_rounded(const struct cw_buffer_memory *memory, uint64_t bytes);

/* Bytes that a resize to so many needs of the device while it works. */
uint64_t cw_buffer_memory_needs(const struct cw_buffer_memory *memory, uint64_t bytes);

/* What may be had in the buffer's context (a hint); UINT64_MAX: it does not say. */
uint64_t cw_buffer_memory_room(const struct cw_buffer_memory *memory);

/* To at least so many bytes, or, where bytes are fewer than there are, as few as pieces allow; 0:
 * none. 0, or the driver's code. */
int cw_buffer_memory_resize(struct cw_buffer_memory *memory, uint64_t bytes,
                            const struct cw_buffer_keep *keep);

/* Frees all, and forgets what cannot be freed. The first code that was not 0. */
int cw_buffer_memory_end(struct cw_buffer_memory *memory);

#endif
