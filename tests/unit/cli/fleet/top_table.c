/* SPDX-License-Identifier: MIT */
/* Rows and columns of `cuwarden top`. */
#include "cli/fleet/top_table.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

#define MIB (UINT64_C(1) << 20)

static struct cw_fleet_device of_small[] = {
    {.ordinal = 0,
     .name = "GPU A",
     .live = 5 * MIB,
     .held = 90 * MIB,
     .hit_share = -1,
     .efficiency = 0.9,
     .fragmentation = 0.94,
     .peak_fragmentation = 0.01,
     .oom_eta = -1},
    {.ordinal = CW_DEVICE_HOST,
     .name = "host",
     .live = 7 * MIB,
     .hit_share = -1,
     .efficiency = -1,
     .fragmentation = -1,
     .peak_fragmentation = -1,
     .oom_eta = -1},
};
static struct cw_fleet_device of_large[] = {
    {.ordinal = 0,
     .name = "GPU A",
     .live = 6 * MIB,
     .held = 8 * MIB,
     .limit = 1024 * MIB,
     .failed = 3,
     .level = CW_LEVEL_CRITICAL,
     .alloc_rate = 123456,
     .hit_share = 0.25,
     .efficiency = 0.96,
     .fragmentation = 0.25,
     .peak_fragmentation = 0.024,
     .pressure = 0.957,
     .oom_eta = 90,
     .live_blocks = 12345678,
     .fallback_bytes = 2 * MIB,
     .all_trimmed_bytes = 3000 * MIB,
     .trimmed_bytes = {[CW_RELEASE_NEIGHBOUR] = 2000 * MIB}},
};
static struct cw_fleet_process small = {.path = "a",
                                        .pid = 20,
                                        .exe = "/bin/small",
                                        .command = "/opt/bin/small --size 1",
                                        .device = of_small,
                                        .devices = 2};
static struct cw_fleet_process large = {.path = "b",
                                        .pid = 3,
                                        .user = "root",
                                        .exe = "/bin/large",
                                        .command = "",
                                        .device = of_large,
                                        .devices = 1,
                                        .budgets = 3,
                                        .budget = {
                                            {.bytes = 10, .live = 1, .is_set = 1},
                                            {.bytes = 10, .live = 4, .is_set = 1},
                                            {.bytes = 10, .live = 9},
                                        }};
static struct cw_fleet_process young = {
    .path = "c", .pid = 99, .user = "verylonguser", .exe = "young", .command = "young"};
static struct cw_fleet_process dead = {.path = "d",
                                       .pid = 7,
                                       .user = "root",
                                       .is_in_other_pid_namespace = 1,
                                       .exe = "dead",
                                       .command = "dead",
                                       .state = CW_FLEET_DIED,
                                       .device = of_large,
                                       .devices = 1};
static struct cw_fleet_process *all[] = {&small, &large, &young, &dead};
static const struct cw_fleet fleet = {.process = all, .count = 4};

static void setup(void)
{
    small.uid = large.uid = young.uid = dead.uid = geteuid();
}

TestSuite(top_table, .init = setup);

/* "20:0 3:0 ": process and device of each row. */
static const char *rows(const struct cw_top_choice *choice)
{
    static char text[256];
    long count;
    struct cw_top_row *row = cw_top_rows(&fleet, choice, &count);
    size_t at = 0;

    text[0] = '\0';
    cr_assert(count >= 0);
    for (long i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%u:%d ", row[i].process->pid,
                               row[i].device ? (int)row[i].device->ordinal : -1);
    free(row);
    return text;
}

#define ANY CW_TOP_ANY_DEVICE

