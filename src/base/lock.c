/* SPDX-License-Identifier: MIT */
/*
 * Ranked mutexes and one-time initialisation, on futexes.
 *
 * Owns the calling thread's set of held ranks (debug builds only). No function here allocates,
 * takes another lock or changes errno. The word of a lock is 2 whenever a waiter may sleep on it,
 * so a release that finds 1 may skip the system call.
 */
#include "base/lock.h"

#include <time.h>
#include <sched.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"

/* Critical sections are a few dozen instructions: most waits end before a sleep would begin. */
#define SPINS 64

#define RELAX_TURNS 200u /* before naps */
#define NAP_NS      50000l
/* 32 looks in the first 30 us, then one each 50 us and what a sleep is late; each nap is 5 us
 * longer than the last, up to a millisecond. A look may be three calls of the driver. */
#define DOZE_TURNS   32u
#define DOZE_NAPS    190u
#define DOZE_MORE_NS 5000l

enum word { FREE, HELD, CONTENDED };
enum once_state { NEW, RUNNING, DONE };

static void futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
    int saved = errno;

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
    errno = saved;
}

static void futex_wake(_Atomic uint32_t *word, int waiters)
{
    int saved = errno;

    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
    errno = saved;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#ifdef CW_DEBUG
static CW_TLS uint32_t held_ranks; /* bit n: the thread holds a lock of rank n */

/* Equal ranks are a violation too: two threads could take two such locks in opposite orders. */
static void note_acquire(const struct cw_lock *lock)
{
    if (lock->rank >= CW_RANK_COUNT || held_ranks >> lock->rank)
        __builtin_trap();
    held_ranks |= 1u << lock->rank;
}

static void note_release(const struct cw_lock *lock)
{
    if (!(held_ranks >> lock->rank & 1))
        __builtin_trap();
    held_ranks &= ~(1u << lock->rank);
}

static void note_reset(void)
{
    held_ranks = 0;
}
#else
static void note_acquire(const struct cw_lock *lock CW_UNUSED)
{
}

static void note_release(const struct cw_lock *lock CW_UNUSED)
{
}

static void note_reset(void)
{
}
#endif

void cw_lock_init(struct cw_lock *lock, enum cw_lock_rank rank)
{
    atomic_init(&lock->word, FREE);
    lock->rank = rank;
}

static int try_acquire(struct cw_lock *lock)
{
    uint32_t expected = FREE;

    return atomic_compare_exchange_strong_explicit(&lock->word, &expected, HELD,
                                                   memory_order_acquire, memory_order_relaxed);
}

static int spin_acquire(struct cw_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == FREE && try_acquire(lock))
            return 1;
        relax();
    }
    return 0;
}

static CW_NOINLINE void acquire_contended(struct cw_lock *lock)
{
    if (spin_acquire(lock))
        return;
    /* Whoever takes the lock here cannot know whether others still sleep, and so leaves 2 in it. */
    while (atomic_exchange_explicit(&lock->word, CONTENDED, memory_order_acquire) != FREE)
        futex_wait(&lock->word, CONTENDED);
}

void cw_lock_acquire(struct cw_lock *lock)
{
    note_acquire(lock);
    if (CW_UNLIKELY(!try_acquire(lock)))
        acquire_contended(lock);
}

void cw_lock_release(struct cw_lock *lock)
{
    note_release(lock);
    if (CW_UNLIKELY(atomic_exchange_explicit(&lock->word, FREE, memory_order_release) == CONTENDED))
        futex_wake(&lock->word, 1);
}

void cw_lock_reset(struct cw_lock *lock)
{
    atomic_store_explicit(&lock->word, FREE, memory_order_release);
}

void cw_lock_reset_thread(void)
{
    note_reset();
}

/* Asked anew each time: a cached number would be the parent's in a forked child. */
static uint32_t own_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

static int claim(struct cw_once *once)
{
    uint32_t expected = NEW;

    return atomic_compare_exchange_strong_explicit(&once->state, &expected, RUNNING,
                                                   memory_order_acquire, memory_order_acquire);
}

int cw_once_begin(struct cw_once *once)
{
    while (!cw_once_is_done(once)) {
        if (claim(once)) {
            atomic_store_explicit(&once->owner_tid, own_tid(), memory_order_relaxed);
            return 1;
        }
        if (atomic_load_explicit(&once->owner_tid, memory_order_relaxed) == own_tid())
            return 0;
        futex_wait(&once->state, RUNNING);
    }
    return 0;
}

void cw_once_end(struct cw_once *once)
{
    atomic_store_explicit(&once->owner_tid, 0, memory_order_relaxed);
    atomic_store_explicit(&once->state, DONE, memory_order_release);
    futex_wake(&once->state, INT_MAX);
}

/* ns 0: gives up the processor. */
static void rest(long ns)
{
    static _Atomic uint32_t nobody_wakes;
    const struct timespec moment = {.tv_nsec = ns};
    int saved = errno;

    if (ns == 0)
        sched_yield();
    else
        syscall(SYS_futex, &nobody_wakes, FUTEX_WAIT_PRIVATE, 0, &moment, NULL, 0);
    errno = saved;
}

void cw_lock_relax(unsigned *turns)
{
    rest(++*turns < RELAX_TURNS ? 0 : NAP_NS);
}

void cw_lock_doze(unsigned *turns)
{
    unsigned naps = ++*turns < DOZE_TURNS ? 0 : *turns - DOZE_TURNS;

    if (naps > DOZE_NAPS)
        naps = DOZE_NAPS;
    rest(*turns < DOZE_TURNS ? 0 : NAP_NS + (long)naps * DOZE_MORE_NS);
}
