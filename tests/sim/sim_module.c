/* SPDX-License-Identifier: MIT */
/* Modules and libraries, their functions, kernels and variables.
 *
 * An image whose text starts with "cusim" lists, one per line, `kernel NAME` for the built-in
 * kernels it wants and `global NAME SIZE` for variables. With a line `open` every other function
 * that is asked for exists, too: it is a kernel that the program brought along
 * (cusim_define_kernel) or does nothing. Any other image loads and is open, with functions that do
 * nothing; if it is PTX, it has the variables that it declares (sim_ptx.c). A library is a module
 * that belongs to no context; its variables come to exist when first asked for. A CUkernel and a
 * CUfunction are the same object.
 */
#include "sim.h"
#include "sim_observe.h"
#include "sim_ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_global {
    struct sim_global *next;
    struct sim_block *block;
    char name[SIM_MAX_NAME];
};

static struct sim_function *add_function(struct sim_module *module, const char *name)
{
    struct sim_function *function = sim_object_create(SIM_FUNCTION);

    if (!function)
        return NULL;
    snprintf(function->name, sizeof function->name, "%s", name);
    function->module = module;
    function->kernel = module->is_text ? sim_kernel_find(name) : NULL;
    function->next = module->functions;
    module->functions = function;
    return function;
}

static struct sim_function *find_function(struct sim_module *module, const char *name)
{
    struct sim_function *function = module->functions;

    while (function && strcmp(function->name, name))
        function = function->next;
    return function || !module->is_open ? function : add_function(module, name);
}

static struct sim_global *find_global(struct sim_module *module, const char *name)
{
    struct sim_global *global = module->globals;

    while (global && strcmp(global->name, name))
        global = global->next;
    return global;
}

