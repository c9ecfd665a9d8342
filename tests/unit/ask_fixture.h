/* SPDX-License-Identifier: MIT */
/*
 * A program's allocation as the hook layer makes it: served by the pool, or within the limits by
 * the fake driver, and when there is no memory rung by rung up the ladder. Below 1 TiB; in the
 * calling thread's current context, which is of device 0.
 */
#ifndef CW_TESTS_ASK_FIXTURE_H
#define CW_TESTS_ASK_FIXTURE_H

#include <stdint.h>

#include "core/ladder.h"
#include "pool_fixture.h"

struct ask {
    uint64_t key;             /* 0: out of memory */
    int was_hit;              /* served before any driver was asked */
    enum cw_cause cause;      /* of the last refusal */
    unsigned refusals;        /* of the driver or of a limit */
    enum cw_ladder_step last; /* what the ladder said last */
    struct cw_ladder ladder;
};

/* Of device memory. */
struct ask ask_for(uint64_t bytes);
/* The same where only the address is of interest. */
uint64_t ask_get(uint64_t bytes);
/* Climbs once, as a call does that found no memory for `bytes`. */
enum cw_ladder_step ask_climb(struct cw_ladder *ladder, enum cw_cause cause);

/* Starts over with these options set: "" for none. The first without a context. */
void ask_arm(const char *limit, const char *min_free, uint64_t capacity);
void ask_start(const char *limit, const char *min_free, uint64_t capacity);

const struct cw_live_memory *ask_memory(void); /* of device 0 */
/* Events of the type, and the last of them (may be NULL). */
unsigned ask_events(enum cw_event_type type, const struct cw_live_event **out_last);

#endif
