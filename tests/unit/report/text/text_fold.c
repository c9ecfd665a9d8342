/* SPDX-License-Identifier: MIT */
/* Stacks in the text report: which frames are printed, and which are folded into a line. */
#include "report/text/text_put.h"

#include <criterion/criterion.h>

#include <string.h>

#include "base/compiler.h"

#define SITES    4
#define PACKAGES "/opt/venv/lib/python3.11/site-packages/"

enum { EXE = 1, ALLOCATOR, TORCH_CUDA, TORCH_PYTHON, CUPY, OWN_LIB, STDCXX, AVCODEC };
static struct cw_report_module module[] = {
    {.path = "/opt/a.out"},
    {.path = PACKAGES "torch/lib/libc10_cuda.so"},
    {.path = PACKAGES "torch/lib/libtorch_cuda.so"},
    {.path = PACKAGES "torch/lib/libtorch_python.so"},
    {.path = PACKAGES "cupy/cuda/memory.cpython-311-x86_64-linux-gnu.so"},
    {.path = "/home/me/libops.so"},
    {.path = "/usr/lib/libstdc++.so.6"},
    {.path = "/usr/lib/libavcodec.so.60"},
};

/* What the tests build stacks of. */
enum {
    RAW_ALLOC, /* libc10_cuda */
    EMPTY,     /* libtorch_cuda */
    EMPTY_TOO,
    BINDING, /* libtorch_python */
    LINEAR,  /* torch */
    MODULE,
    CUPY_ALLOC,
    OPS,
    SORT,
    DECODE,
    VLLM,
    VLLM_RUN,
    RUNPY,
    FORWARD, /* the script */
    TRAIN,
    MAIN, /* of the program */
    LOAD,
};
static struct cw_report_frame frame[] = {
    [RAW_ALLOC] = {.function = "raw_alloc", .module = ALLOCATOR, .offset = 0x10},
    [EMPTY] = {.function = "empty", .module = TORCH_CUDA, .offset = 0x20},
    [EMPTY_TOO] = {.function = "empty", .module = TORCH_CUDA, .offset = 0x28},
    [BINDING] = {.function = "THPVariable_empty", .module = TORCH_PYTHON, .offset = 0x30},
    [LINEAR] = {.function = "Linear.forward",
                .file = PACKAGES "torch/nn/linear.py",
                .line = 125,
                .is_python = 1},
    [MODULE] = {.function = "Module.call",
                .file = PACKAGES "torch/nn/module.py",
                .line = 1798,
                .is_python = 1},
    [CUPY_ALLOC] = {.function = "malloc", .module = CUPY, .offset = 0x40},
    [OPS] = {.function = "launch", .module = OWN_LIB, .offset = 0x50},
    [SORT] = {.function = "sort", .module = STDCXX, .offset = 0x60},
    [DECODE] = {.function = "decode", .module = AVCODEC, .offset = 0x70},
    [VLLM] = {.function = "Engine.step",
              .file = PACKAGES "vllm/engine.py",
              .line = 7,
              .is_python = 1},
    [VLLM_RUN] = {.function = "run", .file = PACKAGES "vllm/run.py", .line = 9, .is_python = 1},
    [RUNPY] = {.function = "run_path",
               .file = "/usr/lib/python3.11/runpy.py",
               .line = 294,
               .is_python = 1},
    [FORWARD] = {.function = "Net.forward", .file = "/me/model.py", .line = 5, .is_python = 1},
    [TRAIN] = {.function = "train", .file = "/me/train.py", .line = 12, .is_python = 1},
    [MAIN] = {.function = "main", .module = EXE, .offset = 0x80},
    [LOAD] = {.function = "load", .module = EXE, .offset = 0x90},
};

static struct cw_report_place place[] = {{.function = "reserve", .file = "a.h", .line = 1}};
static uint32_t stack_frame[512], stack_frames;
static struct cw_report_stack stack[SITES];
static struct cw_snapshot_site site[SITES];
static struct cw_report_model model;
static char said[16384];

static void setup(void)
{
    stack_frames = 0;
    memset(stack, 0, sizeof(stack));
    memset(site, 0, sizeof(site));
    model = (struct cw_report_model){.process = {.pid = 1, .exe = "/opt/a.out"},
                                     .module = module,
                                     .modules = CW_ARRAY_LEN(module),
                                     .frame = frame,
                                     .frames = CW_ARRAY_LEN(frame),
                                     .place = place,
                                     .places = CW_ARRAY_LEN(place),
                                     .stack_frame = stack_frame,
                                     .stack = stack,
                                     .snapshot = {.site = site}};
}

