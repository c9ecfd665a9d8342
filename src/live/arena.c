/* SPDX-License-Identifier: MIT */
/*
 * Growth of the live layout. See arena.h for the contract.
 *
 * `size` is the end of the last chunk; chunks are cut off there one after the other, so a
 * file that backs the arena only ever grows. A chunk's memory is there as a whole, and costs
 * nothing until it is touched; the file's room is taken step by step, before a record is given out.
 * Everything in this file that writes a table runs under arena->lock; readers (view.c,
 * cw_arena_at) take none, because a count or a chunk offset is stored (release) only when what it
 * names is complete. The header's copy of both is written after ours and never read here.
 */
#include "live/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/round.h"

#define COMMIT_STEP (1u << 20)
#define MIN_RESERVE (16u << 20)
#define CHUNK_ALIGN 64u

#define FIXED 2 /* runs of bytes in a record */

/* From the first field to the one before `end`. */
#define RUN(type, field, end)                                                                      \
    {                                                                                              \
        offsetof(struct type, field), offsetof(struct type, end) - offsetof(struct type, field)    \
    }

static const struct {
    uint32_t elem_size;
    uint32_t first;                       /* a power of two */
    enum { SHARED, TWICE, PRIVATE } kind; /* see arena.h */
    struct {
        uint32_t at, size;
    } fixed[FIXED]; /* of TWICE: what is written twice */
} table_shapes[CW_TABLE_COUNT] = {
    [CW_TABLE_TEXT] = {1, 1u << 16, PRIVATE},
    [CW_TABLE_MODULE] = {sizeof(struct cw_live_module), 64, PRIVATE},
    [CW_TABLE_FRAME] = {sizeof(struct cw_live_frame), 4096, PRIVATE},
    [CW_TABLE_SITE] = {sizeof(struct cw_live_site),
                       CW_SITES_FIRST,
                       TWICE,
                       {RUN(cw_live_site, stack, first_ns), RUN(cw_live_site, tag, was_dropped)}},
    [CW_TABLE_BLOCK] = {sizeof(struct cw_live_block), CW_BLOCKS_FIRST, PRIVATE},
    [CW_TABLE_CONTEXT] = {sizeof(struct cw_live_context), 16, PRIVATE},
    [CW_TABLE_EVENT] = {sizeof(struct cw_live_event), 64},
    [CW_TABLE_BUCKET] = {sizeof(struct cw_live_bucket),
                         256,
                         TWICE,
                         {RUN(cw_live_bucket, size, hits),
                          RUN(cw_live_bucket, asked_bytes, misses)}},
    [CW_TABLE_OOM] = {sizeof(struct cw_live_oom), 16},
    [CW_TABLE_CODE] = {sizeof(struct cw_live_code), 256, PRIVATE},
    [CW_TABLE_TAG] = {sizeof(struct cw_live_tag), 64, TWICE, {RUN(cw_live_tag, name, budget)}},
    [CW_TABLE_SERIES] = {sizeof(struct cw_live_series), 64},
    [CW_TABLE_TIMELINE] = {sizeof(struct cw_live_timeline), 2},
    [CW_TABLE_REGROWTH] = {sizeof(struct cw_live_regrowth), 64},
    [CW_TABLE_OWNER] = {sizeof(struct cw_live_owner), CW_BLOCKS_FIRST, PRIVATE},
};

_Alignas(64) unsigned char cw_arena_nowhere[CW_ELEM_MAX];

static int commit(struct cw_arena *arena, size_t end)
{
    size_t target = cw_round_up(end, COMMIT_STEP);

    if (end <= arena->committed)
        return 0;
    if (target > arena->reserved)
        return -1;
    if (mprotect((char *)arena->header + arena->committed, target - arena->committed,
                 PROT_READ | PROT_WRITE) != 0)
        return -1;
    arena->committed = target;
    return 0;
}

