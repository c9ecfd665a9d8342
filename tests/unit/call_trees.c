/* SPDX-License-Identifier: MIT */
/* Random chains of calls. See call_trees.h. */
#include "call_trees.h"

#include <alloca.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define LEVELS   24 /* of a chain at most */
#define CHAINS   12 /* from which the others are made */

/* Tells calls of one function apart that are otherwise the same, and is something to come back for.
 */
#define PLACE(number) __asm__ volatile("# " #number ::: "memory")
/* Keeps an array in the frame. */
#define USED(array) __asm__ volatile("" ::"r"(array) : "memory")

struct level {
    uint8_t kind, place;
    uint16_t size;
};

struct chain {
    unsigned length;
    struct level level[LEVELS];
};

static _Thread_local struct chain chain;
static _Thread_local void (*leaf)(void);

static void next(unsigned level);

static NOINLINE void fixed(unsigned level)
{
    if (chain.level[level].place == 0) {
        next(level + 1);
        PLACE(1);
    } else if (chain.level[level].place == 1) {
        next(level + 1);
        PLACE(2);
    } else {
        next(level + 1);
        PLACE(3);
    }
}

static NOINLINE void large(unsigned level)
{
    char room[3000];

    USED(room);
    if (chain.level[level].place == 0) {
        next(level + 1);
        PLACE(1);
    } else {
        next(level + 1);
        PLACE(2);
    }
    USED(room);
}

static NOINLINE void varying(unsigned level)
{
    char *room = alloca(chain.level[level].size + 16u);

    USED(room);
    if (chain.level[level].place == 0) {
        next(level + 1);
        PLACE(1);
    } else {
        next(level + 1);
        PLACE(2);
    }
    USED(room);
}

static NOINLINE void realigned(unsigned level)
{
    char room[64] __attribute__((aligned(64)));

    USED(room);
    next(level + 1);
    USED(room);
}

static NOINLINE void realigned_and_varying(unsigned level)
{
    char room[128] __attribute__((aligned(128)));
    char *more = alloca(chain.level[level].size + 16u);

    USED(room);
    USED(more);
    next(level + 1);
    USED(room);
    USED(more);
}

/* More values live over the call than there are registers to keep them. */
static NOINLINE void busy(unsigned level)
{
    volatile uint64_t source = level;
    uint64_t a = source, b = source, c = source, d = source, e = source, f = source, g = source;

    next(level + 1);
    source = a * 3 + b * 5 + c * 7 + d * 11 + e * 13 + f * 17 + g * 19;
}

/* The same with addresses within the frame, that change from call to call. */
static NOINLINE void own_pointers(unsigned level)
{
    volatile unsigned at = chain.level[level].place;
    uint64_t room[16], *a = room + at, *b = a + 1, *c = b + 1, *d = c + 1, *e = d + 1, *f = e + 1;

    memset(room, 0, sizeof(room));
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f)::"memory");
    next(level + 1);
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f)::"memory");
    *a = *b = *c = *d = *e = *f = 1;
    USED(room);
}

static _Thread_local unsigned level_below_libc;

static int called_by_libc(const void *a, const void *b)
{
    (void)a;
    (void)b;
    if (level_below_libc < chain.length)
        next(level_below_libc);
    else
        leaf();
    return 0;
}

static NOINLINE void through_libc(unsigned level)
{
    int two[2] = {1, 2};

    level_below_libc = level + 1;
    qsort(two, 2, sizeof(*two), called_by_libc);
    PLACE(1);
}

static void (*const kinds[])(unsigned) = {
    fixed, large, varying,      realigned, realigned_and_varying,
    busy,  fixed, own_pointers, varying,   through_libc};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void next(unsigned level)
{
    if (level < chain.length)
        kinds[chain.level[level].kind](level);
    else
        through_libc(level);
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct level draw_level(uint64_t *state)
{
    static const uint16_t sizes[] = {0, 16, 32, 112, 128, 1024, 4096, 16384};
    struct level level;

    level.kind = (uint8_t)(draw(state) % KINDS);
    level.place = (uint8_t)(draw(state) % 3);
    level.size = sizes[draw(state) % (sizeof(sizes) / sizeof(*sizes))];
    return level;
}

/* One of the basic chains; or one with another level, or with two levels in each other's place: as
 * deep in bytes, but not the same. */
static void draw_chain(const struct chain *basic, uint64_t *state)
{
    struct level *one, *other, kept;

    chain = basic[draw(state) % CHAINS];
    one = &chain.level[draw(state) % chain.length];
    other = &chain.level[draw(state) % chain.length];
    switch (draw(state) % 4) {
    case 0:
        one->place = (uint8_t)((one->place + 1) % 3);
        break;
    case 1:
        kept = *one;
        *one = *other;
        *other = kept;
        break;
    case 2:
        if (draw(state) % 8 == 0)
            *one = draw_level(state);
        break;
    default:
        break;
    }
}

void call_trees_run(uint64_t seed, unsigned calls, void (*with_leaf)(void))
{
    struct chain basic[CHAINS];
    uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;

    leaf = with_leaf;
    for (unsigned i = 0; i < CHAINS; i++) {
        basic[i].length = 1 + (unsigned)(draw(&state) % LEVELS);
        for (unsigned j = 0; j < basic[i].length; j++)
            basic[i].level[j] = draw_level(&state);
    }
    for (unsigned i = 0; i < calls; i++) {
        draw_chain(basic, &state);
        next(0);
    }
}
