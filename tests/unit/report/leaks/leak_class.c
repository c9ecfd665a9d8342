/* SPDX-License-Identifier: MIT */
/* Who owns what was never freed, by the built-in rules; how old it is. */
#include "report/leaks/leak_class.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report_fixture.h"

TestSuite(leak_class, .init = fixture_create, .fini = report_teardown);

/* In the JSON the site whose API is "alloc" and the number has this class. */
static void expect_class(size_t number, const char *name)
{
    char line[64];
    const char *at;

    snprintf(line, sizeof(line), "\"api\":\"alloc%zu\",", number);
    at = strstr(report, line);
    snprintf(line, sizeof(line), "\"class\":\"%s\"", name);
    cr_assert_not_null(at);
    cr_expect(strstr(at, line) && strstr(at, line) < strchr(at, '\n'), "%zu is not %s", number,
              name);
}

/* ---- by the module that asked ---- */

static const struct {
    const char *path, *name;
} owners[] = {
    {"/usr/local/cuda/lib64/libcublas.so.12", "library"},
    {"/x/nvidia/cublas/lib/libcublasLt.so.13", "library"},
    {"/x/libcublas-1a2b3c4d.so.12.1.0", "library"},
    {"/x/libcudnn.so.9", "library"},
    {"/x/libcudnn_engines_precompiled.so.9", "library"},
    {"/x/libnccl.so.2", "library"},
    {"/x/libcufft.so.11", "library"},
    {"/x/libcufftw.so.11", "library"},
    {"/x/libcurand.so.10", "library"},
    {"/x/libcusolver.so.11", "library"},
    {"/x/libcusolverMg.so.11", "library"},
    {"/x/libcusparse.so.12", "library"},
    {"/x/libcusparseLt.so.0", "library"},
    {"/x/libnvjpeg.so.12", "library"},
    {"/x/libnppc.so.12", "library"},
    {"/x/libnppicc.so.12", "library"},
    {"/x/libnvrtc.so.12", "library"},
    {"/x/libcutensor.so.2", "library"},
    {"/x/libnvinfer.so.10", "library"},
    {"/x/libnvinfer_plugin.so.10", "library"},
    {"/x/libnvidia-encode.so.1", "library"},
    {"/x/torch/lib/libc10_cuda.so", "cache"},
    {"/x/cupy/cuda/memory.cpython-311-x86_64-linux-gnu.so", "cache"},
    {"/x/cupy/cuda/pinned_memory.cpython-311-x86_64-linux-gnu.so", "cache"},
    {"/x/jaxlib/xla_extension.so", "cache"},
    {"/x/jax_plugins/xla_cuda12/xla_cuda_plugin.so", "cache"},
    {"/x/onnxruntime/capi/libonnxruntime_providers_cuda.so", "cache"},
    /* Of somebody else, whatever it sounds like. */
    {"/x/libcublas_helper.so", "lost"},
    {"/x/libmycublas.so.12", "lost"},
    {"/x/libcudnn", "lost"},
    {"/libcublas.so.12/libapp.so", "lost"},
    {"/x/cupy/cuda/memory_hook.py", "lost"},
    {"/x/libtorch_cuda.so", "lost"},
    {"/x/librmm.so", "lost"},
};

Test(leak_class, is_by_the_file_that_asked)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(owners); i++) {
        uint32_t module = fixture_module(owners[i].path, (i + 1) << 20, CW_MODULE_PROGRAM);
        uint32_t site =
            fixture_site(fixture_frame(0, module, 0x2), "cudaMalloc", CW_KIND_DEVICE, 0);
        struct cw_view view;

        fixture_alloc(site, 512, 1, 1);
        view = fixture_view();
        cr_assert_eq(cw_snapshot_init(&snapshot, &view, 0), 0);
        cw_leak_classify(&snapshot, NULL, NULL);
        cr_expect_str_eq(cw_leak_name(cw_snapshot_find(&snapshot, site)), owners[i].name, "%s",
                         owners[i].path);
        cw_snapshot_fini(&snapshot);
    }
}

