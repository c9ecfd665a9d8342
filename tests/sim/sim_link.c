/* SPDX-License-Identifier: MIT */
/* The linker. Its output is an image in which every function exists and does nothing, with the
 * variables that the PTX among its input declares (sim_ptx.c). Guarded by sim.lock.
 */
#include "sim.h"
#include "sim_handles.h"
#include "sim_ptx.h"

#include <stdlib.h>
#include <string.h>

struct link {
    struct sim_object head;
    char *image;
};

static const char empty_image[] = "cusim\nopen\n";

static struct link *find(CUlinkState state)
{
    return sim_object_is(state, SIM_LINK) ? (struct link *)state : NULL;
}

/* Without the lines that begin an image, if it is not the first. */
static CUresult append(struct link *link, const char *image)
{
    const char *more = link->image ? image + strlen(empty_image) : image;
    size_t used = link->image ? strlen(link->image) : 0;
    char *grown = realloc(link->image, used + strlen(more) + 1);

    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    strcpy(grown + used, more);
    link->image = grown;
    return CUDA_SUCCESS;
}

static CUresult append_ptx(struct link *link, const char *data, size_t size)
{
    char *ptx = strndup(data, size);
    char *image = ptx && sim_ptx_is(ptx) ? sim_ptx_variables(ptx) : NULL;
    CUresult status = image ? append(link, image) : CUDA_SUCCESS;

    free(image);
    free(ptx);
    return status;
}

/* ---- entry points ---- */

CUresult sim_cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values, CUlinkState *out)
{
    (void)n, (void)options, (void)values;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUlinkState)sim_object_create(SIM_LINK);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                              const char *name, unsigned int n, CUjit_option *options,
                              void **values)
{
    struct link *link = find(state);

    (void)name, (void)n, (void)options, (void)values;
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    return type == CU_JIT_INPUT_PTX ? append_ptx(link, data, size) : CUDA_SUCCESS;
}

CUresult sim_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                              unsigned int n, CUjit_option *options, void **values)
{
    (void)type, (void)path, (void)n, (void)options, (void)values;
    return find(state) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuLinkComplete(CUlinkState state, void **image, size_t *size)
{
    struct link *link = find(state);

    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    *image = link->image ? link->image : (void *)empty_image;
    if (size)
        *size = strlen(*image) + 1;
    return CUDA_SUCCESS;
}

CUresult sim_cuLinkDestroy(CUlinkState state)
{
    struct link *link = find(state);

    if (!link)
        return CUDA_ERROR_INVALID_HANDLE;
    free(link->image);
    sim_object_destroy(link);
    return CUDA_SUCCESS;
}
