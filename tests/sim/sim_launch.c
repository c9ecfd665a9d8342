/* SPDX-License-Identifier: MIT */
/* Launching kernels, and the built-in ones themselves.
 *
 * The built-in kernels touch memory only through the same checks as copies; a launch that touches
 * what is not there breaks its context with CUDA_ERROR_ILLEGAL_ADDRESS, as on a GPU.
 */
#include "sim.h"

#include <string.h>

#define MAX_OWN 64

static CUresult run_fill(const uint64_t *arguments, const char *who)
{
    uint32_t *to = (uint32_t *)arguments[0], value = (uint32_t)arguments[1];

    if (!sim_range_is_live(arguments[0], arguments[2] * 4, who))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < arguments[2]; i++)
        to[i] = value;
    return CUDA_SUCCESS;
}

static CUresult run_check(const uint64_t *arguments, const char *who)
{
    const uint32_t *from = (const uint32_t *)arguments[0];
    uint32_t wrong = 0, *out = (uint32_t *)arguments[3];

    if (!sim_range_is_live(arguments[0], arguments[2] * 4, who) ||
        !sim_range_is_live(arguments[3], 4, who))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (uint64_t i = 0; i < arguments[2]; i++)
        wrong += from[i] != (uint32_t)arguments[1];
    *out += wrong;
    return CUDA_SUCCESS;
}

static CUresult run_copy(const uint64_t *arguments, const char *who)
{
    if (!sim_range_is_live(arguments[0], arguments[2], who) ||
        !sim_range_is_live(arguments[1], arguments[2], who))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memmove((void *)arguments[0], (const void *)arguments[1], arguments[2]);
    return CUDA_SUCCESS;
}

static CUresult run_trap(const uint64_t *arguments, const char *who)
{
    (void)arguments, (void)who;
    return CUDA_ERROR_LAUNCH_FAILED;
}

static const struct sim_kernel kernels[] = {
    {"fill", 3, {8, 4, 8}, run_fill, 1, false, false, NULL},
    {"check", 4, {8, 4, 8, 8}, run_check, 1 | 8, false, false, NULL},
    {"copy", 3, {8, 8, 8}, run_copy, 1 | 2, false, false, NULL},
    {"spin", 1, {8}, NULL, 0, true, false, NULL},
    {"persist", 2, {8, 4}, NULL, 0, false, true, NULL},
    {"trap", 0, {0}, run_trap, 0, false, false, NULL},
};

/* Those that the program brought along; only ever more. */
static struct {
    pthread_mutex_t lock;
    unsigned count;
    struct sim_kernel kernels[MAX_OWN];
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct sim_kernel *find_own(const char *name)
{
    const struct sim_kernel *found = NULL;

    pthread_mutex_lock(&own.lock);
    for (unsigned i = 0; i < own.count && !found; i++)
        if (!strcmp(own.kernels[i].name, name))
            found = &own.kernels[i];
    pthread_mutex_unlock(&own.lock);
    return found;
}

const struct sim_kernel *sim_kernel_find(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, name))
            return &kernels[i];
    return find_own(name);
}

int cusim_define_kernel(const struct cusim_kernel *kernel)
{
    struct sim_kernel *added = NULL;

    if (find_own(kernel->name))
        return 0;
    pthread_mutex_lock(&own.lock);
    if (own.count < MAX_OWN) {
        added = &own.kernels[own.count];
        *added = (struct sim_kernel){.name = kernel->name,
                                     .narguments = kernel->narguments,
                                     .pointers = kernel->pointers,
                                     .run_own = kernel->run};
        memcpy(added->sizes, kernel->sizes, sizeof added->sizes);
        own.count++;
    }
    pthread_mutex_unlock(&own.lock);
    return added ? 0 : -1;
}

/* `extra` is a list of keys and values; the arguments lie in one buffer, each aligned to its size.
 */
static const char *buffer_of(void **extra)
{
    const char *buffer = NULL;

    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
    return buffer;
}

static CUresult read_arguments(struct sim_call *call, void **params, void **extra)
{
    const struct sim_kernel *kernel = call->function->kernel;
    const char *buffer = buffer_of(extra);
    size_t offset = 0;

    if (!kernel || kernel->narguments == 0)
        return CUDA_SUCCESS;
    if (!params && !buffer)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < kernel->narguments; i++) {
        offset = sim_round(offset, kernel->sizes[i]);
        call->arguments[i] = 0;
        memcpy(&call->arguments[i], params ? params[i] : buffer + offset, kernel->sizes[i]);
        offset += kernel->sizes[i];
    }
    return CUDA_SUCCESS;
}

CUresult sim_call_parse(struct sim_call *call, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct sim_call result = {.shown = *params};
    CUresult status;

    result.function =
        (struct sim_function *)(params->func ? (void *)params->func : (void *)params->kern);
    if (!sim_object_is(result.function, SIM_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!params->gridDimX || !params->gridDimY || !params->gridDimZ || !params->blockDimX ||
        !params->blockDimY || !params->blockDimZ)
        return CUDA_ERROR_INVALID_VALUE;
    status = read_arguments(&result, params->kernelParams, params->extra);
    if (status == CUDA_SUCCESS)
        *call = result;
    return status;
}

static CUresult launch(const CUDA_KERNEL_NODE_PARAMS_v2 *params, CUstream handle)
{
    struct sim_work work = {.task = SIM_DO_CALL};
    struct sim_stream *stream;
    CUresult status = sim_stream_check(&stream, handle);

    if (status == CUDA_SUCCESS)
        status = sim_call_parse(&work.call, params);
    if (status == CUDA_SUCCESS)
        status = sim_function_load(work.call.function);
    return status == CUDA_SUCCESS ? sim_stream_submit(stream, &work) : status;
}

CUresult sim_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared, CUstream stream,
                            void **params, void **extra)
{
    CUDA_KERNEL_NODE_PARAMS_v2 all = {function, grid_x, grid_y, grid_z, block_x, block_y,
                                      block_z,  shared, params, extra,  NULL,    NULL};

    return launch(&all, stream);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                       unsigned int grid_y, unsigned int grid_z,
                                       unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared, CUstream stream,
                                       void **params)
{
    return sim_cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                              stream, params, NULL);
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                              void **extra)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                              config->blockDimX, config->blockDimY, config->blockDimZ,
                              config->sharedMemBytes, config->hStream, params, extra);
}
