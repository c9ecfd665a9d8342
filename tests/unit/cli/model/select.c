/* SPDX-License-Identifier: MIT */
/* Which sites are shown, and in which order; what the flags accept. */
#include "cli/model/selection.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "command_fixture.h"

#define S UINT64_C(1000000000)

enum { FORWARD = 1, BACKWARD };

static struct cw_report_tag tags[] = {{.label = "forward"}, {.label = "backward"}};

static struct cw_snapshot_site sites[] = {
    {.id = 0x11,
     .device = 0,
     .kind = CW_KIND_EXTERNAL,
     .leak = CW_LEAK_LOST,
     .live_blocks = 2,
     .live_bytes = 100,
     .allocs = 9,
     .total_bytes = 900,
     .at_peak_bytes = 50,
     .oldest_ns = 10 * S},
    {.id = 0x22,
     .device = 1,
     .kind = CW_KIND_EXTERNAL,
     .tag = FORWARD,
     .leak = CW_LEAK_GROWING,
     .live_blocks = 1,
     .live_bytes = 60,
     .reclaimed = 1,
     .reclaimed_bytes = 80,
     .allocs = 4,
     .total_bytes = 2000,
     .at_peak_bytes = 70,
     .oldest_ns = 90 * S},
    {.id = 0x33,
     .device = CW_DEVICE_HOST,
     .kind = CW_KIND_PINNED,
     .tag = BACKWARD,
     .leak = CW_LEAK_LIBRARY,
     .live_blocks = 7,
     .live_bytes = 100,
     .allocs = 8,
     .total_bytes = 300,
     .at_peak_bytes = 100},
    {.id = 0x44, .device = 0, .kind = CW_KIND_EXTERNAL_MAP, .allocs = 500, .total_bytes = 300},
};

static struct cw_report_model model = {
    .source = "a file",
    .tag = tags,
    .tags = CW_ARRAY_LEN(tags),
    .snapshot = {.duration_ns = 100 * S, .site = sites, .sites = CW_ARRAY_LEN(sites)}};

/* Flags as on the command line, "device=1 top=3". */
static int set_all(struct cw_selection *selection, const char *words)
{
    static char text[256]; /* values stay */
    char *saved;

    snprintf(text, sizeof(text), "%s", words);
    for (char *word = strtok_r(text, " ", &saved); word; word = strtok_r(NULL, " ", &saved)) {
        char *value = strchr(word, '=');
        size_t at = 0;

        *value = '\0';
        while (at < CW_SELECT_FLAGS && strcmp(cw_select_flags[at].name, word) != 0)
            at++;
        cr_assert_lt(at, CW_SELECT_FLAGS, "no flag --%s", word);
        if (cw_select_set(selection, cw_select_flags[at].id, value + 1) != 0)
            return -1;
    }
    return 0;
}

/* The ids in their order, as "11 22". */
static void expect_sites(const char *words, const char *ids)
{
    struct cw_selection selection = {0};
    char found[64] = "";
    uint32_t count;
    uint32_t *site;

    cr_assert_eq(set_all(&selection, words), 0, "%s: %s", words, command_said);
    site = cw_select_sites(&model, &selection, &count);
    cr_assert_not_null(site);
    for (uint32_t i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%x", i > 0 ? " " : "",
                 sites[site[i]].id);
    cr_expect_str_eq(found, ids, "%s: %s", words, found);
    free(site);
}

TestSuite(select, .init = command_listen);

Test(select, which_sites_and_in_which_order)
{
    static const struct {
        const char *words, *ids;
    } rows[] = {
        /* Without flags all by what is left. */
        {"", "22 11 33 44"},
        /* By each measure. */
        {"metric=live", "22 11 33 44"},
        {"metric=peak", "33 22 11 44"},
        {"metric=total", "22 11 33 44"},
        {"metric=count", "44 11 33 22"},
        {"metric=total sort=count", "44 11 33 22"},
        {"metric=count sort=live", "22 11 33 44"},
        /* By place. */
        {"device=0", "11 44"},
        {"device=1", "22"},
        {"device=2", ""},
        {"device=host", "33"},
        {"site=00000022", "22"},
        {"site=00000023", ""},
        /* Patterns are those of suppressions. */
        {"kind=pinned", "33"},
        {"kind=external", "22 11 44"},
        {"kind=^external$", "22 11"},
        {"tag=ward", "22 33"},
        {"tag=^for", "22"},
        {"class=library", "33"},
        {"class=l*t", "11"},
        /* By age and size. */
        {"min-age=11s", "11"},
        {"min-age=10s", "22 11"},
        {"min-age=90s", "11"},
        {"min-age=91s", ""},
        {"min-size=100", "22 11 33"},
        {"min-size=101", "22"},
        {"min-size=1K", ""},
        /* At most so many after all else. */
        {"top=2", "22 11"},
        {"top=1 device=0", "11"},
        {"top=100", "22 11 33 44"},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++)
        expect_sites(rows[i].words, rows[i].ids);
}

