/* SPDX-License-Identifier: MIT */
/*
 * Pages in a tree of runs, small blocks in slabs. See replay_memory.h.
 *
 * A node of the tree represents a range of pages and stores the free pages at both ends and the
 * longest run inside. A completely free or completely used node represents all below it: its
 * children are updated when they are visited. A first-fit search is one descent, a change two.
 */
#include "cli/replay/replay_memory.h"

#include <stdlib.h>
#include <string.h>

#define UNIT       UINT64_C(512)
#define SMALL_MOST (UINT64_C(1) << 20)
#define FINE_UNITS 8u /* sizes up to this many units have a class each, then four per doubling */
#define CLASSES    (FINE_UNITS + 4 * 8)
#define PAGE_UNITS (CW_REPLAY_PAGE / UNIT)
#define NONE       UINT32_MAX

struct node {
    uint32_t prefix, suffix, best;
};

struct slab {
    uint32_t page, next, previous; /* in the list of its class's slabs with free slots */
    uint16_t class, used;
    uint64_t taken[PAGE_UNITS / 64];
};

struct cw_replay_memory {
    uint64_t base;
    uint32_t pages, leaves, free_pages;
    struct node *node;
    uint32_t *run;     /* by first page: number of pages of a large block; 0: none begins here */
    uint32_t *slab_of; /* by page, NONE: no slab */
    struct slab *slab;
    uint32_t slabs, slab_room, free_slab; /* free records are linked through next */
    uint32_t first[CLASSES];
};

/* ---- pages ---- */

static void set_all(struct node *node, uint32_t pages, int is_free)
{
    node->prefix = node->suffix = node->best = is_free ? pages : 0;
}

static void push_down(struct node *node, uint32_t i, uint32_t pages)
{
    if (node[i].best != 0 && node[i].best != pages)
        return;
    set_all(&node[2 * i], pages / 2, node[i].best != 0);
    set_all(&node[2 * i + 1], pages / 2, node[i].best != 0);
}

static void pull_up(struct node *node, uint32_t i, uint32_t pages)
{
    const struct node *left = &node[2 * i], *right = &node[2 * i + 1];
    uint32_t middle = left->suffix + right->prefix;

    node[i].prefix = left->prefix == pages / 2 ? left->prefix + right->prefix : left->prefix;
    node[i].suffix = right->suffix == pages / 2 ? right->suffix + left->suffix : right->suffix;
    node[i].best = left->best > right->best ? left->best : right->best;
    if (middle > node[i].best)
        node[i].best = middle;
}

/* Pages from..to-1 of the node, which represents `pages` of them. */
static void assign(struct node *node, uint32_t i, uint32_t pages, uint32_t from, uint32_t to,
                   int is_free)
{
    uint32_t half = pages / 2;

    if (from == 0 && to == pages) {
        set_all(&node[i], pages, is_free);
        return;
    }
    push_down(node, i, pages);
    if (from < half)
        assign(node, 2 * i, half, from, to < half ? to : half, is_free);
    if (to > half)
        assign(node, 2 * i + 1, half, from > half ? from - half : 0, to - half, is_free);
    pull_up(node, i, pages);
}

static void set_pages(struct cw_replay_memory *memory, uint32_t from, uint32_t count, int is_free)
{
    assign(memory->node, 1, memory->leaves, from, from + count, is_free);
    if (is_free)
        memory->free_pages += count;
    else
        memory->free_pages -= count;
}

/* Takes the first run that is long enough and returns its first page, or NONE. */
static uint32_t take_pages(struct cw_replay_memory *memory, uint32_t count)
{
    struct node *node = memory->node;
    uint32_t i = 1, pages = memory->leaves, first = 0;

    if (node[1].best < count)
        return NONE;
    while (node[i].best != pages) {
        pages /= 2;
        if (node[2 * i].best >= count) {
            i = 2 * i;
        } else if (node[2 * i].suffix + node[2 * i + 1].prefix >= count) {
            first += pages - node[2 * i].suffix;
            break;
        } else {
            i = 2 * i + 1;
            first += pages;
        }
    }
    set_pages(memory, first, count, 0);
    return first;
}

/* ---- small blocks ---- */

static unsigned class_of(uint64_t bytes)
{
    uint32_t units = (uint32_t)((bytes + UNIT - 1) / UNIT), step;
    unsigned doubling;

    if (units <= FINE_UNITS)
        return units - 1;
    doubling = 31u - (unsigned)__builtin_clz(units - 1) - 3; /* 9..16 units: 0 */
    step = 2u << doubling;
    return FINE_UNITS + 4 * doubling + (units - (FINE_UNITS << doubling) + step - 1) / step - 1;
}

static uint32_t units_of(unsigned class)
{
    unsigned doubling = (class - FINE_UNITS) / 4;

    if (class < FINE_UNITS)
        return class + 1;
    return (FINE_UNITS << doubling) + ((class - FINE_UNITS) % 4 + 1) * (2u << doubling);
}

static unsigned slots_of(unsigned class)
{
    return (unsigned)(PAGE_UNITS / units_of(class));
}

static void link_slab(struct cw_replay_memory *memory, uint32_t index)
{
    struct slab *slab = &memory->slab[index];

    slab->previous = NONE;
    slab->next = memory->first[slab->class];
    if (slab->next != NONE)
        memory->slab[slab->next].previous = index;
    memory->first[slab->class] = index;
}

static void unlink_slab(struct cw_replay_memory *memory, uint32_t index)
{
    const struct slab *slab = &memory->slab[index];

    if (slab->previous != NONE)
        memory->slab[slab->previous].next = slab->next;
    else
        memory->first[slab->class] = slab->next;
    if (slab->next != NONE)
        memory->slab[slab->next].previous = slab->previous;
}