/* An empty layout, in private memory and for readers. */
static void describe(struct cw_arena *arena)
{
    struct cw_live_header *header = arena->header;

    arena->size = sizeof(*header);
    memset(arena->table, 0, sizeof(arena->table));
    for (int i = 0; i < CW_TABLE_COUNT; i++) {
        arena->table[i].elem_size = table_shapes[i].elem_size;
        arena->table[i].first = table_shapes[i].first;
        arena->own_of[i] = table_shapes[i].kind == PRIVATE ? arena->own : 0;
        atomic_store(&arena->table[i].count, 1);
    }
    memcpy(header->table, arena->table, sizeof(header->table));
    header->magic = CW_LIVE_MAGIC;
    header->version = CW_LIVE_VERSION;
    header->header_size = sizeof(*header);
    atomic_store(&header->size, arena->size);
}

int cw_arena_create(struct cw_arena *arena, size_t reserve)
{
    void *base = MAP_FAILED;

    while (base == MAP_FAILED && reserve >= MIN_RESERVE) {
        base = mmap(NULL, reserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED)
            reserve /= 2;
    }
    if (base == MAP_FAILED)
        return -1;

    arena->header = base;
    arena->reserved = reserve;
    arena->own = 0;
    arena->committed = 0;
    arena->backing = (struct cw_backing){.fd = -1};
    memset(arena->chunk, 0, sizeof(arena->chunk));
    cw_lock_init(&arena->lock, CW_RANK_ARENA);
    if (commit(arena, sizeof(struct cw_live_header)) != 0) {
        int saved = errno;

        cw_arena_destroy(arena);
        errno = saved;
        return -1;
    }

    describe(arena);
    return 0;
}

/* A second range, where each private record is as far into it as its copy is into the first. */
static int reserve_private(struct cw_arena *arena)
{
    char *first = (char *)arena->header;

    for (size_t size = arena->reserved; size >= MIN_RESERVE; size /= 2) {
        void *base;

        if (size < arena->reserved)
            munmap(first + size, arena->reserved - size);
        arena->reserved = size;
        base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base != MAP_FAILED) {
            arena->own = (char *)base - first;
            return 0;
        }
    }
    return -1;
}

static void release_private(struct cw_arena *arena)
{
    int saved = errno;

    if (arena->own != 0)
        munmap((char *)arena->header + arena->own, arena->reserved);
    arena->own = 0;
    errno = saved;
}

/* Private memory from an offset on, beside the range in the file. */
static int commit_private(const struct cw_arena *arena, uint64_t offset, uint64_t bytes)
{
    uint64_t start = offset & ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1);

    return mprotect((char *)arena->header + arena->own + start, offset + bytes - start,
                    PROT_READ | PROT_WRITE);
}

int cw_arena_back(struct cw_arena *arena, const struct cw_live_dir *place)
{
    int rc = reserve_private(arena);

    if (rc == 0)
        rc = commit_private(arena, 0, sizeof(*arena->header));
    if (rc == 0)
        rc = cw_backing_create(&arena->backing, arena->header, place);
    if (rc != 0)
        release_private(arena);

    /* Pages of the file have replaced the memory, some of them even if the call failed later. */
    describe(arena);
    return rc;
}

void cw_arena_destroy(struct cw_arena *arena)
{
    if (arena->header != NULL) {
        release_private(arena);
        munmap(arena->header, arena->reserved);
        cw_backing_forget(&arena->backing);
    }
    arena->header = NULL;
    arena->reserved = 0;
    arena->committed = 0;
}

static unsigned chunk_of(const struct cw_live_table *table, uint64_t index)
{
    uint64_t slot = index + table->first;

    return (unsigned)(__builtin_clzll(table->first) - __builtin_clzll(slot));
}

/* One past the last index that chunk k holds. */
static uint64_t chunk_end(const struct cw_live_table *table, unsigned k)
{
    return ((uint64_t)table->first << (k + 1)) - table->first;
}

