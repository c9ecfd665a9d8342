/* SPDX-License-Identifier: MIT */
/* Rows of pieces, and a treap of the free ones; each stores the maximum bytes below it. Number 0 is
 * a sentinel without bytes. See replay_pieces.h. */
#include "cli/replay/replay_pieces.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 256u

/* ---- numbers ---- */

/* 0 if out of memory. */
static uint32_t new_piece(struct cw_pieces *pieces)
{
    uint32_t number = pieces->unused;

    if (number != 0) {
        pieces->unused = pieces->piece[number].after;
        return number;
    }
    if (pieces->count + 1 >= pieces->room) {
        uint32_t room = pieces->room ? 2 * pieces->room : ROOM_FIRST;
        struct cw_piece *more = realloc(pieces->piece, room * sizeof(*more));

        if (more == NULL)
            return 0;
        if (pieces->piece == NULL)
            more[0] = (struct cw_piece){.most = 0};
        pieces->piece = more;
        pieces->room = room;
    }
    return ++pieces->count;
}

static void forget_piece(struct cw_pieces *pieces, uint32_t number)
{
    pieces->piece[number] = (struct cw_piece){.after = pieces->unused};
    pieces->unused = number;
}

void cw_pieces_destroy(struct cw_pieces *pieces)
{
    free(pieces->piece);
    memset(pieces, 0, sizeof(*pieces));
}

/* ---- the order ---- */

