/* SPDX-License-Identifier: MIT */
/* Address space: arenas of host memory that play device memory, and the tree of known ranges.
 *
 * Each device has one arena, a memfd mapped once so that other processes can map the same bytes;
 * one more serves pinned and managed memory. An arena hands out exact-size free ranges, newest
 * first, so addresses come back as promptly as a real allocator's do; fresh ranges are cut from the
 * top, and when that is used up neighbouring free ranges are merged and the largest is the next
 * top.
 *
 * Always true, under sim.lock: ranges in the tree never overlap; a range in a bin is SIM_FREE.
 */
#include "sim.h"
#include "sim_observe.h"
#include "sim_units.h"

#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NBINS     4096
#define GIVE_BACK ((size_t)1 << 20) /* smaller freed ranges keep their pages */
#define MIN_SPAN  ((size_t)16 << 30)
#define HOST_SPAN ((size_t)64 << 30)
/* Addresses of a device, in times its memory. */
#define MANY_TIMES 64
#define FEW_TIMES  4
#define TOP_TIMES  256 /* blocks of the size that is asked for now, in a new top */

static void *tree;
static struct sim_arena arenas[SIM_MAX_DEVICES + 1];

size_t sim_round(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static int compare(const void *left, const void *right)
{
    const struct sim_block *a = left, *b = right;

    if (a->start + a->span <= b->start)
        return -1;
    return a->start >= b->start + b->span;
}

struct sim_block *sim_block_find(uintptr_t address)
{
    struct sim_block key = {.start = address, .span = 1};
    struct sim_block **found = tfind(&key, &tree, compare);

    return found ? *found : NULL;
}

struct sim_block *sim_block_live(uintptr_t address)
{
    struct sim_block *block = sim_block_find(address);

    return block && (block->state == SIM_LIVE || block->state == SIM_FREEING) ? block : NULL;
}

struct sim_block *sim_block_base(uintptr_t address)
{
    struct sim_block *block = sim_block_find(address);

    return block && block->state == SIM_LIVE && block->start == address ? block : NULL;
}

/* ---- arenas ---- */

int sim_memory_file(size_t bytes)
{
    int fd = memfd_create("cusim", MFD_CLOEXEC);

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Where address space is limited less has to do. */
static size_t arena_span(int device, unsigned times)
{
    size_t span;

    if (device < 0)
        return HOST_SPAN;
    span = sim.config.memory[device] * times;
    return span < MIN_SPAN ? MIN_SPAN : sim_round(span, (size_t)1 << 30);
}

static bool map_span(struct sim_arena *arena, size_t span)
{
    void *base;

    arena->fd = sim_memory_file(span);
    if (arena->fd < 0)
        return false;
    base = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, arena->fd, 0);
    if (base == MAP_FAILED) {
        close(arena->fd);
        return false;
    }
    madvise(base, span, MADV_DONTDUMP);
    arena->base = (uintptr_t)base;
    arena->span = arena->end = span;
    return true;
}

static bool map_arena(struct sim_arena *arena, int device)
{
    arena->device = device;
    arena->bins = calloc(NBINS, sizeof *arena->bins);
    return arena->bins && (map_span(arena, arena_span(device, MANY_TIMES)) ||
                           map_span(arena, arena_span(device, FEW_TIMES)));
}

static struct sim_arena *arena_of(int device)
{
    struct sim_arena *arena = &arenas[device < 0 ? SIM_MAX_DEVICES : device];

    if (!arena->base && !map_arena(arena, device))
        return NULL;
    return arena;
}

static struct sim_block **bin_of(struct sim_arena *arena, size_t span)
{
    return &arena->bins[(span / SIM_UNIT * 0x9E3779B97F4A7C15u) >> 52];
}

static void bin_push(struct sim_arena *arena, struct sim_block *block)
{
    struct sim_block **bin = bin_of(arena, block->span);

    block->next = *bin;
    *bin = block;
}

static struct sim_block *bin_pop(struct sim_arena *arena, size_t span)
{
    for (struct sim_block **at = bin_of(arena, span); *at; at = &(*at)->next) {
        struct sim_block *block = *at;

        if (block->span == span) {
            *at = block->next;
            return block;
        }
    }
    return NULL;
}

static struct sim_block *cut_from_top(struct sim_arena *arena, size_t span)
{
    struct sim_block *block;

    if (span > arena->end - arena->top)
        return NULL;
    block = calloc(1, sizeof *block);
    if (!block)
        return NULL;
    block->start = arena->base + arena->top;
    block->span = span;
    block->arena = arena;
    arena->top += span;
    tsearch(block, &tree, compare);
    return block;
}

struct gathering {
    struct sim_arena *arena;
    struct sim_block **blocks;
    size_t n, room;
};

static void gather_free(const void *node, VISIT order, void *argument)
{
    struct sim_block *block = *(struct sim_block *const *)node;
    struct gathering *all = argument;

    if ((order != postorder && order != leaf) || block->state != SIM_FREE)
        return;
    if (block->arena != all->arena)
        return;
    if (all->n == all->room) {
        size_t room = all->room ? 2 * all->room : 1024;
        struct sim_block **grown = realloc(all->blocks, room * sizeof *grown);

        if (!grown)
            return;
        all->blocks = grown;
        all->room = room;
    }
    all->blocks[all->n++] = block;
}

/* Merges neighbouring free ranges. The walk is in address order, so one pass does. */
static void merge_free(struct sim_arena *arena)
{
    struct gathering all = {.arena = arena};
    struct sim_block *last = NULL;

    twalk_r(tree, gather_free, &all);
    memset(arena->bins, 0, NBINS * sizeof *arena->bins);
    for (size_t i = 0; i < all.n; i++) {
        struct sim_block *block = all.blocks[i];

        if (last && last->start + last->span == block->start) {
            tdelete(block, &tree, compare);
            last->span += block->span;
            free(block);
        } else {
            if (last)
                bin_push(arena, last);
            last = block;
        }
    }
    if (last)
        bin_push(arena, last);
    free(all.blocks);
}

/* The smallest free range that holds so much; if there is none, the largest. */
static struct sim_block *pop_best(struct sim_arena *arena, size_t wanted)
{
    struct sim_block **best = NULL, *block;

    for (unsigned i = 0; i < NBINS; i++)
        for (struct sim_block **at = &arena->bins[i]; *at; at = &(*at)->next)
            if (!best ||
                ((*best)->span < wanted ? (*at)->span > (*best)->span
                                        : (*at)->span >= wanted && (*at)->span < (*best)->span))
                best = at;
    if (!best)
        return NULL;
    block = *best;
    *best = block->next;
    return block;
}

/* What is left of the old top is a free range like others. */
static void renew_top(struct sim_arena *arena, size_t span)
{
    struct sim_block *block;

    if (arena->end > arena->top)
        cut_from_top(arena, arena->end - arena->top);
    merge_free(arena);
    block = pop_best(arena, span * TOP_TIMES);
    if (!block)
        return;
    tdelete(block, &tree, compare);
    arena->top = block->start - arena->base;
    arena->end = arena->top + block->span;
    free(block);
}

static struct sim_block *take_range(struct sim_arena *arena, size_t span)
{
    struct sim_block *block = bin_pop(arena, span);

    if (!block)
        block = cut_from_top(arena, span);
    if (!block) {
        renew_top(arena, span);
        block = cut_from_top(arena, span);
    }
    return block;
}

/* ---- blocks ---- */

void sim_block_count(struct sim_block *block, int sign)
{
    struct cusim_event event = {.kind = (enum cusim_kind)block->kind,
                                .is_free = sign < 0,
                                .device = block->device,
                                .address = block->start,
                                .bytes = block->size};

    sim_live_bytes_add(block->kind, block->device, sign * (int64_t)block->size, sign);
    if (block->kind != SIM_MEM_GLOBAL)
        sim_observe(&event);
}

static void reset_block(struct sim_block *block)
{
    struct sim_block fresh = {
        .start = block->start,
        .span = block->span,
        .arena = block->arena,
        .is_touched = block->is_touched,
        .id = ++sim.next_id,
    };

    *block = fresh;
}

static bool charge(enum sim_kind kind, int device, size_t span)
{
    return kind == SIM_MEM_DEVICE ? sim_units_charge(device, span)
                                  : sim_device_charge(device, span);
}

static void discharge(enum sim_kind kind, int device, size_t span)
{
    if (kind == SIM_MEM_DEVICE)
        sim_units_discharge(device, span);
    else
        sim_device_discharge(device, span);
}

struct sim_block *sim_block_create(enum sim_kind kind, int device, size_t size, bool is_charged)
{
    size_t span = sim_round(size ? size : 1, SIM_UNIT);
    bool is_on_device = kind != SIM_MEM_HOST && kind != SIM_MEM_MANAGED;
    struct sim_arena *arena;
    struct sim_block *block;

    if (span < size || (is_charged && !charge(kind, device, span)))
        return NULL;
    arena = arena_of(is_on_device ? device : -1);
    block = arena ? take_range(arena, span) : NULL;
    if (!block) {
        if (is_charged)
            discharge(kind, device, span);
        return NULL;
    }
    reset_block(block);
    block->kind = kind;
    block->state = SIM_LIVE;
    block->device = kind == SIM_MEM_HOST ? -1 : device;
    block->size = size;
    block->charged = is_charged ? span : 0;
    block->device_address = block->start;
    block->preferred = CUSIM_NOWHERE;
    sim_block_count(block, 1);
    return block;
}

static void give_pages_back(struct sim_block *block)
{
    uintptr_t first = sim_round(block->start, 4096), end = (block->start + block->span) & ~4095ul;

    if (end > first)
        madvise((void *)first, end - first, MADV_REMOVE);
    block->is_touched = false;
}

void sim_block_destroy(struct sim_block *block)
{
    bool is_of_host = block->kind == SIM_MEM_HOST || block->kind == SIM_MEM_MANAGED;

    if (block->state != SIM_CACHED && block->state != SIM_IDLE)
        sim_block_count(block, -1);
    if (block->charged)
        discharge(block->kind, block->device, block->charged);
    sim_op_unref(block->free_op);
    sim_op_unref(block->alloc_op);
    if (block->span >= GIVE_BACK && (block->is_touched || is_of_host))
        give_pages_back(block);
    block->free_op = block->alloc_op = NULL;
    block->charged = 0;
    block->ctx = NULL;
    block->pool = NULL;
    block->state = SIM_FREE;
    bin_push(block->arena, block);
}

struct sim_block *sim_block_insert(enum sim_kind kind, uintptr_t start, size_t span)
{
    struct sim_block *block = calloc(1, sizeof *block);
    struct sim_block **found;

    if (!block)
        return NULL;
    block->start = start;
    block->span = block->size = span;
    block->kind = kind;
    block->state = SIM_LIVE;
    block->device = -1;
    block->device_address = start;
    block->id = ++sim.next_id;
    found = tsearch(block, &tree, compare);
    if (!found || *found != block) { /* it overlaps something known */
        free(block);
        return NULL;
    }
    return block;
}

void sim_block_remove(struct sim_block *block)
{
    tdelete(block, &tree, compare);
    sim_op_unref(block->free_op);
    sim_op_unref(block->alloc_op);
    free(block);
}

struct collection {
    struct sim_block **blocks;
    size_t n, room;
};

static void collect(const void *node, VISIT order, void *argument)
{
    struct collection *all = argument;

    if (order != postorder && order != leaf)
        return;
    if (all->n == all->room) {
        size_t room = all->room ? 2 * all->room : 1024;
        struct sim_block **grown = realloc(all->blocks, room * sizeof *grown);

        if (!grown)
            return;
        all->blocks = grown;
        all->room = room;
    }
    all->blocks[all->n++] = *(struct sim_block *const *)node;
}

/* The visitor may remove blocks, hence the copy of the tree. */
void sim_block_visit(void (*visit)(struct sim_block *, void *), void *argument)
{
    struct collection all = {0};

    twalk_r(tree, collect, &all);
    for (size_t i = 0; i < all.n; i++)
        if (all.blocks[i]->state == SIM_LIVE || all.blocks[i]->state == SIM_FREEING)
            visit(all.blocks[i], argument);
    free(all.blocks);
}

void sim_block_own(struct sim_block *block, struct sim_context *ctx)
{
    block->ctx = ctx;
    block->ctx_id = ctx ? ctx->head.id : 0;
}

/* ---- misuse ---- */

CUresult sim_block_refuse(uintptr_t address, const char *what)
{
    struct sim_block *block = sim_block_find(address);

    if (block && block->start == address && block->state != SIM_LIVE)
        sim_misuse("double_free", "%s of %#zx, which is already free", what, (size_t)address);
    else if (block && block->start == address)
        sim_misuse("wrong_free", "%s of %#zx, which is of another kind", what, (size_t)address);
    else if (block)
        sim_misuse("unknown_free", "%s of %#zx, which lies inside a block", what, (size_t)address);
    else
        sim_misuse("unknown_free", "%s of %#zx, which no call returned", what, (size_t)address);
    return CUDA_ERROR_INVALID_VALUE;
}

/* Adjacent mappings of one reservation are as good as one block. */
static bool continues(uintptr_t address, size_t bytes)
{
    while (bytes > 0) {
        struct sim_block *block = sim_block_live(address);
        size_t here;

        if (!block || block->kind != SIM_MEM_MAPPING)
            return false;
        here = block->start + block->span - address;
        if (here >= bytes)
            return true;
        address += here;
        bytes -= here;
    }
    return true;
}

bool sim_range_is_live(uintptr_t address, size_t bytes, const char *what)
{
    struct sim_block *block = sim_block_find(address);
    const char *kind = "out_of_bounds";

    if (bytes == 0)
        return true;
    if (!block) {
        sim_misuse("wild_access", "%s of %zu bytes at %#zx, which is no memory", what, bytes,
                   (size_t)address);
        return false;
    }
    if (block->kind == SIM_MEM_MAPPING && !block->access) {
        sim_misuse("no_access", "%s of %#zx before cuMemSetAccess", what, (size_t)address);
        return false;
    }
    if (block->state == SIM_LIVE || block->state == SIM_FREEING) {
        block->is_touched = true;
        if (address + bytes <= block->start + block->size)
            return true;
        if (block->kind == SIM_MEM_MAPPING && continues(address, bytes))
            return true;
    } else {
        kind = "use_after_free";
    }
    sim_misuse(kind, "%s of %zu bytes at %#zx, offset %zu of a block of %zu", what, bytes,
               (size_t)address, (size_t)(address - block->start), block->size);
    return false;
}
