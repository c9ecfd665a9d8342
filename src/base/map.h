/* SPDX-License-Identifier: MIT */
/*
 * A map from a 64-bit key to a caller's structure, for cold paths (contexts, graphs, mappings).
 *
 * The only file that includes uthash.h. Intrusive: the entry structure begins with struct
 * cw_map_entry, so inserting needs no allocation for the entry itself (uthash's table comes from
 * cw_mem). Not locked: the owner guards it.
 */
#ifndef CW_BASE_MAP_H
#define CW_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct cw_map_entry {
    uint64_t key;
    uint64_t reserved[7]; /* room for uthash's handle; map.c asserts that it fits */
};

struct cw_map {
    struct cw_map_entry *head; /* NULL: empty */
    int failed;                /* an insertion found no memory */
};

/* The key must be new. Returns 0, or -1 without memory (the entry is not in the map then). */
int cw_map_insert(struct cw_map *map, struct cw_map_entry *entry, uint64_t key);
struct cw_map_entry *cw_map_find(const struct cw_map *map, uint64_t key);
void cw_map_remove(struct cw_map *map, struct cw_map_entry *entry);
size_t cw_map_count(const struct cw_map *map);
/* Calls visit for each entry, in no order; visit may remove and free the one that it was given. */
void cw_map_visit(struct cw_map *map, void (*visit)(struct cw_map_entry *entry, void *arg),
                  void *arg);
/* Drops the table without touching the entries. */
void cw_map_clear(struct cw_map *map);

#endif