Test(select, bad_values_are_named_with_the_accepted_form)
{
    static const struct {
        const char *words, *says;
    } rows[] = {
        {"device=64", "--device: '64' is not a device's number from 0 to 63, or host"},
        {"device=-1", "--device: '-1' is not"},
        {"device=", "--device: '' is not"},
        {"site=1234567", "--site: '1234567' is not an id of 8 hexadecimal digits"},
        {"site=0000002g", "--site: '0000002g' is not"},
        {"site=+0000022", "--site: '+0000022' is not"},
        {"min-age=soon", "--min-age: 'soon' is not a time"},
        {"min-size=big", "--min-size: 'big' is not a size"},
        {"min-size=1Kx", "--min-size: '1Kx' is not a size"},
        {"top=0", "--top: '0' is not a number from 1 on"},
        {"top=many", "--top: 'many' is not"},
        {"top=4294967296", "--top: '4294967296' is not"},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        struct cw_selection selection = {0};

        command_errors = 0;
        cr_expect_eq(set_all(&selection, rows[i].words), -1, "%s", rows[i].words);
        cr_expect_eq(command_errors, 1);
        cr_expect_not_null(strstr(command_said, rows[i].says), "%s", command_said);
    }
}

Test(select, a_value_that_is_too_large_selects_nothing_else)
{
    model.snapshot.duration_ns = 5 * S; /* born later than the end: a damaged report */
    expect_sites("min-age=1s", "");
    model.snapshot.duration_ns = 100 * S;
}

/* ---- what a model of a selection says ---- */

static struct cw_model selected(const char *words, enum cw_selection_form form)
{
    static uint32_t suspects[] = {2, 1, CW_SITE_NONE};
    static struct cw_growth_row rows[] = {{.site = 1}, {.site = 2}};
    static struct cw_report_old old[] = {{.site = 0, .blocks = 1, .bytes = 90},
                                         {.site = 2, .blocks = 3, .bytes = 30}};
    struct cw_model out = {.report = &model};
    struct cw_selection selection = {0};
    uint32_t count, *site;

    sites[1].growth = 1;
    sites[2].growth = 2;
    model.sites_of = CW_ARRAY_LEN(sites);
    model.old = old;
    model.olds = CW_ARRAY_LEN(old);
    model.snapshot.growth.row = rows;
    model.snapshot.growth.suspect = suspects;
    model.snapshot.growth.suspects = CW_ARRAY_LEN(suspects);
    model.snapshot.device[CW_DEVICE_HOST].seen = 1;
    cr_assert_eq(set_all(&selection, words), 0);
    site = cw_select_sites(&model, &selection, &count); /* until the test ends */
    cr_assert_eq(cw_selection_apply(&out, &selection, site, count, form), 0);
    return out;
}

Test(selection, without_flags_lists_all_and_names_nothing)
{
    struct cw_model all = selected("", CW_SELECTION_TEXT);
    const struct cw_snapshot *snapshot = &model.snapshot;

    cr_expect_null(model.selection);
    cr_assert_eq(snapshot->leaks.count, 2);
    cr_expect_eq(snapshot->leaks.site[0], 1);
    cr_expect_eq(snapshot->leaks.bytes, 240);
    cr_expect_eq(snapshot->leaks.blocks, 4);
    cr_expect_eq(snapshot->library.count, 1);
    cr_expect_eq(snapshot->caches.count, 0);
    cr_expect_eq(snapshot->growth.suspects, 2, "a number without a site is no suspect");
    cr_expect_eq(model.olds, 2);
    cr_expect_eq(model.peak[CW_DEVICE_HOST].shown, 1);
    cw_selection_free(&all);
}

Test(selection, is_of_its_sites_alone)
{
    struct cw_model some = selected("device=host metric=total", CW_SELECTION_TEXT);

    cr_assert_not_null(model.selection);
    cr_expect_eq(model.selection->sites, 1);
    cr_expect_eq(model.selection->of, 4);
    cr_expect_str_eq(model.selection->metric, "total");
    cr_assert_eq(model.selection->ranks, 1);
    cr_expect_eq(model.selection->rank[0].value, 300);
    cr_expect_eq(model.snapshot.leaks.count, 0);
    cr_expect_eq(model.snapshot.library.bytes, 100);
    cr_expect_eq(model.snapshot.growth.suspects, 1);
    cr_expect_eq(model.snapshot.growth.suspect[0], 2);
    cr_assert_eq(model.olds, 1);
    cr_expect_eq(model.old[0].bytes, 30);
    cr_expect_eq(model.snapshot.old.bytes, 30);
    cw_selection_free(&some);
}

Test(selection, of_a_report_in_json_is_named_and_leaves_other_parts_whole)
{
    struct cw_model all = selected("min-size=0", CW_SELECTION_JSON);

    cr_assert_not_null(model.selection);
    cr_expect_eq(model.selection->sites, 4);
    cr_expect_eq(model.olds, 2);
    cr_expect_eq(model.snapshot.growth.suspects, 3);
    cw_selection_free(&all);
}
