/* SPDX-License-Identifier: MIT */
/* Open addressing with linear probing; a removal closes the gap. See replay_map.h. */
#include "cli/replay/replay_map.h"

#include <stdlib.h>

#define SLOTS_FIRST 1024u

static uint64_t home_of(const struct cw_replay_map *map, uint64_t pointer)
{
    return (pointer * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (map->slots - 1);
}

static void put(struct cw_replay_map *map, const struct cw_replay_block *block)
{
    uint64_t at = home_of(map, block->pointer);

    while (map->slot[at].pointer != 0)
        at = (at + 1) & (map->slots - 1);
    map->slot[at] = *block;
}

static int grow(struct cw_replay_map *map)
{
    struct cw_replay_map larger = {.slots = map->slots ? 2 * map->slots : SLOTS_FIRST,
                                   .count = map->count};

    larger.slot = calloc(larger.slots, sizeof(*larger.slot));
    if (larger.slot == NULL)
        return -1;
    for (uint64_t i = 0; i < map->slots; i++)
        if (map->slot[i].pointer != 0)
            put(&larger, &map->slot[i]);
    free(map->slot);
    *map = larger;
    return 0;
}

int cw_replay_map_put(struct cw_replay_map *map, const struct cw_replay_block *block)
{
    if (2 * (map->count + 1) > map->slots && grow(map) != 0)
        return -1;
    put(map, block);
    map->count++;
    return 0;
}

/* Entries after the empty slot may have been displaced by it: moves them back. */
static void close_gap(struct cw_replay_map *map, uint64_t gap)
{
    uint64_t mask = map->slots - 1;

    for (uint64_t at = (gap + 1) & mask; map->slot[at].pointer != 0; at = (at + 1) & mask) {
        uint64_t home = home_of(map, map->slot[at].pointer);

        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        map->slot[gap] = map->slot[at];
        gap = at;
    }
    map->slot[gap].pointer = 0;
}

int cw_replay_map_take(struct cw_replay_map *map, uint64_t pointer, struct cw_replay_block *out)
{
    uint64_t at;

    if (map->slots == 0 || pointer == 0)
        return 0;
    for (at = home_of(map, pointer); map->slot[at].pointer != pointer;
         at = (at + 1) & (map->slots - 1))
        if (map->slot[at].pointer == 0)
            return 0;
    *out = map->slot[at];
    close_gap(map, at);
    map->count--;
    return 1;
}

void cw_replay_map_destroy(struct cw_replay_map *map)
{
    free(map->slot);
    *map = (struct cw_replay_map){0};
}
