/* SPDX-License-Identifier: MIT */
/* Sites that hold what a test says, and the samples that are taken of them. */
#ifndef CW_TESTS_GROWTH_FIXTURE_H
#define CW_TESTS_GROWTH_FIXTURE_H

#include "pool_fixture.h"

extern const struct cw_live_growth *live; /* of the session */

/* Armed, with the pool and a context; a millisecond has gone by. */
void growth_start(void);
void pass(uint64_t ns);

/* A record of its own each time. */
uint32_t new_site(enum cw_kind kind);
/* As if the program had done that. */
void set_live(uint32_t site, uint64_t bytes);
/* Of device memory, with so much live. */
uint32_t site_with(uint64_t bytes);

/* Takes one more sample, when the period has passed. */
void sample(void);
unsigned newest(void); /* the slot of the newest sample */
unsigned slots_in_use(void);

uint32_t series_of(uint32_t site); /* 0: none */
const struct cw_live_series *series_at(uint32_t series);
uint32_t series_count(void);

/* Forks; 0 if the child's samples are its own and begin from the start. */
int fork_and_start_anew(void);

#endif
