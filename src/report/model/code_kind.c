/* SPDX-License-Identifier: MIT */
/*
 * Whose code a frame is. See code_kind.h.
 *
 * Known by the file alone: a library that the built-in rules or the tables below name, then the
 * place where it is installed. A library that was linked statically counts as what it was linked
 * into.
 */
#include "report/model/code_kind.h"

#include <string.h>

#include "base/compiler.h"
#include "base/out.h"
#include "report/leaks/leak_class.h"
#include "report/symbols/stack.h"

/* Beginnings of file names that no built-in rule has: their memory belongs to their callers. */
static const char *const framework_file[] = {
    "libtorch",   "libc10",         "libcaffe2",     "libATen",     "libcudart",
    "libcuda.so", "libcuda-",       "libtensorflow", "libxla",      "libpjrt",
    "libjax",     "librmm",         "libcudf",       "libcuml",     "libcuvs",
    "libmxnet",   "libonnxruntime", "libtriton",     "libcuwarden",
};

/* Beginnings of Python packages. */
static const char *const framework_package[] = {
    "torch",    "functorch", "cupy",     "jax",      "tensorflow", "keras",
    "numba",    "llvmlite",  "triton",   "nvidia",   "cuda",       "pycuda",
    "rmm",      "pylibcudf", "cudf",     "cuml",     "raft_dask",  "onnxruntime",
    "tensorrt", "flax",      "xformers", "tinygrad", "drjit",      "taichi",
};

/* Where packages and distributions put libraries. */
static const char *const installed_under[] = {
    "/usr/",  "/lib/",  "/lib64/", "/lib32/", "/opt/",  "/bin/",
    "/sbin/", "/snap/", "/nix/",   "/gnu/",   "[vdso]",
};

static int begins_with_one(const char *text, const char *const *beginning, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, beginning[i], strlen(beginning[i])) == 0)
            return 1;
    return 0;
}

#define BEGINS_WITH_ONE(text, table) begins_with_one(text, table, CW_ARRAY_LEN(table))

/* What follows the directory of packages; NULL outside of one. */
static const char *package_of(const char *path)
{
    static const char *const directory[] = {"/site-packages/", "/dist-packages/"};

    for (size_t i = 0; i < CW_ARRAY_LEN(directory); i++) {
        const char *found = strstr(path, directory[i]);

        if (found)
            return found + strlen(directory[i]);
    }
    return NULL;
}

static int is_of_framework(const char *package)
{
    return package && BEGINS_WITH_ONE(package, framework_package);
}

/* "python -c TEXT": what it was told is the script. The text may come after other options. */
static int is_told(const struct cw_report_model *model, const char *file)
{
    const struct cw_process_facts *process = &model->process;
    uint32_t i = 1;

    if (strcmp(file, "<string>") != 0)
        return 0;
    while (i < process->argc && process->argv[i][0] == '-' && strcmp(process->argv[i], "-c") != 0)
        i++;
    return i < process->argc && strcmp(process->argv[i], "-c") == 0;
}

static enum cw_code_kind kind_of_line(const struct cw_report_model *model, const char *file)
{
    if (is_told(model, file))
        return CW_CODE_OWN;
    if (is_of_framework(package_of(file)) || cw_file_is_generated(file))
        return CW_CODE_FRAMEWORK;
    return cw_file_is_installed(file) ? CW_CODE_PYTHON : CW_CODE_OWN;
}

static enum cw_code_kind kind_of_module(const struct cw_report_model *model, uint32_t module)
{
    const char *path = cw_report_module_path(model, module);
    const char *name = cw_report_module_name(model, module), *package = package_of(path);

    if (cw_leak_rule_names_file(path) || BEGINS_WITH_ONE(name, framework_file) ||
        is_of_framework(package) || cw_file_is_generated(path))
        return CW_CODE_FRAMEWORK;
    if (strncmp(name, "python", 6) == 0 || strncmp(name, "libpython", 9) == 0)
        return CW_CODE_PYTHON;
    if (strcmp(path, model->process.exe) == 0)
        return CW_CODE_OWN;
    return path[0] == '\0' || package || BEGINS_WITH_ONE(path, installed_under) ? CW_CODE_LIBRARY
                                                                                : CW_CODE_OWN;
}

enum cw_code_kind cw_code_kind(const struct cw_report_model *model,
                               const struct cw_report_frame *frame)
{
    if (frame->is_python)
        return kind_of_line(model, frame->file ? frame->file : "");
    return kind_of_module(model, frame->module);
}

static const char *name_of_package(const char *package, char *buf, size_t cap)
{
    cw_format(buf, cap, "%.*s", (int)strcspn(package, "/"), package);
    return buf;
}

const char *cw_code_name(const struct cw_report_model *model, const struct cw_report_frame *frame,
                         char *buf, size_t cap)
{
    const char *file = frame->is_python ? frame->file ? frame->file : ""
                                        : cw_report_module_path(model, frame->module);
    const char *package = package_of(file);

    if (package && (frame->is_python || strstr(package, ".cpython-") || strstr(package, ".abi3.")))
        return name_of_package(package, buf, cap);
    if (file[0] == '<')
        return file;
    if (frame->is_python)
        return cw_file_is_generated(file) ? "generated code" : "Python";
    return file[0] ? cw_report_module_name(model, frame->module) : "?";
}
