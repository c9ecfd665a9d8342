/* SPDX-License-Identifier: MIT */
/* The driver's functions by name. See gpu_driver.h. */
#include "cli/doctor/gpu_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "base/compiler.h"

static const struct {
    const char *export;
    int is_needed;
    size_t at;
} functions[] = {
#define X(name, export, is_needed, arguments)                                                      \
    {export, is_needed, offsetof(struct cw_gpu_driver, name)},
    CW_GPU_FUNCTIONS(X)
#undef X
};

int cw_gpu_driver_open(struct cw_gpu_driver *out, const char **out_why)
{
    memset(out, 0, sizeof(*out));
    out->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!out->library) {
        *out_why = dlerror();
        return -1;
    }
    for (size_t i = 0; i < CW_ARRAY_LEN(functions); i++) {
        void *found = dlsym(out->library, functions[i].export);

        *(void **)((char *)out + functions[i].at) = found;
        if (found || !functions[i].is_needed)
            continue;
        *out_why = dlerror();
        return -1;
    }
    return 0;
}
