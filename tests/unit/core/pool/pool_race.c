/* SPDX-License-Identifier: MIT */
/*
 * The pool from many threads: no block has two owners at a time, and none is handed out while work
 * that its last owner submitted is outstanding. Blocks travel between threads, contexts end and
 * come back, captures shut the gate, threads come and go.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "core/process/gate.h"
#include "core/account/tracker.h"
#include "pool_fixture.h"

#define THREADS  8
#define PLACES   4 /* of contexts */
#define KEPT     24
#define MAILS    128
#define PROGRAMS (THREADS + CW_SLOTS)

/* What the test's own threads tell each other must not order what the pool's threads do, or the
 * sanitizer would take that order for the pool's. */
#if defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifdef IS_SANITIZED
#define ORDER memory_order_relaxed
#define SCALE 12
#else
#define ORDER memory_order_seq_cst
#define SCALE 24
#endif

/* A block that the program holds: number of its address, place and generation of its context,
 * class; 0: none. */
struct held {
    uint16_t number;
    uint8_t place, class;
    uint32_t generation;
};

static unsigned places, rounds;
/* 0: nobody's, else 1 + place of its context: one word, because an address may leave one context
 * and come back in another at any time. */
static _Atomic uint32_t owner[FAKE_BLOCKS];
static _Atomic uint64_t work[FAKE_BLOCKS][PLACES];     /* that the last owner submitted */
static _Atomic uint32_t during[FAKE_BLOCKS][PLACES];   /* generation of that context */
static _Atomic uint32_t users[PLACES], ending[PLACES]; /* of contexts */
static _Atomic uint64_t mail[MAILS];
static _Atomic uint64_t served, two_owners, too_early, served_in_capture, wrong_free;

static uint64_t pack(struct held held)
{
    return (uint64_t)held.generation << 32 | (uint32_t)held.class << 24 |
           (uint32_t)held.place << 16 | held.number;
}

static struct held unpack(uint64_t word)
{
    return (struct held){.number = (uint16_t)word,
                         .place = (uint8_t)(word >> 16),
                         .class = (uint8_t)(word >> 24),
                         .generation = (uint32_t)(word >> 32)};
}

static uint64_t key_of(unsigned number)
{
    return (uint64_t)number << 28;
}

/* ---- contexts ---- */

/* 0: it is ending. The program ends no context that a thread is just working with. */
static int use(unsigned place)
{
    atomic_fetch_add_explicit(&users[place], 1, ORDER);
    if (!atomic_load_explicit(&ending[place], ORDER)) {
        fake_set_current(FIRST_CONTEXT + place);
        return 1;
    }
    atomic_fetch_sub_explicit(&users[place], 1, ORDER);
    return 0;
}

static void unuse(unsigned place)
{
    atomic_fetch_sub_explicit(&users[place], 1, ORDER);
}

static uint32_t generation_of(unsigned place)
{
    return atomic_load_explicit(&fake_driver.context[place].generation, ORDER);
}

/* Outcome by turns: kept, destroyed and made again, renewed. */
static void end_context(unsigned place, uint64_t random)
{
    static const enum cw_context_outcome outcomes[] = {CW_CONTEXT_KEPT, CW_CONTEXT_DESTROYED,
                                                       CW_CONTEXT_RENEWED};
    enum cw_context_outcome outcome = outcomes[random % 3];
    uint64_t handle = FIRST_CONTEXT + place;
    struct cw_context_ending end;

    if (atomic_exchange_explicit(&ending[place], 1, ORDER) != 0)
        return;
    while (atomic_load_explicit(&users[place], ORDER) != 0)
        sched_yield();
    cw_context_end_begin(pool_index(handle), &end);
    if (outcome != CW_CONTEXT_KEPT) {
        for (unsigned i = 0; i < FAKE_BLOCKS; i++) {
            uint32_t ours = place + 1;

            atomic_compare_exchange_strong_explicit(&owner[i], &ours, 0, ORDER, ORDER);
        }
        fake_context_end(handle);
    }
    if (outcome == CW_CONTEXT_RENEWED)
        fake_context(place, handle, 0, place % 2);
    cw_context_end_finish(&end, outcome);
    if (outcome == CW_CONTEXT_DESTROYED)
        pooled_context(place, place % 2);
    atomic_store_explicit(&ending[place], 0, ORDER);
}

/* ---- blocks ---- */

static uint64_t size_of(uint64_t random)
{
    static const uint64_t sizes[] = {100,     512,          700,      4 * KIB,
                                     5000,    60 * KIB,     64 * KIB, 900 * KIB,
                                     2 * MIB, 3 * MIB + 77, 70 * MIB, 72 * MIB};

    return sizes[random % (sizeof(sizes) / sizeof(sizes[0]))];
}

