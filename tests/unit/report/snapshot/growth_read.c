/* SPDX-License-Identifier: MIT */
/* What a report finds that grew, from layouts made by hand: samples, steps, regrowth.
 * The process of the fixture ended after 400 ms. */
#include "report/snapshot/growth_read.h"
#include "report/leaks/leak_class.h"

#include <criterion/criterion.h>

#include <pthread.h>

#include "report_fixture.h"
#include "report/snapshot/snapshot.h"

#define END (400 * FIXTURE_MS)

static const struct cw_snapshot_growth *const growth = &snapshot.growth;

TestSuite(snapshot_growth, .init = fixture_create, .fini = report_teardown);

static void read_at(uint64_t now_ns)
{
    struct cw_view view = fixture_view();

    cw_snapshot_fini(&snapshot);
    cr_assert_eq(cw_snapshot_init(&snapshot, &view, now_ns), 0);
    cw_snapshot_growth_read(&snapshot, snapshot.duration_ns);
    cr_assert_eq(cw_leak_classify(&snapshot, NULL, NULL), 0);
}

static void read_now(void)
{
    read_at(END);
}

static uint32_t new_site(const char *api)
{
    return fixture_site(0, api, CW_KIND_DEVICE, 0);
}

/* A site that held k MiB * `each` at the k-th moment, and holds 40 times that now, until it is
 * freed. */
static uint32_t leaking_site(const char *api, unsigned each)
{
    uint32_t site = new_site(api);
    struct cw_live_series *series = fixture_series(site);

    fixture_alloc(site, MIB, each, 10 * FIXTURE_MS);
    fixture_alloc(site, MIB, 39 * each, END);
    for (unsigned i = 1; i < MOMENTS; i++)
        series->bytes[i] = i * each * MIB;
    return site;
}

static uint32_t merged(uint32_t site)
{
    return (uint32_t)(cw_snapshot_find(&snapshot, site) - snapshot.site);
}

static const uint64_t *bytes_of(uint32_t site)
{
    const struct cw_growth_row *row = cw_snapshot_growth_row(&snapshot, merged(site));

    return row ? cw_snapshot_growth_bytes(growth, (uint32_t)(row - growth->row)) : NULL;
}

/* ---- moments and rows ---- */

Test(snapshot_growth, of_an_empty_layout_is_empty)
{
    read_now();
    cr_expect_eq(growth->rows, 0);
    cr_expect_eq(growth->suspects, 0);
    cr_expect_eq(growth->steps, 0);
    cr_expect_eq(growth->regrowths, 0);
    cr_expect_not(cw_snapshot_growth_was_watched(growth));
}

Test(snapshot_growth, records_that_are_one_site_are_added_up_in_the_order_of_time)
{
    uint32_t one = new_site("cuMemAlloc_v2"), two = new_site("cuMemAlloc_v2");
    uint32_t other = new_site("cudaMalloc");
    struct cw_live_series *series[] = {fixture_series(one), fixture_series(two)};

    fixture_moment(7, 30 * FIXTURE_MS);
    fixture_moment(0, 40 * FIXTURE_MS);
    fixture_moment(63, 20 * FIXTURE_MS);
    series[0]->bytes[7] = 100;
    series[1]->bytes[7] = 11;
    series[0]->bytes[0] = 7;
    series[1]->bytes[63] = 5;
    series[1]->bytes[1] = 9999; /* of no moment */
    fixture_alloc(one, 4096, 2, 20 * FIXTURE_MS);
    fixture_alloc(two, 256, 1, 20 * FIXTURE_MS);
    fixture_alloc(other, 77, 1, 20 * FIXTURE_MS);
    read_now();
    cr_assert_eq(growth->rows, 1);
    cr_expect_null(cw_snapshot_growth_row(&snapshot, merged(other)));
    cr_assert_eq(growth->moments, 4);
    cr_expect_eq(growth->t_ns[0], 20 * FIXTURE_MS);
    cr_expect_eq(growth->t_ns[1], 30 * FIXTURE_MS);
    cr_expect_eq(growth->t_ns[2], 40 * FIXTURE_MS);
    cr_expect_eq(growth->t_ns[3], END);
    cr_expect_eq(bytes_of(one)[0], 5);
    cr_expect_eq(bytes_of(one)[1], 111);
    cr_expect_eq(bytes_of(one)[2], 7);
    cr_expect_eq(bytes_of(one)[3], 2 * 4096 + 256);
}

