/* SPDX-License-Identifier: MIT */
/*
 * Memory split into pieces, as in allocators that split driver blocks: segments, each a row of
 * pieces, and an order of the free pieces by size. For the models of a replay.
 *
 * Pieces are numbered from 1. Free neighbours are merged into one piece; pieces of different
 * segments never are.
 */
#ifndef CW_CLI_REPLAY_PIECES_H
#define CW_CLI_REPLAY_PIECES_H

#include <stdint.h>

struct cw_piece {
    uint64_t address, bytes;
    uint64_t most;          /* bytes maximum in its subtree, including itself */
    uint32_t before, after; /* in its segment; 0: none */
    uint32_t left, right;   /* in the order of free pieces */
    uint32_t weight;
    uint8_t is_free;
};

struct cw_pieces {
    struct cw_piece *piece;
    uint32_t count, room;
    uint32_t unused; /* reusable numbers, linked through after */
    uint32_t root;
    uint32_t dice;
    uint8_t is_by_address; /* set before the first piece; otherwise the order is by size */
};

void cw_pieces_destroy(struct cw_pieces *pieces);

/* Adds a segment as one free piece. 0, or -1 if out of memory. */
int cw_pieces_add(struct cw_pieces *pieces, uint64_t address, uint64_t bytes);
/* Takes the first free piece in order with at least `bytes`, unless it has more than `most`: in an
 * order by size the smallest, and among those the lowest. It is split if at least `rest` bytes
 * remain, which become a free piece. 0: none, or out of memory. */
uint32_t cw_pieces_take(struct cw_pieces *pieces, uint64_t bytes, uint64_t most, uint64_t rest);
void cw_pieces_give(struct cw_pieces *pieces, uint32_t number);
/* Removes a completely free segment: 1 and its address; 0 if there is none. */
int cw_pieces_drop(struct cw_pieces *pieces, uint64_t *out_address, uint64_t *out_bytes);

static inline uint64_t cw_pieces_bytes(const struct cw_pieces *pieces, uint32_t number)
{
    return pieces->piece[number].bytes;
}

#endif
