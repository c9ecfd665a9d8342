/* SPDX-License-Identifier: MIT */
/* Ranges and marks: which tag a thread's allocations have, what counts as a step and where, names
 * of one form, the bounds of it all, and a forked child. */
#include "core/tags/tag.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/control/lifecycle.h"
#include "core/process/session.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "fake_driver.h"

static uint64_t next_key = 0x10000;

static void setup(void)
{
    fake_driver_init();
}

static void setup_armed(void)
{
    fake_driver_init();
    core_arm();
}

TestSuite(tag, .init = setup_armed);
TestSuite(tag_early, .init = setup);

static uint16_t named(const char *name)
{
    return cw_tag_name(0, name);
}

static uint16_t numbered(const char *format, unsigned number)
{
    char name[64];

    snprintf(name, sizeof(name), format, number);
    return named(name);
}

static const struct cw_live_tag *record(uint16_t tag)
{
    struct cw_view view;

    cw_arena_view(&cw_session.arena, &view);
    return cw_view_tag(&view, tag);
}

/* The record with this name, or NULL. */
static const struct cw_live_tag *find(const char *name, int is_pattern)
{
    for (uint32_t i = 1; i < core_header()->table[CW_TABLE_TAG].count; i++)
        if (strcmp(core_text(record((uint16_t)i)->name), name) == 0 &&
            record((uint16_t)i)->is_pattern == is_pattern)
            return record((uint16_t)i);
    return NULL;
}

static void expect_counted(const struct cw_live_tag *tag, uint64_t begun, uint64_t steps)
{
    cr_expect_eq(tag->begun, begun, "%s begun", core_text(tag->name));
    cr_expect_eq(tag->steps, steps, "%s steps", core_text(tag->name));
}

static uint32_t allocate(uint64_t bytes)
{
    static uint32_t api;
    uint32_t site;

    api = api != 0 ? api : cw_site_text("cuMemAlloc");
    site = cw_site_here(api, CW_KIND_DEVICE, 0);
    cr_assert_neq(core_put(site, next_key++ << 12, bytes), 0u);
    return site;
}

static void step(uint16_t tag)
{
    cw_tag_push(0, tag);
    cr_assert_eq(cw_tag_pop(0), 0);
}

/* ---- names ---- */

Test(tag, equal_names_are_one_tag)
{
    uint16_t tag = named("forward");

    cr_assert_neq(tag, 0);
    cr_expect_eq(named("forward"), tag);
    cr_expect_neq(named("forwards"), tag);
    cr_expect_str_eq(core_text(record(tag)->name), "forward");
    cr_expect_eq(record(tag)->domain, 0u);
    cr_expect_eq(named(""), 0);
    cr_expect_eq(named(NULL), 0);
}

Test(tag, what_counts_is_the_text_not_its_address)
{
    char name[] = "first";
    uint16_t tag = named(name);

    strcpy(name, "other");
    cr_expect_neq(named(name), tag);
    strcpy(name, "first");
    cr_expect_eq(named(name), tag);
}

Test(tag, names_of_two_domains_are_two)
{
    uint8_t domain = cw_tag_domain("NCCL");
    uint16_t tag = cw_tag_name(domain, "reduce");

    cr_assert_neq(domain, 0);
    cr_expect_eq(cw_tag_domain("NCCL"), domain);
    cr_expect_neq(cw_tag_domain("NCC"), domain);
    cr_expect_eq(cw_tag_domain(""), 0);
    cr_expect_eq(cw_tag_domain(NULL), 0);
    cr_expect_neq(named("reduce"), tag);
    cr_expect_str_eq(core_text(record(tag)->domain), "NCCL");
}

Test(tag, domains_beyond_the_last_share_one)
{
    char name[16];
    uint8_t domain[40];

    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "domain %u", i);
        domain[i] = cw_tag_domain(name);
        cr_assert(domain[i] < CW_TAG_DOMAINS);
    }
    cr_expect_neq(domain[28], domain[29]);
    cr_expect_eq(domain[30], domain[39]);
    cr_expect_eq(domain[30], CW_TAG_DOMAINS - 1);
    cr_expect_eq(cw_tag_domain("domain 3"), domain[3]);
    cr_expect_str_eq(core_text(record(cw_tag_name(domain[39], "x"))->domain), "(other)");
}