/* CuPy's pool calls the runtime through a module that others of CuPy use too. */
Test(leak_class, cupys_pool_need_not_be_innermost_and_its_stream_ordered_memory_is_the_programs)
{
    uint32_t pool =
        fixture_module("/x/cupy/cuda/memory.cpython-311.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t api = fixture_module("/x/cupy_backends/cuda/api/runtime.cpython-311.so", 1 << 24,
                                  CW_MODULE_PROGRAM);
    uint32_t stack = fixture_frame(fixture_frame(0, pool, 1), api, 2);

    fixture_leak(stack, "cudaMalloc", MIB, 1);
    fixture_alloc(fixture_site(stack, "cudaMallocAsync", CW_KIND_ASYNC, 0), 100, 1, 1);
    fixture_alloc(fixture_site(fixture_frame(0, api, 2), "cudaMallocManaged", CW_KIND_MANAGED, 0),
                  200, 1, 1);
    write_report(CW_REPORT_TEXT);
    expect_line("CACHES  1.0 MiB in 1 block, not counted as leaked: kept by frameworks on purpose");
    expect_text("leaked_bytes=300 leaked_blocks=2 leak_sites=2 ");
    expect_text("  built-in  cache CuPy (/cupy/cuda/memory.*so$)\n");
    expect_line("  the cache of CuPy keeps freed blocks; what the program still has is in it, too");
    expect_line("  to see its blocks one by one, run it with");
    expect_line("    cupy.cuda.set_allocator(None)");
    expect_no_text("PYTORCH");
}

Test(leak_class, says_how_a_cache_of_device_memory_is_looked_into)
{
    uint32_t lib = fixture_module("/x/libc10_cuda.so", 1 << 20, CW_MODULE_PROGRAM);
    uint32_t stack = fixture_frame(0, lib, 1);

    fixture_alloc(fixture_site(stack, "cudaHostAlloc", CW_KIND_PINNED, CW_DEVICE_HOST), MIB, 1, 1);
    write_report(CW_REPORT_TEXT);
    expect_text("CACHES  1.0 MiB in 1 block");
    expect_no_text("to see its blocks");
    for (int i = 0; i < 2; i++)
        fixture_leak(fixture_frame(0, lib, 2 + (unsigned)i), "cudaMalloc", MIB, 1);
    write_report(CW_REPORT_TEXT);
    cr_expect_eq(count_of("  the cache of PyTorch keeps segments; "), 1);
    expect_line("    PYTORCH_NO_CUDA_MEMORY_CACHING=1");
}

/* ---- by the file of Python ---- */

#define PACKAGES "/venv/lib/python3.11/site-packages/"

static const struct {
    const char *file, *name;
} files[] = {
    {PACKAGES "numba_cuda/numba/cuda/cudadrv/driver.py", "cache"},
    {PACKAGES "numba/cuda/cudadrv/driver.py", "cache"},
    {PACKAGES "tinygrad/runtime/ops_cuda.py", "cache"},
    {PACKAGES "numba_cuda/numba/cuda/cudadrv/devicearray.py", "lost"},
    {PACKAGES "numba/cuda/cudadrv/driver.pyc", "lost"},
    {PACKAGES "tinygrad/runtime/ops_hip.py", "lost"},
    {PACKAGES "mytinygrad/runtime/ops_cuda.py", "lost"},
    {"/home/me/driver.py", "lost"},
};

Test(leak_class, caches_in_python_are_by_their_file)
{
    char line[128];

    for (size_t i = 0; i < CW_ARRAY_LEN(files); i++) {
        uint32_t stack =
            fixture_line(fixture_line(0, "/home/me/a.py", "main", 3), files[i].file, "allocate", 9);

        /* Innermost is what Python calls the driver through. */
        stack = fixture_frame(stack,
                              fixture_module("/venv/cydriver.so", 1 << 20, CW_MODULE_PROGRAM), 4);
        snprintf(line, sizeof(line), "alloc%zu", i);
        fixture_leak(stack, line, 512, 1);
    }
    write_report(CW_REPORT_JSON);
    for (size_t i = 0; i < CW_ARRAY_LEN(files); i++)
        expect_class(i, files[i].name);
    write_report(CW_REPORT_TEXT);
    expect_line("    NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT=0");
    expect_line("    LRU=0");
    expect_text("leaked_bytes=2560 leaked_blocks=5 ");
}