Test(snapshot_growth, equal_times_count_once_and_later_than_the_end_never)
{
    uint32_t site = new_site("cudaMalloc");
    struct cw_live_series *series = fixture_series(site);

    fixture_moment(1, 20 * FIXTURE_MS);
    fixture_moment(2, 20 * FIXTURE_MS);
    fixture_moment(3, END);
    fixture_moment(4, UINT64_MAX);
    for (unsigned i = 1; i <= 4; i++)
        series->bytes[i] = i;
    read_now();
    cr_assert_eq(growth->moments, 2);
    cr_expect_eq(bytes_of(site)[0], 1);
    cr_expect_eq(bytes_of(site)[1], 0);
}

Test(snapshot_growth, of_a_killed_process_the_last_sample_is_the_end)
{
    uint32_t site = new_site("cudaMalloc");

    fixture_series(site);
    fixture.arena.header->end_ns = 0;
    fixture_moment(1, 20 * FIXTURE_MS);
    fixture_moment(2, 90 * FIXTURE_MS);
    read_at(30 * FIXTURE_MS);
    cr_expect_eq(growth->end_ns, 90 * FIXTURE_MS);
    cr_assert_eq(growth->moments, 2);
    cr_expect_eq(growth->t_ns[0], 20 * FIXTURE_MS);
}

Test(snapshot_growth, a_series_of_another_site_does_not_count)
{
    uint32_t site = new_site("cudaMalloc"), other = new_site("cuMemAlloc_v2");
    struct cw_live_series *series = fixture_series(site);

    fixture_moment(1, 20 * FIXTURE_MS);
    series->bytes[1] = 5;
    fixture_site_at(other)->series = UINT32_MAX; /* no such record */
    read_now();
    cr_expect_eq(growth->rows, 1);
    series->site = other; /* handed on, and not named by it */
    read_now();
    cr_expect_eq(growth->rows, 0);
    series->site = UINT32_MAX;
    read_now();
    cr_expect_eq(growth->rows, 0);
}

Test(snapshot_growth, kinds_that_are_not_counted_have_no_row)
{
    uint32_t range = fixture_site(0, "cuMemAddressReserve", CW_KIND_RESERVATION, 0);

    fixture_series(range);
    read_now();
    cr_expect_eq(growth->rows, 0);
}

Test(snapshot_growth, a_record_without_a_series_held_nothing_unless_there_was_no_room)
{
    uint32_t one = new_site("cudaMalloc"), two = new_site("cudaMalloc");

    fixture_series(one);
    fixture_moment(1, 20 * FIXTURE_MS);
    fixture_alloc(one, 100, 1, 10 * FIXTURE_MS);
    fixture_alloc(two, 7, 1, 10 * FIXTURE_MS);
    read_now();
    cr_expect_eq(bytes_of(one)[1], 107);
    fixture.arena.header->growth.dropped = 1;
    read_now();
    cr_expect_eq(bytes_of(one)[1], 100);
    fixture_site_at(two)->first_ns = 21 * FIXTURE_MS; /* after the last sample */
    read_now();
    cr_expect_eq(bytes_of(one)[1], 107);
}

Test(snapshot_growth, sums_do_not_wrap)
{
    uint32_t one = new_site("cudaMalloc"), two = new_site("cudaMalloc");

    fixture_moment(1, 20 * FIXTURE_MS);
    fixture_series(one)->bytes[1] = UINT64_MAX;
    fixture_series(two)->bytes[1] = 5;
    read_now();
    cr_expect_eq(bytes_of(one)[0], UINT64_MAX);
}

/* Rewrites a slot over and over, as layout.h says: all series hold its time, in ns. There are many,
 * so that reading them takes long enough for the writer to come in between on one core too; what is
 * written stays for about as long as that took, to be found. */
#define MANY 500

struct rewriting {
    struct cw_live_series *series[MANY];
    _Atomic int stop;
};