/* A new slab record, or NONE. */
static uint32_t new_record(struct cw_replay_memory *memory)
{
    uint32_t index = memory->free_slab;

    if (index != NONE) {
        memory->free_slab = memory->slab[index].next;
        return index;
    }
    if (memory->slabs == memory->slab_room) {
        uint32_t room = memory->slab_room ? 2 * memory->slab_room : 64;
        struct slab *more = realloc(memory->slab, room * sizeof(*more));

        if (more == NULL)
            return NONE;
        memory->slab = more;
        memory->slab_room = room;
    }
    return memory->slabs++;
}

static uint32_t new_slab(struct cw_replay_memory *memory, unsigned class)
{
    uint32_t index = new_record(memory), page;

    if (index == NONE)
        return NONE;
    page = take_pages(memory, 1);
    if (page == NONE) {
        memory->slab[index].next = memory->free_slab;
        memory->free_slab = index;
        return NONE;
    }
    memory->slab[index] = (struct slab){.page = page, .class = (uint16_t) class};
    memory->slab_of[page] = index;
    link_slab(memory, index);
    return index;
}

static uint64_t take_small(struct cw_replay_memory *memory, uint64_t bytes)
{
    unsigned class = class_of(bytes), slot = 0;
    uint32_t index = memory->first[class];
    struct slab *slab;

    if (index == NONE)
        index = new_slab(memory, class);
    if (index == NONE)
        return 0;
    slab = &memory->slab[index];
    while (slab->taken[slot / 64] == UINT64_MAX)
        slot += 64;
    slot += (unsigned)__builtin_ctzll(~slab->taken[slot / 64]);
    slab->taken[slot / 64] |= UINT64_C(1) << slot % 64;
    if (++slab->used == slots_of(class))
        unlink_slab(memory, index);
    return memory->base + slab->page * CW_REPLAY_PAGE + (uint64_t)slot * units_of(class) * UNIT;
}

static int give_small(struct cw_replay_memory *memory, uint32_t index, uint64_t offset)
{
    struct slab *slab = &memory->slab[index];
    uint64_t size = units_of(slab->class) * UNIT, slot = offset / size;

    if (offset % size != 0 || !(slab->taken[slot / 64] >> slot % 64 & 1))
        return -1;
    slab->taken[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    if (slab->used-- == slots_of(slab->class))
        link_slab(memory, index);
    if (slab->used > 0)
        return 0;
    unlink_slab(memory, index);
    memory->slab_of[slab->page] = NONE;
    set_pages(memory, slab->page, 1, 1);
    slab->next = memory->free_slab;
    memory->free_slab = index;
    return 0;
}

/* ---- all of them ---- */

struct cw_replay_memory *cw_replay_memory_make(uint64_t base, uint64_t bytes)
{
    struct cw_replay_memory *memory = calloc(1, sizeof(*memory));

    if (memory == NULL)
        return NULL;
    /* Page 0 of address 0 stays unused. */
    memory->base = base;
    memory->pages = (uint32_t)(bytes / CW_REPLAY_PAGE) + 1;
    memory->leaves = 2;
    while (memory->leaves < memory->pages)
        memory->leaves *= 2;
    memory->node = calloc(2 * (size_t)memory->leaves, sizeof(*memory->node));
    memory->run = calloc(memory->pages, sizeof(*memory->run));
    memory->slab_of = malloc(memory->pages * sizeof(*memory->slab_of));
    if (memory->node == NULL || memory->run == NULL || memory->slab_of == NULL) {
        cw_replay_memory_destroy(memory);
        return NULL;
    }
    memset(memory->slab_of, 0xff, memory->pages * sizeof(*memory->slab_of));
    memset(memory->first, 0xff, sizeof(memory->first));
    memory->free_slab = NONE;
    if (memory->pages > 1)
        set_pages(memory, 1, memory->pages - 1, 1);
    return memory;
}

void cw_replay_memory_destroy(struct cw_replay_memory *memory)
{
    if (memory == NULL)
        return;
    free(memory->node);
    free(memory->run);
    free(memory->slab_of);
    free(memory->slab);
    free(memory);
}

uint64_t cw_replay_memory_take(struct cw_replay_memory *memory, uint64_t bytes)
{
    uint64_t count = bytes / CW_REPLAY_PAGE + (bytes % CW_REPLAY_PAGE != 0);
    uint32_t page;

    if (bytes == 0 || count >= memory->pages)
        return 0;
    if (bytes <= SMALL_MOST)
        return take_small(memory, bytes);
    page = take_pages(memory, (uint32_t)count);
    if (page == NONE)
        return 0;
    memory->run[page] = (uint32_t)count;
    return memory->base + page * CW_REPLAY_PAGE;
}

int cw_replay_memory_give(struct cw_replay_memory *memory, uint64_t address)
{
    uint64_t offset = address - memory->base, page = offset / CW_REPLAY_PAGE;

    if (address < memory->base || page >= memory->pages)
        return -1;
    if (memory->slab_of[page] != NONE)
        return give_small(memory, memory->slab_of[page], offset % CW_REPLAY_PAGE);
    if (memory->run[page] == 0 || offset % CW_REPLAY_PAGE != 0)
        return -1;
    set_pages(memory, (uint32_t)page, memory->run[page], 1);
    memory->run[page] = 0;
    return 0;
}

uint64_t cw_replay_memory_free(const struct cw_replay_memory *memory)
{
    return memory->free_pages * CW_REPLAY_PAGE;
}

uint64_t cw_replay_memory_largest(const struct cw_replay_memory *memory)
{
    return memory->node[1].best * CW_REPLAY_PAGE;
}
