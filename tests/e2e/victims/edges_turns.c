/* SPDX-License-Identifier: MIT */
/* Whose turn it is. See edges_turns.h. */
#include "edges_turns.h"

#include "dice.h"

#include <pthread.h>
#include <time.h>

#define PATIENCE_NS 400000

/* Guarded by turns.lock. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed[TURNS_MOST];
    bool is_done[TURNS_MOST];
    unsigned n, holder, count; /* count: of turns so far */
    struct rng dice;
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local unsigned me;

void turns_begin(unsigned nthreads, uint64_t seed)
{
    turns.n = nthreads;
    turns.holder = turns.count = 0;
    seed_dice(&turns.dice, seed);
    for (unsigned i = 0; i < nthreads; i++) {
        pthread_cond_init(&turns.changed[i], NULL);
        turns.is_done[i] = false;
    }
}

static bool is_patience_over(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_cond_timedwait(&turns.changed[me], &turns.lock, &until) != 0;
}

static void await_turn(void)
{
    while (turns.holder != me) {
        unsigned count = turns.count;

        if (is_patience_over() && turns.count == count)
            turns.holder = me;
    }
}

static void give_turn(void)
{
    unsigned start = roll_below(&turns.dice, turns.n);

    for (unsigned i = 0; i < turns.n; i++) {
        unsigned next = (start + i) % turns.n;

        if (turns.is_done[next])
            continue;
        turns.holder = next;
        turns.count++;
        pthread_cond_signal(&turns.changed[next]);
        return;
    }
}

void turns_enter(unsigned index)
{
    me = index;
    if (turns.n == 0)
        return;
    pthread_mutex_lock(&turns.lock);
    await_turn();
    pthread_mutex_unlock(&turns.lock);
}

void turns_leave(void)
{
    if (turns.n == 0)
        return;
    pthread_mutex_lock(&turns.lock);
    turns.is_done[me] = true;
    give_turn();
    pthread_mutex_unlock(&turns.lock);
}

void turns_pass(void)
{
    if (turns.n == 0)
        return;
    pthread_mutex_lock(&turns.lock);
    give_turn();
    await_turn();
    pthread_mutex_unlock(&turns.lock);
}