static void *rewrite_moment(void *arg)
{
    struct rewriting *rewriting = arg;
    struct cw_live_growth *live = &fixture.arena.header->growth;

    for (uint64_t t_ns = 1; !atomic_load(&rewriting->stop); t_ns = t_ns % 1000000 + 1) {
        atomic_store_explicit(&live->t_ns[5], 0, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        for (unsigned i = 0; i < MANY; i++)
            atomic_store_explicit(&rewriting->series[i]->bytes[5], t_ns, memory_order_relaxed);
        atomic_store_explicit(&live->t_ns[5], t_ns, memory_order_release);
        for (unsigned i = 0; i < MANY; i++)
            atomic_load(&rewriting->stop);
    }
    return NULL;
}

Test(snapshot_growth, a_moment_that_changes_while_it_is_read_is_dropped)
{
    static struct rewriting rewriting;
    uint32_t site = 0;
    pthread_t thread;

    for (unsigned i = 0; i < MANY; i++) {
        site = new_site("cudaMalloc");
        rewriting.series[i] = fixture_series(site);
    }
    pthread_create(&thread, NULL, rewrite_moment, &rewriting);
    for (unsigned round = 0; round < 2000; round++) {
        read_now();
        if (growth->moments == 2)
            cr_assert_eq(bytes_of(site)[0], MANY * growth->t_ns[0]);
        else
            cr_assert_eq(bytes_of(site)[0], 0);
    }
    rewriting.stop = 1;
    pthread_join(thread, NULL);
}

/* ---- suspects and classes ---- */

Test(snapshot_growth, a_leak_that_grew_has_a_class_of_its_own_and_counts)
{
    uint32_t growing = leaking_site("cudaMalloc", 1), lost = new_site("cuMemAlloc_v2");

    fixture_moments(10 * FIXTURE_MS);
    fixture_alloc(lost, MIB, 3, 10 * FIXTURE_MS);
    read_now();
    cr_expect_eq(cw_snapshot_find(&snapshot, growing)->leak, CW_LEAK_GROWING);
    cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, growing)), "growing");
    cr_expect_eq(cw_snapshot_find(&snapshot, lost)->leak, CW_LEAK_LOST);
    cr_expect_eq(snapshot.leaks.count, 2);
    cr_expect_eq(snapshot.summary.leaked_bytes, 43 * MIB);
    cr_assert_eq(growth->suspects, 1);
    cr_expect_eq(growth->row[growth->suspect[0]].site, merged(growing));
    cr_expect_eq(growth->row[0].trend.n, 40);
    cr_expect_float_eq(growth->row[0].trend.slope, 100.0 * (double)MIB, 1);
    cr_expect(cw_snapshot_growth_was_watched(growth));
}

Test(snapshot_growth, what_grew_and_was_freed_is_a_suspect_and_no_leak)
{
    uint32_t freed = leaking_site("cudaMalloc", 1), reclaimed = leaking_site("cuMemAlloc_v2", 2);

    fixture_moments(10 * FIXTURE_MS);
    fixture_free(freed, MIB, 40);
    fixture_reclaim(reclaimed, MIB, 80);
    read_now();
    cr_expect_eq(cw_snapshot_find(&snapshot, freed)->leak, CW_LEAK_NONE);
    cr_expect_eq(cw_snapshot_find(&snapshot, reclaimed)->leak, CW_LEAK_CONTEXT);
    cr_assert_eq(growth->suspects, 2);
    cr_expect_eq(growth->row[growth->suspect[0]].site, merged(reclaimed));
    cr_expect_eq(growth->row[growth->suspect[1]].site, merged(freed));
}

Test(snapshot_growth, what_a_library_owns_stays_apart)
{
    uint32_t module = fixture_module("/opt/libcublas.so.13", 1 << 24, CW_MODULE_PROGRAM);
    uint32_t site = leaking_site("cudaMalloc", 1);

    fixture_site_at(site)->stack = fixture_frame(0, module, 0x100);
    fixture_moments(10 * FIXTURE_MS);
    read_now();
    cr_expect_eq(growth->suspects, 1);
    cr_expect_eq(cw_snapshot_find(&snapshot, site)->leak, CW_LEAK_LIBRARY);
    cr_expect_eq(snapshot.leaks.count, 0);
}

Test(snapshot_growth, a_level_site_is_no_suspect)
{
    uint32_t site = new_site("cudaMalloc");
    struct cw_live_series *series = fixture_series(site);

    fixture_moments(10 * FIXTURE_MS);
    fixture_alloc(site, MIB, 64, 10 * FIXTURE_MS);
    for (unsigned i = 1; i < MOMENTS; i++)
        series->bytes[i] = 64 * MIB;
    read_now();
    cr_expect_eq(growth->rows, 1);
    cr_expect_eq(growth->suspects, 0);
    cr_expect_eq(cw_snapshot_find(&snapshot, site)->leak, CW_LEAK_LOST);
}

