/* SPDX-License-Identifier: MIT */
/* The limits of the platform's variables: their forms, and what is said of others. */
#include "base/options/platform_limits.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/options/options.h"

#define MIB UINT64_C(1048576)
#define GIB (1024 * MIB)
#define GPU "GPU-00112233-4455-6677-8899-aabbccddeeff"

static struct cw_options options;
static struct cw_option_complaints complaints;

/* The variables are parsed; as many of them complain. */
static void parse(unsigned wrong, char *const env[])
{
    cw_options_parse(env, 1, &options, &complaints);
    cr_expect_eq(complaints.count, wrong, "%u complaints: %s", complaints.count,
                 complaints.line[0]);
}
#define PARSE(wrong, ...) parse(wrong, (char *const[]){__VA_ARGS__, NULL})

static uint64_t limit(enum cw_bound bound, unsigned device)
{
    uint64_t bytes = 0;

    return cw_sizes_for(&options.platform.of[bound], device, NULL, 80 * GIB, &bytes) ? bytes : 0;
}

Test(platform_limits, of_the_container_toolkit_are_mebibytes)
{
    PARSE(0, "NVIDIA_GPU_MEMORY_LIMIT=4096", "NVIDIA_GPU_MEMORY_REQUEST=2048");
    cr_expect_eq(limit(CW_BOUND_NVIDIA_LIMIT, 0), 4 * GIB);
    cr_expect_eq(limit(CW_BOUND_NVIDIA_LIMIT, 7), 4 * GIB);
    cr_expect_eq(limit(CW_BOUND_NVIDIA_REQUEST, 0), 2 * GIB);
    PARSE(0, "NVIDIA_GPU_MEMORY_LIMIT=0", "NVIDIA_GPU_MEMORY_REQUEST=");
    cr_expect_not(cw_platform_limits_has(&options.platform, CW_BOUND_NVIDIA_LIMIT));
    cr_expect_not(cw_platform_limits_has(&options.platform, CW_BOUND_NVIDIA_REQUEST));
}

Test(platform_limits, of_hami_have_one_letter_for_their_unit)
{
    static const struct {
        char *entry;
        uint64_t bytes;
    } cases[] = {
        {"CUDA_DEVICE_MEMORY_LIMIT=3000m", 3000 * MIB},
        {"CUDA_DEVICE_MEMORY_LIMIT=3000M", 3000 * MIB},
        {"CUDA_DEVICE_MEMORY_LIMIT=4g", 4 * GIB},
        {"CUDA_DEVICE_MEMORY_LIMIT=4K", 4096},
        {"CUDA_DEVICE_MEMORY_LIMIT=4096", 4096},
        {"CUDA_DEVICE_MEMORY_LIMIT=0", 0},
        {"CUDA_DEVICE_MEMORY_LIMITS=4g", 0}, /* another name */
        {"CUDA_DEVICE_MEMORY_SHARED_CACHE=4g", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        PARSE(0, cases[i].entry);
        cr_expect_eq(limit(CW_BOUND_VGPU, 1), cases[i].bytes, "%s", cases[i].entry);
    }
}

Test(platform_limits, of_hami_with_an_ordinal_go_first)
{
    PARSE(0, "CUDA_DEVICE_MEMORY_LIMIT_1=2g", "CUDA_DEVICE_MEMORY_LIMIT=3g",
          "CUDA_DEVICE_MEMORY_LIMIT_12=5g");
    cr_expect_eq(limit(CW_BOUND_VGPU, 0), 3 * GIB);
    cr_expect_eq(limit(CW_BOUND_VGPU, 1), 2 * GIB);
    cr_expect_eq(limit(CW_BOUND_VGPU, 12), 5 * GIB);
    PARSE(0, "CUDA_DEVICE_MEMORY_LIMIT_0=2g");
    cr_expect_eq(limit(CW_BOUND_VGPU, 0), 2 * GIB);
    cr_expect_eq(limit(CW_BOUND_VGPU, 1), 0);
}

Test(platform_limits, of_mps_are_a_list_of_devices)
{
    uint8_t uuid[16];
    uint64_t bytes;

    PARSE(0, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G,1=512MB,3=64M");
    cr_expect_eq(limit(CW_BOUND_MPS, 0), 4 * GIB);
    cr_expect_eq(limit(CW_BOUND_MPS, 1), 512 * MIB);
    cr_expect_eq(limit(CW_BOUND_MPS, 2), 0);
    cr_expect_eq(limit(CW_BOUND_MPS, 3), 64 * MIB);
    PARSE(0, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=" GPU "=2GB");
    cr_assert_eq(cw_uuid_parse(GPU, uuid), 0);
    cr_expect(cw_sizes_for(&options.platform.of[CW_BOUND_MPS], 5, uuid, GIB, &bytes));
    cr_expect_eq(bytes, 2 * GIB);
}

Test(platform_limits, the_first_of_two_equal_names_counts)
{
    PARSE(0, "NVIDIA_GPU_MEMORY_LIMIT=1", "NVIDIA_GPU_MEMORY_LIMIT=2",
          "CUDA_DEVICE_MEMORY_LIMIT_0=3m", "CUDA_DEVICE_MEMORY_LIMIT_0=4m");
    cr_expect_eq(limit(CW_BOUND_NVIDIA_LIMIT, 0), MIB);
    cr_expect_eq(limit(CW_BOUND_VGPU, 0), 3 * MIB);
}

Test(platform_limits, what_is_not_understood_limits_nothing_and_is_said)
{
    static char *const wrong[] = {
        "NVIDIA_GPU_MEMORY_LIMIT=4G",
        "NVIDIA_GPU_MEMORY_LIMIT=-1",
        "NVIDIA_GPU_MEMORY_REQUEST=18446744073709551615", /* MiB */
        "CUDA_DEVICE_MEMORY_LIMIT=4GB",
        "CUDA_DEVICE_MEMORY_LIMIT_0=half",
        "CUDA_DEVICE_MEMORY_LIMIT=4g,",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=4G",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G,",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G;1=2G",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=GPU-12=4G",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        size_t len = strcspn(wrong[i], "=");

        PARSE(1, wrong[i]);
        cr_expect_eq(strncmp(complaints.line[0], wrong[i], len), 0, "%s", complaints.line[0]);
        cr_expect(strstr(complaints.line[0], &wrong[i][len + 1]), "%s", complaints.line[0]);
        for (unsigned v = 0; v < CW_BOUND_VARIABLES; v++)
            cr_expect_not(cw_platform_limits_has(&options.platform, v), "%s", wrong[i]);
    }
}

Test(platform_limits, a_setuid_program_has_none)
{
    char *const env[] = {"NVIDIA_GPU_MEMORY_LIMIT=1", NULL};

    cw_options_parse(env, 0, &options, &complaints);
    cr_expect_not(cw_platform_limits_has(&options.platform, CW_BOUND_NVIDIA_LIMIT));
}
