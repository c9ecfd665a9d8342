/* SPDX-License-Identifier: MIT */
/* Which functions are CUDA's own. See toolkit.h. */
#include "report/symbols/toolkit.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "report/symbols/qualified.h"

#define NAME_CAP 256 /* the start decides, or the whole of a name that is shorter */

static const char *const runtime_function[] = {
#define RUNTIME_FUNCTION(name) #name,
#include "report/symbols/runtime_api.def"
#undef RUNTIME_FUNCTION
};

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Names that programs must not have: the runtime's own functions (a static one has hashes in place
 * of names), and those that nvcc generates. */
static int is_internal(const char *name)
{
    static const char *const beginning[] = {
        "libcudart_static_", "cudart::", "__cuda", "__nv_", "__device_stub__",
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(beginning); i++)
        if (begins(name, beginning[i]))
            return 1;
    return 0;
}

/* What may follow a function's name: "", "_ptsz", "_v2", "_v2_ptsz". */
static int is_suffix(const char *text)
{
    if (begins(text, "_v") && text[2] >= '0' && text[2] <= '9')
        text += 2 + strspn(text + 2, "0123456789");
    return text[0] == '\0' || strcmp(text, "_ptsz") == 0 || strcmp(text, "_ptds") == 0;
}

static int is_of_runtime(const char *name)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(runtime_function); i++)
        if (begins(name, runtime_function[i]) && is_suffix(name + strlen(runtime_function[i])))
            return 1;
    return 0;
}

/* Functions that a release adds have a header before they have a row. */
static int is_header(const char *file)
{
    static const char *const names[] = {"cuda_runtime.h", "cuda_runtime_api.h",
                                        "cuda_device_runtime_api.h"};
    const char *slash = strrchr(file, '/');

    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++)
        if (strcmp(slash ? slash + 1 : file, names[i]) == 0)
            return 1;
    return 0;
}

int cw_toolkit_has_function(const char *function, const char *file)
{
    char name[NAME_CAP];

    if (!function)
        return 0;
    cw_qualified_name(function, name, sizeof(name));
    if (!begins(name, "::"))
        return 0;
    if (is_internal(name + 2))
        return 1;
    return begins(name, "::cuda") && ((file && is_header(file)) || is_of_runtime(name + 2));
}
