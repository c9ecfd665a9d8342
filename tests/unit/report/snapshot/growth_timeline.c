/* SPDX-License-Identifier: MIT */
/* What a report finds in timelines made by hand: their points, the peaks of each quarter, and what
 * the pool kept. The process of the fixture ended after 400 ms. */
#include "report/snapshot/growth_read.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>

#include "report_fixture.h"
#include "report/snapshot/snapshot.h"

#define END (400 * FIXTURE_MS)

static const struct cw_snapshot_growth *const growth = &snapshot.growth;

TestSuite(snapshot_timeline, .init = fixture_create, .fini = report_teardown);

static void read_now(void)
{
    struct cw_view view = fixture_view();

    cw_snapshot_fini(&snapshot);
    cr_assert_eq(cw_snapshot_init(&snapshot, &view, 0), 0);
    cw_snapshot_growth_read(&snapshot, END);
}

/* A point every 10 ms, in slots that run backwards. */
static struct cw_live_timeline *make_line(unsigned device)
{
    struct cw_live_timeline *timeline = fixture_timeline(device);

    for (unsigned i = 1; i < MOMENTS; i++)
        timeline->point[CW_POINTS - i].t_ns = i * 10 * FIXTURE_MS;
    return timeline;
}

static struct cw_live_point *point_at(struct cw_live_timeline *timeline, unsigned at)
{
    return &timeline->point[CW_POINTS - at];
}

Test(snapshot_timeline, a_timeline_is_sorted_and_ends_with_the_present)
{
    const struct cw_growth_timeline *line = &growth->timeline[2];
    struct cw_live_timeline *timeline = make_line(2);
    uint32_t site = fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 2);

    fixture_alloc(site, 512, 3, 10 * FIXTURE_MS);
    *point_at(timeline, 3) =
        (struct cw_live_point){.t_ns = 30 * FIXTURE_MS, .live = 1, .held = 2, .idle = 3, .used = 4};
    timeline->point[0].t_ns = END;
    timeline->point[1].t_ns = 30 * FIXTURE_MS; /* the same again */
    timeline->point[1].live = 1;
    timeline->point[2].live = 99; /* nothing in the slot */
    fixture_timeline(2)->point[0].t_ns = 5;
    fixture_timeline(CW_DEVICES)->point[0].t_ns = 5;
    fixture_timeline(UINT32_MAX)->point[0].t_ns = 5;
    read_now();
    cr_assert_eq(line->count, MOMENTS);
    for (uint32_t i = 0; i < line->count; i++)
        cr_expect_eq(line->point[i].t_ns, (i + 1) * 10 * FIXTURE_MS);
    cr_expect_eq(line->point[2].live, 1);
    cr_expect_eq(line->point[2].held, 2);
    cr_expect_eq(line->point[2].idle, 3);
    cr_expect_eq(line->point[2].used, 4);
    cr_expect_eq(line->point[MOMENTS - 1].live, 1536);
    cr_expect_eq(line->point[MOMENTS - 1].held, 1536);
}

/* The row of live bytes that a reader sees, as text. */
static const char *live_row(const struct cw_growth_timeline *line)
{
    static char row[256];
    size_t at = 0;

    row[0] = '\0';
    for (uint32_t i = 0; i < line->count; i++)
        at += (size_t)snprintf(row + at, sizeof(row) - at, "%s%llu", i ? " " : "",
                               (unsigned long long)line->point[i].live);
    return row;
}

Test(snapshot_timeline, extremes_between_samples_are_points)
{
    const struct cw_growth_timeline *line = &growth->timeline[0];
    struct cw_live_timeline *timeline = fixture_timeline(0);
    struct cw_live_device *device = &fixture.arena.header->device[0];

    timeline->point[0] = (struct cw_live_point){.t_ns = 100, .live = 60, .held = 80, .used = 900};
    timeline->point[1] = (struct cw_live_point){.t_ns = 200,
                                                .live = 60,
                                                .held = 80,
                                                .used = 900,
                                                .least = {110, 50, 80, 30},
                                                .most = {120, 660, 700, 10}};
    timeline->point[2] = (struct cw_live_point){
        .t_ns = 300, .live = 60, .least = {200, 60, 80, 0}, .most = {200, 70, 80, 0}};
    device->most = (struct cw_live_extreme){400, 65, 80, 0};
    device->peak_bytes = 660;
    device->peak_ns = 120;
    read_now();
    cr_expect_str_eq(live_row(line), "60 50 660 60 70 60 65 0");
    cr_expect_eq(line->point[2].t_ns, 120);
    cr_expect_eq(line->point[2].held, 700);
    cr_expect_eq(line->point[2].idle, 10);
    cr_expect_eq(line->point[2].used, 900);
    for (uint32_t i = 1; i < line->count; i++)
        cr_expect_gt(line->point[i].t_ns, line->point[i - 1].t_ns);
}

/* The first sample and all that came before it are of one tick of the clock, and so is the end. */
Test(snapshot_timeline, extremes_keep_their_order_on_a_coarse_clock)
{
    const struct cw_growth_timeline *line = &growth->timeline[0];
    struct cw_live_device *device = &fixture.arena.header->device[0];

    fixture_timeline(0)->point[0] =
        (struct cw_live_point){.t_ns = END - 1, .live = 30, .most = {END - 1, 40, 40, 0}};
    device->most = (struct cw_live_extreme){END, 80, 80, 0};
    device->least = (struct cw_live_extreme){END - 1, 0, 0, 0};
    device->peak_bytes = 80;
    device->peak_ns = END;
    read_now();
    cr_expect_str_eq(live_row(line), "40 30 80 0");
    cr_expect_eq(line->point[line->count - 1].t_ns, END);
    for (uint32_t i = 1; i < line->count; i++)
        cr_expect_gt(line->point[i].t_ns, line->point[i - 1].t_ns);
}