Test(snapshot_growth, how_long_the_end_takes_says_nothing)
{
    uint32_t site = leaking_site("cudaMalloc", 1);

    fixture_moments(10 * FIXTURE_MS);
    fixture.arena.header->end_ns = 10 * END;
    read_now();
    cr_expect_eq(growth->suspects, 1);
    cr_expect_eq(growth->row[0].trend.span_ns, END - 10 * FIXTURE_MS);
    cr_expect_eq(growth->t_ns[growth->moments - 1], 10 * END);
    /* A program that goes on with what it has does. */
    fixture.arena.header->growth.worked_ns = 10 * END;
    read_now();
    cr_expect_eq(growth->suspects, 0);
    cr_expect_eq(cw_snapshot_find(&snapshot, site)->leak, CW_LEAK_LOST);
}

/* ---- steps ---- */

static uint32_t stepping_tag(const char *name, unsigned steps, uint64_t from, uint64_t each)
{
    uint32_t tag = fixture_tag(name, NULL);

    for (unsigned i = 0; i < steps; i++)
        fixture_step(tag, (i + 1) * 10 * FIXTURE_MS, from + i * each);
    return tag;
}

Test(snapshot_growth, steps_have_a_line)
{
    uint32_t tag = stepping_tag("train_step", 40, 500 * MIB, 3 * MIB);

    stepping_tag("flat", 40, 500 * MIB, 0);
    stepping_tag("two", 2, 500 * MIB, 300 * MIB);
    stepping_tag("little", 40, 500 * MIB, 1000);
    read_now();
    cr_assert_eq(growth->steps, 4);
    cr_expect_eq(growth->step[0].tag, tag);
    cr_expect_eq(growth->step[0].steps, 40);
    cr_expect_float_eq(growth->step[0].slope, 3.0 * (double)MIB, 1);
    cr_expect_float_eq(growth->step[0].r2, 1, 1e-6);
    cr_expect_float_eq(growth->step[0].mean_ns, 1e7, 1e-3);
    cr_expect_float_eq(growth->step[0].growth, 117.0 * (double)MIB, 100);
    cr_expect(growth->step[0].is_rising);
    cr_expect(growth->step[1].has_line);
    cr_expect_not(growth->step[1].is_rising);
    cr_expect_not(growth->step[2].has_line);
    cr_expect(growth->step[3].has_line);
    cr_expect_not(growth->step[3].is_rising);
    cr_assert_eq(growth->risings, 1);
    cr_expect_eq(growth->rising[0], 0);
}

Test(snapshot_growth, a_jump_and_a_warm_up_between_steps_do_not_rise)
{
    uint32_t jump = fixture_tag("jump", NULL), warm = fixture_tag("warm", NULL);

    for (unsigned i = 0; i < 40; i++) {
        fixture_step(jump, (i + 1) * FIXTURE_MS, i < 20 ? MIB : 900 * MIB);
        fixture_step(warm, (i + 1) * FIXTURE_MS, (i < 10 ? i : 10) * 90 * MIB);
    }
    read_now();
    cr_expect(growth->step[0].has_line && growth->step[1].has_line);
    cr_expect_eq(growth->risings, 0);
}

Test(snapshot_growth, the_five_that_grew_most_are_kept)
{
    static const unsigned each[] = {4, 9, 1, 7, 3, 8, 2};
    static const uint32_t wanted[] = {1, 5, 3, 0, 4};

    for (unsigned i = 0; i < 7; i++)
        stepping_tag("step", 10, MIB, each[i] * MIB);
    read_now();
    cr_assert_eq(growth->risings, 5);
    cr_expect_arr_eq(growth->rising, wanted, sizeof(wanted));
}

Test(snapshot_growth, hostile_sums_have_no_line)
{
    static const uint64_t bits[] = {UINT64_C(0x7ff8000000000000), UINT64_C(0x7ff0000000000000),
                                    UINT64_C(0xfff0000000000000), UINT64_C(0x7fefffffffffffff),
                                    UINT64_C(0xffefffffffffffff), UINT64_MAX};
    unsigned count = sizeof(bits) / sizeof(bits[0]);

    for (unsigned i = 0; i < 3 * count; i++) {
        struct cw_live_tag *tag = fixture_tag_at(stepping_tag("step", 20, MIB, 3 * MIB));

        *(i % 3 == 0 ? &tag->sum_y : i % 3 == 1 ? &tag->sum_xy : &tag->sum_yy) = bits[i / 3];
        if (i == 0)
            tag->steps = UINT64_MAX;
    }
    read_now();
    cr_assert_eq(growth->steps, 3 * count);
    for (uint32_t i = 0; i < growth->steps; i++) {
        const struct cw_growth_step *step = &growth->step[i];

        cr_expect(step->slope - step->slope == 0 && step->r2 >= 0 && step->r2 <= 1, "%u", i);
        cr_expect(step->growth - step->growth == 0);
    }
}