Test(leak_class, a_stream_ordered_block_below_a_cache_in_python_is_the_programs)
{
    uint32_t stack = fixture_line(0, PACKAGES "tinygrad/runtime/ops_cuda.py", "alloc", 9);

    fixture_alloc(fixture_site(stack, "cuMemAllocAsync", CW_KIND_ASYNC, 0), 100, 1, 1);
    write_report(CW_REPORT_TEXT);
    expect_text("leaked_bytes=100 leaked_blocks=1 ");
}

/* ---- by functions ---- */

NAMED_FUNCTION(
    torch_malloc,
    "_ZN3c104cuda20CUDACachingAllocator6Native22DeviceCachingAllocator11alloc_blockERNS_1EE")
NAMED_FUNCTION(torch_front,
               "_ZN3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocator8allocateEm")
NAMED_FUNCTION(torch_uncached, "_ZN3c104cuda20CUDACachingAllocator6Native17uncached_allocateEm")
NAMED_FUNCTION(torch_host, "_ZN2at4cuda28CUDACachingHostAllocatorImpl20allocate_host_memoryEmPPv")
NAMED_FUNCTION(xla_extend, "_ZN3tsl12BFCAllocator6ExtendEmm")
NAMED_FUNCTION(rmm_pool,
               "_ZN3rmm2mr20pool_memory_resourceINS0_20cuda_memory_resourceEE11expand_poolEm")
NAMED_FUNCTION(rmm_arena, "_ZN3rmm2mr21arena_memory_resourceINS0_1xEE11do_allocateEm")
NAMED_FUNCTION(rmm_new_pool,
               "_ZN3rmm10_RMM_26_102mr6detail25pool_memory_resource_impl11expand_poolEm")
NAMED_FUNCTION(torch_expand, "_ZN3c104cuda20CUDACachingAllocator6Native17ExpandableSegment3mapEm")
NAMED_FUNCTION(jit_malloc, "_Z11jitc_malloc10JitBackendmb")
NAMED_FUNCTION(taichi_malloc, "_ZN6taichi4lang16DeviceMemoryPool19allocate_raw_memoryEmb")
NAMED_FUNCTION(ort_extend, "_ZN11onnxruntime8BFCArena6ExtendEm")
NAMED_FUNCTION(npp_malloc, "nppiMalloc_8u_C1")
NAMED_FUNCTION(nccl_malloc, "ncclMemAlloc")
NAMED_FUNCTION(fft_malloc, "cufftXtMalloc")
/* The pool is an argument. */
NAMED_FUNCTION(rmm_user,
               "_ZN3app5trainEPN3rmm2mr20pool_memory_resourceINS1_20cuda_memory_resourceEEE")
NAMED_FUNCTION(plain, "app_train")

static const struct {
    int (*function)(volatile int *), (*caller)(volatile int *);
    const char *module; /* around both; NULL: the test program */
    const char *name;
} functions[] = {
    {torch_malloc, torch_front, NULL, "cache"},
    {torch_malloc, plain, NULL, "cache"},
    {torch_front, plain, NULL, "lost"}, /* PYTORCH_NO_CUDA_MEMORY_CACHING=1 */
    {torch_uncached, plain, NULL, "lost"},
    {torch_host, plain, NULL, "cache"},
    {xla_extend, plain, NULL, "cache"},
    {rmm_pool, plain, NULL, "cache"},
    {rmm_arena, plain, NULL, "cache"},
    {rmm_new_pool, plain, NULL, "cache"},
    {torch_expand, torch_malloc, NULL, "cache"},
    {jit_malloc, plain, NULL, "lost"}, /* emptied at exit */
    {taichi_malloc, plain, NULL, "lost"},
    {ort_extend, plain, NULL, "cache"},
    {rmm_user, plain, NULL, "lost"},
    {plain, plain, NULL, "lost"},
    {npp_malloc, plain, "libnppisu.so.12", "lost"}, /* the caller's to free */
    {nccl_malloc, plain, "libnccl.so.2", "lost"},
    {fft_malloc, plain, "libcufft.so.11", "lost"},
    {plain, plain, "libnccl.so.2", "library"},
};

static char directory[] = "/tmp/cuwarden-class-XXXXXX";