Test(tag, a_long_name_is_cut_between_characters)
{
    char name[300];
    uint16_t tag;

    memset(name, 'a', sizeof(name));
    memcpy(name + CW_TAG_NAME_MAX - 2, "\xc3\xa9", 2); /* its second byte would not fit */
    name[299] = '\0';
    tag = named(name);
    cr_expect_eq(strlen(core_text(record(tag)->name)), (size_t)CW_TAG_NAME_MAX - 2);
    name[200] = 'b';
    cr_expect_eq(named(name), tag);
}

/* ---- names of one form ---- */

Test(tag, the_second_name_of_a_form_brings_the_pattern)
{
    uint16_t one = named("step 1"), two;

    cr_expect_null(find("step #", 1));
    step(one);
    two = named("step 20");
    cr_assert_not_null(find("step #", 1));
    cr_expect_neq(one, two);
    expect_counted(find("step #", 1), 1u, 1u); /* it begins with what the first has counted */
    step(two);
    step(one);
    expect_counted(find("step #", 1), 3u, 3u);
    cr_expect_eq(record(one)->steps, 2u);
    cr_expect_eq(record(two)->steps, 1u);
}

Test(tag, sixteen_of_a_form_have_their_own_tag)
{
    uint16_t tag[100];

    for (unsigned i = 0; i < 100; i++) {
        tag[i] = numbered("step %u", i);
        step(tag[i]);
    }
    for (unsigned i = 0; i < CW_TAG_OWN_NAMES; i++) {
        cr_expect_eq(record(tag[i])->is_pattern, 0);
        cr_expect_eq(record(tag[i])->steps, 1u);
        cr_expect_eq(numbered("step %u", i), tag[i]);
    }
    for (unsigned i = CW_TAG_OWN_NAMES; i < 100; i++)
        cr_assert_eq(record(tag[i]), find("step #", 1));
    cr_expect_eq(find("step #", 1)->steps, 100u);
    cr_expect_eq(core_count(CW_TABLE_TAG), CW_TAG_OWN_NAMES + 1u);
}

Test(tag, forms_are_told_apart)
{
    named("epoch 1, step 1");
    cr_expect_null(find("epoch #, step #", 1));
    named("epoch 1, step");
    named("epoch 1, step 1x");
    named("epoch , step 1");
    cw_tag_name(cw_tag_domain("other"), "epoch 3, step 9");
    cr_expect_null(find("epoch #, step #", 1));
    named("epoch 12, step 345");
    cr_expect_not_null(find("epoch #, step #", 1));
    cr_expect_null(find("epoch #, step", 1));
    /* A # of the program's own is no number. */
    named("layer #");
    named("layer 1");
    cr_expect_null(find("layer #", 1));
    named("layer 2");
    cr_expect_not_null(find("layer #", 1));
    cr_expect_not_null(find("layer #", 0));
}

/* A name without digits that differs from all others. */
static uint16_t lettered(unsigned number)
{
    char name[16] = "name ";

    for (unsigned i = 0; i < 4; i++, number /= 26)
        name[5 + i] = (char)('a' + number % 26);
    return named(name);
}

Test(tag, beyond_the_last_tag_all_share_one)
{
    uint16_t last;

    for (unsigned i = 1; i < CW_TAGS_MAX; i++)
        cr_assert_eq(lettered(i), i);
    last = lettered(5000);
    cr_expect_eq(last, CW_TAGS_MAX);
    cr_expect_eq(lettered(5001), last);
    cr_expect_eq(named("step 1"), last);
    cr_expect_eq(named("step 2"), last);
    step(last);
    cr_expect_str_eq(core_text(record(last)->name), "(other)");
    cr_expect_eq(record(last)->steps, 1u);
    cr_expect_eq(lettered(7), 7);
    cr_expect_eq(core_count(CW_TABLE_TAG), (unsigned)CW_TAGS_MAX);
}

Test(tag, a_form_without_room_for_its_pattern_has_none)
{
    uint16_t one;

    for (unsigned i = 1; i < CW_TAGS_MAX - 2; i++)
        lettered(i);
    one = named("step 1");
    cr_expect_eq(one, CW_TAGS_MAX - 2);
    cr_expect_eq(named("step 2"), CW_TAGS_MAX - 1);
    cr_expect_eq(named("step 3"), CW_TAGS_MAX);
    step(one);
    cr_expect_eq(record(one)->steps, 1u);
    cr_expect_eq(record(CW_TAGS_MAX)->steps, 0u);
}

