/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden doctor`: checks of the library's location and the machine: the driver, its devices, the
 * container, what else is preloaded, and the directory of live files. Nothing is changed and the
 * driver is not called.
 */
#include "cli/doctor/doctor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/doctor/exports.h"
#include "cli/doctor/sysroot.h"
#include "live/live_dir.h"

#define CONTROL_NODE   "/dev/nvidiactl"
#define DRIVER_OLDEST  470 /* the branch of CUDA 11.4 */
#define SHARE_OF_ROOM  16  /* of the free space, for a live file: live/live_dir.h */
#define ROOM_SCARCE    (SHARE_OF_ROOM * CW_LIVE_ROOM_GOOD)
#define MIB            (1u << 20)
#define LINE_MAX_BYTES 512
#define WHY_MAX        256

/* ---- the library ---- */

static void check_exports(struct cw_doctor *doctor)
{
    struct cw_exports exports;
    char why[WHY_MAX];

    if (cw_exports_read(&exports, doctor->library, why, sizeof(why)) != 0) {
        cw_doctor_problem(doctor, "reinstall it, or give --preload a libcuwarden.so", "%s %s",
                          doctor->library, why);
        return;
    }
    cw_exports_destroy(&exports);
    cw_doctor_ok(doctor, "%s", doctor->library);
}

static void check_place(struct cw_doctor *doctor)
{
    const char *library = doctor->library;
    struct statvfs system;

    if (strpbrk(library, " :"))
        cw_doctor_problem(doctor, "move it, or link to it from a path without these characters",
                          "'%s' contains a space or a colon, which LD_PRELOAD does not support",
                          library);
    else if (access(library, R_OK) != 0)
        cw_doctor_problem(doctor, "reinstall it, or make it readable for everyone",
                          "the library %s is missing or unreadable", library);
    else if (statvfs(library, &system) == 0 && (system.f_flag & ST_NOEXEC))
        cw_doctor_problem(doctor, "install it on another file system, or mount that one with exec",
                          "%s is on a file system that is mounted noexec", library);
    else
        check_exports(doctor);
    if (*doctor->root && !cw_sysroot_has(doctor->root, library))
        cw_doctor_warn(doctor, "mount or copy it to the same path there",
                       "it does not exist in the system under %s", doctor->root);
}

void cw_doctor_check_library(struct cw_doctor *doctor)
{
    static const struct cw_check checks[] = {{"library", check_place}};

    cw_doctor_run(doctor, checks, CW_ARRAY_LEN(checks));
}

/* ---- the driver ---- */

/* Remedies for a driver missing in a container. */
static const struct container {
    const char *file;     /* recognised by this file, or */
    const char *variable; /* by this variable in our environment */
    const char *name, *way_out;
} containers[] = {
    {"/.singularity.d", "APPTAINER_CONTAINER", "Apptainer", "run it with --nv"},
    {"/var/run/secrets/kubernetes.io", "KUBERNETES_SERVICE_HOST", "Kubernetes",
     "request nvidia.com/gpu in the pod's resources, on a node with NVIDIA's device plugin"},
    {"/run/.containerenv", NULL, "Podman", "start it with --device nvidia.com/gpu=all"},
    {"/.dockerenv", NULL, "Docker",
     "start it with --gpus all (NVIDIA Container Toolkit on the host)"},
};

static const struct container *find_container(const struct cw_doctor *doctor)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(containers); i++) {
        if (cw_sysroot_has(doctor->root, containers[i].file) ||
            (!*doctor->root && containers[i].variable && getenv(containers[i].variable)))
            return &containers[i];
    }
    return NULL;
}

static void complain_of_no_driver(struct cw_doctor *doctor)
{
    const struct container *container = find_container(doctor);
    const char *wanted = *doctor->root ? NULL : getenv("NVIDIA_DRIVER_CAPABILITIES");

    if (container && wanted && !strstr(wanted, "compute") && !strstr(wanted, "all"))
        cw_doctor_problem(
            doctor, "add compute to NVIDIA_DRIVER_CAPABILITIES, or leave it unset",
            "no libcuda.so.1 in this container (%s): NVIDIA_DRIVER_CAPABILITIES=%s excludes it",
            container->name, wanted);
    else if (container)
        cw_doctor_problem(doctor, container->way_out, "no libcuda.so.1 in this container (%s)",
                          container->name);
    else
        cw_doctor_problem(
            doctor,
            "install the NVIDIA driver; if it is installed elsewhere, set LD_LIBRARY_PATH or run "
            "ldconfig",
            "the dynamic linker cannot find libcuda.so.1: no CUDA program can run here");
}

/* "550.54.15" begins with the branch; 0 if there is no such number. */
static unsigned branch_of(const char *version)
{
    unsigned branch = 0;

    return version && sscanf(version, "%4u.", &branch) == 1 ? branch : 0;
}

static void judge_version(struct cw_doctor *doctor, const char *path, const char *how)
{
    const char *base = strrchr(path, '/');
    const char *version = base ? strstr(base, ".so.") : NULL;
    unsigned branch = branch_of(version ? version + 4 : NULL);

    if (strstr(path, "/stubs/"))
        cw_doctor_problem(
            doctor, "remove that directory from the search path; it is only meant for linking",
            "%s (found %s) is the toolkit's stub, not a driver", path, how);
    else if (branch >= 100 && branch < DRIVER_OLDEST)
        cw_doctor_problem(doctor, "install driver 470 or newer",
                          "%s: driver %s is older than CUDA 11.4 (driver 470)", path, version + 4);
    else if (branch >= 100)
        cw_doctor_ok(doctor, "driver %s: %s, found %s", version + 4, path, how);
    else
        cw_doctor_ok(doctor, "%s, found %s; its file name has no version", path, how);
}

/* The kernel module: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ..." */
static int read_module_version(const struct cw_doctor *doctor, char *version, size_t cap)
{
    char path[PATH_MAX], line[LINE_MAX_BYTES] = "";
    const char *word;
    FILE *file = NULL;

    if (cw_sysroot_outside(doctor->root, "/proc/driver/nvidia/version", path, sizeof(path)) == 0)
        file = fopen(path, "re");
    if (!file)
        return 0;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    fclose(file);
    for (word = line; *word; word += strcspn(word, " ") + strspn(word + strcspn(word, " "), " ")) {
        if (branch_of(word) >= 100 && strchr("0123456789", *word)) {
            snprintf(version, cap, "%.*s", (int)strcspn(word, " \n"), word);
            return 1;
        }
    }
    return 0;
}

static void compare_with_module(struct cw_doctor *doctor, const char *path)
{
    const char *base = strrchr(path, '/');
    const char *version = base ? strstr(base, ".so.") : NULL;
    char module[64];

    if (!version || branch_of(version + 4) < 100 ||
        !read_module_version(doctor, module, sizeof(module)) || strcmp(module, version + 4) == 0)
        return;
    /* A container may bring a newer library along (forward compatibility). */
    if (strstr(path, "/compat/"))
        cw_doctor_ok(
            doctor,
            "the kernel module is %s; the driver library comes from a compatibility package",
            module);
    else
        cw_doctor_problem(doctor, "reboot after a driver update, or reload its kernel module",
                          "driver version mismatch: the kernel module is %s, the library is %s",
                          module, version + 4);
}

static int needs_driver(const struct cw_elf_facts *facts)
{
    for (unsigned i = 0; i < facts->needed_count; i++)
        if (strcmp(facts->needed[i], "libcuda.so.1") == 0)
            return 1;
    return 0;
}

/* ld.so(8): what a library opens is looked for by the program's RPATH, but not by its RUNPATH. So
 * the latter counts where the program itself needs the driver, or has the runtime in it. */
static const char *find_driver(const struct cw_doctor *doctor, char *path)
{
    const struct cw_program_file *program = &doctor->program;
    int is_read = program->steps > 0 && program->state == CW_PROGRAM_FOUND;
    const char *from = is_read ? program->step[program->steps - 1].path : NULL;
    struct cw_elf_facts facts = {.rpath = NULL};

    if (is_read)
        facts = program->facts;
    if (facts.runpath && !facts.defines_runtime && !needs_driver(&facts))
        facts.runpath = facts.rpath = NULL;
    return cw_loader_find(&doctor->loader, "libcuda.so.1", from, &facts, path);
}

static void check_driver(struct cw_doctor *doctor)
{
    char path[PATH_MAX];
    const char *how = find_driver(doctor, path);

    if (!how) {
        complain_of_no_driver(doctor);
        return;
    }
    judge_version(doctor, path, how);
    compare_with_module(doctor, path);
}

/* Of the devices that /dev/nvidiactl is for: /dev/nvidia0, or another number in a container. */
static int has_numbered_device(const struct cw_doctor *doctor)
{
    char directory[PATH_MAX];
    struct dirent *entry;
    int found = 0;
    DIR *dir;

    if (cw_sysroot_outside(doctor->root, "/dev", directory, sizeof(directory)) != 0 ||
        !(dir = opendir(directory)))
        return 0;
    while (!found && (entry = readdir(dir)) != NULL)
        found =
            strncmp(entry->d_name, "nvidia", 6) == 0 && isdigit((unsigned char)entry->d_name[6]);
    closedir(dir);
    return found;
}

/* Discrete GPUs, Windows' subsystem for Linux, Tegra. */
static void check_devices(struct cw_doctor *doctor)
{
    static const char *const nodes[] = {CONTROL_NODE, "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu"};
    const struct container *container = find_container(doctor);
    char outside[PATH_MAX];

    for (size_t i = 0; i < CW_ARRAY_LEN(nodes); i++) {
        if (!cw_sysroot_has(doctor->root, nodes[i]) ||
            cw_sysroot_outside(doctor->root, nodes[i], outside, sizeof(outside)) != 0)
            continue;
        if (access(outside, R_OK | W_OK) != 0)
            cw_doctor_warn(doctor, "join the group that owns it (often video or render)",
                           "you do not have permission to open %s: %s", nodes[i], strerror(errno));
        else if (strcmp(nodes[i], CONTROL_NODE) == 0 && !has_numbered_device(doctor))
            cw_doctor_warn(
                doctor, container ? container->way_out : "see whether nvidia-smi lists a GPU",
                "%s exists, but no /dev/nvidia0 or another: the driver will find no GPU", nodes[i]);
        else
            cw_doctor_ok(doctor, "%s exists", nodes[i]);
        return;
    }
    cw_doctor_warn(
        doctor, container ? container->way_out : "load the NVIDIA kernel module (nvidia-modprobe)",
        "no NVIDIA device under /dev: the driver will find no GPU");
}

/* CUDA goes by the list up to the first entry that is no number and no UUID. */
static int begins_with_device(const char *list)
{
    return (list[0] >= '0' && list[0] <= '9') || strncmp(list, "GPU-", 4) == 0 ||
           strncmp(list, "MIG-", 4) == 0;
}

/* Of this environment, which the program will have. */
static void check_visible(struct cw_doctor *doctor)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int is_of_slurm = list && strcmp(list, "NoDevFiles") == 0;

    if (*doctor->root || !list || begins_with_device(list))
        return;
    cw_doctor_warn(doctor,
                   is_of_slurm ? "request one in the job: --gres=gpu:1"
                               : "unset it, or list GPUs by their numbers or UUIDs",
                   "CUDA_VISIBLE_DEVICES='%.60s' hides every GPU%s: the driver will find none",
                   list, is_of_slurm ? ", as Slurm sets it in a job without one" : "");
}

static void check_container(struct cw_doctor *doctor)
{
    const struct container *container = find_container(doctor);

    if (container)
        cw_doctor_ok(doctor, "this is a container (%s); the library must be installed inside it",
                     container->name);
}

/* ---- the environment ---- */

static const struct tool {
    const char *part; /* of the file's name */
    const char *what;
    const char *way_out; /* NULL: nothing to do */
} tools[] = {
    {"libasan", "AddressSanitizer",
     "it must come first: instead of 'cuwarden run', set LD_PRELOAD=libasan.so:libcuwarden.so with "
     "full paths"},
    {"libclang_rt.asan", "AddressSanitizer",
     "it must come first: instead of 'cuwarden run', list it before libcuwarden.so in LD_PRELOAD"},
    {"libsanitizer-collection", "compute-sanitizer",
     "start compute-sanitizer from cuwarden: cuwarden run -- compute-sanitizer PROGRAM"},
    {"libInterceptorInjection", "Nsight", "start it from cuwarden: cuwarden run -- ncu PROGRAM"},
    {"libToolsInjection", "Nsight Systems",
     "start it from cuwarden: cuwarden run -- nsys profile PROGRAM"},
    {"libcuwarden", "cuwarden itself", NULL},
    {"jemalloc", "jemalloc", NULL},
    {"tcmalloc", "tcmalloc", NULL},
    {"mimalloc", "mimalloc", NULL},
};

static const struct tool *find_tool(const char *path)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(tools); i++) {
        if (strstr(path, tools[i].part))
            return &tools[i];
    }
    return NULL;
}

static void judge_preload(struct cw_doctor *doctor, const char *path)
{
    const struct tool *tool = find_tool(path);
    struct cw_elf_facts facts;

    if (tool && tool->way_out)
        cw_doctor_warn(doctor, tool->way_out, "LD_PRELOAD contains %s (%s)", path, tool->what);
    else if (tool)
        cw_doctor_ok(doctor, "LD_PRELOAD contains %s (%s), which is fine", path, tool->what);
    else if (strchr(path, '/') && cw_elf_facts_read(&facts, path) != 0)
        cw_doctor_warn(doctor, "remove it from LD_PRELOAD, or fix the path",
                       "LD_PRELOAD contains %s, which cannot be read: %s", path,
                       cw_elf_reason(errno));
    else if (strchr(path, '/')) {
        if (facts.exports_runtime)
            cw_doctor_warn(doctor, "use only one of the two",
                           "LD_PRELOAD contains %s, which intercepts CUDA calls too; cuwarden "
                           "comes first, so it gets none",
                           path);
        else
            cw_doctor_ok(doctor, "LD_PRELOAD contains %s; it is kept, after cuwarden", path);
        cw_elf_facts_free(&facts);
    }
}

static void check_preload(struct cw_doctor *doctor)
{
    const char *value = getenv("LD_PRELOAD");
    char *copy = value ? strdup(value) : NULL, *rest = copy, *path;

    while ((path = strsep(&rest, " :"))) {
        if (*path)
            judge_preload(doctor, path);
    }
    free(copy);
}

static void check_injection(struct cw_doctor *doctor)
{
    const char *cuda = getenv("CUDA_INJECTION64_PATH");
    const char *nvtx = getenv("NVTX_INJECTION64_PATH");

    if (cuda && *cuda)
        cw_doctor_warn(doctor, "unset it, unless you want that tool to run as well",
                       "CUDA_INJECTION64_PATH=%s: the driver loads another tool, whose memory is "
                       "counted as the program's",
                       cuda);
    if (nvtx && *nvtx && strcmp(nvtx, doctor->library) != 0)
        cw_doctor_warn(
            doctor, "unset it to see them in reports",
            "NVTX_INJECTION64_PATH=%s: NVTX ranges and marks go there instead of to cuwarden",
            nvtx);
}

static void check_options(struct cw_doctor *doctor)
{
    static struct cw_option_complaints complaints;
    struct cw_options options;
    unsigned kept;

    cw_options_parse(environ, 1, &options, &complaints);
    kept = complaints.count < CW_OPTION_COMPLAINTS ? complaints.count : CW_OPTION_COMPLAINTS;
    for (unsigned i = 0; i < kept; i++)
        cw_doctor_warn(doctor, "fix or unset it; the default is in effect", "%s",
                       complaints.line[i]);
    if (options.mode == CW_MODE_OFF)
        cw_doctor_problem(doctor, "unset CUWARDEN_MODE", "CUWARDEN_MODE=off: nothing is monitored");
}

static void check_address_space(struct cw_doctor *doctor)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        cw_doctor_warn(doctor, "run 'ulimit -v unlimited', and limit memory with a cgroup instead",
                       "the address space is limited to %llu MiB, but CUDA alone reserves more "
                       "than the memory of all devices, and cuwarden a 64th of the limit",
                       (unsigned long long)limit.rlim_cur / MIB);
}

/* ---- live files ---- */

/* The directory, or the nearest above it that exists. 0, or -1. */
static int find_existing(const char *directory, char out[CW_PLACE_MAX])
{
    struct stat status;
    char *slash;

    if (snprintf(out, CW_PLACE_MAX, "%s", directory) >= CW_PLACE_MAX)
        return -1;
    while (lstat(out, &status) != 0) {
        if (errno != ENOENT)
            return -1;
        slash = strrchr(out, '/');
        snprintf(slash ? slash + (slash == out) : out, 2, "%s", slash ? "" : ".");
    }
    return 0;
}

/* Files of the kernel's: nobody makes one there, also not root, whom access() lets. */
static int is_of_kernel(const char *directory)
{
    struct statfs system;

    return statfs(directory, &system) == 0 &&
           (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC);
}

/* 1 if a file can be created in the directory, or the directory. */
static int is_usable(const char *directory, int is_private)
{
    char above[CW_PLACE_MAX];
    struct stat status;

    if (is_private && lstat(directory, &status) == 0 &&
        (!S_ISDIR(status.st_mode) || status.st_uid != geteuid()))
        return 0;
    return find_existing(directory, above) == 0 && access(above, W_OK | X_OK) == 0 &&
           !is_of_kernel(above);
}

/* Bytes free there; UINT64_MAX where that has no limit or is not known. */
static uint64_t free_in(const char *directory)
{
    char above[CW_PLACE_MAX];
    struct statvfs system;

    if (find_existing(directory, above) != 0 || statvfs(above, &system) != 0 ||
        system.f_blocks == 0)
        return UINT64_MAX;
    return (uint64_t)system.f_bavail * system.f_bsize;
}

static void judge_room(struct cw_doctor *doctor, const char *directory)
{
    uint64_t room = free_in(directory);

    if (room == UINT64_MAX)
        cw_doctor_ok(doctor, "live files go to %s", directory);
    else if (room < ROOM_SCARCE)
        cw_doctor_warn(doctor,
                       "make it larger (docker run --shm-size=1g), or set CUWARDEN_LIVE=DIRECTORY",
                       "live files go to %s, where %llu MiB are free; each can use a sixteenth of "
                       "that, and a report after a crash lacks what did not fit",
                       directory, (unsigned long long)room / MIB);
    else
        cw_doctor_ok(doctor, "live files go to %s, with room for %llu MiB each", directory,
                     (unsigned long long)room / SHARE_OF_ROOM / MIB);
}

static void judge_passed_over(struct cw_doctor *doctor, const char *directory, const char *tmpdir)
{
    char taken[CW_PLACE_MAX];
    char inside[CW_PLACE_MAX + 1];

    snprintf(inside, sizeof(inside), "%s/", directory);
    if (cw_live_dir_passed_over(inside, tmpdir, taken, sizeof(taken)))
        cw_doctor_warn(doctor, "remove it, or set CUWARDEN_LIVE=DIRECTORY",
                       "'%s' belongs to another user or is no directory; live files go elsewhere",
                       taken);
}

static void check_default_places(struct cw_doctor *doctor, const char *tmpdir)
{
    char directory[CW_PLACE_MAX];

    /* As the library: the first that has plenty, or else the first. */
    for (unsigned i = 0; i < 2 * CW_PLACE_DEFAULTS; i++) {
        if (cw_live_dir_default(i % CW_PLACE_DEFAULTS, geteuid(), tmpdir, directory,
                                sizeof(directory)) != 0 ||
            !is_usable(directory, 1) || (i < CW_PLACE_DEFAULTS && free_in(directory) < ROOM_SCARCE))
            continue;
        judge_passed_over(doctor, directory, tmpdir);
        judge_room(doctor, directory);
        return;
    }
    cw_doctor_warn(
        doctor, "set CUWARDEN_LIVE to a writable directory",
        "neither /dev/shm nor TMPDIR is writable: there will be no report after a crash");
}

/* Said only where it is otherwise (live/file_lock.h). */
static void judge_locks(struct cw_doctor *doctor)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    FILE *file = tmpfile();

    if (!file)
        return;
    if (fcntl(fileno(file), F_OFD_SETLK, &lock) != 0 && errno == EINVAL)
        cw_doctor_ok(doctor, "this kernel has no open file description locks, as gVisor: "
                             "flock(2) and record locks take their place, which a process "
                             "loses if it closes all its descriptors");
    fclose(file);
}

static void check_live(struct cw_doctor *doctor)
{
    struct cw_options options;

    if (*doctor->root)
        return;
    cw_options_parse(environ, 1, &options, NULL);
    if (strcmp(options.live, "off") == 0)
        cw_doctor_warn(doctor, "unset CUWARDEN_LIVE",
                       "CUWARDEN_LIVE=off: there will be no report after a crash");
    else if (strcmp(options.live, "auto") == 0)
        check_default_places(doctor, options.tmpdir);
    else if (is_usable(options.live, 0))
        judge_room(doctor, options.live);
    else
        cw_doctor_warn(doctor, "create it, or choose another one",
                       "CUWARDEN_LIVE=%s is not writable", options.live);
    if (strcmp(options.live, "off") != 0)
        judge_locks(doctor);
}

void cw_doctor_check_machine(struct cw_doctor *doctor)
{
    static const struct cw_check checks[] = {
        {"driver", check_driver},        {"devices", check_devices},
        {"visible", check_visible},      {"container", check_container},
        {"preload", check_preload},      {"injection", check_injection},
        {"options", check_options},      {"platform", cw_doctor_check_platform},
        {"limits", check_address_space}, {"live", check_live},
    };

    cw_doctor_run(doctor, checks, CW_ARRAY_LEN(checks));
}
