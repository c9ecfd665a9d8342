/* SPDX-License-Identifier: MIT */
/*
 * The arena: the writer's side of the live layout (live/layout.h).
 *
 * Owns the reserved address range and the growth of its tables; guarded by one lock (CW_RANK_ARENA)
 * for growth only. Records never move, so a pointer to one stays good until cw_arena_destroy. When
 * the system refuses more memory the appending calls return 0 ("none") and the caller degrades.
 *
 * The file may be written by anybody who may open it, so nothing in it is followed. Shapes, counts
 * and places of the tables are in `table`, in private memory, and the header has a copy for
 * readers. So has each record of the tables that the library acts upon or tells the program of
 * (PRIVATE: contexts, blocks, owners, and all that a stack is made of: frames, modules, codes,
 * texts): the record is in private memory, and whoever changes it shows it (cw_arena_show). Of a
 * site, a tag and the header the library acts upon what does not change, of a bucket upon some
 * counters, too: these are written twice, and other counters once (TWICE, cw_arena_own). All other
 * tables only count and describe; an index that was read from one is checked where it is used: one
 * that no table has given out names a record of its own that nothing reads (cw_arena_nowhere).
 *
 * Whoever reads in this process reads what is private: a view has private records and what the
 * process is, but sites and tags as the file has them; a copy for a report has these, too, with
 * counters from the file.
 *
 * A file may lie behind it (backing.h). When that cannot grow any further the arena goes on in
 * memory, with one warning, and header->cut tells readers of the file: refusing records instead
 * would take from the report that the process itself writes, which is the one that most get.
 */
#ifndef CW_LIVE_ARENA_H
#define CW_LIVE_ARENA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
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
    uint64_t size;                 /* bytes in use; under the lock */
    ptrdiff_t own;                 /* from the copy in the file to a private record; 0: no file */
    ptrdiff_t own_of[CW_TABLE_COUNT]; /* `own` of the tables whose records are all private, or 0 */
    /* Written under the lock; a count or a chunk when what it names is complete (release). */
    struct cw_live_table table[CW_TABLE_COUNT];
    /* Where record 0 of a chunk would lie if the chunk began with slot 0, so that a record is found
     * by one load and one shift. Written under the lock, before any index of the chunk is known. */
    _Atomic uintptr_t chunk[CW_TABLE_COUNT][CW_CHUNKS];
};

/* Shows readers a private record that the caller has changed. Two threads must not show one at a
 * time. */
static inline void cw_arena_show(const struct cw_arena *arena, const void *record, size_t size);

/* What an index that names no record stands for: the records of all tables fit into it, and what
 * lies in it means nothing. */
extern CW_HIDDEN unsigned char cw_arena_nowhere[];

/* Reserves address space (as much of `reserve` as the system gives, halving down to 16 MiB) and
 * makes an empty layout. 0, or -1 with errno. */
int cw_arena_create(struct cw_arena *arena, size_t reserve);
/* Unmaps the file, if there is one, and the memory; the file stays. */
void cw_arena_destroy(struct cw_arena *arena);

/* Puts a file behind a new, still unused arena, whose address space may shrink to make room for the
 * private records. 0, or -1 with errno: it stays in memory. */
int cw_arena_back(struct cw_arena *arena, const struct cw_live_dir *place);

/* Appends a zeroed record that readers do not see as named yet; its index, or 0 when full. */
uint32_t cw_arena_append(struct cw_arena *arena, enum cw_table table);
/* The same for the records up to the next index that is a multiple of `group`, a power of two.
 * *out_count: how many, from the index that it returns on; not set after 0. */
uint32_t cw_arena_append_group(struct cw_arena *arena, enum cw_table table, uint32_t group,
                               uint32_t *out_count);
/* Number of valid indexes + 1; loop with for (i = 1; i < count; i++). */
static inline uint32_t cw_arena_count(const struct cw_arena *arena, enum cw_table table)
{
    return atomic_load_explicit(&arena->table[table].count, memory_order_acquire);
}

static inline void cw_arena_show(const struct cw_arena *arena, const void *record, size_t size)
{
    if (arena->own != 0 && record != cw_arena_nowhere)
        memcpy((char *)record - arena->own, record, size);
}

/* What is private of a record that is there twice, or of the header. */
static inline void *cw_arena_own(const struct cw_arena *arena, const void *record)
{
    return (char *)(uintptr_t)record + arena->own;
}

/* The next record of a hash chain, which names the one before it: a chain ends, whatever was
 * written there. */
static inline uint32_t cw_arena_older(uint32_t index, uint32_t next)
{
    return next < index ? next : 0;
}

/* Record of an index; cw_arena_nowhere if there is none. */
static inline void *cw_arena_at(const struct cw_arena *arena, enum cw_table table, uint32_t index);
/* Copies a string of len bytes plus NUL into the text table; its index, or 0 when full. Not
 * deduplicated. */
uint32_t cw_arena_text(struct cw_arena *arena, const char *s, size_t len);
/* The string, from private memory; it never changes and lives as long as the arena. "" for 0; any
 * other index that no call gave has some string, or "". */
const char *cw_arena_text_at(const struct cw_arena *arena, uint32_t text);

void cw_arena_view(const struct cw_arena *arena, struct cw_view *out_view);

/* For a report: what the arena holds at this moment, in private memory if there is a file, because
 * a reader checks an index and then uses it, and others may write in between. Without a file it is
 * the arena itself. 0, or -1 without memory: it is the arena, with sites and tags as the file has
 * them. Any thread; no lock. */
struct cw_arena_copy {
    struct cw_view view;
    void *memory; /* NULL: none of its own */
    size_t size;
};
int cw_arena_copy_begin(const struct cw_arena *arena, struct cw_arena_copy *out);
void cw_arena_copy_end(struct cw_arena_copy *copy);

/* Records in the first chunk of the tables that every call goes to; powers of two. */
#define CW_SITES_FIRST  256u
#define CW_BLOCKS_FIRST 1024u

/* Record of a table whose shape the compiler knows, by an index that only private memory had. No
 * check. */
static inline void *cw_arena_at_shape(const struct cw_arena *arena, enum cw_table table,
                                      uint32_t first, size_t elem_size, uint32_t index)
{
    uint32_t slot = index + first; /* chunk k covers slots [first << k, first << (k + 1)) */
    unsigned k = (31u - (unsigned)__builtin_clz(slot)) - (31u - (unsigned)__builtin_clz(first));

    /* As a number: of index 0, which is no record's, there may be no chunk yet. */
    return (void *)((uintptr_t)atomic_load_explicit(&arena->chunk[table][k], memory_order_relaxed) +
                    (size_t)slot * elem_size);
}

static inline void *cw_arena_at(const struct cw_arena *arena, enum cw_table table, uint32_t index)
{
    const struct cw_live_table *t = &arena->table[table];

    if (CW_UNLIKELY(index >= atomic_load_explicit(&t->count, memory_order_relaxed)))
        return cw_arena_nowhere;
    return cw_arena_at_shape(arena, table, t->first, t->elem_size, index);
}

#endif