/* ---- ranges of a thread ---- */

Test(tag, an_allocation_has_the_innermost_tag)
{
    uint16_t outer = named("outer"), inner = named("inner");
    uint32_t without = allocate(64), in_outer, in_inner;

    cw_tag_push(0, outer);
    in_outer = allocate(64);
    cw_tag_push(0, inner);
    in_inner = allocate(64);
    cw_tag_push(0, 0); /* a range without a name changes nothing */
    cr_expect_eq(allocate(64), in_inner);
    cw_tag_pop(0);
    cw_tag_pop(0);
    cw_tag_push(0, 0);
    cw_tag_push(0, inner);
    cw_tag_pop(0);
    cr_expect_eq(allocate(64), in_outer, "the range around the one without a name");
    cw_tag_pop(0);
    cw_tag_pop(0);
    cr_expect_eq(allocate(64), without);
    cr_expect_eq(cw_site_at(without)->tag, 0);
    cr_expect_eq(cw_site_at(in_outer)->tag, outer);
    cr_expect_eq(cw_site_at(in_inner)->tag, inner);
    cr_expect_eq(cw_site_at(cw_site_shared(in_inner))->tag, inner);
    cr_expect_neq(cw_site_shared(in_inner), cw_site_shared(in_outer));
}

Test(tag, sites_of_a_thousand_tags_stay_apart)
{
    uint32_t site[CW_TAGS_MAX];

    for (unsigned i = 1; i < CW_TAGS_MAX; i++) {
        cw_tag_push(0, lettered(i));
        site[i] = allocate(64);
        cw_tag_pop(0);
    }
    for (unsigned i = 1; i < CW_TAGS_MAX; i++) {
        cr_assert_eq(cw_site_at(site[i])->tag, i);
        cr_assert_eq(atomic_load(&cw_site_at(site[i])->allocs), 1u);
        cr_assert_eq(cw_site_at(cw_site_shared(site[i]))->tag, i);
    }
}

Test(tag, levels_are_those_of_the_domain)
{
    uint8_t other = cw_tag_domain("other");
    uint16_t a = named("a"), b = cw_tag_name(other, "b");

    cr_expect_eq(cw_tag_push(0, a), 0);
    cr_expect_eq(cw_tag_push(other, b), 0);
    cr_expect_eq(cw_tag_push(0, a), 1);
    cr_expect_eq(cw_tag_push(other, 0), 1);
    cr_expect_eq(cw_tag_pop(other), 1);
    cr_expect_eq(cw_tag_pop(other), 0); /* from below the range of the other domain */
    cr_expect_eq(cw_tag_here(), a);
    cr_expect_eq(cw_tag_pop(other), -1);
    cr_expect_eq(cw_tag_pop(0), 1);
    cr_expect_eq(cw_tag_pop(0), 0);
    cr_expect_eq(cw_tag_here(), 0);
    cr_expect_eq(record(a)->steps, 2u);
    cr_expect_eq(record(b)->steps, 1u);
}

Test(tag, a_pop_without_a_push_is_refused)
{
    uint16_t tag = named("a");

    cr_expect_eq(cw_tag_pop(0), -1);
    cr_expect_eq(cw_tag_push(0, tag), 0);
    cr_expect_eq(cw_tag_pop(0), 0);
    cr_expect_eq(cw_tag_pop(0), -1);
    expect_counted(record(tag), 1u, 1u);
}

Test(tag, ranges_that_lie_too_deep_are_counted_only)
{
    uint8_t other = cw_tag_domain("other");
    uint16_t deep = named("deep");

    for (int i = 0; i < CW_TAG_DEPTH; i++)
        cr_assert_eq(cw_tag_push(0, numbered("level %u", (unsigned)i % 8)), i);
    cr_expect_eq(cw_tag_push(0, deep), CW_TAG_DEPTH);
    cr_expect_eq(cw_tag_push(other, deep), 0);
    cr_expect_eq(cw_tag_here(), numbered("level %u", (CW_TAG_DEPTH - 1) % 8));
    cr_expect_eq(record(deep)->begun, 0u);
    /* One of the stack may not end before those that lie deeper. */
    cr_expect_eq(cw_tag_pop(0), CW_TAG_DEPTH);
    cr_expect_eq(cw_tag_pop(0), CW_TAG_DEPTH - 1);
    cr_expect_eq(cw_tag_push(0, deep), CW_TAG_DEPTH - 1, "while one lies deeper, so does this");
    cr_expect_eq(cw_tag_here(), numbered("level %u", (CW_TAG_DEPTH - 2) % 8));
    cr_expect_eq(cw_tag_pop(other), 0);
    for (int i = CW_TAG_DEPTH; i-- > 0;)
        cr_assert_eq(cw_tag_pop(0), i);
    cr_expect_eq(cw_tag_pop(0), -1);
    cr_expect_eq(cw_tag_here(), 0);
    cr_expect_eq(record(deep)->steps, 0u);
    cr_expect_eq(find("level #", 1)->steps, (uint64_t)CW_TAG_DEPTH);
}

