/* SPDX-License-Identifier: MIT */
/* A call site in one line: the frame that names it, and those by which it differs from others of
 * its list. */
#include "report/text/text_put.h"

#include <criterion/criterion.h>

#include <string.h>

#include "base/compiler.h"
#include "base/utf8.h"

#define SITES 8

static struct cw_report_module module[] = {{.path = "/opt/a.out"}, {.path = "/opt/libdeep.so"}};

/* What the tests build stacks of. */
enum {
    CUBLAS,
    GEMM,
    RICH,
    LINEAR,
    CONV,
    CONV_AGAIN,
    MAIN,
    FIRST,
    SECOND,
    NAMELESS,
    LINE_3,
    LINE_4,
};
static struct cw_report_frame frame[] = {
    [CUBLAS] = {.function = "cublas", .module = 2, .offset = 0x10},
    [GEMM] = {.function = "gemm", .module = 2, .offset = 0x20},
    [RICH] = {.function = "Tensor.__init__", .file = "/me/rich.py", .line = 8, .is_python = 1},
    [LINEAR] = {.function = "Linear", .file = "/me/layers.py", .line = 31, .is_python = 1},
    [CONV] = {.function = "Conv", .file = "/me/layers.py", .line = 55, .is_python = 1},
    [CONV_AGAIN] = {.function = "Conv", .file = "/me/layers.py", .line = 56, .is_python = 1},
    [MAIN] = {.function = "main", .file = "/me/train.py", .line = 3, .is_python = 1},
    [FIRST] = {.function = "grow", .module = 1, .offset = 0x100},
    [SECOND] = {.function = "grow", .module = 1, .offset = 0x140},
    [NAMELESS] = {.module = 1, .offset = 0x180},
    [LINE_3] = {.function = "load", .module = 1, .offset = 0x200, .file = "/me/load.c", .line = 3},
    [LINE_4] = {.function = "load", .module = 1, .offset = 0x240, .file = "/me/load.c", .line = 4},
};

static uint32_t stack_frame[64], stack_frames;
static struct cw_report_stack stack[SITES];
static struct cw_snapshot_site site[SITES];
static struct cw_report_model model;
static char line[4096];

static void setup(void)
{
    stack_frames = 0;
    memset(stack, 0, sizeof(stack));
    memset(site, 0, sizeof(site));
    model = (struct cw_report_model){.module = module,
                                     .modules = CW_ARRAY_LEN(module),
                                     .frame = frame,
                                     .frames = CW_ARRAY_LEN(frame),
                                     .stack_frame = stack_frame,
                                     .stack = stack,
                                     .snapshot = {.site = site}};
}

TestSuite(text_where, .init = setup);

/* Innermost first. */
static void add(unsigned count, const int *frames)
{
    stack[model.stacks] = (struct cw_report_stack){
        .id = model.stacks + 1, .first = stack_frames, .count = count, .shown = count};
    for (unsigned i = 0; i < count; i++)
        stack_frame[stack_frames++] = (uint32_t)frames[i];
    site[model.snapshot.sites++].stack = ++model.stacks;
}

#define ADD(...) add(CW_ARRAY_LEN(((int[]){__VA_ARGS__})), (int[]){__VA_ARGS__})

enum way { WHERE, TRAIL, CONTRAST };

/* Site `at` in the list of all. */
static const char *said(enum way way, unsigned at, size_t width)
{
    uint32_t all[SITES] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct cw_out out;
    struct cw_text text = {.model = &model, .snapshot = &model.snapshot, .out = &out};
    struct cw_text_list list;

    cw_out_init(&out, -1, line, sizeof(line) - 1);
    cw_text_begin_list(&text, all, sizeof(*all), model.snapshot.sites, &list);
    if (way == WHERE)
        cw_text_where(&list.text, site[at].stack);
    else if (way == TRAIL)
        cw_text_trail(&list.text, site[at].stack, width);
    else
        cw_text_contrast(&list.text, site[at].stack);
    cw_text_end_list(&list);
    line[out.len] = '\0';
    return line;
}

static void expect_where(unsigned at, const char *wanted)
{
    cr_expect_str_eq(said(WHERE, at, 0), wanted);
}

Test(text_where, one_site_has_its_name_alone)
{
    ADD(RICH, LINEAR, MAIN);
    expect_where(0, "Tensor.__init__ (rich.py:8)");
}

/* A step is cut off between characters. */
Test(text_where, names_too_long_for_a_line_stay_utf_8)
{
    static char names[12][200];
    static struct cw_report_place place[12];
    static struct cw_report_frame deep[] = {{.function = "f", .file = "/me/a.c", .line = 1},
                                            {.function = "g", .file = "/me/b.c", .line = 1},
                                            {.function = "h", .file = "/me/b.c", .line = 2}};

    for (unsigned i = 0; i < 12; i++) {
        for (unsigned k = 0; k < 40 + i; k++)
            strcat(names[i], "\xc3\xa9");
        strcat(names[i], i % 2 ? "x" : "");
        place[i].function = names[i];
    }
    for (unsigned i = 1; i < 3; i++)
        deep[i].inlines = 12;
    model.frame = deep;
    model.frames = 3;
    model.place = place;
    model.places = 12;
    add(2, (int[]){0, 1});
    add(2, (int[]){0, 2});
    for (unsigned more = 0; more < 4; more++) {
        cr_expect(cw_utf8_is_valid(said(CONTRAST, 0, 0)), "%s", line);
        cr_expect_gt(strlen(line), 100);
        names[0][more] = 'y';
        memmove(names[0] + more + 1, names[0] + more + 2, strlen(names[0] + more + 1));
    }
}

