/* SPDX-License-Identifier: MIT */
/* Which operation is carried out next when nothing is due by the clock.
 *
 * Operations whose dependencies are done are held here. One is taken when a call waits for
 * something that depends on it, or by a roll of the dice; the dice are seeded, so that one thread's
 * program runs the same way each time. Guarded by sim.lock.
 */
#include "sim_lazy.h"

#include <sched.h>
#include <stdlib.h>

static struct {
    struct sim_op **held;
    unsigned n, room;
    uint64_t state;    /* of the dice */
    unsigned laziness; /* one call in so many makes something happen that nobody needs */
    uint64_t walk;     /* number of the current walk, in the marks of the operations it has seen */
    uint64_t first_thread;
    bool is_shared; /* more than one thread has called since the seed was set */
    void (*pause)(void);
} lazy;

unsigned sim_lazy_roll(unsigned n)
{
    lazy.state ^= lazy.state >> 12;
    lazy.state ^= lazy.state << 25;
    lazy.state ^= lazy.state >> 27;
    return (unsigned)((lazy.state * 0x2545F4914F6CDD1Du >> 33) % n);
}

void sim_lazy_seed(uint64_t seed)
{
    sim.config.is_lazy = seed != 0;
    lazy.state = seed * 0x9E3779B97F4A7C15u + 1;
    lazy.first_thread = 0;
    lazy.is_shared = false;
    lazy.laziness = 16u << 3 * sim_lazy_roll(3);
}

bool sim_lazy_is_stirred(void)
{
    return sim_lazy_roll(lazy.laziness) == 0;
}

void sim_lazy_forget(void)
{
    lazy.n = 0;
}

void sim_lazy_hold(struct sim_op *op)
{
    if (lazy.n == lazy.room) {
        lazy.room = lazy.room ? 2 * lazy.room : 256;
        lazy.held = realloc(lazy.held, lazy.room * sizeof *lazy.held);
        if (!lazy.held)
            abort();
    }
    lazy.held[lazy.n++] = op;
}

/* Operations know who waits for them, not the other way round. */
static bool leads_to(struct sim_op *op, const struct sim_op *target)
{
    bool leads = op == target;

    if (op->mark >> 1 == lazy.walk)
        return op->mark & 1;
    for (unsigned i = 0; i < op->nwaiters && !leads; i++)
        leads = leads_to(op->waiters[i], target);
    op->mark = lazy.walk << 1 | leads;
    return leads;
}

struct sim_op *sim_lazy_take(const struct sim_op *target)
{
    unsigned start = lazy.n ? sim_lazy_roll(lazy.n) : 0;

    lazy.walk++;
    for (unsigned i = 0; i < lazy.n; i++) {
        struct sim_op **at = &lazy.held[(start + i) % lazy.n], *op = *at;

        if ((target && !leads_to(op, target)) || !sim_work_is_ready(&op->work))
            continue;
        *at = lazy.held[--lazy.n];
        return op;
    }
    return NULL;
}

static void note_thread(void)
{
    uint64_t self = sim_thread()->id;

    if (!lazy.first_thread)
        lazy.first_thread = self;
    else if (lazy.first_thread != self)
        lazy.is_shared = true;
}

void sim_lazy_set_pause(void (*pause)(void))
{
    lazy.pause = pause;
}

static void waste_time(unsigned length)
{
    if (length == 0)
        sched_yield();
    for (unsigned i = length ? length * 1000 : 30000; i > 0; i--)
        __asm__ volatile("");
}

void sim_lazy_pause(void)
{
    unsigned length = sim_lazy_roll(32);
    void (*pause)(void) = lazy.pause;

    note_thread();
    if (!lazy.is_shared || length > (pause ? 7 : 3))
        return;
    pthread_mutex_unlock(&sim.lock);
    if (pause)
        pause();
    else
        waste_time(length);
    pthread_mutex_lock(&sim.lock);
}
