/* SPDX-License-Identifier: MIT */
/*
 * Addresses for a driver and a runtime that cost nothing: multiples of 512, distinct among the
 * blocks that live, with no memory behind them.
 *
 * A size is rounded up to a power of two, its class. Each class has 4 TiB of addresses of its own,
 * so that an address tells its class and no two blocks overlap. A thread takes RANGE addresses of a
 * class at a time, which is the only atomic operation here, and gives out first what it got back
 * last. Of what it gets back it keeps SPARES per class; the rest is not given out again before the
 * 4 TiB are through.
 */
#ifndef NULL_ADDRESSES_H
#define NULL_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

#define CLASS_MIN   9 /* 512 bytes */
#define CLASSES     28
#define REGION_BITS 42
#define RANGE       64
#define SPARES      128

struct address_class {
    uint64_t next, end; /* of the range in hand, counted in blocks */
    uint64_t spare[SPARES];
    unsigned spares;
};

/* These are linked when the program starts, which makes the access cheap. */
static __thread struct address_class address_classes[CLASSES]
    __attribute__((tls_model("initial-exec")));
static __thread uint64_t addresses_taken __attribute__((tls_model("initial-exec")));
static uint64_t address_ranges[CLASSES]; /* given out, counted in ranges */

/* The class of a block, or CLASSES when there are no blocks of that size. */
static inline unsigned address_class_of(size_t bytes)
{
    unsigned bits = bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1);

    if (bits < CLASS_MIN)
        return 0;
    return bits - CLASS_MIN < CLASSES ? bits - CLASS_MIN : CLASSES;
}

static inline uint64_t address_next(unsigned class)
{
    struct address_class *own = &address_classes[class];
    unsigned bits = class + CLASS_MIN;
    uint64_t number;

    if (own->next == own->end) {
        own->next = __atomic_fetch_add(&address_ranges[class], 1, __ATOMIC_RELAXED) * RANGE;
        own->end = own->next + RANGE;
    }
    number = own->next++ & ((UINT64_C(1) << (REGION_BITS - bits)) - 1);
    return ((uint64_t)(class + 1) << REGION_BITS) + (number << bits);
}

/* 0 when the size is none that a device has. */
static inline uint64_t address_take(size_t bytes)
{
    unsigned class = address_class_of(bytes);
    struct address_class *own;

    if (bytes == 0 || class == CLASSES)
        return 0;
    addresses_taken++;
    own = &address_classes[class];
    return own->spares > 0 ? own->spare[--own->spares] : address_next(class);
}

static inline void address_give(uint64_t address)
{
    unsigned class = (unsigned)(address >> REGION_BITS) - 1;
    struct address_class *own;

    if (class >= CLASSES)
        return;
    own = &address_classes[class];
    if (own->spares < SPARES)
        own->spare[own->spares++] = address;
}

#endif
