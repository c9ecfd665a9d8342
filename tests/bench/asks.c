/* SPDX-License-Identifier: MIT */
/*
 * What a program pays for asking (include/cuwarden), in nanoseconds: for each function a line with
 * its name and the best of many bursts, so that who else is at work does not count. -1: it failed.
 * Over the driver that costs nothing. Declares what it calls itself, as pairs.c does.
 *
 *   asks            push, pop, mark, statistics, a buffer that has room and one that grows by a
 *                   copy
 *   asks all        all of which the header has a figure
 *   asks gpu BURSTS those that have aims on a GPU, over its driver
 *
 * `pair` is an allocation from the pool and its free, and `budget` the same with a tag that has a
 * budget: their difference is what a budget costs both. `take` and `budget_take` are the allocation
 * alone.
 */
#include <cuwarden/cuwarden.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *dptr, size_t bytes);
int cuMemFree_v2(uint64_t dptr);

#define BURST  30 /* no more than tags nest */
#define BURSTS 20000
#define MANY   1000
#define LIVE   1000 /* blocks of a visit */

#define GROWTHS 16 /* the last buffer has so many times 2 MiB */

#define IN_HAND 16 /* blocks that a thread keeps to itself */

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The best burst of a call. */
#define BEST(best, count, call)                                                                    \
    do {                                                                                           \
        double begin = now_ns(), each;                                                             \
                                                                                                   \
        for (int i = 0; i < (count); i++)                                                          \
            call;                                                                                  \
        each = (now_ns() - begin) / (count);                                                       \
        if ((best) == 0 || each < (best))                                                          \
            (best) = each;                                                                         \
    } while (0)

static uint64_t block;

static void pair(void)
{
    uint64_t other;

    if (cuMemAlloc_v2(&other, 4096) == 0)
        (void)cuMemFree_v2(other);
}

/* The mean of a buffer's growths from one element to 16 Ki, each by a copy, in the best of many
 * rounds; -1 if one fails. */
static double resize_ns(void)
{
    struct cuwarden_buffer_spec spec = {.name = "grown", .element_bytes = 4096, .count = 1};
    double best = 0;

    spec.growth = 2;
    spec.flags = CUWARDEN_COPYING;
    for (int round = 0; round < 200; round++) {
        struct cuwarden_buffer seen = {0};
        uint64_t buffer = 0;
        double begin, each;

        if (cuwarden_buffer_make(&spec, &buffer) != CUWARDEN_OK)
            return -1;
        begin = now_ns();
        for (uint64_t count = 2; count <= 16384; count *= 2)
            if (cuwarden_ensure_capacity(buffer, count, NULL, NULL) != CUWARDEN_OK)
                return -1;
        each = now_ns() - begin;
        (void)cuwarden_buffer_now(buffer, &seen);
        if (seen.copies < 14 || cuwarden_buffer_end(buffer) != CUWARDEN_OK)
            return -1;
        each /= (double)seen.copies;
        best = best == 0 || each < best ? each : best;
    }
    return best;
}

/* A growth by 2 MiB of a buffer that keeps its address; -1 if one fails, or copies. */
static double grow_ns(void)
{
    struct cuwarden_buffer_spec spec = {.name = "in place", .element_bytes = 2 << 20, .count = 1};
    double best = 0;

    spec.growth = 1;
    for (int round = 0; round < 20; round++) {
        struct cuwarden_buffer seen = {0};
        uint64_t buffer = 0;

        if (cuwarden_buffer_make(&spec, &buffer) != CUWARDEN_OK)
            return -1;
        for (uint64_t count = 2; count <= GROWTHS; count++)
            BEST(best, 1, cuwarden_ensure_capacity(buffer, count, NULL, NULL));
        (void)cuwarden_buffer_now(buffer, &seen);
        if (seen.resizes < GROWTHS - 1 || seen.copies != 0 ||
            cuwarden_buffer_end(buffer) != CUWARDEN_OK)
            return -1;
    }
    return best;
}

static void basics(void)
{
    double push = 0, pop = 0, mark = 0, statistics = 0, ensure = 0;
    struct cuwarden_buffer_spec spec = cuwarden_preset(CUWARDEN_EDGES, "edges");
    struct cuwarden_stats stats;
    uint64_t moment, buffer = 0;
    void *address;
    /* A process's first 100 ms have exact times, which cost 20 ns each. */
    const struct timespec past_exact_times = {0, 120000000};

    spec.count = BURST;
    spec.flags = CUWARDEN_COPYING;
    (void)cuwarden_buffer_make(&spec, &buffer);
    (void)nanosleep(&past_exact_times, NULL);
    for (int burst = 0; burst < BURSTS; burst++) {
        BEST(push, BURST, cuwarden_tag_push("forward pass"));
        BEST(pop, BURST, cuwarden_tag_pop());
        BEST(mark, BURST, cuwarden_mark(&moment));
        BEST(statistics, BURST, cuwarden_device_stats(0, &stats));
        BEST(ensure, BURST, cuwarden_ensure_capacity(buffer, (uint64_t)i, NULL, &address));
    }
    if (cuwarden_buffer_end(buffer) != CUWARDEN_OK)
        ensure = -1;
    printf("tag_push %.1f\ntag_pop %.1f\nmark %.1f\nstatistics %.1f\n", push, pop, mark,
           statistics);
    printf("ensure_capacity %.1f\n", ensure);
}

static int next(const struct cuwarden_block *seen, void *unused)
{
    (void)seen;
    (void)unused;
    return 0;
}