static int is_before(const struct cw_pieces *pieces, uint32_t one, uint32_t other)
{
    const struct cw_piece *a = &pieces->piece[one], *b = &pieces->piece[other];

    if (!pieces->is_by_address && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->address < b->address;
}

/* Called after the subtrees have changed. */
static void sum_up(struct cw_pieces *pieces, uint32_t at)
{
    struct cw_piece *piece = pieces->piece;
    uint64_t left = piece[piece[at].left].most, right = piece[piece[at].right].most;

    piece[at].most = piece[at].bytes;
    if (left > piece[at].most)
        piece[at].most = left;
    if (right > piece[at].most)
        piece[at].most = right;
}

/* Splits into those before the piece, and the others. */
static void split(struct cw_pieces *pieces, uint32_t root, uint32_t than, uint32_t *out_before,
                  uint32_t *out_after)
{
    uint32_t rest;

    if (root == 0) {
        *out_before = *out_after = 0;
    } else if (is_before(pieces, root, than)) {
        split(pieces, pieces->piece[root].right, than, &rest, out_after);
        pieces->piece[root].right = rest;
        *out_before = root;
        sum_up(pieces, root);
    } else {
        split(pieces, pieces->piece[root].left, than, out_before, &rest);
        pieces->piece[root].left = rest;
        *out_after = root;
        sum_up(pieces, root);
    }
}

static uint32_t join(struct cw_pieces *pieces, uint32_t before, uint32_t after)
{
    struct cw_piece *piece = pieces->piece;
    uint32_t root;

    if (before == 0 || after == 0)
        return before != 0 ? before : after;
    if (piece[before].weight < piece[after].weight) {
        root = before;
        piece[before].right = join(pieces, piece[before].right, after);
    } else {
        root = after;
        piece[after].left = join(pieces, before, piece[after].left);
    }
    sum_up(pieces, root);
    return root;
}

static uint32_t put_below(struct cw_pieces *pieces, uint32_t root, uint32_t number)
{
    struct cw_piece *piece = pieces->piece;

    if (root == 0 || piece[root].weight >= piece[number].weight) {
        split(pieces, root, number, &piece[number].left, &piece[number].right);
        root = number;
    } else if (is_before(pieces, root, number)) {
        piece[root].right = put_below(pieces, piece[root].right, number);
    } else {
        piece[root].left = put_below(pieces, piece[root].left, number);
    }
    sum_up(pieces, root);
    return root;
}

static uint32_t take_below(struct cw_pieces *pieces, uint32_t root, uint32_t number)
{
    struct cw_piece *piece = pieces->piece;

    if (root == number)
        return join(pieces, piece[root].left, piece[root].right);
    if (is_before(pieces, root, number))
        piece[root].right = take_below(pieces, piece[root].right, number);
    else
        piece[root].left = take_below(pieces, piece[root].left, number);
    sum_up(pieces, root);
    return root;
}

static void put_free(struct cw_pieces *pieces, uint32_t number)
{
    pieces->dice = pieces->dice * 1664525u + 1013904223u;
    pieces->piece[number].weight = pieces->dice;
    pieces->piece[number].is_free = 1;
    pieces->root = put_below(pieces, pieces->root, number);
}

static void take_free(struct cw_pieces *pieces, uint32_t number)
{
    pieces->root = take_below(pieces, pieces->root, number);
    pieces->piece[number].is_free = 0;
}

/* The first in order that is large enough, or 0. */
static uint32_t find_first(const struct cw_pieces *pieces, uint64_t bytes)
{
    const struct cw_piece *piece = pieces->piece;
    uint32_t at = pieces->root;

    if (at == 0 || piece[at].most < bytes)
        return 0;
    for (;;) {
        if (piece[piece[at].left].most >= bytes)
            at = piece[at].left;
        else if (piece[at].bytes >= bytes)
            return at;
        else
            at = piece[at].right;
    }
}

/* ---- rows ---- */

int cw_pieces_add(struct cw_pieces *pieces, uint64_t address, uint64_t bytes)
{
    uint32_t number = new_piece(pieces);

    if (number == 0)
        return -1;
    pieces->piece[number] = (struct cw_piece){.address = address, .bytes = bytes};
    put_free(pieces, number);
    return 0;
}

/* Splits off the rest as a new piece. 0, or -1 if out of memory. */
static int cut(struct cw_pieces *pieces, uint32_t number, uint64_t bytes)
{
    uint32_t rest = new_piece(pieces);
    struct cw_piece *piece;

    if (rest == 0)
        return -1;
    piece = &pieces->piece[number];
    pieces->piece[rest] = (struct cw_piece){.address = piece->address + bytes,
                                            .bytes = piece->bytes - bytes,
                                            .before = number,
                                            .after = piece->after};
    if (piece->after != 0)
        pieces->piece[piece->after].before = rest;
    piece->after = rest;
    piece->bytes = bytes;
    put_free(pieces, rest);
    return 0;
}

uint32_t cw_pieces_take(struct cw_pieces *pieces, uint64_t bytes, uint64_t most, uint64_t rest)
{
    uint32_t number = find_first(pieces, bytes);

    if (number == 0 || pieces->piece[number].bytes > most)
        return 0;
    take_free(pieces, number);
    if (pieces->piece[number].bytes - bytes >= rest && cut(pieces, number, bytes) != 0) {
        put_free(pieces, number);
        return 0;
    }
    return number;
}

/* Removes the second piece. */
static void merge(struct cw_pieces *pieces, uint32_t first, uint32_t second)
{
    struct cw_piece *piece = pieces->piece;

    piece[first].bytes += piece[second].bytes;
    piece[first].after = piece[second].after;
    if (piece[first].after != 0)
        piece[piece[first].after].before = first;
    forget_piece(pieces, second);
}

void cw_pieces_give(struct cw_pieces *pieces, uint32_t number)
{
    uint32_t before = pieces->piece[number].before, after = pieces->piece[number].after;

    if (after != 0 && pieces->piece[after].is_free) {
        take_free(pieces, after);
        merge(pieces, number, after);
    }
    if (before != 0 && pieces->piece[before].is_free) {
        take_free(pieces, before);
        merge(pieces, before, number);
        number = before;
    }
    put_free(pieces, number);
}

int cw_pieces_drop(struct cw_pieces *pieces, uint64_t *out_address, uint64_t *out_bytes)
{
    for (uint32_t i = 1; i <= pieces->count; i++) {
        const struct cw_piece *piece = &pieces->piece[i];

        if (!piece->is_free || piece->before != 0 || piece->after != 0)
            continue;
        *out_address = piece->address;
        *out_bytes = piece->bytes;
        take_free(pieces, i);
        forget_piece(pieces, i);
        return 1;
    }
    return 0;
}
