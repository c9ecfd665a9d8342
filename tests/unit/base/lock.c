/* SPDX-License-Identifier: MIT */
/* Locks and one-time initialisation: contention, ranks (debug builds), fork. */
#include "base/lock.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  50000

static struct cw_lock shared_lock = CW_LOCK_INIT(CW_RANK_CONTEXT);
static unsigned long shared_counter; /* guarded by shared_lock */
static pthread_barrier_t start;      /* lets the threads meet, else they run one after another */

static void *count_under_lock(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&start);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned long before;

        cw_lock_acquire(&shared_lock);
        before = shared_counter;
        for (volatile int delay = 0; delay < 20; delay++)
            ;
        shared_counter = before + 1;
        cw_lock_release(&shared_lock);
    }
    return NULL;
}

static void run_threads(void *(*body)(void *))
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, body, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

Test(lock, excludes_other_threads)
{
    pthread_barrier_init(&start, NULL, THREADS);
    run_threads(count_under_lock);
    cr_expect_eq(shared_counter, (unsigned long)THREADS * ROUNDS);
    cr_expect_eq(atomic_load(&shared_lock.word), 0u);
}

static void *hold_for_long(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        cw_lock_acquire(&shared_lock);
        shared_counter++;
        usleep(500);
        cw_lock_release(&shared_lock);
    }
    return NULL;
}

Test(lock, wakes_every_sleeping_waiter)
{
    run_threads(hold_for_long);
    cr_expect_eq(shared_counter, THREADS * 10ul);
}

Test(lock, is_free_after_init_and_after_release)
{
    struct cw_lock lock;

    cw_lock_init(&lock, CW_RANK_SITE);
    cr_expect_eq(lock.rank, (uint32_t)CW_RANK_SITE);
    for (int i = 0; i < 3; i++) {
        cw_lock_acquire(&lock);
        cr_expect_eq(atomic_load(&lock.word), 1u);
        cw_lock_release(&lock);
        cr_expect_eq(atomic_load(&lock.word), 0u);
    }
}

static void *acquire_and_release(void *arg)
{
    cw_lock_acquire(arg);
    errno = ENOTTY;
    cw_lock_release(arg);
    return (void *)(intptr_t)errno;
}

Test(lock, preserves_errno_when_it_sleeps)
{
    pthread_t thread;
    void *seen;

    cw_lock_acquire(&shared_lock);
    pthread_create(&thread, NULL, acquire_and_release, &shared_lock);
    usleep(20000);
    errno = EDOM;
    cw_lock_release(&shared_lock);
    cr_expect_eq(errno, EDOM);
    pthread_join(thread, &seen);
    cr_expect_eq((intptr_t)seen, ENOTTY);
}

/* Runs `body` in a child and returns its wait status. */
static int status_of_child(void (*body)(void))
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        /* Sanitizers and Criterion have handlers of their own, which would only blur the status. */
        signal(SIGTRAP, SIG_DFL);
        signal(SIGILL, SIG_DFL);
        body();
        _exit(0);
    }
    cr_assert_gt(pid, 0);
    waitpid(pid, &status, 0);
    return status;
}

static void acquire_after_reset(void)
{
    alarm(600);
    cw_lock_reset(&shared_lock);
    cw_lock_reset_thread();
    cw_lock_acquire(&shared_lock);
    cw_lock_release(&shared_lock);
}

/* However slow the machine is: that makes fewer. */
Test(lock, dozes_of_20_ms_are_few)
{
    struct timespec begun, now;
    unsigned turns = 0;
    long ns;

    clock_gettime(CLOCK_MONOTONIC, &begun);
    errno = 4321;
    do {
        cw_lock_doze(&turns);
        clock_gettime(CLOCK_MONOTONIC, &now);
        ns = (now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec;
    } while (ns < 20000000);
    cr_expect_eq(errno, 4321);
    cr_expect_leq(turns, 113u);
}

Test(lock, reset_frees_a_lock_that_the_parent_held)
{
    int status;

    cw_lock_acquire(&shared_lock);
    status = status_of_child(acquire_after_reset);
    cw_lock_release(&shared_lock);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static struct cw_lock low = CW_LOCK_INIT(CW_RANK_SESSION);
static struct cw_lock high = CW_LOCK_INIT(CW_RANK_MEM);
static struct cw_lock high_too = CW_LOCK_INIT(CW_RANK_MEM);

static void acquire_in_order(void)
{
    cw_lock_acquire(&low);
    cw_lock_acquire(&high);
    cw_lock_release(&low);
    cw_lock_release(&high);
    cw_lock_acquire(&low);
    cw_lock_release(&low);
}

Test(lock, accepts_rising_ranks_released_in_any_order)
{
    cr_expect_eq(status_of_child(acquire_in_order), 0);
}

#ifdef CW_DEBUG
static int was_trapped(int status)
{
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGTRAP || WTERMSIG(status) == SIGILL);
}

static void acquire_against_order(void)
{
    cw_lock_acquire(&high);
    cw_lock_acquire(&low);
}

Test(lock, debug_build_traps_a_falling_rank)
{
    cr_expect(was_trapped(status_of_child(acquire_against_order)));
}

static void acquire_same_rank(void)
{
    cw_lock_acquire(&high);
    cw_lock_acquire(&high_too);
}

Test(lock, debug_build_traps_two_locks_of_one_rank)
{
    cr_expect(was_trapped(status_of_child(acquire_same_rank)));
}

static void release_what_is_not_held(void)
{
    cw_lock_release(&low);
}

Test(lock, debug_build_traps_the_release_of_a_free_lock)
{
    cr_expect(was_trapped(status_of_child(release_what_is_not_held)));
}

static void acquire_bad_rank(void)
{
    struct cw_lock bad = CW_LOCK_INIT(CW_RANK_COUNT);

    cw_lock_acquire(&bad);
}

Test(lock, debug_build_traps_an_unknown_rank)
{
    cr_expect(was_trapped(status_of_child(acquire_bad_rank)));
}
#else
Test(lock, release_build_does_not_check_ranks)
{
    cw_lock_acquire(&high);
    cw_lock_acquire(&high_too);
    cw_lock_release(&high_too);
    cw_lock_release(&high);
}
#endif

static struct cw_once once;
static int initialised;             /* written by the one that does the work */
static _Atomic unsigned times_done; /* how many callers did it */

static void *initialise(void *arg)
{
    (void)arg;
    if (cw_once_begin(&once)) {
        usleep(20000);
        initialised = 42;
        atomic_fetch_add(&times_done, 1);
        cw_once_end(&once);
    }
    cr_expect_eq(initialised, 42);
    cr_expect(cw_once_is_done(&once));
    return NULL;
}

Test(once, one_thread_works_and_the_others_wait_for_it)
{
    run_threads(initialise);
    cr_expect_eq(atomic_load(&times_done), 1u);
}

Test(once, a_nested_call_returns_at_once)
{
    cr_assert_eq(cw_once_begin(&once), 1);
    cr_expect_eq(cw_once_begin(&once), 0);
    cr_expect_not(cw_once_is_done(&once));
    cw_once_end(&once);
    cr_expect(cw_once_is_done(&once));
    cr_expect_eq(cw_once_begin(&once), 0);
}