static void small_ones(void)
{
    const void *address = (const void *)(uintptr_t)block;
    double active = 0, step = 0, find = 0, name = 0, keep = 0, begin = 0, end = 0, scope = 0;
    double pressure = 0;
    struct cuwarden_pressure now;
    struct cuwarden_block found;

    for (int burst = 0; burst < MANY; burst++) {
        BEST(active, MANY, cuwarden_is_active());
        BEST(step, MANY, cuwarden_step("iteration"));
        BEST(find, MANY, cuwarden_block_find(address, &found));
        BEST(name, MANY, cuwarden_block_name(address, "positions"));
        BEST(keep, MANY, cuwarden_keep(address));
        BEST(begin, MANY, cuwarden_batch_begin());
        BEST(end, MANY, cuwarden_batch_end());
        BEST(pressure, MANY, cuwarden_pressure_now(0, &now));
        BEST(scope, 1, cuwarden_scope_begin("scope"));
        (void)cuwarden_scope_end(NULL);
    }
    printf("is_active %.1f\nstep %.1f\nblock_find %.1f\nblock_name %.1f\nkeep %.1f\n", active, step,
           find, name, keep);
    printf("batch_begin %.1f\nbatch_end %.1f\nscope_begin %.1f\npressure_now %.1f\n", begin, end,
           scope, pressure);
}

/* Per block, of so many that are live. */
static void blocks(void)
{
    static uint64_t live[LIVE];
    double visit = 0, leaks = 0, scope = 0;
    struct cuwarden_leaks found;

    for (int i = 0; i < LIVE; i++)
        (void)cuMemAlloc_v2(&live[i], 512);
    for (int burst = 0; burst < 200; burst++) {
        BEST(visit, 1, cuwarden_visit(NULL, next, NULL));
        BEST(leaks, 1, cuwarden_leak_check(0, NULL, NULL, &found));
        (void)cuwarden_scope_begin("scope");
        BEST(scope, 1, cuwarden_scope_end(NULL));
    }
    for (int i = 0; i < LIVE; i++)
        (void)cuMemFree_v2(live[i]);
    printf("visit_per_block %.1f\nleak_check %.0f\nscope_end_per_block %.1f\n", visit / LIVE, leaks,
           scope / LIVE);
}

static uint64_t in_hand[IN_HAND];

static void take_all(void)
{
    for (int i = 0; i < IN_HAND; i++)
        (void)cuMemAlloc_v2(&in_hand[i], 4096);
}

static void give_all(void)
{
    for (int i = 0; i < IN_HAND; i++)
        (void)cuMemFree_v2(in_hand[i]);
}

/* The best of many. */
static void takes(double *best)
{
    for (int i = 0; i < 200; i++) {
        BEST(*best, 1, take_all());
        give_all();
    }
}

/* The two in turn, so that both have met the same machine. */
static void budgets(int bursts)
{
    double with = 0, without = 0, other = 0, now = 0, set = 0, take = 0, budget_take = 0;
    struct cuwarden_budget seen;

    (void)cuwarden_tag_push("budgeted");
    for (int burst = 0; burst < bursts; burst++) {
        BEST(without, MANY, pair());
        takes(&take);
        BEST(set, 1, cuwarden_budget_set("budgeted", (uint64_t)1 << 30, CUWARDEN_REFUSE));
        pair();
        for (int i = 0; i < 20; i++)
            BEST(with, MANY, pair());
        takes(&budget_take);
        BEST(now, 1, cuwarden_budget_now("budgeted", &seen));
        (void)cuwarden_tag_push("free of it");
        for (int i = 0; i < 20; i++)
            BEST(other, MANY, pair());
        (void)cuwarden_tag_pop();
        (void)cuwarden_budget_clear("budgeted");
    }
    (void)cuwarden_tag_pop();
    printf("pair %.1f\nbudget %.1f\nbudget_of_another_tag %.1f\n", without, with, other);
    printf("take %.1f\nbudget_take %.1f\n", take / IN_HAND, budget_take / IN_HAND);
    printf("budget_set %.0f\nbudget_now %.0f\n", set, now);
}

static void best_pair(const char *name)
{
    void *other;

    if (cuwarden_device_alloc(name, 4096, NULL, &other) == CUWARDEN_OK)
        (void)cuMemFree_v2((uint64_t)(uintptr_t)other);
}

/* The same pair on the device that the library chooses. */
static void places(int bursts)
{
    double pick = 0, named = 0, without = 0, best = 0;
    int32_t device;

    for (int burst = 0; burst < bursts; burst++) {
        BEST(pick, MANY, cuwarden_device_pick(NULL, 4096, &device));
        BEST(named, MANY, cuwarden_device_pick("field", 4096, &device));
        BEST(without, MANY, pair());
        BEST(best, MANY, best_pair(NULL));
    }
    printf("device_pick %.1f\ndevice_pick_named %.1f\npair %.1f\ndevice_alloc_pair %.1f\n", pick,
           named, without, best);
}

int main(int argc, char **argv)
{
    void *context;

    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 ||
        cuCtxSetCurrent(context) != 0 || cuMemAlloc_v2(&block, 4096) != 0)
        return 1;
    if (!cuwarden_is_active())
        return 2;
    basics();
    if (argc > 2 && strcmp(argv[1], "gpu") == 0) {
        budgets(atoi(argv[2]));
        places(atoi(argv[2]));
        printf("grow_in_place %.0f\n", grow_ns());
        return 0;
    }
    printf("resize %.1f\n", resize_ns());
    if (argc > 1 && strcmp(argv[1], "all") == 0) {
        small_ones();
        budgets(100);
        places(200);
        blocks();
    }
    return 0;
}