static CUresult add_global(struct sim_module *module, const char *name, size_t size)
{
    struct sim_global *global = calloc(1, sizeof *global);

    if (!global)
        return CUDA_ERROR_OUT_OF_MEMORY;
    snprintf(global->name, sizeof global->name, "%s", name);
    global->block = sim_block_create(SIM_MEM_GLOBAL, module->device, size, true);
    if (!global->block) {
        free(global);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset((void *)global->block->start, 0, size);
    sim_observe(&(struct cusim_event){.kind = CUSIM_GLOBAL,
                                      .device = module->device,
                                      .address = global->block->start,
                                      .bytes = size,
                                      .name = global->name});
    global->next = module->globals;
    module->globals = global;
    return CUDA_SUCCESS;
}

static CUresult parse_line(struct sim_module *module, const char *line)
{
    char name[SIM_MAX_NAME];
    size_t size;

    if (sscanf(line, " global %127s %zu", name, &size) == 2)
        return add_global(module, name, size);
    if (sscanf(line, " %127s", name) == 1 && !strcmp(name, "open"))
        module->is_open = true;
    if (sscanf(line, " kernel %127s", name) != 1)
        return CUDA_SUCCESS;
    if (!sim_kernel_find(name))
        return CUDA_ERROR_INVALID_IMAGE;
    return add_function(module, name) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult parse(struct sim_module *module, const char *text)
{
    CUresult status = CUDA_SUCCESS;

    while ((text = strchr(text, '\n')) && status == CUDA_SUCCESS)
        status = parse_line(module, ++text);
    return status;
}

static CUresult parse_ptx(struct sim_module *module, const char *image)
{
    char *text = sim_ptx_is(image) ? sim_ptx_variables(image) : NULL;
    CUresult status = text ? parse(module, text) : CUDA_SUCCESS;

    free(text);
    return status;
}

static void unload(struct sim_module *module)
{
    while (module->functions) {
        struct sim_function *function = module->functions;

        module->functions = function->next;
        sim_device_discharge(module->device, function->charged);
        sim_object_destroy(function);
    }
    while (module->globals) {
        struct sim_global *global = module->globals;

        module->globals = global->next;
        sim_block_destroy(global->block);
        free(global);
    }
    sim_device_discharge(module->device, module->charged);
    sim_object_destroy(module);
}

static CUresult load(struct sim_module **out, const void *image, struct sim_context *ctx)
{
    struct sim_module *module;
    CUresult status = CUDA_SUCCESS;

    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    module = sim_object_create(SIM_MODULE);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->ctx = ctx;
    module->device = ctx ? ctx->device : 0;
    module->is_text = !strncmp(image, "cusim", 5);
    module->is_open = !module->is_text;
    if (!sim_device_charge(module->device, sim.config.module_bytes))
        status = CUDA_ERROR_OUT_OF_MEMORY;
    else
        module->charged = sim.config.module_bytes;
    if (status == CUDA_SUCCESS && module->is_text)
        status = parse(module, image);
    else if (status == CUDA_SUCCESS)
        status = parse_ptx(module, image);
    if (status != CUDA_SUCCESS)
        unload(module);
    else
        *out = module;
    return status;
}

CUresult sim_function_load(struct sim_function *function)
{
    if (function->is_loaded)
        return CUDA_SUCCESS;
    if (!sim_device_charge(function->module->device, sim.config.lazy_load_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    function->charged = sim.config.lazy_load_bytes;
    function->is_loaded = true;
    return CUDA_SUCCESS;
}

static void forget(void *object, void *argument)
{
    struct sim_module *module = object;

    if (module->ctx == argument && !module->is_library)
        unload(module);
}

void sim_module_forget(struct sim_context *ctx)
{
    sim_object_visit(SIM_MODULE, forget, ctx);
}

/* ---- entry points: modules ---- */

static struct sim_module *find(const void *handle)
{
    return sim_object_is(handle, SIM_MODULE) ? (struct sim_module *)handle : NULL;
}

CUresult sim_cuModuleLoadData(CUmodule *out, const void *image)
{
    struct sim_module *module;
    CUresult status = out ? load(&module, image, sim_context_current()) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *out = (CUmodule)module;
    return status;
}

/* The one option that is read and then written: the compiler aims at a warp more. */
static void compile(unsigned int n, const CUjit_option *options, void **values)
{
    for (unsigned i = 0; options && values && i < n; i++)
        if (options[i] == CU_JIT_THREADS_PER_BLOCK)
            values[i] = (void *)((uintptr_t)values[i] + 32);
}

CUresult sim_cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int n,
                                CUjit_option *options, void **values)
{
    compile(n, options, values);
    return sim_cuModuleLoadData(out, image);
}

CUresult sim_cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    return sim_cuModuleLoadData(out, image);
}

static char *read_text(const char *path)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    char *text = file ? calloc(1, 65536) : NULL;
    size_t n = text ? fread(text, 1, 65535, file) : 0;

    if (file)
        fclose(file);
    if (n == 0) {
        free(text);
        return NULL;
    }
    return text;
}

CUresult sim_cuModuleLoad(CUmodule *out, const char *path)
{
    char *text = read_text(path);
    CUresult status = text ? sim_cuModuleLoadData(out, text) : CUDA_ERROR_FILE_NOT_FOUND;

    free(text);
    return status;
}

CUresult sim_cuModuleUnload(CUmodule handle)
{
    struct sim_module *module = find(handle);

    if (!module || module->is_library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim.config.free_waits && module->ctx)
        sim_context_wait(module->ctx);
    unload(module);
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    struct sim_module *module = find(handle);

    if (!out || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUfunction)find_function(module, name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule handle,
                                  const char *name)
{
    struct sim_module *module = find(handle);
    struct sim_global *global;

    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    global = find_global(module, name);
    if (!global)
        return CUDA_ERROR_NOT_FOUND;
    if (out)
        *out = global->block->start;
    if (bytes)
        *bytes = global->block->size;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
    struct sim_module *module = find(handle);

    if (!count || !module)
        return CUDA_ERROR_INVALID_VALUE;
    *count = 0;
    for (struct sim_function *function = module->functions; function; function = function->next)
        ++*count;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* ---- entry points: libraries ---- */

CUresult sim_cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *options,
                               void **values, unsigned int n, CUlibraryOption *library_options,
                               void **library_values, unsigned int nlibrary)
{
    struct sim_module *module;
    CUresult status;

    (void)library_options, (void)library_values, (void)nlibrary;
    compile(n, options, values);
    status = out ? load(&module, code, NULL) : CUDA_ERROR_INVALID_VALUE;
    if (status != CUDA_SUCCESS)
        return status;
    module->is_library = true;
    *out = (CUlibrary)module;
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *options,
                                   void **values, unsigned int n, CUlibraryOption *library_options,
                                   void **library_values, unsigned int nlibrary)
{
    char *text = read_text(path);
    CUresult status = text ? sim_cuLibraryLoadData(out, text, options, values, n, library_options,
                                                   library_values, nlibrary)
                           : CUDA_ERROR_FILE_NOT_FOUND;

    free(text);
    return status;
}

CUresult sim_cuLibraryUnload(CUlibrary handle)
{
    struct sim_module *module = find(handle);

    if (!module || !module->is_library)
        return CUDA_ERROR_INVALID_HANDLE;
    unload(module);
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name)
{
    return sim_cuModuleGetFunction((CUfunction *)out, (CUmodule)handle, name);
}

CUresult sim_cuLibraryGetModule(CUmodule *out, CUlibrary handle)
{
    if (!out || !find(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUmodule)handle;
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr *out, size_t *bytes, CUlibrary handle, const char *name)
{
    return sim_cuModuleGetGlobal_v2(out, bytes, (CUmodule)handle, name);
}

CUresult sim_cuLibraryGetManaged(CUdeviceptr *out, size_t *bytes, CUlibrary handle,
                                 const char *name)
{
    (void)out, (void)bytes, (void)name;
    return find(handle) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle)
{
    return sim_cuModuleGetFunctionCount(count, (CUmodule)handle);
}

CUresult sim_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int n, CUlibrary handle)
{
    struct sim_module *module = find(handle);
    struct sim_function *function;

    if (!kernels || !module)
        return CUDA_ERROR_INVALID_VALUE;
    function = module->functions;
    for (unsigned i = 0; i < n && function; i++, function = function->next)
        kernels[i] = (CUkernel)function;
    return CUDA_SUCCESS;
}

/* ---- entry points: functions ---- */

static struct sim_function *function_of(const void *handle)
{
    return sim_object_is(handle, SIM_FUNCTION) ? (struct sim_function *)handle : NULL;
}

/* For a call that needs the function's code. */
static CUresult load_code(const void *handle)
{
    struct sim_function *function = function_of(handle);

    return function ? sim_function_load(function) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuFuncLoad(CUfunction handle)
{
    return load_code(handle);
}

CUresult sim_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    if (!function_of(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    *state = function_of(handle)->is_loaded ? CU_FUNCTION_LOADING_STATE_LOADED
                                            : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetFunction(CUfunction *out, CUkernel handle)
{
    CUresult status = out ? load_code(handle) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *out = (CUfunction)handle;
    return status;
}

CUresult sim_cuKernelGetLibrary(CUlibrary *out, CUkernel handle)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!function_of(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (CUlibrary)function_of(handle)->module;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetModule(CUmodule *out, CUfunction handle)
{
    return sim_cuKernelGetLibrary((CUlibrary *)out, (CUkernel)handle);
}

CUresult sim_cuFuncGetName(const char **out, CUfunction handle)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!function_of(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = function_of(handle)->name;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetName(const char **out, CUkernel handle)
{
    return sim_cuFuncGetName(out, (CUfunction)handle);
}

CUresult sim_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle)
{
    CUresult status = value ? load_code(handle) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return status;
}

CUresult sim_cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel handle,
                                  CUdevice device)
{
    (void)device;
    return sim_cuFuncGetAttribute(value, attribute, (CUfunction)handle);
}

CUresult sim_cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
    (void)attribute, (void)value;
    return load_code(handle);
}

CUresult sim_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                  CUdevice device)
{
    (void)device;
    return sim_cuFuncSetAttribute((CUfunction)handle, attribute, value);
}

CUresult sim_cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
    (void)config;
    return load_code(handle);
}

CUresult sim_cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device)
{
    (void)device;
    return sim_cuFuncSetCacheConfig((CUfunction)handle, config);
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int size,
                                                         size_t dynamic)
{
    CUresult status = blocks && size > 0 ? load_code(handle) : CUDA_ERROR_INVALID_VALUE;

    (void)dynamic;
    if (status == CUDA_SUCCESS)
        *blocks = size > 1536 ? 0 : 1536 / size > 24 ? 24 : 1536 / size;
    return status;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle,
                                                                  int size, size_t dynamic,
                                                                  unsigned int flags)
{
    (void)flags;
    return sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle, size, dynamic);
}
