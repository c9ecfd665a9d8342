/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden doctor`: checks of the program's file. Nothing is executed; libraries loaded at run
 * time (dlopen) are not in the file, and are reported as unknown.
 */
#include "cli/doctor/doctor.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/doctor/sysroot.h"

#define GLIBC_MINOR_OLDEST  28
#define PYTHON_MINOR_OLDEST 9
#define PYTHON_MINOR_NEWEST 15
#define PYTHON_RANGE        "3.9 to 3.15"

static const struct cw_program_step *executed(const struct cw_doctor *doctor)
{
    return &doctor->program.step[doctor->program.steps - 1];
}

/* ---- is there something to execute ---- */

static void check_found(struct cw_doctor *doctor)
{
    const struct cw_program_file *program = &doctor->program;
    const char *name = executed(doctor)->name;

    doctor->is_over = program->state != CW_PROGRAM_FOUND;
    switch (program->state) {
    case CW_PROGRAM_FOUND:
        if (strcmp(doctor->shown_name, program->step[0].path) == 0)
            cw_doctor_ok(doctor, "%s", doctor->shown_name);
        else
            cw_doctor_ok(doctor, "%s is %s", doctor->shown_name, program->step[0].path);
        break;
    case CW_PROGRAM_MISSING:
        cw_doctor_problem(doctor,
                          program->steps > 1 ? "install it, or fix the first line of the script"
                                             : "give its path, or add its directory to PATH",
                          program->steps > 1 ? "interpreter '%s' not found: %s"
                                             : "'%s' not found: %s",
                          name, strerror(program->error));
        break;
    case CW_PROGRAM_DIRECTORY:
        cw_doctor_problem(doctor, "give a program in that directory", "'%s' is a directory", name);
        break;
    case CW_PROGRAM_NOT_EXECUTABLE:
        cw_doctor_problem(doctor, "chmod +x it, or for a script put the interpreter first: sh FILE",
                          "you do not have permission to execute '%s'", name);
        break;
    case CW_PROGRAM_UNREADABLE:
        cw_doctor_problem(doctor, cw_elf_way_out(program->error), "'%s' cannot be read: %s", name,
                          cw_elf_reason(program->error));
        break;
    case CW_PROGRAM_NO_FORMAT:
        cw_doctor_problem(doctor, "give the program that runs it too, for example 'sh FILE'",
                          "'%s' is neither an ELF program nor a script with a #! line", name);
        break;
    case CW_PROGRAM_LOOP:
        cw_doctor_problem(doctor, "fix the first lines of the scripts",
                          "'%s' is a script whose interpreter is a script, in an endless chain",
                          name);
        break;
    }
}

static int is_shell(const char *path)
{
    static const char *const shells[] = {"sh",   "bash", "dash", "zsh", "ksh",
                                         "mksh", "fish", "tcsh", "csh", "busybox"};

    for (size_t i = 0; i < CW_ARRAY_LEN(shells); i++) {
        if (strcmp(basename(path), shells[i]) == 0)
            return 1;
    }
    return 0;
}

static void check_script(struct cw_doctor *doctor)
{
    const struct cw_program_file *program = &doctor->program;

    if (program->steps > 1)
        cw_doctor_ok(doctor, "it is a script; checking its interpreter, %s",
                     executed(doctor)->path);
    if (program->drops_environment)
        cw_doctor_problem(doctor, "remove -i from the first line, or run the interpreter directly",
                          "the script's first line clears the environment, including LD_PRELOAD");
    if (is_shell(executed(doctor)->path))
        cw_doctor_warn(doctor, "check those programs too: cuwarden doctor PROGRAM",
                       "it is a shell; programs started from it inherit the preload, unless the "
                       "script sets LD_PRELOAD or uses sudo");
}

/* ---- can the dynamic linker preload into it ---- */

static void check_machine(struct cw_doctor *doctor)
{
    const struct cw_elf_facts *facts = &doctor->program.facts;
    char theirs[32], ours[32];

    if (facts->is_64_bit && facts->is_little_endian && facts->machine == CW_ELF_OWN_MACHINE) {
        cw_doctor_ok(doctor, "64-bit %s, same as the library",
                     cw_elf_machine_name(CW_ELF_OWN_MACHINE, ours, sizeof(ours)));
        return;
    }
    doctor->is_over = 1;
    cw_doctor_problem(
        doctor,
        facts->is_64_bit ? "use a cuwarden built for that architecture"
                         : "CUDA no longer supports 32-bit programs; build it for 64 bits",
        "it is a %d-bit program for %s, but the library is built for %s",
        facts->is_64_bit ? 64 : 32, cw_elf_machine_name(facts->machine, theirs, sizeof(theirs)),
        cw_elf_machine_name(CW_ELF_OWN_MACHINE, ours, sizeof(ours)));
}

static void check_linkage(struct cw_doctor *doctor)
{
    const struct cw_elf_facts *facts = &doctor->program.facts;
    const char *interpreter = facts->interpreter;

    if (!*interpreter && facts->type == ET_DYN &&
        strncmp(basename(executed(doctor)->path), "ld-", 3) == 0) {
        cw_doctor_ok(doctor, "it is itself a dynamic linker");
    } else if (!*interpreter) {
        doctor->is_over = 1;
        cw_doctor_problem(
            doctor, "link it dynamically (without -static)",
            "it is statically linked, so there is no dynamic linker to load the library");
    } else if (strstr(interpreter, "ld-musl")) {
        doctor->is_over = 1;
        cw_doctor_problem(doctor, "build it for the GNU C library, which CUDA requires too",
                          "it is linked against musl (%s)", interpreter);
    } else if (strncmp(basename(interpreter), "ld-linux", 8) != 0 &&
               strcmp(basename(interpreter), "ld.so") != 0) {
        cw_doctor_warn(doctor, "check that it supports LD_PRELOAD",
                       "its dynamic linker, %s, is not recognised as glibc's", interpreter);
    } else if (!cw_sysroot_has(doctor->root, interpreter)) {
        cw_doctor_problem(doctor, "install the C library it was built for",
                          "its dynamic linker, %s, does not exist", interpreter);
    } else {
        cw_doctor_ok(doctor, "dynamically linked (%s)", interpreter);
    }
}

/* If it is our own id, nothing is gained, and the preload is kept. */
static void check_setid(struct cw_doctor *doctor, const char *what, int is_own)
{
    if (is_own)
        cw_doctor_warn(doctor, "remove that bit if other users run it too",
                       "it is %s to your own id; for others the dynamic linker ignores LD_PRELOAD",
                       what);
    else
        cw_doctor_problem(doctor, "run a copy without that bit, as the user or group it changes to",
                          "it is %s, so the dynamic linker ignores LD_PRELOAD", what);
}

static void check_privileges(struct cw_doctor *doctor)
{
    const struct stat *status = &doctor->program.status;
    char outside[PATH_MAX];

    if (status->st_mode & S_ISUID)
        check_setid(doctor, "setuid", status->st_uid == getuid());
    if (status->st_mode & S_ISGID)
        check_setid(doctor, "setgid", status->st_gid == getgid());
    if (getuid() != 0 &&
        cw_sysroot_outside(doctor->root, executed(doctor)->path, outside, sizeof(outside)) == 0 &&
        getxattr(outside, "security.capability", NULL, 0) > 0)
        cw_doctor_problem(doctor, "run a copy without them (cp), or remove them (setcap -r)",
                          "it has file capabilities, so the dynamic linker ignores LD_PRELOAD");
}

/* ---- the C library ---- */

static void check_glibc(struct cw_doctor *doctor)
{
    const struct cw_needed_library *libc = cw_needed_find(doctor->needed, "libc.so.6");

    if (!libc || libc->glibc_minor == 0)
        return;
    if (libc->glibc_minor < GLIBC_MINOR_OLDEST)
        cw_doctor_problem(doctor, "run it on a newer system, or in a container based on one",
                          "its C library is glibc 2.%u, but the library requires 2.%u",
                          libc->glibc_minor, GLIBC_MINOR_OLDEST);
    else
        cw_doctor_ok(doctor, "its C library is glibc 2.%u (2.%u or newer is required)",
                     libc->glibc_minor, GLIBC_MINOR_OLDEST);
}

static void check_libraries(struct cw_doctor *doctor)
{
    for (unsigned i = 0; i < doctor->needed->count; i++) {
        const struct cw_needed_library *library = &doctor->needed->library[i];

        if (!library->path && strncmp(library->name, "libcuda.so", 10) != 0)
            cw_doctor_problem(doctor, "install it, or set LD_LIBRARY_PATH",
                              "%s not found (needed by %s)", library->name,
                              library->by < CW_NEEDED_MAX
                                  ? doctor->needed->library[library->by].name
                                  : "the program");
    }
}

static void check_asan(struct cw_doctor *doctor)
{
    if (cw_needed_find(doctor->needed, "libasan.so"))
        cw_doctor_warn(
            doctor, "set ASAN_OPTIONS=verify_asan_link_order=0",
            "it is linked with libasan.so, which aborts if another library is loaded before it");
}

/* ---- CUDA ---- */

static const char *by_way_of(const struct cw_doctor *doctor,
                             const struct cw_needed_library *library)
{
    return library->by < CW_NEEDED_MAX ? doctor->needed->library[library->by].name : "the program";
}

static int is_python(const char *path)
{
    return strncmp(basename(path), "python", 6) == 0 || strncmp(basename(path), "pypy", 4) == 0;
}

/* A runtime built into the program or one of its libraries other than libcudart.so. */
static int find_own_runtime(struct cw_doctor *doctor)
{
    const struct cw_elf_facts *facts = &doctor->program.facts;

    if (facts->defines_runtime) {
        cw_doctor_ok(doctor, "the CUDA runtime is built into it (its symbol table has cudaMalloc)");
        return 1;
    }
    for (unsigned i = 0; i < doctor->needed->count; i++) {
        const struct cw_needed_library *library = &doctor->needed->library[i];

        if (library->defines_runtime && strncmp(library->name, "libcudart.so", 12) != 0) {
            cw_doctor_ok(doctor, "the CUDA runtime is built into %s", library->name);
            return 1;
        }
    }
    return 0;
}

static void check_cuda(struct cw_doctor *doctor)
{
    const struct cw_elf_facts *facts = &doctor->program.facts;
    const struct cw_needed_library *runtime = cw_needed_find(doctor->needed, "libcudart.so");
    const struct cw_needed_library *driver = cw_needed_find(doctor->needed, "libcuda.so");
    int is_found = runtime || driver;

    if (runtime)
        cw_doctor_ok(doctor, "%s needs the CUDA runtime %s%s%s, found %s",
                     by_way_of(doctor, runtime), runtime->name, runtime->path ? ": " : "",
                     runtime->path ? runtime->path : "", runtime->how ? runtime->how : "nowhere");
    if (driver)
        cw_doctor_ok(doctor, "%s needs the driver, %s", by_way_of(doctor, driver), driver->name);
    is_found |= find_own_runtime(doctor);
    if (is_found)
        return;
    if (facts->has_kernels)
        cw_doctor_ok(doctor, "it contains kernels for NVIDIA GPUs: it uses CUDA");
    else if (facts->names_driver)
        cw_doctor_ok(doctor, "it probably has the CUDA runtime built in or loads the driver "
                             "itself: it contains the text libcuda.so.1");
    else if (is_python(executed(doctor)->path) || is_shell(executed(doctor)->path))
        cw_doctor_ok(doctor, "it uses CUDA only if the code it runs does");
    else
        cw_doctor_warn(doctor,
                       "if it never calls CUDA there will be no report; libraries loaded at run "
                       "time are monitored too",
                       "neither it nor its libraries appear to use CUDA");
}

/* Such an object's calls to itself never leave it. */
static void check_symbolic(struct cw_doctor *doctor)
{
    const struct cw_elf_facts *facts = &doctor->program.facts;

    if (facts->exports_runtime && facts->is_symbolic)
        cw_doctor_warn(doctor, "only the API name is affected: reports show the driver's call",
                       "it is linked with -Bsymbolic and has its own CUDA runtime");
    for (unsigned i = 0; i < doctor->needed->count; i++) {
        const struct cw_needed_library *library = &doctor->needed->library[i];

        if (library->is_symbolic && library->exports_runtime &&
            strncmp(library->name, "libcudart.so", 12) != 0)
            cw_doctor_warn(doctor, "only the API name is affected: reports show the driver's call",
                           "%s is linked with -Bsymbolic and has its own CUDA runtime",
                           library->name);
    }
}

/* ---- Python ---- */

/* "python3.11", "libpython3.13t.so.1.0"; 1 if it contains a version. */
static int parse_python(const char *name, unsigned *minor, int *is_free_threaded)
{
    const char *text = strstr(name, "python3.");
    int len = 0;

    if (!text || sscanf(text, "python3.%2u%n", minor, &len) != 1)
        return 0;
    *is_free_threaded = text[len] == 't';
    return 1;
}

static void check_python(struct cw_doctor *doctor)
{
    const struct cw_needed_library *library = cw_needed_find(doctor->needed, "libpython3.");
    const char *path = executed(doctor)->path;
    unsigned minor;
    int is_free_threaded;

    if (!library && !is_python(path))
        return;
    if (strncmp(basename(path), "pypy", 4) == 0) {
        cw_doctor_warn(doctor, "use CPython to see Python source lines",
                       "it is PyPy: call stacks will show native frames only");
    } else if (!parse_python(library ? library->name : basename(path), &minor, &is_free_threaded)) {
        cw_doctor_warn(doctor, "use the interpreter's versioned name, for example python3.11",
                       "cannot determine the version of this Python from its file");
    } else if (is_free_threaded) {
        cw_doctor_warn(
            doctor, "use the build with the global interpreter lock to see Python source lines",
            "Python 3.%u is free-threaded: call stacks will show native frames only", minor);
    } else if (minor < PYTHON_MINOR_OLDEST || minor > PYTHON_MINOR_NEWEST) {
        cw_doctor_warn(doctor, "use Python " PYTHON_RANGE " to see Python source lines",
                       "Python 3.%u is not supported: call stacks will show native frames only",
                       minor);
    } else {
        cw_doctor_ok(doctor, "Python 3.%u: call stacks show Python source lines", minor);
    }
}

/* ---- all ---- */

static void read_needed(struct cw_doctor *doctor)
{
    doctor->needed =
        cw_needed_read(&doctor->loader, executed(doctor)->path, &doctor->program.facts);
    doctor->is_over = !doctor->needed;
}

/* The program has run: that it is not found, or is not an ELF file, is not a problem here. */
int cw_doctor_keeps_out(const char *program, const char *library, char *why, size_t cap)
{
    static const struct cw_check checks[] = {
        {"script", check_script},
        {"machine", check_machine},
        {"privileges", check_privileges},
        {"linkage", check_linkage},
    };
    static struct cw_doctor doctor;
    const struct cw_finding *first = NULL;

    doctor = (struct cw_doctor){.root = "", .library = library, .shown_name = program};
    cw_program_file_find(&doctor.program, "", program, getenv("PATH"));
    if (doctor.program.state == CW_PROGRAM_FOUND) {
        cw_doctor_run(&doctor, checks, CW_ARRAY_LEN(checks));
        cw_doctor_check_library(&doctor);
    }
    for (size_t i = 0; i < doctor.findings && !first; i++) {
        if (doctor.finding[i].verdict == CW_VERDICT_PROBLEM)
            first = &doctor.finding[i];
    }
    if (first)
        snprintf(why, cap, "'%s': %s; %s",
                 strchr(executed(&doctor)->name, '/') ? executed(&doctor)->name
                                                      : executed(&doctor)->path,
                 first->text, first->way_out ? first->way_out : "");
    cw_doctor_free(&doctor);
    return first != NULL;
}

void cw_doctor_check_program(struct cw_doctor *doctor)
{
    static const struct cw_check checks[] = {
        {"program", check_found},       {"script", check_script},
        {"machine", check_machine},     {"privileges", check_privileges},
        {"linkage", check_linkage},     {"libraries", read_needed},
        {"libraries", check_libraries}, {"glibc", check_glibc},
        {"asan", check_asan},           {"cuda", check_cuda},
        {"symbolic", check_symbolic},   {"python", check_python},
    };

    cw_doctor_run(doctor, checks, CW_ARRAY_LEN(checks));
}