static int add_chunk_locked(struct cw_arena *arena, struct cw_live_table *table, unsigned k)
{
    ptrdiff_t which = table - arena->table;
    struct cw_live_table *shown = &arena->header->table[which];
    uint64_t offset = cw_round_up(arena->size, CHUNK_ALIGN);
    uint64_t bytes = ((uint64_t)table->first << k) * table->elem_size;

    if (k >= CW_CHUNKS || commit(arena, offset + bytes) != 0 ||
        (table_shapes[which].kind != SHARED && arena->own != 0 &&
         commit_private(arena, offset, bytes) != 0))
        return -1;
    arena->size = offset + bytes;
    atomic_store_explicit(&arena->chunk[which][k],
                          (uintptr_t)arena->header + (uintptr_t)arena->own_of[which] + offset -
                              bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&table->chunk[k], offset, memory_order_release);
    table->chunks = k + 1;
    atomic_store_explicit(&arena->header->size, arena->size, memory_order_release);
    atomic_store_explicit(&shown->chunk[k], offset, memory_order_release);
    shown->chunks = k + 1;
    return 0;
}

static void say_why(const struct cw_backing *backing, int error)
{
    if (error != EMFILE && error != ENFILE)
        cw_log(CW_LOG_WARN,
               "the live file '%s' cannot grow: %s (errno %d); what comes from now on is lost if "
               "the process dies; CUWARDEN_LIVE=DIRECTORY puts it elsewhere",
               backing->path, cw_reason(error > 0 ? error : ENOMEM), error > 0 ? error : ENOMEM);
    else if (backing->missed == 1)
        cw_log(CW_LOG_WARN,
               "the live file '%s' misses some records: %s (errno %d); it grows again when one is "
               "free, what was missed is lost if the process dies; 'ulimit -n' allows more",
               backing->path, cw_reason(error), error);
}

/* Before the bytes are written: the file takes them, as long as it can. */
static int reach_locked(struct cw_arena *arena, uint64_t from, uint64_t to)
{
    int error = cw_backing_reach(&arena->backing, arena->header, from, to);

    if (error == 0)
        return 0;
    atomic_store(&arena->header->cut, 1);
    say_why(&arena->backing, error);
    return error > 0 ? 0 : -1;
}

/* Takes n records that lie in one chunk; the first index, or 0. Skips a chunk's tail that is too
 * short. */
static uint32_t take_locked(struct cw_arena *arena, struct cw_live_table *table, uint64_t n)
{
    uint64_t index = atomic_load_explicit(&table->count, memory_order_relaxed);
    unsigned k = chunk_of(table, index);
    uint64_t start;

    while (index + n > chunk_end(table, k)) {
        index = chunk_end(table, k);
        k++;
        if (k >= CW_CHUNKS)
            return 0;
    }
    if (index + n >= UINT32_MAX - table->first)
        return 0;
    while (table->chunks <= k)
        if (add_chunk_locked(arena, table, table->chunks) != 0)
            return 0;
    start =
        table->chunk[k] + (index + table->first - ((uint64_t)table->first << k)) * table->elem_size;
    return reach_locked(arena, start, start + n * table->elem_size) == 0 ? (uint32_t)index : 0;
}

static void set_count_locked(struct cw_arena *arena, enum cw_table which, uint32_t count)
{
    atomic_store_explicit(&arena->table[which].count, count, memory_order_release);
    atomic_store_explicit(&arena->header->table[which].count, count, memory_order_release);
}

uint32_t cw_arena_append_group(struct cw_arena *arena, enum cw_table which, uint32_t group,
                               uint32_t *out_count)
{
    struct cw_live_table *table = &arena->table[which];
    uint32_t count, index;

    cw_lock_acquire(&arena->lock);
    count = group - atomic_load_explicit(&table->count, memory_order_relaxed) % group;
    index = take_locked(arena, table, count);
    if (index != 0) {
        set_count_locked(arena, which, index + count);
        *out_count = count;
    }
    cw_lock_release(&arena->lock);
    return index;
}

