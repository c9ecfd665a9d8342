/* SPDX-License-Identifier: MIT */
/* The line of a GPU in `top`. */
#include "cli/fleet/gpus.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#define GIB ((uint64_t)1 << 30)

static struct cw_gpu gpu;
static char line[256];

static void setup(void)
{
    gpu = (struct cw_gpu){
        .index = 1,
        .name = "Simulated GPU",
        .total = 80 * GIB,
        .used = 24 * GIB,
        .other = {{.pid = 4711, .name = "python", .bytes = 20 * GIB},
                  {.pid = 12, .bytes = UINT64_MAX}},
        .others = 2,
    };
}

TestSuite(gpus, .init = setup);

static const char *format(size_t columns)
{
    cw_gpu_format(&gpu, columns, line, sizeof(line));
    cr_expect_leq(strlen(line), columns, "%s", line);
    return line;
}

Test(gpus, a_wide_line_has_everything)
{
    cr_expect_str_eq(format(200), "GPU 1 [###.......] 24.0G of 80.0G, 56.0G free  Simulated GPU  "
                                  "others: python 4711 20.0G, 12");
}

Test(gpus, a_narrow_one_has_what_fits)
{
    cr_expect_str_eq(format(72),
                     "GPU 1 [###.......] 24.0G of 80.0G, 56.0G free  Simulated GPU  2 others");
    cr_expect_str_eq(format(30), "GPU 1 24.0G of 80.0G  2 others");
    cr_expect_str_eq(format(20), "GPU 1 24.0G of 80.0G");
    for (size_t columns = 20; columns < 120; columns++)
        format(columns);
}

Test(gpus, a_device_without_a_total_or_beyond_it_is_shown_as_it_is)
{
    gpu.others = 0;
    gpu.total = 0;
    cr_expect_str_eq(format(60), "GPU 1 [..........] 24.0G of 0B, 0B free  Simulated GPU");
    gpu.total = GIB;
    cr_expect(strstr(format(60), "24.0G of 1.0G, 0B free"), "%s", line);
}

Test(gpus, names_of_other_programs_cannot_move_the_cursor)
{
    snprintf(gpu.other[0].name, sizeof(gpu.other[0].name), "a\x1b[2Jb");
    cr_expect_null(strchr(format(200), '\x1b'));
}