/* ---- steps ---- */

static double number_of(uint64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* Bytes per step, by least squares. */
static double slope_of(const struct cw_live_tag *tag)
{
    double n = (double)tag->steps;
    double sum_x = n * (n + 1) / 2, sum_xx = n * (n + 1) * (2 * n + 1) / 6;

    return (n * number_of(tag->sum_xy) - sum_x * number_of(tag->sum_y)) /
           (n * sum_xx - sum_x * sum_x);
}

Test(tag, steps_lie_on_the_line_that_memory_follows)
{
    uint16_t tag = named("train");
    const struct cw_live_tag *line = record(tag);

    allocate(1 << 20);
    for (int i = 0; i < 50; i++) {
        fake_driver.now_ns += FAKE_MS;
        cw_tag_push(0, tag);
        allocate(4096);
        cw_tag_pop(0);
    }
    expect_counted(line, 50u, 50u);
    cr_expect(fabs(slope_of(line) - 4096) < 1e-6);
    cr_expect_eq(line->first_bytes, (1u << 20) + 4096u);
    cr_expect_eq(line->last_bytes, (1u << 20) + 50 * 4096u);
    cr_expect_eq(line->least_bytes, line->first_bytes);
    cr_expect_eq(line->most_bytes, line->last_bytes);
    cr_expect_eq(line->last_ns - line->first_ns, 49 * FAKE_MS);
    cr_expect_gt(number_of(line->sum_yy), 50.0 * (1 << 20) * (1 << 20));
}

Test(tag, least_and_most_are_of_any_step)
{
    uint16_t tag = named("train");
    uint32_t site = core_site("cuMemAlloc", CW_KIND_DEVICE, 0);

    for (unsigned i = 0; i < 3; i++) {
        core_put(site, 0x1000, (uint64_t[]){3000, 500, 9000}[i]);
        step(tag);
        cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, 0x1000), CW_FREE_DONE);
    }
    cr_expect_eq(record(tag)->first_bytes, 3000u);
    cr_expect_eq(record(tag)->least_bytes, 500u);
    cr_expect_eq(record(tag)->most_bytes, 9000u);
    cr_expect_eq(record(tag)->last_bytes, 9000u);
}

Test(tag, a_mark_is_a_step_and_tags_nothing)
{
    uint16_t tag = named("tick");

    cw_tag_mark(tag);
    cw_tag_mark(tag);
    cw_tag_mark(0);
    cr_expect_eq(cw_tag_here(), 0);
    expect_counted(record(tag), 2u, 2u);
}

Test(tag, a_range_of_the_process_is_a_step_when_it_ends)
{
    uint16_t tag = named("phase");
    uint64_t one = cw_tag_begin(tag), two = cw_tag_begin(tag), unnamed = cw_tag_begin(0);

    cr_expect_neq(one, two);
    cr_expect_neq(unnamed, 0u);
    cr_expect_eq(cw_tag_here(), 0);
    expect_counted(record(tag), 2u, 0u);
    cw_tag_end(one);
    cw_tag_end(two);
    cw_tag_end(unnamed);
    cw_tag_end(0);
    cw_tag_end(12345); /* no tag has been given out with this number */
    expect_counted(record(tag), 2u, 2u);
}

/* ---- before the session, after it, and in a child ---- */

Test(tag_early, ranges_that_began_before_the_first_call_count_when_they_end)
{
    uint16_t tag = named("outer"), gone = named("gone");
    uint64_t range = cw_tag_begin(tag);

    cw_tag_push(0, tag);
    cw_tag_push(0, gone);
    cr_expect_eq(cw_tag_pop(0), 1);
    core_arm();
    cr_expect_str_eq(core_text(record(tag)->name), "outer");
    cr_expect_eq(record(gone)->steps, 0u);
    cr_expect_eq(cw_site_at(allocate(64))->tag, tag);
    cw_tag_pop(0);
    cw_tag_end(range);
    expect_counted(record(tag), 2u, 2u);
}