uint32_t cw_arena_append(struct cw_arena *arena, enum cw_table which)
{
    uint32_t count;

    return cw_arena_append_group(arena, which, 1, &count);
}

uint32_t cw_arena_text(struct cw_arena *arena, const char *s, size_t len)
{
    struct cw_live_table *table = &arena->table[CW_TABLE_TEXT];
    uint32_t index;
    char *at;

    cw_lock_acquire(&arena->lock);
    index = take_locked(arena, table, len + 1);
    if (index != 0) {
        at = (char *)arena->chunk[CW_TABLE_TEXT][chunk_of(table, index)] + index + table->first;
        memcpy(at, s, len);
        at[len] = '\0';
        cw_arena_show(arena, at, len + 1);
        set_count_locked(arena, CW_TABLE_TEXT, index + (uint32_t)len + 1);
    }
    cw_lock_release(&arena->lock);
    return index;
}

const char *cw_arena_text_at(const struct cw_arena *arena, uint32_t text)
{
    return text != 0 && text < cw_arena_count(arena, CW_TABLE_TEXT)
               ? cw_arena_at(arena, CW_TABLE_TEXT, text)
               : "";
}

void cw_arena_view(const struct cw_arena *arena, struct cw_view *out_view)
{
    out_view->base = (const char *)arena->header;
    out_view->size = arena->header ? arena->committed : 0;
    out_view->table = arena->table;
    out_view->own = arena->own_of;
    out_view->self = arena->header ? cw_arena_own(arena, arena->header) : NULL;
}

/* ---- a copy for a report ---- */

/* What records have in private memory. */
static void copy_fixed(const struct cw_arena *arena, enum cw_table which, char *to,
                       const char *shown, uint64_t records)
{
    const char *own = cw_arena_own(arena, shown);
    size_t size = table_shapes[which].elem_size;

    for (uint64_t i = 0; i < records; i++)
        for (int run = 0; run < FIXED; run++) {
            size_t at = i * size + table_shapes[which].fixed[run].at;

            memcpy(to + at, own + at, table_shapes[which].fixed[run].size);
        }
}

/* The records in use, chunk by chunk: what was never touched costs nothing. */
static void copy_table(const struct cw_arena *arena, enum cw_table which, char *to, size_t size)
{
    const struct cw_live_table *table = &arena->table[which];
    const char *from = (const char *)arena->header;
    uint64_t count = atomic_load_explicit(&table->count, memory_order_acquire);

    for (unsigned k = 0; k < CW_CHUNKS && ((uint64_t)table->first << k) - table->first < count;
         k++) {
        uint64_t at = atomic_load_explicit(&table->chunk[k], memory_order_acquire);
        uint64_t records = count - (((uint64_t)table->first << k) - table->first), bytes;

        if (records > (uint64_t)table->first << k)
            records = (uint64_t)table->first << k;
        bytes = records * table->elem_size;
        if (at == 0 || at > size || bytes > size - at)
            continue;
        memcpy(to + at, from + at + arena->own_of[which], bytes);
        if (table_shapes[which].kind == TWICE)
            copy_fixed(arena, which, to + at, from + at, records);
    }
}

int cw_arena_copy_begin(const struct cw_arena *arena, struct cw_arena_copy *out)
{
    void *memory;

    *out = (struct cw_arena_copy){.memory = NULL};
    cw_arena_view(arena, &out->view);
    out->size = out->view.size;
    if (arena->own == 0)
        return 0;
    memory = mmap(NULL, out->size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    memcpy(memory, arena->header, sizeof(*arena->header));
    for (int i = 0; i < CW_TABLE_COUNT; i++)
        copy_table(arena, (enum cw_table)i, memory, out->size);
    out->memory = memory;
    out->view.base = memory;
    out->view.own = NULL;
    return 0;
}

void cw_arena_copy_end(struct cw_arena_copy *copy)
{
    if (copy->memory != NULL)
        munmap(copy->memory, copy->size);
    copy->memory = NULL;
}