/* The test program, where its functions have names, under the name of a library. */
static uint32_t module_named(const char *name)
{
    uint32_t own = fixture_own_module();
    struct cw_view view = fixture_view();
    const char *program = cw_view_text(&view, fixture_module_at(own)->path);
    char link[256];

    if (!name)
        return own;
    snprintf(link, sizeof(link), "%s/%s", directory, name);
    cr_assert(symlink(program, link) == 0 || access(link, R_OK) == 0);
    fixture_module_at(own)->path = fixture_text(link);
    return own;
}

static void remove_directory(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    cr_expect_eq(system(command), 0);
}

Test(leak_class, is_by_functions_of_their_own_class)
{
    char api[32];

    cr_assert_not_null(mkdtemp(directory));
    for (size_t i = 0; i < CW_ARRAY_LEN(functions); i++) {
        uint32_t own = module_named(functions[i].module);
        uint32_t caller = named_frame(0, own, functions[i].caller);
        uint32_t stack = named_frame(caller, own, functions[i].function);

        snprintf(api, sizeof(api), "alloc%zu", i);
        fixture_leak(stack, api, 512, 1);
    }
    write_report(CW_REPORT_JSON);
    for (size_t i = 0; i < CW_ARRAY_LEN(functions); i++)
        expect_class(i, functions[i].name);
    remove_directory();
}

/* ---- what is said of a cache ---- */

static const struct {
    int (*function)(volatile int *);
    const char *module;
    uint8_t kind;
    const char *owner, *keeps, *empties;
} caches[] = {
    {torch_expand, NULL, CW_KIND_VMM, "PyTorch", "expandable segments",
     "PYTORCH_NO_CUDA_MEMORY_CACHING=1"},
    /* XLA's allocator has names in some wheels, and is JAX's there all the same. */
    {xla_extend, "xla_cuda_plugin.so", CW_KIND_DEVICE, "JAX", "freed arrays",
     "XLA_PYTHON_CLIENT_ALLOCATOR=platform"},
    {xla_extend, NULL, CW_KIND_DEVICE, "TensorFlow or XLA", "freed tensors",
     "TF_GPU_ALLOCATOR=cuda_malloc_async"},
    {rmm_new_pool, NULL, CW_KIND_DEVICE, "RMM", "freed blocks",
     "rmm.reinitialize(pool_allocator=False)"},
    /* Stream-ordered memory in a cache that is known by its function. */
    {jit_malloc, NULL, CW_KIND_ASYNC, "Dr.Jit", "freed arrays", "drjit.flush_malloc_cache()"},
    {taichi_malloc, NULL, CW_KIND_ASYNC, "Taichi", "freed arrays", "taichi.reset()"},
};

Test(leak_class, text_and_json_say_what_a_cache_keeps_and_what_empties_it)
{
    char line[256];

    cr_assert_not_null(mkdtemp(directory));
    fixture.arena.header->exit_kind = CW_EXIT_UNDERSCORE;
    for (size_t i = 0; i < CW_ARRAY_LEN(caches); i++) {
        uint32_t stack = named_frame(0, module_named(caches[i].module), caches[i].function);
        uint32_t site = fixture_site(stack, "alloc", caches[i].kind, 0);

        fixture_alloc(site, 512, 1, 1);
    }
    write_report(CW_REPORT_TEXT);
    for (size_t i = 0; i < CW_ARRAY_LEN(caches); i++) {
        snprintf(line, sizeof(line),
                 "  the cache of %s keeps %s; what the program still has is in it, too",
                 caches[i].owner, caches[i].keeps);
        expect_line(line);
        snprintf(line, sizeof(line), "    %s", caches[i].empties);
        expect_line(line);
    }
    expect_text("leaked_bytes=0 ");
    write_report(CW_REPORT_JSON);
    for (size_t i = 0; i < CW_ARRAY_LEN(caches); i++) {
        snprintf(line, sizeof(line), "\"owner\":\"%s\",\"memory\":\"device\",\"keeps\":\"%s\",",
                 caches[i].owner, caches[i].keeps);
        expect_text(line);
        snprintf(line, sizeof(line), "\"empties\":\"%s\",\"kept\":{\"count\":1,\"bytes\":512}}",
                 caches[i].empties);
        expect_text(line);
    }
    remove_directory();
}