Test(snapshot_timeline, the_peak_and_each_out_of_memory_are_points)
{
    const struct cw_growth_timeline *line = &growth->timeline[0];
    struct cw_live_device *device = &fixture.arena.header->device[0];
    struct cw_live_event *oom =
        fixture_event(CW_EVENT_OOM, fixture_site(0, "cuMemAlloc", CW_KIND_DEVICE, 0), 2);

    fixture_timeline(0)->point[0] = (struct cw_live_point){.t_ns = 100, .live = 60};
    device->peak_bytes = 660;
    device->peak_ns = 90;
    oom->t_ns = 100;
    oom->live = 61;
    oom->held = 80;
    read_now();
    cr_expect_str_eq(live_row(line), "660 60 61 0");
    cr_expect_eq(line->point[2].held, 80);
    cr_expect_eq(line->point[2].t_ns, 101);
}

Test(snapshot_timeline, peaks_by_quarters)
{
    const struct cw_growth_timeline *line = &growth->timeline[0];
    struct cw_live_timeline *timeline = make_line(0);

    point_at(timeline, 5)->live = 100 * MIB;
    point_at(timeline, 15)->live = 300 * MIB;
    point_at(timeline, 25)->live = 200 * MIB;
    point_at(timeline, 35)->live = 310 * MIB;
    read_now();
    cr_assert(line->has_peaks);
    cr_expect_eq(line->peak[0], 100 * MIB);
    cr_expect_eq(line->peak[1], 300 * MIB);
    cr_expect_eq(line->peak[2], 200 * MIB);
    cr_expect_eq(line->peak[3], 310 * MIB);
    cr_expect_not(line->peak_rose); /* by 3 % only */
    point_at(timeline, 35)->live = 320 * MIB;
    read_now();
    cr_expect(line->peak_rose);
    /* A short peak that no point has seen: before the last quarter it counts, */
    fixture.arena.header->device[0].peak_bytes = 330 * MIB;
    fixture.arena.header->device[0].peak_ns = 123 * FIXTURE_MS;
    read_now();
    cr_expect_eq(line->peak[1], 330 * MIB);
    cr_expect_not(line->peak_rose);
    /* in it, it is said, but does not decide. */
    point_at(timeline, 35)->live = 299 * MIB;
    fixture.arena.header->device[0].peak_ns = 350 * FIXTURE_MS;
    read_now();
    cr_expect_eq(line->peak[3], 330 * MIB);
    cr_expect_not(line->peak_rose);
}

Test(snapshot_timeline, peaks_of_few_points_say_nothing)
{
    struct cw_live_timeline *timeline = fixture_timeline(0);

    for (unsigned i = 1; i <= 6; i++) {
        timeline->point[i].t_ns = i * 60 * FIXTURE_MS;
        timeline->point[i].live = i * MIB;
    }
    read_now(); /* 7 with the present */
    cr_expect_not(growth->timeline[0].has_peaks);
    timeline->point[7].t_ns = 10 * FIXTURE_MS;
    read_now();
    cr_expect(growth->timeline[0].has_peaks);
    cr_expect(growth->timeline[0].peak_rose);
}

Test(snapshot_timeline, what_the_pool_keeps_has_a_line)
{
    struct cw_live_timeline *timeline = make_line(0);

    for (unsigned i = 8; i < MOMENTS; i++)
        point_at(timeline, i)->idle = i * MIB;
    read_now();
    cr_expect_eq(growth->timeline[0].idle.n, 32); /* the present, with nothing idle, is clean-up */
    cr_expect_float_eq(growth->timeline[0].idle.slope, 100.0 * (double)MIB, 1);
    cr_expect(growth->timeline[0].idle.is_steady);
    for (unsigned i = 8; i < MOMENTS; i++)
        point_at(timeline, i)->idle = 8 * MIB;
    read_now();
    cr_expect_not(growth->timeline[0].idle.is_steady);
}

/* Rewrites slots over and over, as layout.h says: all values of a point are its time, in ns. */
struct rewriting {
    struct cw_live_timeline *timeline;
    _Atomic int stop;
};

static void *rewrite(void *arg)
{
    struct rewriting *rewriting = arg;

    for (uint64_t t_ns = 1; !atomic_load(&rewriting->stop); t_ns = t_ns % 1000000 + 1) {
        struct cw_live_point *point = &rewriting->timeline->point[t_ns % CW_POINTS];

        atomic_store_explicit(&point->t_ns, 0, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&point->live, t_ns, memory_order_relaxed);
        atomic_store_explicit(&point->held, t_ns, memory_order_relaxed);
        atomic_store_explicit(&point->idle, t_ns, memory_order_relaxed);
        atomic_store_explicit(&point->used, t_ns, memory_order_relaxed);
        atomic_store_explicit(&point->t_ns, t_ns, memory_order_release);
    }
    return NULL;
}

Test(snapshot_timeline, a_point_that_changes_while_it_is_read_is_dropped)
{
    static struct rewriting rewriting;
    const struct cw_growth_timeline *line = &growth->timeline[0];
    pthread_t thread;

    rewriting.timeline = fixture_timeline(0);
    pthread_create(&thread, NULL, rewrite, &rewriting);
    for (unsigned round = 0; round < 5000; round++) {
        read_now();
        for (uint32_t i = 0; i + 1 < line->count; i++) {
            const struct cw_growth_point *point = &line->point[i];

            cr_assert(point->live == point->t_ns && point->held == point->t_ns &&
                      point->idle == point->t_ns && point->used == point->t_ns);
        }
    }
    rewriting.stop = 1;
    pthread_join(thread, NULL);
}
