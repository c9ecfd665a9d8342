/* SPDX-License-Identifier: MIT */
/* The dice of victims that make programs by chance. Seeded: what was thrown once comes again. */
#ifndef DICE_H
#define DICE_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t roll(struct rng *rng)
{
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return rng->state * 0x2545F4914F6CDD1Du;
}

static inline void seed_dice(struct rng *rng, uint64_t seed)
{
    rng->state = (seed + 1) * 0x9E3779B97F4A7C15u;
    for (int i = 0; i < 4; i++)
        roll(rng);
}

/* 0 to n - 1. */
static inline unsigned roll_below(struct rng *rng, unsigned n)
{
    return (unsigned)((roll(rng) >> 33) % n);
}

static inline bool roll_chance(struct rng *rng, unsigned percent)
{
    return roll_below(rng, 100) < percent;
}

#endif
