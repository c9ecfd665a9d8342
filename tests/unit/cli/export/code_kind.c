/* SPDX-License-Identifier: MIT */
/* Whose code a function is. */
#include <criterion/criterion.h>

#include "cli/export/code_kind.h"

#define PACKAGES "/usr/local/lib/python3.11/site-packages"

static const char *of_module(const char *path)
{
    struct cw_report_module module = {.path = path};
    const struct cw_report_model model = {
        .module = &module, .modules = 1, .process = {.exe = "/usr/bin/train"}};

    return cw_code_kind(&model, &(struct cw_call){.module = 0, .file = "", .function = ""});
}

static const char *of_line(const char *file)
{
    const struct cw_report_model model = {.process = {.exe = "/usr/bin/python3.11"}};

    return cw_code_kind(&model,
                        &(struct cw_call){.module = UINT32_MAX, .file = file, .is_python = 1});
}

Test(code_kind, the_programs_own)
{
    cr_expect_str_eq(of_module("/usr/bin/train"), "own");
    cr_expect_str_eq(of_module("/home/me/build/libops.so"), "own");
    cr_expect_str_eq(of_line("/home/me/train.py"), "own");
    cr_expect_str_eq(of_line("train.py"), "own");
}

Test(code_kind, frameworks_and_the_toolkit)
{
    cr_expect_str_eq(of_module("/opt/torch/lib/libtorch_cuda.so"), "framework");
    cr_expect_str_eq(of_module(PACKAGES "/torch/lib/libfoo.so"), "framework");
    cr_expect_str_eq(of_module(PACKAGES "/cupy/cuda/memory.cpython-311-x86_64-linux-gnu.so"),
                     "framework");
    cr_expect_str_eq(of_module("/usr/local/cuda/lib64/libcudart.so.13"), "framework");
    cr_expect_str_eq(of_module("/usr/local/cuda/lib64/libcublas.so.12"), "framework");
    cr_expect_str_eq(of_module("/home/me/lib/libc10.so"), "framework");
    cr_expect_str_eq(of_line(PACKAGES "/torch/nn/functional.py"), "framework");
    cr_expect_str_eq(of_line("/usr/lib/python3/dist-packages/cupy/__init__.py"), "framework");
    cr_expect_str_eq(of_line(PACKAGES "/tinygrad/tensor.py"), "framework");
}

Test(code_kind, python_and_libraries)
{
    cr_expect_str_eq(of_module("/home/me/venv/bin/python3.11"), "python");
    cr_expect_str_eq(of_module("/usr/lib/libpython3.11.so.1.0"), "python");
    cr_expect_str_eq(of_line("/usr/lib/python3.11/threading.py"), "python");
    cr_expect_str_eq(of_line(PACKAGES "/numpy/core.py"), "python");
    cr_expect_str_eq(of_line("<frozen importlib._bootstrap>"), "python");
    cr_expect_str_eq(of_module("/usr/lib/x86_64-linux-gnu/libstdc++.so.6"), "library");
    cr_expect_str_eq(of_module(PACKAGES "/numpy/core/multiarray.so"), "library");
    cr_expect_str_eq(of_module(""), "library");
}
