/* SPDX-License-Identifier: MIT */
/*
 * The pool against a naive model, in one thread: the model knows of each freed block which work was
 * outstanding at its free, and so which blocks may legally serve a request.
 */
#include <criterion/criterion.h>

#include "core/process/gate.h"
#include "core/limits/excess.h"
#include "core/account/usage.h"
#include "core/account/tracker.h"
#include "pool_fixture.h"

#define PLACES     3 /* of contexts */
#define OPERATIONS 50000

enum fate { GONE, LIVE, FREED };

static struct model_block {
    enum fate fate;
    enum cw_pool_class class;
    uint64_t held;
    unsigned place; /* of its context, and which context there */
    uint32_t generation;
    int is_exported, was_kept;
    /* At the free, of each context: */
    uint64_t work[PLACES];
    uint32_t during[PLACES];
} model[FAKE_BLOCKS];

static unsigned highest, current, live_count;
static int in_capture;
static uint64_t seed, hits, requests;

static uint64_t random_number(void)
{
    return next_random(&seed);
}

static const struct fake_context *context_at(unsigned place)
{
    return &fake_driver.context[place];
}

static uint64_t random_size(void)
{
    uint64_t random = random_number();

    switch (random % 4) {
    case 0:
        return (random >> 8) % (64 * KIB) + 1;
    case 1:
        return ((random >> 8) % 6 + 1) * 300 * KIB;
    case 2:
        return ((random >> 8) % 8 + 1) * 4 * KIB;
    default:
        return 60 * MIB + (random >> 8) % 16 * (1 * MIB + 11);
    }
}

static enum cw_pool_class random_class(void)
{
    static const enum cw_pool_class classes[] = {CW_POOL_DEVICE, CW_POOL_DEVICE, CW_POOL_PITCHED,
                                                 CW_POOL_HOST, CW_POOL_HOST_FLAGS + 3};

    return classes[random_number() % 5];
}

/* ---- what is legal ---- */

static int is_ready(const struct model_block *block)
{
    for (unsigned i = 0; i < PLACES; i++)
        if (!fake_is_finished(i, block->during[i], block->work[i]))
            return 0;
    return 1;
}

static int is_legal_size(const struct model_block *block, uint64_t bytes)
{
    uint64_t excess = cw_size_excess(block->held, bytes);

    return block->held >= bytes &&
           (excess <= cw_size_tolerance(bytes) ||
            (block->class < CW_POOL_HOST &&
             (excess <= bytes / 2 || cw_size_class_down(block->held) == cw_size_class_up(bytes))));
}

/* One part in 200 of the device, whatever lies idle. */
static void expect_little_excess(void)
{
    for (uint8_t device = 0; device < 2; device++)
        cr_assert_leq(cw_usage_excess(device), fake_driver.total_bytes / CW_EXCESS_SHARE);
}

static void expect_legal(const struct model_block *block, enum cw_pool_class class, uint64_t bytes)
{
    cr_assert_eq(block->fate, FREED);
    cr_assert_eq(block->was_kept, 1);
    cr_assert_eq(block->class, class);
    cr_assert_eq(block->place, current);
    cr_assert_eq(block->generation, context_at(current)->generation);
    cr_assert_eq(block->is_exported, 0);
    cr_assert_eq(in_capture, 0);
    cr_assert(is_legal_size(block, bytes));
    cr_assert(is_ready(block));
}

/* ---- operations ---- */

static void allocate(void)
{
    enum cw_pool_class class = random_class();
    uint64_t bytes = random_size(), key;
    struct model_block *block;
    int was_served;

    if (class == CW_POOL_PITCHED && bytes < CW_SIZE_LEAST)
        bytes = CW_SIZE_LEAST;
    key = pool_alloc(class, bytes, &was_served);
    block = &model[fake_number(key)];
    cr_assert_neq(block->fate, LIVE);
    requests++;
    hits += (unsigned)was_served;
    if (was_served)
        expect_legal(block, class, bytes);
    else
        *block = (struct model_block){
            .class = class,
            .place = current,
            .generation = context_at(current)->generation,
            .held = cw_tracker_at(cw_tracker_find(CW_SPACE_ADDRESS, key))->held};
    block->fate = LIVE;
    live_count++;
    if (fake_number(key) > highest)
        highest = fake_number(key);
}

static struct model_block *random_block(enum fate fate)
{
    for (int tries = 0; highest > 0 && tries < 20; tries++) {
        struct model_block *block = &model[random_number() % highest + 1];

        if (block->fate == fate && block->generation == context_at(block->place)->generation)
            return block;
    }
    return NULL;
}

static uint64_t key_of(const struct model_block *block)
{
    return (uint64_t)(block - model) << 28;
}

static void release(void)
{
    struct model_block *block = random_block(LIVE);
    enum cw_pool_free how;

    if (block == NULL)
        return;
    for (unsigned i = 0; i < PLACES; i++) {
        block->work[i] = context_at(i)->submitted;
        block->during[i] = context_at(i)->generation;
    }
    how = pool_free(block->class, key_of(block), NULL);
    cr_assert_neq(how, CW_POOL_REFUSED);
    if (in_capture || block->is_exported)
        cr_assert_eq(how, CW_POOL_DRIVER);
    block->was_kept = how == CW_POOL_KEPT;
    block->fate = FREED;
    live_count--;
}