TestSuite(text_fold, .init = setup);

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

/* The stack of a site in the list of all, without "==1== ". */
static void print(unsigned at, unsigned limit, int has_all_frames)
{
    uint32_t all[SITES] = {0, 1, 2, 3};
    struct cw_out out;
    struct cw_text text = {.model = &model,
                           .snapshot = &model.snapshot,
                           .out = &out,
                           .has_all_frames = has_all_frames};
    struct cw_text_list list;
    char *to = said;

    cw_out_init(&out, -1, said, sizeof(said) - 1);
    cw_text_begin_list(&text, all, sizeof(*all), model.snapshot.sites, &list);
    cw_text_stack(&list.text, site[at].stack, limit);
    cw_text_end_list(&list);
    said[out.len] = '\0';
    for (const char *from = said; *from; from++) {
        if (strncmp(from, "==1== ", 6) == 0)
            from += 6;
        *to++ = *from;
    }
    *to = '\0';
}

static void expect_stack(unsigned at, const char *wanted)
{
    print(at, CW_DEPTH_MAX, 0);
    cr_expect_str_eq(said, wanted, "wanted:\n%sgot:\n%s", wanted, said);
}

static void expect_whole(unsigned at)
{
    static char folded[sizeof(said)];

    print(at, CW_DEPTH_MAX, 0);
    strcpy(folded, said);
    print(at, CW_DEPTH_MAX, 1);
    cr_expect_str_eq(folded, said);
    cr_expect_null(strstr(folded, "..."), "%s", folded);
}

Test(text_fold, of_a_framework_only_the_innermost_frame_is_left)
{
    ADD(RAW_ALLOC, EMPTY, EMPTY_TOO, BINDING, LINEAR, MODULE, FORWARD, MODULE, MODULE, TRAIN);
    expect_stack(0, "    #0 raw_alloc    libc10_cuda.so+0x10\n"
                    "    ... 5 frames of libtorch_cuda.so, libtorch_python.so, torch\n"
                    "    #6 Net.forward  model.py:5\n"
                    "    ... 2 frames of torch\n"
                    "    #9 train        train.py:12\n");
}

Test(text_fold, all_frames_are_to_be_had)
{
    ADD(RAW_ALLOC, EMPTY, BINDING, TRAIN);
    print(0, 2, 1);
    cr_expect_str_eq(said, "    #0 raw_alloc          libc10_cuda.so+0x10\n"
                           "    #1 empty              libtorch_cuda.so+0x20\n"
                           "    #2 THPVariable_empty  libtorch_python.so+0x30\n"
                           "    #3 train              train.py:12\n");
}

Test(text_fold, an_extension_of_a_package_has_its_name)
{
    ADD(CUPY_ALLOC, CUPY_ALLOC, CUPY_ALLOC, TRAIN);
    expect_stack(0, "    #0 malloc  memory.cpython-311-x86_64-linux-gnu.so+0x40\n"
                    "    ... 2 frames of cupy\n"
                    "    #3 train   train.py:12\n");
}

Test(text_fold, one_line_is_not_folded)
{
    ADD(RAW_ALLOC, EMPTY, FORWARD, MODULE, TRAIN, RUNPY);
    expect_whole(0);
    frame[EMPTY].inlines = 1;
    expect_stack(0, "    #0 raw_alloc    libc10_cuda.so+0x10\n"
                    "    ... 1 frame of libtorch_cuda.so\n"
                    "    #2 Net.forward  model.py:5\n"
                    "    #3 Module.call  module.py:1798\n"
                    "    #4 train        train.py:12\n"
                    "    #5 run_path     runpy.py:294\n");
    frame[EMPTY].inlines = 0;
}

Test(text_fold, an_outer_end_and_a_frame_in_the_middle)
{
    ADD(RAW_ALLOC, EMPTY, EMPTY_TOO, OPS, SORT, BINDING, TRAIN, RUNPY, RUNPY);
    expect_stack(0, "    #0 raw_alloc  libc10_cuda.so+0x10\n"
                    "    ... 2 frames of libtorch_cuda.so\n"
                    "    #3 launch     libops.so+0x50\n"
                    "    ... 2 frames of libstdc++.so.6, libtorch_python.so\n"
                    "    #6 train      train.py:12\n"
                    "    ... 2 frames of Python\n");
}

