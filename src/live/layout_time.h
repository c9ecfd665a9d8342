/* SPDX-License-Identifier: MIT */
/*
 * The part of the live layout (live/layout.h) that says how things developed: samples of all sites,
 * timelines of devices, the program's steps, and blocks that grew by being replaced.
 *
 * Moments and what belongs to them lie in slots, in no order. A new moment takes an empty slot, or
 * that of one that is thinned out: its time becomes 0, then all values of the slot are written,
 * then the new time (release). So a slot whose time is 0 is none, and one whose time is the same
 * before and after its value was read is whole, also when the writer dies on the way. A series that
 * begins late has 0 in the slots of earlier moments, which is what its site held then.
 */
#ifndef CW_LIVE_LAYOUT_TIME_H
#define CW_LIVE_LAYOUT_TIME_H

#include <stdatomic.h>
#include <stdint.h>

#define CW_SAMPLES 64
#define CW_POINTS  256

/* Samples of all sites: their moments. One writer at a time. */
struct cw_live_growth {
    _Atomic uint64_t t_ns[CW_SAMPLES]; /* 0: nothing in this slot */
    _Atomic uint64_t taken;            /* samples so far; those that were thinned out too */
    _Atomic uint64_t period_ns;        /* between two of them, at least; doubles */
    _Atomic uint64_t dropped;          /* sites that found no room for a series */
    _Atomic uint32_t is_on;            /* GROWTH=on */
    uint32_t unused;
    _Atomic uint64_t worked_ns; /* of the last call, about, that allocated, copied or waited */
    uint64_t reserved[3];
};

/* The series of one site record. A report that adds up site records adds up their series. */
struct cw_live_series {
    _Atomic uint32_t site; /* whose it is; its site names it, or it is being handed on */
    uint32_t unused;
    _Atomic uint64_t bytes[CW_SAMPLES];
};

/* What a device held at a moment when it was highest or lowest. */
struct cw_live_extreme {
    _Atomic uint64_t t_ns; /* 0: there is none */
    _Atomic uint64_t live, held, idle;
};

struct cw_live_point {
    _Atomic uint64_t t_ns; /* 0: nothing in this slot */
    _Atomic uint64_t live, held;
    _Atomic uint64_t idle; /* kept by the pool */
    _Atomic uint64_t used; /* of the device by anybody, when last sampled; 0: never */
    /* Between the point before and this one, when live was lowest, as far as was noticed, and
     * highest, exactly. Those of a point that is thinned out go to the next. */
    struct cw_live_extreme least, most;
};

struct cw_live_timeline {
    uint32_t device; /* ordinal or CW_DEVICE_HOST */
    uint32_t unused;
    _Atomic uint64_t taken, period_ns;
    struct cw_live_point point[CW_POINTS];
};

/* A name that the program gives, by itself or for all that are equal but for the digits in them
 * ("step #"), where there are many of those. */
struct cw_live_tag {
    uint32_t name;          /* text */
    uint32_t domain;        /* text, 0: the default one */
    uint32_t hash_next;     /* writer's own */
    uint8_t is_pattern;     /* 1: each # stands for a number */
    _Atomic uint8_t budget; /* that counts it now, from 1; 0: none, or not known yet */
    uint8_t unused[2];
    _Atomic uint64_t begun;                   /* ranges begun, and marks */
    _Atomic uint64_t steps;                   /* ranges ended, and marks */
    _Atomic uint64_t first_ns, last_ns;       /* when the first and the last step ended */
    _Atomic uint64_t first_bytes, last_bytes; /* live in the whole process then */
    _Atomic uint64_t least_bytes, most_bytes; /* at any of the ends */
    /* For a straight line through (1, live at the first end), (2, live at the second), ...: the
     * sums of y, x*y and y*y, bits of doubles. */
    _Atomic uint64_t sum_y, sum_xy, sum_yy;
    uint64_t reserved[4];
};

/* Blocks that grew by being replaced, at one site (records of all threads together). */
struct cw_live_regrowth {
    uint32_t site;      /* any of those that are one in a report */
    uint32_t hash_next; /* writer's own */
    _Atomic uint64_t resizes;
    _Atomic uint64_t copied_bytes;
    _Atomic uint64_t factor_sum;    /* of new size / old size, in 1/1000 */
    _Atomic uint64_t chains;        /* blocks that began small and were replaced at least once */
    _Atomic uint64_t first_bytes;   /* the smallest that such a chain began with */
    _Atomic uint64_t largest_bytes; /* the largest that one came to: what would have sufficed */
    _Atomic uint64_t first_ns, last_ns;
    uint64_t reserved[2];
};

#endif
