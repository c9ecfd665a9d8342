/* SPDX-License-Identifier: MIT */
/* Names and texts of error codes. */
#include "sim.h"

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, text) {code, #code, text},
#include "sim_errors.def"
#undef ERROR
};

#define NERRORS (sizeof errors / sizeof *errors)

CUresult sim_cuGetErrorName(CUresult code, const char **out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    for (size_t i = 0; i < NERRORS; i++)
        if (errors[i].code == code)
            *out = errors[i].name;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGetErrorString(CUresult code, const char **out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    for (size_t i = 0; i < NERRORS; i++)
        if (errors[i].code == code)
            *out = errors[i].text;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
