/* SPDX-License-Identifier: MIT */
/* Whose code a frame is, and what it is known by. */
#include <criterion/criterion.h>

#include "report/model/code_kind.h"

#define PACKAGES "/usr/local/lib/python3.11/site-packages"
#define HASHED   "cabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrs"

static struct cw_report_module module;
static const struct cw_report_model model = {
    .module = &module, .modules = 1, .process = {.exe = "/usr/bin/train"}};

static struct cw_report_frame in_module(const char *path)
{
    module.path = path;
    return (struct cw_report_frame){.module = 1};
}

static struct cw_report_frame at_line(const char *file)
{
    return (struct cw_report_frame){.file = file, .is_python = 1};
}

static void expect_modules(enum cw_code_kind kind, const char *const *path)
{
    for (; *path; path++) {
        struct cw_report_frame frame = in_module(*path);

        cr_expect_eq(cw_code_kind(&model, &frame), kind, "%s", *path);
    }
}

static void expect_lines(enum cw_code_kind kind, const char *const *file)
{
    for (; *file; file++) {
        struct cw_report_frame frame = at_line(*file);

        cr_expect_eq(cw_code_kind(&model, &frame), kind, "%s", *file);
    }
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(code_kind, the_programs_own)
{
    expect_modules(CW_CODE_OWN, LIST("/usr/bin/train", "/home/me/build/libops.so"));
    expect_lines(CW_CODE_OWN, LIST("/home/me/train.py", "train.py", "Cell In[2]", "<stdin>"));
}

/* What exec and namedtuple compile has that name, too. */
Test(code_kind, a_text_is_the_script_of_python_that_was_told_it)
{
    struct cw_report_frame frame = at_line("<string>");
    struct cw_report_model told = model;
    const char *rows[][4] = {{"python3", "-c", "pass", NULL},
                             {"python3", "-I", "-c", "pass"},
                             {"python3", "train.py", "-c", "pass"},
                             {"python3", "-", NULL, NULL}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        told.process.argv = rows[i];
        for (told.process.argc = 0; told.process.argc < 4 && rows[i][told.process.argc];)
            told.process.argc++;
        cr_expect_eq(cw_code_kind(&told, &frame), i < 2 ? CW_CODE_OWN : CW_CODE_PYTHON, "row %zu",
                     i);
    }
}

Test(code_kind, frameworks_and_the_toolkit)
{
    expect_modules(CW_CODE_FRAMEWORK,
                   LIST("/opt/torch/lib/libtorch_cuda.so", PACKAGES "/torch/lib/libfoo.so",
                        PACKAGES "/cupy/cuda/memory.cpython-311-x86_64-linux-gnu.so",
                        "/usr/local/cuda/lib64/libcudart.so.13",
                        "/usr/local/cuda/lib64/libcublas.so.12", "/home/me/lib/libc10.so"));
    expect_lines(CW_CODE_FRAMEWORK, LIST(PACKAGES "/torch/nn/functional.py",
                                         "/usr/lib/python3/dist-packages/cupy/__init__.py",
                                         PACKAGES "/tinygrad/tensor.py"));
}

Test(code_kind, what_a_framework_generated_is_its_own)
{
    expect_lines(CW_CODE_FRAMEWORK,
                 LIST("/tmp/torchinductor_me/ab/" HASHED ".py", "/scratch/cache/ab/" HASHED ".py"));
    expect_lines(CW_CODE_OWN, LIST("/scratch/cache/xy/" HASHED ".py", "/a/ab/cab.py",
                                   "/a/ab/" HASHED "x.py", HASHED ".py"));
    expect_modules(CW_CODE_FRAMEWORK, LIST("/home/me/.triton/cache/AB/__triton_launcher.so",
                                           "/tmp/torchinductor_me/ab/" HASHED ".main.so"));
}

Test(code_kind, python_and_libraries)
{
    expect_modules(CW_CODE_PYTHON,
                   LIST("/home/me/venv/bin/python3.11", "/usr/lib/libpython3.11.so.1.0"));
    expect_lines(CW_CODE_PYTHON, LIST("/usr/lib/python3.11/threading.py", PACKAGES "/numpy/core.py",
                                      "<frozen importlib._bootstrap>", "<string>"));
    expect_modules(CW_CODE_LIBRARY, LIST("/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         PACKAGES "/numpy/core/multiarray.so", ""));
}

static void expect_name(struct cw_report_frame frame, const char *wanted)
{
    char buf[16];

    cr_expect_str_eq(cw_code_name(&model, &frame, buf, sizeof(buf)), wanted);
}

Test(code_kind, names)
{
    expect_name(in_module(PACKAGES "/torch/lib/libtorch_cuda.so"), "libtorch_cuda.so");
    expect_name(in_module(PACKAGES "/cupy/cuda/memory.cpython-311-x86_64-linux-gnu.so"), "cupy");
    expect_name(in_module(PACKAGES "/tvm_ffi/core.abi3.so"), "tvm_ffi");
    expect_name(in_module("/usr/lib/libstdc++.so.6"), "libstdc++.so.6");
    expect_name(in_module(""), "?");
    expect_name((struct cw_report_frame){.module = 0}, "?");
    expect_name(at_line(PACKAGES "/torch/nn/functional.py"), "torch");
    expect_name(at_line("/usr/lib/python3.11/threading.py"), "Python");
    expect_name(at_line("<frozen runpy>"), "<frozen runpy>");
    expect_name(at_line("/tmp/torchinductor_me/ab/" HASHED ".py"), "generated code");
    expect_name((struct cw_report_frame){.is_python = 1}, "Python");
}
