/* SPDX-License-Identifier: MIT */
/*
 * Looks at a program as the kernel and the dynamic linker do. See run_reach.h.
 *
 * A script stands for its interpreter. Nothing in the files is trusted: what does not fit reads as
 * absent, and where nothing is known nothing is claimed.
 */
#include "cli/run/run_reach.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/compiler.h"

#define SCRIPTS_MAX 5 /* that are each other's interpreter; the kernel has the same */
#define HEADERS_MAX 64

struct program {
    char path[PATH_MAX];
    struct stat info;
    int is_elf;
    unsigned char class;
    uint16_t machine;
    int is_dynamic; /* names a dynamic linker */
    char linker[PATH_MAX];
};

/* ---- finding it ---- */

static int is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static int find(const char *name, char *path, size_t cap)
{
    const char *list = getenv("PATH");

    if (strchr(name, '/'))
        return snprintf(path, cap, "%s", name) < (int)cap;
    for (const char *at = list ? list : "/bin:/usr/bin"; at; at = strchr(at, ':')) {
        at += *at == ':';
        snprintf(path, cap, "%.*s%s%s", (int)strcspn(at, ":"), at, *at && *at != ':' ? "/" : "",
                 name);
        if (is_program(path))
            return 1;
    }
    return 0;
}

/* ---- reading it ---- */

static void read_linker(int fd, uint64_t offset, uint64_t size, struct program *program)
{
    ssize_t len;

    if (size >= sizeof(program->linker))
        size = sizeof(program->linker) - 1;
    len = pread(fd, program->linker, size, (off_t)offset);
    program->linker[len > 0 ? len : 0] = '\0';
    program->is_dynamic = 1;
}

static void read_64(int fd, struct program *program)
{
    Elf64_Ehdr header;
    Elf64_Phdr part;

    if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
        return;
    program->is_elf = 1;
    program->machine = header.e_machine;
    for (unsigned i = 0; i < header.e_phnum && i < HEADERS_MAX; i++)
        if (pread(fd, &part, sizeof(part), (off_t)(header.e_phoff + i * sizeof(part))) ==
                sizeof(part) &&
            part.p_type == PT_INTERP)
            read_linker(fd, part.p_offset, part.p_filesz, program);
}

static void read_32(int fd, struct program *program)
{
    Elf32_Ehdr header;
    Elf32_Phdr part;

    if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
        return;
    program->is_elf = 1;
    program->machine = header.e_machine;
    for (unsigned i = 0; i < header.e_phnum && i < HEADERS_MAX; i++)
        if (pread(fd, &part, sizeof(part), (off_t)(header.e_phoff + i * sizeof(part))) ==
                sizeof(part) &&
            part.p_type == PT_INTERP)
            read_linker(fd, part.p_offset, part.p_filesz, program);
}

/* The interpreter of a script to `path`, which has its name. */
static int follow_script(const char *begin, char *path, size_t cap)
{
    size_t len;

    begin += 2 + strspn(begin + 2, " \t");
    len = strcspn(begin, " \t\r\n");
    return len > 0 && snprintf(path, cap, "%.*s", (int)len, begin) < (int)cap;
}

/* 0, or -1 when it cannot be read. */
static int read_program(struct program *program)
{
    char begin[PATH_MAX];

    for (int i = 0; i < SCRIPTS_MAX; i++) {
        int fd = open(program->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ssize_t len = fd >= 0 ? pread(fd, begin, sizeof(begin) - 1, 0) : -1;
        int goes_on = 0;

        begin[len > 0 ? len : 0] = '\0';
        if (len > EI_CLASS && memcmp(begin, ELFMAG, SELFMAG) == 0) {
            program->class = (unsigned char)begin[EI_CLASS];
            (program->class == ELFCLASS64 ? read_64 : read_32)(fd, program);
        } else if (len > 2 && memcmp(begin, "#!", 2) == 0) {
            goes_on = follow_script(begin, program->path, sizeof(program->path));
        }
        if (fd >= 0 && !goes_on)
            (void)fstat(fd, &program->info);
        if (fd >= 0)
            close(fd);
        if (!goes_on)
            return program->is_elf ? 0 : -1;
    }
    return -1;
}

/* ---- reasons ---- */

/* The dynamic linker itself, called by name, names none. */
static int is_static(const struct program *program, const struct program *library)
{
    const char *name = strrchr(program->path, '/');

    (void)library;
    return !program->is_dynamic && strncmp(name ? name : "", "/ld", 3) != 0;
}

static int is_of_other_kind(const struct program *program, const struct program *library)
{
    return library->is_elf &&
           (program->class != library->class || program->machine != library->machine);
}

static int is_musl(const struct program *program, const struct program *library)
{
    (void)library;
    return strstr(program->linker, "/ld-musl-") != NULL;
}

static int is_privileged(const struct program *program, const struct program *library)
{
    (void)library;
    if ((program->info.st_mode & S_ISUID) && program->info.st_uid != getuid())
        return 1;
    if ((program->info.st_mode & S_ISGID) && program->info.st_gid != getgid())
        return 1;
    return geteuid() != 0 && getxattr(program->path, "security.capability", NULL, 0) > 0;
}

static int is_library_missing(const struct program *program, const struct program *library)
{
    (void)program;
    return access(library->path, R_OK) != 0;
}

static int is_library_unnameable(const struct program *program, const struct program *library)
{
    (void)program;
    return strpbrk(library->path, " :") != NULL;
}

static int is_library_noexec(const struct program *program, const struct program *library)
{
    struct statvfs system;

    (void)program;
    return statvfs(library->path, &system) == 0 && (system.f_flag & ST_NOEXEC);
}

static const struct reason {
    int (*applies)(const struct program *program, const struct program *library);
    const char *words; /* with the program's name in front, and the library's behind */
} reasons[] = {
    {is_static, "is statically linked, so there is no dynamic linker that could preload"},
    {is_of_other_kind, "is built for another kind of machine (wrong ELF class) than"},
    {is_musl, "is linked with musl, and nothing of CUDA is; it cannot load"},
    {is_privileged,
     "is setuid, setgid or has capabilities, and the dynamic linker does not preload"},
    {is_library_missing, "cannot load the library, which is missing or unreadable:"},
    {is_library_unnameable, "cannot be told of a library with a space or a colon in its name:"},
    {is_library_noexec, "cannot load the library from a file system that is mounted noexec:"},
};

int cw_run_reach(const char *name, const char *file, char *why, size_t cap)
{
    static struct program program, library;

    program = (struct program){.is_elf = 0};
    library = (struct program){.is_elf = 0};
    if (!find(name, program.path, sizeof(program.path)) || read_program(&program) != 0)
        return 0;
    snprintf(library.path, sizeof(library.path), "%s", file);
    (void)read_program(&library);
    for (size_t i = 0; i < CW_ARRAY_LEN(reasons); i++) {
        if (!reasons[i].applies(&program, &library))
            continue;
        snprintf(why, cap, "'%s' %s %s", program.path, reasons[i].words, file);
        return 1;
    }
    return 0;
}
