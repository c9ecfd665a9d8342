/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden doctor`: limits of device memory that the user's platform sets, and what they come to
 * here. Nothing is changed and the driver is not called.
 */
#include "cli/doctor/doctor.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/options/options.h"
#include "base/out.h"

#define SIZE_MAX_BYTES 24
#define LINE_MAX_BYTES 256

/* ---- variables ---- */

static int has(const struct cw_options *options, enum cw_bound bound)
{
    return cw_platform_limits_has(&options->platform, bound);
}

static int refuses(const struct cw_options *options, enum cw_bound bound)
{
    return options->limit.fallback.kind == CW_SIZE_PLATFORM &&
           cw_bound_kind(bound)->force == CW_BOUND_HARD;
}

static void tell_variables(struct cw_doctor *doctor, const struct cw_options *options)
{
    for (unsigned i = 0; i < CW_BOUND_VARIABLES; i++) {
        const struct cw_bound_kind *kind = cw_bound_kind((enum cw_bound)i);
        char value[CW_OPTION_VALUE_MAX];
        struct cw_out out;

        if (!has(options, (enum cw_bound)i))
            continue;
        cw_out_init(&out, -1, value, sizeof(value) - 1);
        cw_sizes_print(&options->platform.of[i], &out);
        value[out.len] = '\0';
        cw_doctor_ok(doctor, "%s: %s, a %s limit of the %s: %s", kind->name, value,
                     cw_bound_force_name(kind->force), cw_bound_scope_name(kind->scope),
                     refuses(options, (enum cw_bound)i)
                         ? "refuses what is beyond"
                         : "a cause of pressure, which refuses nothing");
    }
}

/* NVIDIA Container Toolkit: its hook does nothing unless both are there. */
static void judge_toolkit(struct cw_doctor *doctor, const struct cw_options *options)
{
    int has_limit = options->platform.is_seen[CW_BOUND_NVIDIA_LIMIT];
    int has_request = options->platform.is_seen[CW_BOUND_NVIDIA_REQUEST];

    if (has_limit != has_request)
        cw_doctor_warn(
            doctor, "set both, to the same value if in doubt",
            "%s is set without %s: the NVIDIA Container Toolkit then sets no limit",
            cw_bound_kind(has_limit ? CW_BOUND_NVIDIA_LIMIT : CW_BOUND_NVIDIA_REQUEST)->name,
            cw_bound_kind(has_limit ? CW_BOUND_NVIDIA_REQUEST : CW_BOUND_NVIDIA_LIMIT)->name);
}

static void judge_mps(struct cw_doctor *doctor, const struct cw_options *options)
{
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char control[PATH_MAX];

    if (!has(options, CW_BOUND_MPS) || *doctor->root)
        return;
    snprintf(control, sizeof(control), "%s/control",
             directory && *directory ? directory : "/tmp/nvidia-mps");
    if (access(control, F_OK) != 0)
        cw_doctor_warn(doctor, "start nvidia-cuda-mps-control -d, or set CUWARDEN_LIMIT instead",
                       "%s is set, but no MPS daemon listens at %s: nobody enforces it",
                       cw_bound_kind(CW_BOUND_MPS)->name, control);
}

/* ---- the control group ---- */

/* The regions of NVIDIA's GPUs in the nearest group that has the controller's files. */
static FILE *open_regions(const char *root, char *group, size_t cap)
{
    FILE *file = NULL;

    if (cw_cgroup_path(root, group, cap) != 0)
        return NULL;
    while (!file) {
        char path[CW_CGROUP_MAX + 16], *slash;

        snprintf(path, sizeof(path), "%s/dmem.max", group);
        file = fopen(path, "re");
        slash = strrchr(group, '/');
        if (file || !slash || strcmp(slash, "/cgroup") == 0)
            break;
        *slash = '\0';
    }
    return file;
}

static void tell_region(struct cw_doctor *doctor, const struct cw_options *options,
                        const char *group, const char *bus, int says_max)
{
    char hard[SIZE_MAX_BYTES], soft[SIZE_MAX_BYTES];
    struct cw_cgroup_dmem dmem;

    if (cw_cgroup_dmem(doctor->root, bus, &dmem) <= 0 || (dmem.hard | dmem.soft) == 0)
        return;
    if (dmem.hard != 0)
        cw_doctor_ok(doctor, "the cgroup may have %s of GPU %s (dmem.max)%s",
                     cw_format_size(hard, sizeof(hard), dmem.hard), bus,
                     refuses(options, CW_BOUND_DMEM_MAX) ? "; more is refused by cuwarden, too"
                                                         : "");
    if (dmem.soft != 0)
        cw_doctor_ok(doctor, "it is guaranteed %s of it (dmem.min); what is beyond is borrowed",
                     cw_format_size(soft, sizeof(soft), dmem.soft));
    if (dmem.hard != 0 && says_max)
        cw_doctor_warn(doctor, "set the limit of the container's own cgroup, after it was made",
                       "%s says max for GPU %s, and a group above has the limit: NVML and "
                       "cuMemGetInfo show the whole GPU, and the kernel refuses what is beyond",
                       group, bus);
}

static int tell_group(struct cw_doctor *doctor, const struct cw_options *options)
{
    char group[CW_CGROUP_MAX], line[LINE_MAX_BYTES], bus[64], value[32];
    FILE *file = open_regions(doctor->root, group, sizeof(group));
    struct cw_cgroup_dmem dmem;
    int is_hard = 0;

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "nvidia/%63[^/]/%*s %31s", bus, value) != 2)
            continue;
        tell_region(doctor, options, group, bus, strcmp(value, "max") == 0);
        is_hard |= cw_cgroup_dmem(doctor->root, bus, &dmem) > 0 && dmem.hard != 0;
    }
    if (file)
        fclose(file);
    return is_hard;
}

void cw_doctor_check_platform(struct cw_doctor *doctor)
{
    struct cw_options options;
    int is_hard;

    cw_options_parse(environ, 1, &options, NULL);
    tell_variables(doctor, &options);
    judge_toolkit(doctor, &options);
    judge_mps(doctor, &options);
    is_hard = tell_group(doctor, &options);
    for (unsigned i = 0; i < CW_BOUND_VARIABLES; i++)
        is_hard |= has(&options, (enum cw_bound)i) &&
                   cw_bound_kind((enum cw_bound)i)->force == CW_BOUND_HARD;
    if (options.limit.fallback.kind == CW_SIZE_PLATFORM && !is_hard)
        cw_doctor_warn(
            doctor, "set CUWARDEN_LIMIT to a size",
            "CUWARDEN_LIMIT=platform, but the platform sets no hard limit here, unless the "
            "driver has one of its own: nothing is limited");
}
