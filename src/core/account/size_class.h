/* SPDX-License-Identifier: MIT */
/*
 * Sizes of buckets: multiples of 512 bytes up to 4 KiB, then eight to each doubling up to 128 TiB.
 *
 * A request is at most one eighth (and 511 bytes) smaller than its class. From 16 MiB on the step
 * is 2 MiB and more, so that classes fall on the pages that the driver gives out. Above 64 MiB
 * blocks are not rounded to their class: there a class is only a place to look.
 */
#ifndef CW_CORE_SIZE_CLASS_H
#define CW_CORE_SIZE_CLASS_H

#include <stdint.h>

#include "base/round.h"

#define CW_SIZE_CLASSES 288u
#define CW_SIZE_LEAST   512u
#define CW_SIZE_MOST    ((uint64_t)1 << 47)
/* The largest request that is rounded to its class; above it, to pages. */
#define CW_SIZE_ROUNDED ((uint64_t)64 << 20)
#define CW_SIZE_PAGE    ((uint64_t)2 << 20)

/* The smallest class that holds `bytes` (1 .. CW_SIZE_MOST). */
static inline unsigned cw_size_class_up(uint64_t bytes)
{
    unsigned doubling;

    if (bytes <= 4096)
        return (unsigned)((bytes + 511) / 512) - 1;
    doubling = 63u - (unsigned)__builtin_clzll(bytes - 1) - 12u;
    return 8 + 8 * doubling + ((unsigned)((bytes - 1) >> (9 + doubling)) & 7);
}

/* The largest class that `bytes` (CW_SIZE_LEAST .. CW_SIZE_MOST) fill. */
static inline unsigned cw_size_class_down(uint64_t bytes)
{
    return bytes == CW_SIZE_MOST ? CW_SIZE_CLASSES - 1 : cw_size_class_up(bytes + 1) - 1;
}

static inline uint64_t cw_size_class_bytes(unsigned class)
{
    unsigned doubling, eighth;

    if (class < 8)
        return (class + 1) * 512u;
    doubling = (class - 8) / 8;
    eighth = (class - 8) % 8 + 1;
    return ((uint64_t)4096 << doubling) + ((uint64_t)512 * eighth << doubling);
}

/* The size to ask the driver for: never less than `bytes`, which may be any number. */
static inline uint64_t cw_size_round(uint64_t bytes)
{
    if (bytes <= CW_SIZE_ROUNDED)
        return cw_size_class_bytes(cw_size_class_up(bytes));
    if (bytes > CW_SIZE_MOST)
        return bytes;
    return cw_round_up(bytes, CW_SIZE_PAGE);
}

/* The least that the driver takes for a request of `bytes` (at most CW_SIZE_MOST). */
static inline uint64_t cw_size_exact(uint64_t bytes)
{
    return cw_round_up(bytes, CW_SIZE_LEAST);
}

static inline uint64_t cw_size_pages(uint64_t bytes)
{
    return (bytes + CW_SIZE_PAGE - 1) / CW_SIZE_PAGE;
}

/* What the driver's pages have beyond a block of `held` bytes (at most CW_SIZE_MOST): small ones
 * share theirs. */
static inline uint64_t cw_size_padding(uint64_t held)
{
    uint64_t least = cw_size_exact(held);

    return (least <= CW_SIZE_PAGE / 2 ? least : cw_size_pages(least) * CW_SIZE_PAGE) - held;
}

/* How much more of the device a block of `held` bytes takes than a request of `bytes` would by
 * itself: in bytes, or in pages if that is more. Small blocks share a page. held may be any
 * number. */
static inline uint64_t cw_size_excess(uint64_t held, uint64_t bytes)
{
    uint64_t least = cw_size_exact(bytes), by_pages;

    held = cw_size_exact(held);
    if (held <= least)
        return 0;
    if (held <= CW_SIZE_PAGE / 2)
        return held - least;
    by_pages = cw_size_pages(held) * CW_SIZE_PAGE -
               (least <= CW_SIZE_PAGE / 2 ? least : cw_size_pages(least) * CW_SIZE_PAGE);
    return held - least > by_pages ? held - least : by_pages;
}

/* The class in which a block of exactly this size lies. */
static inline unsigned cw_size_class_of(uint64_t bytes)
{
    return bytes < CW_SIZE_LEAST ? 0 : cw_size_class_down(bytes);
}

/* Bins of threads (core/cache/thread_cache.h): one for each of the lower classes. */
#define CW_BINS     255u /* classes that have one: up to 4 TiB */
#define CW_BIN_NONE 255u

/* The bin of a block of so many bytes. */
static inline uint8_t cw_size_bin(uint64_t held)
{
    unsigned size_class =
        held < CW_SIZE_LEAST || held > CW_SIZE_MOST ? CW_BIN_NONE : cw_size_class_down(held);

    return size_class < CW_BINS ? (uint8_t)size_class : CW_BIN_NONE;
}

/* The blocks that serve a request: at least `bytes`, with at most so much excess. */
struct cw_size_fit {
    uint64_t bytes, excess;
};

static inline int cw_size_fits(uint64_t held, struct cw_size_fit fit)
{
    return held >= fit.bytes && cw_size_excess(held, fit.bytes) <= fit.excess;
}

/* The excess of a block that is an eighth larger: no block of the same class has more. */
static inline uint64_t cw_size_tolerance(uint64_t bytes)
{
    uint64_t least = cw_size_exact(bytes);

    return cw_size_excess((least + least / 8) & ~(uint64_t)(CW_SIZE_LEAST - 1), bytes);
}

#endif