Test(text_fold, three_names_are_enough)
{
    ADD(RAW_ALLOC, EMPTY, BINDING, EMPTY, CUPY_ALLOC, SORT, TRAIN);
    expect_stack(0, "    #0 raw_alloc  libc10_cuda.so+0x10\n"
                    "    ... 5 frames of libtorch_cuda.so, libtorch_python.so, cupy, ...\n"
                    "    #6 train      train.py:12\n");
}

Test(text_fold, what_tells_two_stacks_apart_is_shown)
{
    ADD(RAW_ALLOC, EMPTY, BINDING, LINEAR, TRAIN);
    ADD(RAW_ALLOC, EMPTY_TOO, BINDING, LINEAR, TRAIN);
    ADD(RAW_ALLOC, EMPTY, BINDING, MODULE, TRAIN);
    expect_stack(0, "    #0 raw_alloc          libc10_cuda.so+0x10\n"
                    "    #1 empty              libtorch_cuda.so+0x20\n"
                    "    #2 THPVariable_empty  libtorch_python.so+0x30\n"
                    "    #3 Linear.forward     linear.py:125\n"
                    "    #4 train              train.py:12\n");
}

Test(text_fold, without_a_framework_a_stack_is_whole)
{
    ADD(DECODE, DECODE, SORT, SORT, LOAD, MAIN);
    expect_whole(0);
    ADD(LOAD, LOAD, LOAD, MAIN);
    expect_whole(1);
}

Test(text_fold, a_program_through_a_framework_is_folded)
{
    ADD(RAW_ALLOC, EMPTY, EMPTY_TOO, SORT, LOAD, MAIN);
    expect_stack(0, "    #0 raw_alloc  libc10_cuda.so+0x10\n"
                    "    ... 3 frames of libtorch_cuda.so, libstdc++.so.6\n"
                    "    #4 load       a.out+0x90\n"
                    "    #5 main       a.out+0x80\n");
}

Test(text_fold, a_stack_that_does_not_reach_the_program_is_whole)
{
    ADD(RAW_ALLOC, EMPTY, EMPTY_TOO, BINDING, LINEAR, MODULE);
    expect_whole(0);
}

Test(text_fold, a_package_that_nobody_of_the_script_called_is_the_program)
{
    ADD(RAW_ALLOC, EMPTY, BINDING, LINEAR, VLLM, VLLM_RUN);
    expect_stack(0, "    #0 raw_alloc    libc10_cuda.so+0x10\n"
                    "    ... 3 frames of libtorch_cuda.so, libtorch_python.so, torch\n"
                    "    #4 Engine.step  engine.py:7\n"
                    "    #5 run          run.py:9\n");
    ADD(RAW_ALLOC, EMPTY, BINDING, LINEAR, VLLM, VLLM_RUN, TRAIN);
    expect_stack(1, "    #0 raw_alloc  libc10_cuda.so+0x10\n"
                    "    ... 5 frames of libtorch_cuda.so, libtorch_python.so, torch, ...\n"
                    "    #6 train      train.py:12\n");
}

Test(text_fold, a_deep_stack_names_its_frames_rightly)
{
    int frames[CW_DEPTH_MAX];

    for (unsigned i = 0; i < CW_DEPTH_MAX; i++)
        frames[i] = EMPTY;
    frames[CW_DEPTH_MAX - 1] = MAIN;
    add(CW_DEPTH_MAX, frames);
    expect_stack(0, "    #0 empty  libtorch_cuda.so+0x20\n"
                    "    ... 126 frames of libtorch_cuda.so\n"
                    "  #127 main   a.out+0x80\n");
}

Test(text_fold, a_short_stack_has_room_for_the_programs_frames)
{
    ADD(RAW_ALLOC, EMPTY, EMPTY, EMPTY, BINDING, FORWARD, LOAD, OPS, LOAD, OPS, TRAIN);
    print(0, 4, 0);
    cr_expect_str_eq(said, "    #0 raw_alloc    libc10_cuda.so+0x10\n"
                           "    ... 4 frames of libtorch_cuda.so, libtorch_python.so\n"
                           "    #5 Net.forward  model.py:5\n"
                           "    ... 4 more frames\n"
                           "   #10 train        train.py:12\n");
}