Test(leak_class, pinned_memory_has_a_setting_of_its_own)
{
    uint32_t pinned =
        fixture_module("/x/cupy/cuda/pinned_memory.cpython-311.so", 1 << 20, CW_MODULE_PROGRAM);

    fixture_alloc(
        fixture_site(fixture_frame(0, pinned, 1), "cudaHostAlloc", CW_KIND_PINNED, CW_DEVICE_HOST),
        MIB, 1, 1);
    write_report(CW_REPORT_TEXT);
    expect_line("    cupy.cuda.set_pinned_memory_allocator(None)");
    expect_no_text("cupy.cuda.set_allocator");
}

/* ---- age ---- */

Test(leak_class, old_blocks_are_those_of_the_age_and_above)
{
    uint32_t young = fixture_site(0, "young", CW_KIND_DEVICE, 0);
    uint32_t mixed = fixture_site(0, "mixed", CW_KIND_DEVICE, 0);
    uint32_t old = fixture_site(0, "old", CW_KIND_PINNED, CW_DEVICE_HOST);
    uint32_t handle = fixture_site(0, "range", CW_KIND_RESERVATION, 0);
    struct cw_report_request request = {.form = CW_REPORT_TEXT, .old_ns = 100 * FIXTURE_MS};

    /* The process ended at 400 ms. */
    fixture_alloc(young, MIB, 1, 301 * FIXTURE_MS);
    fixture_alloc(mixed, 2 * MIB, 2, 300 * FIXTURE_MS);
    fixture_alloc(mixed, MIB, 1, 399 * FIXTURE_MS);
    fixture_alloc(old, 512, 1, 50 * FIXTURE_MS);
    fixture_alloc(old, 512, 1, 40 * FIXTURE_MS);
    fixture_free(old, 512, 1);
    fixture_alloc(handle, GIB, 1, 1);
    write_report_as(request);
    expect_line("OLD  4.0 MiB in 3 blocks live for 0.100s and more (CUWARDEN_OLD)");
    expect_text("==4711==      4.0 MiB in 2 blocks of 3  up to 0.100s old  site ");
    expect_text("  mixed, device 0\n==4711==              (no stack)\n");
    expect_text("        512 B in 1 block  now 0.3");
    expect_text("  old, host\n");
    expect_no_text("young, device 0\n==4711==              (no stack)");
    expect_text("lost  young, device 0");
    expect_text("  oldest 0.099s ago\n");
    request.old_ns = 0; /* a minute */
    write_report_as(request);
    expect_no_text("OLD");
    request.form = CW_REPORT_JSON;
    request.old_ns = 100 * FIXTURE_MS;
    write_report_as(request);
    expect_text("\"old\":{\"age_ns\":100000000,\"count\":3,\"bytes\":4194816,\"sites\":[\n");
    expect_text("\"count\":2,\"bytes\":4194304,\"oldest_age_ns\":100000000}");
    request.form = CW_REPORT_SHORT_IF_LEAKED;
    write_report_as(request);
    expect_no_text("OLD");
    expect_text("  oldest 0.099s ago\n");
}

Test(leak_class, a_process_that_runs_on_ages_with_the_clock)
{
    struct cw_live_header *header = fixture.arena.header;
    struct timespec now, after;
    unsigned minutes = 0, seconds = 0;
    const char *age;

    clock_gettime(CLOCK_MONOTONIC, &now);
    header->start_ns = (uint64_t)(now.tv_sec - 100) * 1000000000;
    header->end_ns = 0;
    header->exit_kind = CW_EXIT_RUNNING;
    fixture_leak(0, "cudaMalloc", 512, 1);
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .process = CW_REPORT_PROCESS_ALIVE});
    expect_line("OLD  512 B in 1 block live for 00:01:00 and more (CUWARDEN_OLD)");
    clock_gettime(CLOCK_MONOTONIC, &after);
    age = strstr(report, "512 B in 1 block  now 00:");
    cr_assert_not_null(age);
    cr_assert_eq(sscanf(age, "512 B in 1 block  now 00:%u:%u", &minutes, &seconds), 2);
    cr_expect_geq(60 * minutes + seconds, 100u);
    cr_expect_leq(60 * minutes + seconds, 101u + (unsigned)(after.tv_sec - now.tv_sec));
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .process = CW_REPORT_PROCESS_DEAD});
    expect_no_text("OLD");
}
