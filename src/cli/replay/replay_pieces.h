/* SPDX-License-Identifier: MIT */
/*
 * Memory cut into pieces, as allocators keep it that split what they have from the driver:
 * segments, each a row of pieces, and of the free ones an order by size. For the models of a
 * replay.
 *
 * A piece is named by its number, from 1. Neighbours that are free are one piece; pieces of
 * different segments never are.
 */
#ifndef CW_CLI_REPLAY_PIECES_H
#define CW_CLI_REPLAY_PIECES_H

#include <stdint.h>

struct cw_piece {
    uint64_t address, bytes;
    uint64_t most;          /* bytes of any below it in the order, itself included */
    uint32_t before, after; /* in its segment; 0: none */
    uint32_t left, right;   /* in the order of the free ones */
    uint32_t weight;
    uint8_t is_free;
};

struct cw_pieces {
    struct cw_piece *piece;
    uint32_t count, room;
    uint32_t unused; /* numbers to be given again, through after */
    uint32_t root;
    uint32_t dice;
    uint8_t is_by_address; /* set before the first piece; else the order is by size */
};

void cw_pieces_destroy(struct cw_pieces *pieces);

/* A segment, as one free piece. 0, or -1 without memory. */
int cw_pieces_add(struct cw_pieces *pieces, uint64_t address, uint64_t bytes);
/* The first free piece in order that has `bytes`, unless it has more than `most`: of an order by
 * size the smallest, of such the lowest. It is cut where at least `rest` bytes remain, which are a
 * free piece. 0: there is none, or no memory. */
uint32_t cw_pieces_take(struct cw_pieces *pieces, uint64_t bytes, uint64_t most, uint64_t rest);
void cw_pieces_give(struct cw_pieces *pieces, uint32_t number);
/* Takes out a segment that is wholly free: 1 and its address; 0: there is none. */
int cw_pieces_drop(struct cw_pieces *pieces, uint64_t *out_address, uint64_t *out_bytes);

static inline uint64_t cw_pieces_bytes(const struct cw_pieces *pieces, uint32_t number)
{
    return pieces->piece[number].bytes;
}

#endif
