/* SPDX-License-Identifier: MIT */
/*
 * The map from a 64-bit key, on uthash.
 *
 * Owns nothing beyond the tables that uthash takes from cw_mem; the owner of a map guards it. An
 * entry's reserved words are uthash's handle while the entry is in a map. An insertion that finds
 * no memory leaves the map as it was.
 */
#include "base/map.h"

#include "base/mem.h"

/* Keys are handles and addresses: their low bits say little, so all 64 are mixed (splitmix64). */
static unsigned hash_key(const void *keyptr)
{
    uint64_t key = *(const uint64_t *)keyptr;

    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)(key ^ (key >> 31));
}

static int is_same_key(const void *a, const void *b)
{
    return *(const uint64_t *)a == *(const uint64_t *)b;
}

#define HASH_NONFATAL_OOM                    1
#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = hash_key(keyptr))
#define HASH_KEYCMP(a, b, len)               (!is_same_key((a), (b)))
#define uthash_malloc(size)                  cw_mem_alloc(size)
#define uthash_free(ptr, size)               cw_mem_free((ptr), (size))
#define uthash_nonfatal_oom(entry)           (oom = 1)
#include <uthash.h>

/* What an entry looks like to uthash. may_alias: callers see the same bytes as a cw_map_entry. */
struct node {
    uint64_t key;
    UT_hash_handle hh;
} __attribute__((may_alias));

_Static_assert(sizeof(struct node) <= sizeof(struct cw_map_entry), "uthash's handle must fit");

static struct node *head_of(const struct cw_map *map)
{
    return (struct node *)map->head;
}

int cw_map_insert(struct cw_map *map, struct cw_map_entry *entry, uint64_t key)
{
    struct node *head = head_of(map);
    struct node *node = (struct node *)entry;
    int oom = 0;

    node->key = key;
    HASH_ADD(hh, head, key, sizeof(node->key), node);
    map->head = (struct cw_map_entry *)head;
    if (oom)
        map->failed = 1;
    return oom ? -1 : 0;
}

struct cw_map_entry *cw_map_find(const struct cw_map *map, uint64_t key)
{
    struct node *head = head_of(map);
    struct node *found = NULL;

    HASH_FIND(hh, head, &key, sizeof(key), found);
    return (struct cw_map_entry *)found;
}

void cw_map_remove(struct cw_map *map, struct cw_map_entry *entry)
{
    struct node *head = head_of(map);
    struct node *node = (struct node *)entry;

    HASH_DELETE(hh, head, node);
    map->head = (struct cw_map_entry *)head;
}

size_t cw_map_count(const struct cw_map *map)
{
    return HASH_COUNT(head_of(map));
}

void cw_map_visit(struct cw_map *map, void (*visit)(struct cw_map_entry *entry, void *arg),
                  void *arg)
{
    struct node *next;

    for (struct node *node = head_of(map); node; node = next) {
        next = node->hh.next;
        visit((struct cw_map_entry *)node, arg);
    }
}

void cw_map_clear(struct cw_map *map)
{
    struct node *head = head_of(map);

    HASH_CLEAR(hh, head);
    map->head = (struct cw_map_entry *)head;
}