static void check_work(unsigned number)
{
    for (unsigned i = 0; i < places; i++) {
        uint64_t last = atomic_load_explicit(&work[number][i], ORDER);

        if (last != 0 &&
            !fake_is_finished(i, atomic_load_explicit(&during[number][i], ORDER), last))
            too_early++;
    }
}

static struct held take(unsigned place, uint64_t random, int *out_served)
{
    static const enum cw_pool_class classes[] = {CW_POOL_DEVICE, CW_POOL_DEVICE, CW_POOL_PITCHED,
                                                 CW_POOL_HOST, CW_POOL_HOST_FLAGS + 1};
    enum cw_pool_class class = classes[random % 5];
    unsigned number = fake_number(pool_alloc(class, size_of(random / 8), out_served));

    if (atomic_exchange_explicit(&owner[number], place + 1, ORDER) != 0)
        two_owners++;
    if (*out_served) {
        served++;
        check_work(number);
    }
    for (unsigned i = 0; i < places; i++)
        atomic_store_explicit(&work[number][i], 0, ORDER);
    return (struct held){.number = (uint16_t)number,
                         .place = (uint8_t)place,
                         .class = (uint8_t) class,
                         .generation = generation_of(place)};
}

/* The owner uses the block in a context. */
static void submit(struct held held, unsigned place)
{
    atomic_store_explicit(&during[held.number][place], generation_of(place), ORDER);
    atomic_store_explicit(&work[held.number][place], fake_submit(FIRST_CONTEXT + place), ORDER);
}

static void give(struct held held)
{
    if (atomic_exchange_explicit(&owner[held.number], 0, ORDER) != held.place + 1u)
        two_owners++;
    if (pool_free(held.class, key_of(held.number), NULL) == CW_POOL_REFUSED)
        wrong_free++;
}

/* Frees it, unless it went with its context. */
static void drop(uint64_t word)
{
    struct held held = unpack(word);

    if (word == 0)
        return;
    while (!use(held.place))
        sched_yield();
    if (generation_of(held.place) == held.generation)
        give(held);
    unuse(held.place);
}

/* ---- programs ---- */

static void capture(unsigned place, uint64_t random)
{
    struct held held;
    int was_served;

    cw_gate_close(CW_GATE_CAPTURE);
    atomic_fetch_add(&fake_driver.shut, 1);
    held = take(place, random, &was_served);
    if (was_served)
        served_in_capture++;
    sched_yield();
    give(held);
    atomic_fetch_sub(&fake_driver.shut, 1);
    cw_gate_open(CW_GATE_CAPTURE);
}

static void look(uint64_t word)
{
    struct cw_pool_view view;

    if (word != 0)
        cw_pool_look(key_of(unpack(word).number), &view);
}

static void rarely(unsigned place, uint64_t random)
{
    switch (random % 64) {
    case 0:
        capture(place, random / 64);
        break;
    case 1:
        pool_reclaim((uint8_t)(random / 64 % 2));
        break;
    case 2:
        atomic_fetch_add(&fake_driver.now_ns, 3000 * FAKE_MS);
        break;
    default:
        break;
    }
}

static void operate(uint64_t random, uint64_t *word)
{
    unsigned place = (unsigned)(random >> 8) % places;
    int was_served;

    if (*word != 0 && random % 8 < 3) {
        drop(*word);
        *word = 0;
        return;
    }
    if (random % 8 == 3)
        *word = atomic_exchange_explicit(&mail[random / 256 % MAILS], *word, ORDER);
    if (!use(place))
        return;
    if (*word == 0)
        *word = pack(take(place, random >> 20, &was_served));
    else if (random % 8 < 6 && use(unpack(*word).place)) {
        if (generation_of(unpack(*word).place) == unpack(*word).generation)
            submit(unpack(*word), place);
        unuse(unpack(*word).place);
        fake_set_current(FIRST_CONTEXT + place);
    } else if (random % 8 == 6 && random / 8 % 4 == 0)
        pool_sync(FIRST_CONTEXT + place);
    else if (random % 8 == 7)
        rarely(place, random >> 20);
    look(*word);
    unuse(place);
}

struct life {
    uint64_t seed;
    unsigned operations;
};

static void *live(void *arg)
{
    const struct life *life = arg;
    uint64_t state = life->seed, held[KEPT] = {0};

    for (unsigned i = 0; i < life->operations; i++) {
        uint64_t random = next_random(&state);

        operate(random, &held[(random >> 56) % KEPT]);
    }
    for (unsigned i = 0; i < KEPT; i++)
        drop(held[i]);
    return NULL;
}

