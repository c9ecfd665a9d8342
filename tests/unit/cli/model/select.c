/* SPDX-License-Identifier: MIT */
/* Which sites are shown, and in which order; what the flags accept. */
#include "cli/model/select.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "command_fixture.h"

#define S UINT64_C(1000000000)

static struct cw_model_site sites[] = {
    {.id = 0x11,
     .device = 0,
     .kind = "device",
     .tag = "",
     .leak = "lost",
     .live = {2, 100},
     .total = {9, 900},
     .at_peak = {1, 50},
     .oldest_ns = 10 * S},
    {.id = 0x22,
     .device = 1,
     .kind = "device",
     .tag = "forward",
     .leak = "growing",
     .live = {1, 60},
     .reclaimed = {1, 80},
     .total = {4, 2000},
     .at_peak = {2, 70},
     .oldest_ns = 90 * S},
    {.id = 0x33,
     .device = CW_MODEL_HOST,
     .kind = "pinned",
     .tag = "backward",
     .leak = "library",
     .live = {7, 100},
     .total = {8, 300},
     .at_peak = {7, 100}},
    {.id = 0x44, .device = 0, .kind = "device-async", .tag = "", .leak = "", .total = {500, 300}},
};

static struct cw_model model = {.source = "a file",
                                .process = {.duration_ns = 100 * S},
                                .site = sites,
                                .sites = CW_ARRAY_LEN(sites)};

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

Test(select, without_flags_all_by_what_is_left)
{
    expect_sites("", "22 11 33 44");
}

Test(select, by_each_measure)
{
    expect_sites("metric=live", "22 11 33 44");
    expect_sites("metric=peak", "33 22 11 44");
    expect_sites("metric=total", "22 11 33 44");
    expect_sites("metric=count", "44 11 33 22");
    expect_sites("metric=total sort=count", "44 11 33 22");
    expect_sites("metric=count sort=live", "22 11 33 44");
}

Test(select, by_place)
{
    expect_sites("device=0", "11 44");
    expect_sites("device=1", "22");
    expect_sites("device=2", "");
    expect_sites("device=host", "33");
    expect_sites("site=00000022", "22");
    expect_sites("site=00000023", "");
}

Test(select, patterns_are_those_of_suppressions)
{
    expect_sites("kind=pinned", "33");
    expect_sites("kind=device", "22 11 44");
    expect_sites("kind=^device$", "22 11");
    expect_sites("tag=ward", "22 33");
    expect_sites("tag=^for", "22");
    expect_sites("class=library", "33");
    expect_sites("class=l*t", "11");
}

Test(select, by_age_and_size)
{
    expect_sites("min-age=11s", "11");
    expect_sites("min-age=10s", "22 11");
    expect_sites("min-age=90s", "11");
    expect_sites("min-age=91s", "");
    expect_sites("min-size=100", "22 11 33");
    expect_sites("min-size=101", "22");
    expect_sites("min-size=1K", "");
}

Test(select, at_most_so_many_after_all_else)
{
    expect_sites("top=2", "22 11");
    expect_sites("top=1 device=0", "11");
    expect_sites("top=100", "22 11 33 44");
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
    model.process.duration_ns = 5 * S; /* born later than the end: a damaged report */
    expect_sites("min-age=1s", "");
    model.process.duration_ns = 100 * S;
}