Test(snapshot_growth, a_suspect_grows_per_step_of_its_tag)
{
    uint32_t site = leaking_site("cudaMalloc", 1);
    uint32_t tag = stepping_tag("train_step", 20, MIB, 0); /* one in 10 ms */

    fixture_moments(10 * FIXTURE_MS);
    fixture_site_at(site)->tag = (uint16_t)tag;
    read_now();
    cr_assert_eq(growth->suspects, 1);
    cr_expect_eq(growth->row[0].tag, tag);
    cr_expect_float_eq(growth->row[0].per_step, (double)MIB, 1);
    fixture_tag_at(tag)->steps = 2;
    read_now();
    cr_expect_eq(growth->row[0].tag, 0);
    fixture_site_at(site)->tag = UINT16_MAX; /* no such record */
    read_now();
    cr_expect_eq(growth->row[0].tag, 0);
}

/* ---- regrowth ---- */

static struct cw_live_regrowth *regrown(uint32_t site, uint64_t resizes, uint64_t copied,
                                        uint64_t largest)
{
    struct cw_live_regrowth *regrowth = fixture_regrowth(site);

    regrowth->resizes = resizes;
    regrowth->copied_bytes = copied;
    regrowth->factor_sum = resizes * 2000;
    regrowth->chains = 1;
    regrowth->first_bytes = largest >> resizes;
    regrowth->largest_bytes = largest;
    return regrowth;
}

Test(snapshot_growth, regrowth_is_added_up_by_site)
{
    uint32_t one = new_site("cudaMalloc"), same = new_site("cudaMalloc");
    uint32_t other = new_site("cuMemAlloc_v2");

    regrown(other, 2, 3 * MIB, 32 * MIB);
    regrown(one, 6, 63 * MIB, 64 * MIB);
    regrown(other, 9, 511 * MIB, 512 * MIB);
    regrown(other, 1, 4 * MIB, 8 * MIB);
    regrown(same, 2, 3 * MIB, 16 * MIB)->factor_sum = 3000;
    regrown(UINT32_MAX, 5, 5, 5);
    regrown(0, 5, 5, 5);
    regrown(one, 0, 0, 0);
    read_now();
    cr_assert_eq(growth->regrowths, 2);
    cr_expect_eq(growth->regrowth[0].site, merged(other));
    cr_expect_eq(growth->regrowth[0].first_bytes, MIB);
    cr_expect_eq(growth->regrowth[0].largest_bytes, 512 * MIB);
    cr_expect_float_eq(growth->regrowth[0].factor, 2, 1e-9);
    cr_expect_eq(growth->regrowth[1].site, merged(one));
    cr_expect_eq(growth->regrowth[1].resizes, 8);
    cr_expect_eq(growth->regrowth[1].copied_bytes, 66 * MIB);
    cr_expect_eq(growth->regrowth[1].first_bytes, MIB);
    cr_expect_eq(growth->regrowth[1].largest_bytes, 64 * MIB);
    cr_expect_eq(growth->regrowth[1].chains, 2);
    cr_expect_float_eq(growth->regrowth[1].factor, 15.0 / 8, 1e-9);
}

Test(snapshot_growth, a_few_or_small_regrowths_are_not_worth_a_line)
{
    uint32_t site = new_site("cudaMalloc");
    struct cw_live_regrowth *regrowth = regrown(site, 3, MIB, MIB);

    read_now();
    cr_expect(cw_snapshot_regrowth_is_large(&growth->regrowth[0]));
    regrowth->resizes = 2;
    read_now();
    cr_expect_not(cw_snapshot_regrowth_is_large(&growth->regrowth[0]));
    regrowth->resizes = 3;
    regrowth->copied_bytes = 65535;
    read_now();
    cr_expect_not(cw_snapshot_regrowth_is_large(&growth->regrowth[0]));
}
