/* SPDX-License-Identifier: MIT */
/* The live blocks of a trace: maps its pointers to blocks of the replay. Its size follows the peak
 * number of live blocks. */
#ifndef CW_CLI_REPLAY_MAP_H
#define CW_CLI_REPLAY_MAP_H

#include <stdint.h>

struct cw_replay_block {
    uint64_t pointer; /* in the trace; never 0 */
    uint64_t key;     /* in the replay; 0: the request failed */
    uint64_t bytes;   /* as requested */
    uint8_t device, kind;
};

struct cw_replay_map {
    struct cw_replay_block *slot; /* pointer 0: empty */
    uint64_t slots, count;        /* a power of two, at most half of it in use */
};

/* 0, or -1 if out of memory. The pointer must not be in the map. */
int cw_replay_map_put(struct cw_replay_map *map, const struct cw_replay_block *block);
/* Removes it and returns 1, or 0 if it is not there. */
int cw_replay_map_take(struct cw_replay_map *map, uint64_t pointer, struct cw_replay_block *out);
void cw_replay_map_destroy(struct cw_replay_map *map);

#endif