Test(top_table, shows_what_is_chosen_in_its_order)
{
    static const struct {
        struct cw_top_choice choice;
        const char *rows;
    } cases[] = {
        {{.sort = CW_TOP_LIVE, .device = ANY}, "20:64 3:0 20:0 99:-1 "},
        {{.sort = CW_TOP_LIVE, .device = ANY, .is_reversed = 1}, "99:-1 20:0 3:0 20:64 "},
        {{.sort = CW_TOP_HELD, .device = ANY}, "20:0 3:0 20:64 99:-1 "},
        {{.sort = CW_TOP_PID, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_COMMAND, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_LEVEL, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_FRAGMENTATION, .device = ANY}, "20:0 3:0 20:64 99:-1 "},
        {{.sort = CW_TOP_PEAK_FRAGMENTATION, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_EFFICIENCY, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_USE, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_BLOCKS, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_FALLBACK, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_TRIMMED, .device = ANY}, "3:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_PID, .device = ANY, .shows_dead = 1}, "3:0 7:0 20:0 20:64 99:-1 "},
        {{.sort = CW_TOP_PID, .device = 0}, "3:0 20:0 "},
        {{.sort = CW_TOP_PID, .device = CW_DEVICE_HOST}, "20:64 "},
        {{.sort = CW_TOP_PID, .device = ANY, .filter = "SIZE"}, "20:0 20:64 "},
        {{.sort = CW_TOP_PID, .device = ANY, .filter = "99"}, "99:-1 "},
        {{.sort = CW_TOP_PID, .device = ANY, .filter = "longuser"}, "99:-1 "},
        {{.sort = CW_TOP_USER, .device = ANY}, "20:0 20:64 3:0 99:-1 "},
        {{.sort = CW_TOP_PID, .device = ANY, .filter = "critical"}, "3:0 "},
        {{.sort = CW_TOP_PID, .device = ANY, .filter = "gpu a"}, "3:0 20:0 "},
        {{.sort = CW_TOP_PID, .device = ANY, .filter = "nothing"}, ""},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        struct cw_top_choice choice = cases[i].choice;

        choice.filter = choice.filter ? choice.filter : "";
        cr_expect_str_eq(rows(&choice), cases[i].rows, "case %zu", i);
    }
}

static const char *line(const struct cw_fleet_process *process, unsigned device, size_t columns)
{
    static char text[CW_TOP_LINE_MAX];
    struct cw_top_row row = {process, process->devices ? &process->device[device] : NULL};
    struct cw_top_layout layout;

    cw_top_fit(&layout, &fleet, columns);
    cw_top_print_row(text, sizeof(text), &layout, &row);
    return text;
}

Test(top_table, prints_a_row)
{
    cr_assert_str_eq(
        line(&large, 0, SIZE_MAX),
        "      3     root    0   6.0M     0B   8.0M     0B   1.0G critical    123k   25     3 "
        "   96     25        2    96 12345678      2.0M     2.9G    90s     40   2.0G /bin/large");
    cr_assert_str_eq(
        line(&young, 0, SIZE_MAX),
        "     99 verylon+    -      -      -      -      -      -        -       -    -     - "
        "    -      -        -     -        -         -        -      -      -      - young");
    cr_assert_str_eq(
        line(&dead, 0, SIZE_MAX),
        "     7*     root    0   6.0M     0B   8.0M     0B   1.0G     died       -   25     3 "
        "   96     25        2    96 12345678      2.0M     2.9G    90s      -   2.0G dead");
    cr_assert_str_eq(line(&small, 1, 40), "     20 host   7.0M     0B small --size ");
    cr_assert_str_eq(line(&small, 0, 125),
                     "     20    0   5.0M     0B  90.0M     0B      -      low       0    -     0 "
                     "     - small --size 1");
}

Test(top_table, says_whose_rows_they_are_where_there_are_others)
{
    cr_expect_str_eq(line(&large, 0, 40), "      3    0   6.0M   8.0M large");
    small.uid = geteuid() + 1;
    cr_expect_str_eq(line(&large, 0, 40), "      3     root    0   6.0M large");
}

Test(top_table, times_that_are_left_are_in_the_largest_unit_that_tells_them)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, " 0s "},      {99, " 99s "},        {100, " 2m "},     {5999, " 100m "},
                 {6000, " 1.7h "}, {359999, " 100.0h "}, {360000, " 4.2d "}};
    double before = of_large[0].oom_eta;

    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        const char *found;

        of_large[0].oom_eta = cases[i].seconds;
        found = line(&large, 0, SIZE_MAX);
        cr_expect(strstr(found, cases[i].text), "%s is not in %s", cases[i].text, found);
    }
    of_large[0].oom_eta = before;
}

/* The heading and the rows never exceed the width of the screen. */
Test(top_table, fits_any_width)
{
    struct cw_top_choice choice = {.sort = CW_TOP_LIVE, .device = ANY, .filter = ""};
    char text[CW_TOP_LINE_MAX];
    struct cw_top_layout layout;

    for (size_t columns = 0; columns < 200; columns++) {
        cw_top_fit(&layout, &fleet, columns);
        cw_top_print_heading(text, sizeof(text), &layout, &choice);
        cr_assert(strlen(text) <= columns, "%zu: '%s'", columns, text);
        cr_assert(strlen(line(&small, 0, columns)) <= columns, "%zu", columns);
    }
}

Test(top_table, sizes_take_five_characters)
{
    static const struct {
        uint64_t size;
        const char *text;
    } cases[] = {{0, "0B"},        {1023, "1023B"},   {1024, "1.0K"},       {102300, "99.9K"},
                 {102400, "100K"}, {MIB - 1, "1.0M"}, {UINT64_MAX, "16.0E"}};
    char buf[16];

    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++)
        cr_expect_str_eq(cw_top_size(buf, sizeof(buf), cases[i].size), cases[i].text);
    for (uint64_t size = 1; size < UINT64_MAX / 3; size += size / 2 + 1)
        cr_assert(strlen(cw_top_size(buf, sizeof(buf), size)) <= 5, "%s", buf);
}
