/* SPDX-License-Identifier: MIT */
/* The blocks that are live in a trace: from the pointer that it names to the block of the replay.
 * As large as the most blocks that were live at once. */
#ifndef CW_CLI_REPLAY_MAP_H
#define CW_CLI_REPLAY_MAP_H

#include <stdint.h>

struct cw_replay_block {
    uint64_t pointer; /* of the trace; never 0 */
    uint64_t key;     /* of the replay; 0: there was no memory for it */
    uint64_t bytes;   /* asked for */
    uint8_t device, kind;
};

struct cw_replay_map {
    struct cw_replay_block *slot; /* pointer 0: empty */
    uint64_t slots, count;        /* a power of two, at most half of it in use */
};

/* 0, or -1 without memory. The pointer must not be in the map. */
int cw_replay_map_put(struct cw_replay_map *map, const struct cw_replay_block *block);
/* Takes it out: 1; 0: it is not there. */
int cw_replay_map_take(struct cw_replay_map *map, uint64_t pointer, struct cw_replay_block *out);
void cw_replay_map_destroy(struct cw_replay_map *map);

#endif
