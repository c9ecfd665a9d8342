/* SPDX-License-Identifier: MIT */
/*
 * The ladder: what is tried, rung by rung, when a call found no memory (live/layout.h: CW_RUNGS).
 *
 * One ladder belongs to one call of the program and lies on its stack. The caller asks the driver
 * (or finds a limit in its way), and as long as the answer is out of memory climbs one rung
 * further; rungs that have nothing to do are passed over. Each rung that did something is counted,
 * and so is the one after which the request was served. Nothing is tried while a capture runs. No
 * lock is held across the driver.
 *
 * While a ladder is climbed what any thread frees on its device goes to the driver
 * (cw_retention_wanted), so that others do not turn into idle blocks what it gives back; each climb
 * ends with END, or with cw_ladder_end, or with cw_ladder_helped.
 */
#ifndef CW_CORE_LADDER_H
#define CW_CORE_LADDER_H

#include <stdint.h>

#include "core/pool/pool.h"

struct cw_ladder {
    struct cw_pool *pool;   /* that serves the request, NULL: none does */
    uint64_t bytes;         /* asked for; 0: not known (a module, a context) */
    uint64_t poll_end_ns;   /* 0: nobody has waited yet for what is pending */
    uint64_t released;      /* given back by this ladder */
    uint64_t neighbours_ns; /* that may still be waited for neighbours */
    uint32_t reclaims;      /* cw_reclaim_reclaims() when the driver was asked last */
    uint8_t device;
    uint8_t cause;            /* enum cw_cause, of the last refusal */
    uint8_t rungs;            /* climbed so far: the next is the rung of this number */
    uint8_t rounds;           /* other threads were faster to what was given back */
    uint8_t guesses;          /* rounds that nothing but our own count spoke for */
    uint8_t last;             /* the rung that did something last, CW_RUNG_COUNT: none */
    uint8_t is_rounded;       /* the driver was asked for more than `bytes` */
    uint8_t may_be_managed;   /* managed memory could serve the request */
    uint8_t is_counted;       /* a limit refused it at first, and that is counted */
    uint8_t is_wanting;       /* frees of others go to the driver */
    uint8_t has_asked;        /* the program, to free something */
    uint8_t asked_neighbours; /* for what is missing; 2: for all that they have */
};

/* pool, is_rounded and may_be_managed are for the caller to set: none, 0, 0; and reclaims, if it
 * was read before the driver was asked. */
void cw_ladder_begin(struct cw_ladder *out, uint8_t device, uint64_t bytes);

/* Asks the program to free memory of a device for a request; 1: it did something. NULL: nobody is
 * to be asked. Called under no lock, inside the call that found no memory. */
typedef int (*cw_ladder_ask_fn)(uint8_t device, uint64_t bytes);
void cw_ladder_set_ask(cw_ladder_ask_fn ask);

enum cw_ladder_step {
    CW_LADDER_END,     /* nothing is left to try */
    CW_LADDER_ASK,     /* ask again, as before */
    CW_LADDER_EXACT,   /* ask for the exact size from now on */
    CW_LADDER_SERVED,  /* *out_block is an idle block that serves the request, counted as a hit */
    CW_LADDER_MANAGED, /* try cw_fallback_alloc (core/request/fallback.h) */
};
enum cw_ladder_step cw_ladder_climb(struct cw_ladder *ladder, enum cw_cause cause,
                                    uint32_t *out_block);

/* The request was served after all: the last rung has helped. site: of the request. */
void cw_ladder_helped(struct cw_ladder *ladder, uint32_t site);
/* Nothing more is tried. More than once, or before the first climb, does no harm. */
void cw_ladder_end(struct cw_ladder *ladder);

#endif