Test(tag, after_the_end_nothing_is_counted)
{
    uint16_t tag = named("late");

    cw_tag_push(0, tag);
    cr_assert_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
    cr_expect_eq(cw_tag_pop(0), 0);
    cr_expect_eq(record(tag)->steps, 0u);
}

static uint16_t open_tag;

static int goes_on_in_child(void)
{
    fake_driver_init();
    if (cw_tag_here() != open_tag)
        return 1;
    core_arm();
    if (record(open_tag)->steps != 0 || strcmp(core_text(record(open_tag)->name), "epoch 1") != 0)
        return 2;
    if (strcmp(core_text(record(cw_tag_name(1, "reduce"))->domain), "library") != 0)
        return 3;
    if (cw_site_at(allocate(64))->tag != open_tag)
        return 4;
    if (cw_tag_pop(0) != 0 || record(open_tag)->steps != 1 || record(open_tag)->begun != 1)
        return 5;
    return find("epoch #", 1) != NULL && find("epoch #", 1)->steps == 1 ? 0 : 6;
}

Test(tag, a_forked_child_goes_on_with_the_open_ranges_and_counts_anew)
{
    int status = -1;
    pid_t child;

    cw_site_text("makes texts lie elsewhere than in the child");
    cr_assert_eq(cw_tag_domain("library"), 1);
    cw_tag_name(1, "reduce");
    open_tag = named("epoch 1");
    step(open_tag);
    named("epoch 2");
    cw_tag_push(0, open_tag);
    child = fork();
    if (child == 0) {
        cw_lifecycle_reset();
        _exit(goes_on_in_child());
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0, "the child says %d", WEXITSTATUS(status));
    cr_expect_eq(record(open_tag)->steps, 1u);
}

/* ---- many threads ---- */

#define THREADS 8
#define STEPS   20000

static uint16_t seen[THREADS][900];

static void name_and_step(unsigned id)
{
    uint16_t common = named("common");

    for (unsigned i = 0; i < STEPS; i++) {
        cw_tag_push(0, common);
        cw_tag_push(0, numbered("item %u", i % 64));
        cw_tag_pop(0);
        cw_tag_pop(0);
    }
    seen[id][0] = numbered("item %u", 100 + id);
}

Test(tag, no_step_of_eight_threads_is_lost)
{
    uint64_t own = 0;

    run_threads(THREADS, name_and_step);
    expect_counted(record(named("common")), (uint64_t)THREADS * STEPS, (uint64_t)THREADS * STEPS);
    expect_counted(find("item #", 1), (uint64_t)THREADS * STEPS, (uint64_t)THREADS * STEPS);
    for (uint32_t i = 1; i < core_header()->table[CW_TABLE_TAG].count; i++)
        if (!record((uint16_t)i)->is_pattern && record((uint16_t)i) != record(named("common")))
            own++;
    cr_expect_eq(own, (uint64_t)CW_TAG_OWN_NAMES);
    for (unsigned id = 0; id < THREADS; id++)
        cr_expect_eq(record(seen[id][0]), find("item #", 1));
    cr_expect_eq(cw_tag_here(), 0);
}

static void name_many(unsigned id)
{
    for (unsigned i = 0; i < 900; i++)
        seen[id][i] = lettered(i);
}

Test(tag, a_name_that_eight_threads_bring_is_one_tag)
{
    run_threads(THREADS, name_many);
    for (unsigned id = 1; id < THREADS; id++)
        cr_expect_eq(memcmp(seen[id], seen[0], sizeof(seen[0])), 0);
    cr_expect_eq(core_count(CW_TABLE_TAG), 900u);
}

static void in_a_range_of_its_own(unsigned id)
{
    uint16_t tag = id % 2 ? named("odd") : 0;

    if (cw_tag_here() != 0)
        abort();
    cw_tag_push(0, tag);
    if (cw_tag_here() != tag)
        abort();
}

Test(tag, a_thread_has_its_own_ranges)
{
    cw_tag_push(0, named("main"));
    run_threads(4, in_a_range_of_its_own);
    cr_expect_eq(cw_tag_here(), named("main"));
    expect_counted(record(named("odd")), 2u, 0u);
}
