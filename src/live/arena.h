/* SPDX-License-Identifier: MIT */
/*
 * The arena: the writer's side of the live layout (live/layout.h).
 *
 * Owns the reserved address range and the growth of its tables; guarded by one lock (CW_RANK_ARENA)
 * for growth only. Records never move, so a pointer to one stays good until cw_arena_destroy. When
 * the system refuses more memory the appending calls return 0 ("none") and the caller degrades.
 *
 * A file may lie behind it (backing.h). When that cannot grow any further the arena goes on in
 * memory, with one warning, and header->cut tells readers of the file: refusing records instead
 * would take from the report that the process itself writes, which is the one that most get.
 */
#ifndef CW_LIVE_ARENA_H
#define CW_LIVE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "live/backing.h"
#include "live/layout.h"
#include "live/view.h"

struct cw_arena {
    struct cw_live_header *header; /* NULL: not created */
    size_t reserved;               /* bytes of address space */
    _Atomic size_t committed;      /* bytes that may be touched; written under the lock */
    struct cw_lock lock;           /* CW_RANK_ARENA: growth, append */
    struct cw_backing backing;     /* under the lock */
    /* Where record 0 of a chunk would lie if the chunk began with slot 0, so that a record is found
     * by one load and one shift. Written under the lock, before any index of the chunk is known. */
    _Atomic uintptr_t chunk[CW_TABLE_COUNT][CW_CHUNKS];
};

/* Reserves address space (as much of `reserve` as the system gives, halving down to 16 MiB) and
 * makes an empty layout. 0, or -1 with errno. */
int cw_arena_create(struct cw_arena *arena, size_t reserve);
/* Unmaps the file, if there is one, and the memory; the file stays. */
void cw_arena_destroy(struct cw_arena *arena);

/* Puts a file behind a new, still unused arena. 0, or -1 with errno: it stays in memory. */
int cw_arena_back(struct cw_arena *arena, const struct cw_live_dir *place);

/* Appends a zeroed record that readers do not see as named yet; its index, or 0 when full. */
uint32_t cw_arena_append(struct cw_arena *arena, enum cw_table table);
/* Record of an index that cw_arena_append returned. Hot: no check. */
static inline void *cw_arena_at(const struct cw_arena *arena, enum cw_table table, uint32_t index);
/* Copies a string of len bytes plus NUL into the text table; its index, or 0 when full. Not
 * deduplicated. */
uint32_t cw_arena_text(struct cw_arena *arena, const char *s, size_t len);

void cw_arena_view(const struct cw_arena *arena, struct cw_view *out_view);

/* Records in the first chunk of the tables that every call goes to; powers of two. */
#define CW_SITES_FIRST  256u
#define CW_BLOCKS_FIRST 1024u

static inline void *cw_arena_at(const struct cw_arena *arena, enum cw_table table, uint32_t index)
{
    const struct cw_live_table *t = &arena->header->table[table];
    uint32_t slot = index + t->first; /* chunk k covers slots [first << k, first << (k + 1)) */
    unsigned k = (unsigned)(__builtin_clz(t->first) - __builtin_clz(slot));
    uint32_t within = slot - (t->first << k);

    return (char *)arena->header + t->chunk[k] + (size_t)within * t->elem_size;
}

/* The same for a table whose shape the compiler knows. */
static inline void *cw_arena_at_shape(const struct cw_arena *arena, enum cw_table table,
                                      uint32_t first, size_t elem_size, uint32_t index)
{
    uint32_t slot = index + first;
    unsigned k = (31u - (unsigned)__builtin_clz(slot)) - (31u - (unsigned)__builtin_clz(first));

    return (char *)atomic_load_explicit(&arena->chunk[table][k], memory_order_relaxed) +
           (size_t)slot * elem_size;
}

#endif