Test(text_where, callers_tell_sites_of_one_line_apart)
{
    ADD(RICH, LINEAR, MAIN);
    ADD(RICH, CONV, MAIN);
    ADD(RICH, CONV_AGAIN, MAIN);
    ADD(LINEAR, MAIN);
    expect_where(0, "Tensor.__init__ (rich.py:8) <- Linear (layers.py:31)");
    expect_where(1, "Tensor.__init__ (rich.py:8) <- Conv (layers.py:55)");
    expect_where(2, "Tensor.__init__ (rich.py:8) <- Conv (layers.py:56)");
    expect_where(3, "Linear (layers.py:31)");
    cr_expect_str_eq(said(CONTRAST, 2, 0), " <- Conv (layers.py:56)");
    cr_expect_str_eq(said(CONTRAST, 3, 0), "");
}

Test(text_where, a_caller_further_out_stands_behind_a_gap)
{
    ADD(RICH, LINEAR, CONV, MAIN);
    ADD(RICH, LINEAR, CONV_AGAIN, MAIN);
    expect_where(0, "Tensor.__init__ (rich.py:8) <- ... <- Conv (layers.py:55)");
    expect_where(1, "Tensor.__init__ (rich.py:8) <- ... <- Conv (layers.py:56)");
}

Test(text_where, where_two_callers_are_needed_both_are_there)
{
    ADD(RICH, LINEAR, CONV);
    ADD(RICH, LINEAR, MAIN);
    ADD(RICH, CONV_AGAIN, CONV);
    ADD(RICH, CONV_AGAIN, MAIN);
    expect_where(0, "Tensor.__init__ (rich.py:8) <- Linear (layers.py:31) <- Conv (layers.py:55)");
    expect_where(3, "Tensor.__init__ (rich.py:8) <- Conv (layers.py:56) <- main (train.py:3)");
}

Test(text_where, one_stack_may_end_where_another_goes_on)
{
    ADD(RICH, LINEAR);
    ADD(RICH, LINEAR, MAIN);
    expect_where(0, "Tensor.__init__ (rich.py:8)");
    expect_where(1, "Tensor.__init__ (rich.py:8) <- ... <- main (train.py:3)");
}

Test(text_where, what_a_script_called_tells_apart_if_no_caller_does)
{
    ADD(CUBLAS, RICH, MAIN);
    ADD(GEMM, RICH, MAIN);
    expect_where(0, "Tensor.__init__ (rich.py:8) -> cublas (libdeep.so)");
    expect_where(1, "Tensor.__init__ (rich.py:8) -> gemm (libdeep.so)");
}

Test(text_where, addresses_tell_apart_what_nothing_else_does)
{
    ADD(FIRST, MAIN);
    ADD(SECOND, MAIN);
    frame[MAIN].is_python = 0;
    expect_where(0, "grow (a.out+0x100)");
    expect_where(1, "grow (a.out+0x140)");
    ADD(FIRST, LINE_3);
    ADD(NAMELESS, LINE_3);
    expect_where(2, "grow (a.out) <- load (load.c:3)");
    expect_where(3, "a.out+0x180");
    frame[MAIN].is_python = 1;
}

Test(text_where, lines_of_machine_code_tell_apart)
{
    ADD(GEMM, LINE_3);
    ADD(GEMM, LINE_4);
    expect_where(0, "gemm (libdeep.so) <- load (load.c:3)");
    expect_where(1, "gemm (libdeep.so) <- load (load.c:4)");
}

Test(text_where, a_trail_has_what_differs_whatever_its_width)
{
    ADD(RICH, LINEAR, CONV, MAIN);
    ADD(RICH, LINEAR, CONV_AGAIN, MAIN);
    cr_expect_str_eq(said(TRAIL, 0, 16), "Tensor... <- ... <- Conv (layers.py:55) <- ...");
    cr_expect_str_eq(said(TRAIL, 0, 100), "Tensor.__init__ (rich.py:8) <- Linear (layers.py:31) "
                                          "<- Conv (layers.py:55) <- main (train.py:3)");
}

Test(text_where, equal_stacks_and_no_stacks_are_no_trouble)
{
    ADD(RICH, MAIN);
    ADD(RICH, MAIN);
    site[model.snapshot.sites++].stack = 0;
    site[model.snapshot.sites++].stack = 1;
    expect_where(0, "Tensor.__init__ (rich.py:8)");
    expect_where(1, "Tensor.__init__ (rich.py:8)");
    expect_where(2, "(no stack)");
}