/* The address of an idle block is refused; the pool may have given the block back since. */
static void free_twice(void)
{
    const struct model_block *block = random_block(FREED);
    uint32_t index = block != NULL ? cw_tracker_find(CW_SPACE_ADDRESS, key_of(block)) : 0;

    if (block != NULL)
        cr_assert_eq(pool_free(block->class, key_of(block), NULL),
                     index != 0 ? CW_POOL_REFUSED : CW_POOL_DRIVER);
}

static void export(void)
{
    struct model_block *block = random_block(LIVE);

    if (block == NULL)
        return;
    block->is_exported = 1;
    atomic_fetch_or(&cw_tracker_at(cw_tracker_find(CW_SPACE_ADDRESS, key_of(block)))->flags,
                    CW_BLOCK_EXPORTED);
}

static void toggle_capture(void)
{
    if (in_capture)
        cw_gate_open(CW_GATE_CAPTURE);
    else
        cw_gate_close(CW_GATE_CAPTURE);
    in_capture = !in_capture;
}

static void end_context(unsigned place)
{
    static const enum cw_context_outcome outcomes[] = {CW_CONTEXT_KEPT, CW_CONTEXT_DESTROYED,
                                                       CW_CONTEXT_RENEWED};
    enum cw_context_outcome outcome = outcomes[random_number() % 3];

    for (unsigned i = 1; outcome != CW_CONTEXT_KEPT && i <= highest; i++)
        if (model[i].fate == LIVE && model[i].place == place &&
            model[i].generation == context_at(place)->generation) {
            model[i].fate = GONE;
            live_count--;
        }
    pool_end_context(FIRST_CONTEXT + place, outcome);
    if (outcome == CW_CONTEXT_DESTROYED)
        pooled_context(place, place % 2);
}

static void seldom(void)
{
    unsigned place = (unsigned)(random_number() % PLACES);

    switch (random_number() % 8) {
    case 0:
        toggle_capture();
        break;
    case 1:
        if (!in_capture)
            end_context(place);
        break;
    case 2:
        pool_reclaim((uint8_t)(place % 2));
        break;
    case 3:
        fake_driver.fails[FAKE_EVENT_RECORD] = random_number() % 4 == 0;
        break;
    case 4:
        fake_driver.now_ns += 3000 * FAKE_MS;
        break;
    case 5:
        export();
        break;
    default:
        free_twice();
        break;
    }
}

static void operate(void)
{
    uint64_t random = random_number();
    unsigned place = (unsigned)(random >> 32) % PLACES;

    if (in_capture && random >> 40 & 1) /* captures are short */
        toggle_capture();
    switch (random % 16) {
    case 0:
    case 1:
        fake_submit(FIRST_CONTEXT + place);
        break;
    case 2:
        fake_finish(FIRST_CONTEXT + place);
        break;
    case 3:
        pool_sync(FIRST_CONTEXT + place);
        break;
    case 4:
        current = place;
        fake_set_current(FIRST_CONTEXT + place);
        break;
    case 5:
        if ((random >> 8) % 4 == 0)
            seldom();
        break;
    default:
        if (random >> 8 & 1 && live_count < 300)
            allocate();
        else
            release();
        break;
    }
}

/* A device comes to an end with its work while somebody waits for it. */
static void finish_sometimes(enum fake_call call)
{
    uint64_t random;

    if (call != FAKE_EVENT_QUERY)
        return;
    random = random_number();
    if (random % 8 == 0)
        fake_finish(FIRST_CONTEXT + (unsigned)(random >> 32) % PLACES);
}

static void run(enum cw_free_sync free_sync, const char *most, uint64_t total)
{
    cr_assert_eq(cw_sizes_parse(most, 0, &core_options()->pool_max), 0);
    pool_start(free_sync);
    fake_driver.total_bytes = total;
    fake_driver.free_bytes = total - total / 4;
    fake_driver.inside = finish_sometimes;
    for (unsigned i = 1; i < PLACES; i++)
        pooled_context(i, i % 2);
    for (int i = 0; i < OPERATIONS; i++) {
        operate();
        if (i % 997 != 0)
            continue;
        cr_assert_eq(pool_check(), 0);
        cr_assert_eq(pool_count(CW_BLOCK_LIVE), live_count);
        expect_little_excess();
    }
    cr_expect_eq(pool_check(), 0);
    cr_expect_eq(pool_sums().hits, hits);
    cr_expect_gt(hits, requests / 10);
}

Test(pool_model, serves_only_what_is_legal_when_frees_wait)
{
    run(CW_FREE_STRICT, "25%", 80 * GIB);
}

Test(pool_model, serves_only_what_is_legal_when_frees_are_deferred)
{
    run(CW_FREE_DEFERRED, "25%", 80 * GIB);
}

Test(pool_model, serves_only_what_is_legal_within_a_small_limit)
{
    seed = 3;
    run(CW_FREE_STRICT, "200M", 80 * GIB);
}

Test(pool_model, serves_only_what_is_legal_when_deferred_within_a_small_limit)
{
    seed = 4;
    run(CW_FREE_DEFERRED, "200M", 80 * GIB);
}

/* Excess is used up most of the time. */
Test(pool_model, serves_only_what_is_legal_on_a_small_device)
{
    seed = 5;
    run(CW_FREE_STRICT, "100%", 8 * GIB);
}

Test(pool_model, serves_only_what_is_legal_when_deferred_on_a_small_device)
{
    seed = 6;
    run(CW_FREE_DEFERRED, "100%", 8 * GIB);
}
