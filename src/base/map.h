/* SPDX-License-Identifier: MIT */
/*
 * A map from a 64-bit key to a caller's structure, for cold paths (contexts, graphs, mappings).
 *
 * Intrusive: the entry structure begins with struct cw_map_entry, so inserting needs no allocation
 * for the entry itself (uthash's table comes from cw_mem). Not locked: the owner guards it.
 *
 * uthash serves here, and map.c alone includes it: a map of records that come and go, in the
 * library, is this one. It is not for
 * - sites, stacks, tags and modules: they lie in the live file, which other processes read, and are
 *   linked by index; uthash links by pointer;
 * - the index of blocks, the cache of walks and the table of hooks: they are looked at in every
 *   call, without a lock, and fit in lines of the processor's cache;
 * - the command's tables of texts, of nodes of a tree and of a trace's addresses: a million small
 *   entries that are only added, in one array; uthash would take 56 bytes more for each.
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