/* Lives one after the other, some in threads of their own; contexts end in between. */
static void work_for_a_while(unsigned id)
{
    for (unsigned i = 0; i < rounds; i++) {
        struct life life = {.seed = id * 1000 + i, .operations = 60};
        uint64_t state = life.seed ^ 0x55;
        uint64_t random = next_random(&state);
        pthread_t thread;

        if (i % 4 == 0 && pthread_create(&thread, NULL, live, &life) == 0)
            pthread_join(thread, NULL);
        else
            live(&life);
        if (random % 8 == 0)
            end_context((unsigned)(random / 8 % places), random / 64);
    }
}

static void check_all(void)
{
    for (unsigned i = 0; i < MAILS; i++)
        drop(mail[i]);
    cr_expect_eq(two_owners, 0u, "blocks with two owners: %u", (unsigned)two_owners);
    cr_expect_eq(too_early, 0u, "blocks served too early: %u", (unsigned)too_early);
    cr_expect_eq(served_in_capture, 0u);
    cr_expect_eq(wrong_free, 0u);
    cr_expect_gt(served, 100u);
    cr_expect_eq(pool_count(CW_BLOCK_LIVE), 0u);
    cr_expect_eq(pool_check(), 0);
    for (unsigned i = 0; i < places; i++)
        pool_end_context(FIRST_CONTEXT + i, CW_CONTEXT_DESTROYED);
    cr_expect_eq(pool_count(CW_BLOCK_IDLE), 0u, "idle blocks outlive their contexts: %u",
                 (unsigned)pool_count(CW_BLOCK_IDLE));
    cr_expect_eq(pool_check(), 0);
    for (unsigned i = 0; i < CW_DEVICES; i++)
        cr_expect_eq(core_held((uint8_t)i), 0u);
}

static void run(enum cw_free_sync free_sync, unsigned contexts, unsigned threads, unsigned lives)
{
    core_options()->pool_bucket_max = 4;
    cr_assert_eq(cw_sizes_parse("600M", 0, &core_options()->pool_max), 0);
    pool_start(free_sync);
    fake_driver.gate_may_close = 1;
    places = contexts;
    rounds = lives * SCALE;
    for (unsigned i = 1; i < contexts; i++)
        pooled_context(i, i % 2);
    run_threads(threads, work_for_a_while);
    check_all();
}

Test(pool_race, frees_that_wait_in_one_context)
{
    run(CW_FREE_STRICT, 1, THREADS, 12);
}

Test(pool_race, frees_that_wait_in_several_contexts)
{
    run(CW_FREE_STRICT, PLACES, THREADS, 12);
}

Test(pool_race, deferred_frees_in_one_context)
{
    run(CW_FREE_DEFERRED, 1, THREADS, 12);
}

Test(pool_race, deferred_frees_in_several_contexts)
{
    run(CW_FREE_DEFERRED, PLACES, THREADS, 12);
}

Test(pool_race, more_threads_than_slots)
{
    run(CW_FREE_DEFERRED, 2, PROGRAMS, 2);
}

/* ---- a free that comes late to the driver ---- */

static _Atomic int may_end, has_begun, was_early;
static pthread_t ender;

static void *end_first_context(void *arg)
{
    struct cw_context_ending end;

    (void)arg;
    cw_context_end_begin(pool_index(FIRST_CONTEXT), &end);
    has_begun = 1;
    while (!may_end)
        sched_yield();
    fake_context_end(FIRST_CONTEXT);
    cw_context_end_finish(&end, CW_CONTEXT_DESTROYED);
    return NULL;
}

static uint64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The thread loses the processor here, for longer than the gate waits for it, but not for as long
 * as an end would wait at most. */
static void come_late(enum fake_call call)
{
    uint64_t called, shut, now;

    if (call != FAKE_BLOCK_FREE || has_begun)
        return;
    called = clock_ms();
    cr_assert_eq(pthread_create(&ender, NULL, end_first_context, NULL), 0);
    while (cw_gate_is_open())
        sched_yield();
    shut = clock_ms();
    do {
        int is_early = has_begun;

        now = clock_ms();
        if (is_early && now < called + 500)
            was_early = 1;
        sched_yield();
    } while (now < shut + 100);
    fake_driver.inside = NULL;
    may_end = 1;
}

Test(pool_race, a_context_does_not_end_before_a_free_in_it_that_has_begun)
{
    pool_start(CW_FREE_STRICT);
    fake_driver.gate_may_close = 1; /* the end waits for the free that has begun */
    cr_assert_eq(pool_put(pool_get(MIB)), CW_POOL_KEPT);
    fake_driver.inside = come_late;
    pool_reclaim(0);
    pthread_join(ender, NULL);
    cr_expect_eq(was_early, 0);
    cr_expect_eq(fake_driver.calls[FAKE_BLOCK_FREE], 1);
    cr_expect_eq(fake_taken(), 0u);
}
