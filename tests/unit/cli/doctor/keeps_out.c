/* SPDX-License-Identifier: MIT */
/* Why a library was not loaded into a program: synthetic programs, each with one obstacle. */
#include <criterion/criterion.h>

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#if defined(__x86_64__)
#define LINKER        "/lib64/ld-linux-x86-64.so.2"
#define OTHER_MACHINE EM_AARCH64
#else
#define LINKER        "/lib/ld-linux-aarch64.so.1"
#define OTHER_MACHINE EM_X86_64
#endif

struct made {
    Elf64_Ehdr header;
    Elf64_Phdr part;
    char linker[64];
};

/* A library with one exported object. */
struct made_library {
    Elf64_Ehdr header;
    Elf64_Shdr section[3]; /* none, symbols, their names */
    Elf64_Sym symbol[2];
    char names[32];
};

static char directory[] = "/tmp/cuwarden-reach-XXXXXX";
static char program[64], library[64], why[1024];

static void write_file(const char *path, const void *bytes, size_t len, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
    close(fd);
    cr_assert_eq(chmod(path, mode), 0);
}

static struct made make(const char *linker)
{
    struct made made = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                   .e_type = ET_DYN,
                   .e_machine = CW_ELF_OWN_MACHINE,
                   .e_phoff = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 1},
        .part = {.p_type = linker ? PT_INTERP : PT_LOAD,
                 .p_offset = offsetof(struct made, linker),
                 .p_filesz = linker ? strlen(linker) + 1 : 0}};

    snprintf(made.linker, sizeof(made.linker), "%s", linker ? linker : "");
    return made;
}

static void write_library(const char *path, const char *name)
{
    struct made_library made = {
        .header = make(NULL).header,
        .section = {{.sh_type = SHT_NULL},
                    {.sh_type = SHT_DYNSYM,
                     .sh_offset = offsetof(struct made_library, symbol),
                     .sh_size = sizeof(made.symbol),
                     .sh_entsize = sizeof(Elf64_Sym),
                     .sh_link = 2},
                    {.sh_type = SHT_STRTAB,
                     .sh_offset = offsetof(struct made_library, names),
                     .sh_size = sizeof(made.names)}},
        .symbol = {{0},
                   {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = 1}},
    };

    made.header.e_phnum = 0;
    made.header.e_shoff = offsetof(struct made_library, section);
    made.header.e_shentsize = sizeof(Elf64_Shdr);
    made.header.e_shnum = 3;
    snprintf(made.names + 1, sizeof(made.names) - 1, "%s", name);
    write_file(path, &made, sizeof(made), 0755);
}

static void begin(void)
{
    struct made made = make(LINKER);

    cr_assert(mkdtemp(directory));
    snprintf(program, sizeof(program), "%s/program", directory);
    snprintf(library, sizeof(library), "%s/library", directory);
    write_file(program, &made, sizeof(made), 0755);
    write_library(library, "cuwarden_table_1");
}

static void end(void)
{
    unlink(program);
    unlink(library);
    cr_assert_eq(rmdir(directory), 0);
}

/* Criterion goes no further than this, and leaves what the test has made. */
static void skip(const char *reason)
{
    end();
    cr_skip_test("%s", reason);
}

TestSuite(keeps_out, .init = begin, .fini = end);

#define KEPT_OUT(words)                                                                            \
    do {                                                                                           \
        cr_assert_eq(cw_doctor_keeps_out(program, library, why, sizeof(why)), 1);                  \
        cr_assert(strstr(why, program), "no name in: %s", why);                                    \
        cr_assert(strstr(why, words), "not so: %s", why);                                          \
    } while (0)

Test(keeps_out, an_ordinary_program_is_reached)
{
    cr_assert_eq(cw_doctor_keeps_out(program, library, why, sizeof(why)), 0);
}

Test(keeps_out, a_program_of_another_kind)
{
    static const struct {
        const char *linker;
        uint16_t machine;
        const char *why;
    } programs[] = {
        {NULL, CW_ELF_OWN_MACHINE, "statically linked"},
        {"/lib/ld-musl-x86_64.so.1", CW_ELF_OWN_MACHINE, "musl"},
        {LINKER, OTHER_MACHINE, "but the library is built for"},
    };

    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        struct made made = make(programs[i].linker);

        made.header.e_machine = programs[i].machine;
        write_file(program, &made, sizeof(made), 0755);
        KEPT_OUT(programs[i].why);
    }
}

Test(keeps_out, thirty_two_bits)
{
    struct {
        Elf32_Ehdr header;
        Elf32_Phdr part;
        char linker[32];
    } made = {.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32},
                         .e_machine = EM_386,
                         .e_phoff = sizeof(Elf32_Ehdr),
                         .e_phnum = 1},
              .part = {.p_type = PT_INTERP,
                       .p_offset = sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
                       .p_filesz = 20},
              .linker = "/lib/ld-linux.so.2"};

    write_file(program, &made, sizeof(made), 0755);
    KEPT_OUT("32-bit program");
}

Test(keeps_out, setuid_of_somebody_else)
{
    if (geteuid() != 0)
        skip("only root can give a file away");
    cr_assert_eq(chown(program, 12345, 0), 0);
    cr_assert_eq(chmod(program, 04755), 0);
    KEPT_OUT("setuid");
}

Test(keeps_out, setuid_of_the_caller_is_reached)
{
    cr_assert_eq(chmod(program, 04755), 0);
    cr_assert_eq(cw_doctor_keeps_out(program, library, why, sizeof(why)), 0);
}

Test(keeps_out, a_library_that_is_gone)
{
    cr_assert_eq(unlink(library), 0);
    KEPT_OUT("missing");
    write_file(library, "", 0, 0755);
}

Test(keeps_out, a_file_that_is_not_the_library)
{
    write_library(library, "cuMemAlloc_v2");
    KEPT_OUT("is not libcuwarden.so");
    cr_assert_eq(truncate(library, sizeof(Elf64_Ehdr)), 0);
    KEPT_OUT("is not a 64-bit ELF library");
    write_file(library, "root:x:0:0\n", 11, 0755);
    KEPT_OUT("is not a 64-bit ELF library");
    cr_assert(unlink(library) == 0 && mkdir(library, 0755) == 0);
    KEPT_OUT("is not a regular file");
    rmdir(library);
}

Test(keeps_out, a_library_whose_name_LD_PRELOAD_cannot_carry)
{
    char usual[64];

    memcpy(usual, library, sizeof(usual));
    unlink(library);
    snprintf(library, sizeof(library), "%s/a library", directory);
    write_library(library, "cuwarden_table_1");
    KEPT_OUT("space");
    unlink(library);
    memcpy(library, usual, sizeof(usual));
}

Test(keeps_out, a_library_where_nothing_is_executed)
{
    char place[64];
    int status;
    pid_t child;

    snprintf(place, sizeof(place), "%s/noexec", directory);
    cr_assert_eq(mkdir(place, 0755), 0);
    child = fork(); /* who has threads gets no user namespace */
    if (child == 0) {
        snprintf(library, sizeof(library), "%s/noexec/library", directory);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
            mount(directory, place, NULL, MS_BIND, NULL) != 0 ||
            mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_NOEXEC, NULL) != 0)
            _exit(77);
        _exit(cw_doctor_keeps_out(program, library, why, sizeof(why)) != 1 ||
              !strstr(why, "noexec"));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    rmdir(place);
    if (WEXITSTATUS(status) == 77)
        skip("nothing can be mounted here");
    cr_assert_eq(status, 0);
}

Test(keeps_out, a_script_is_its_interpreter)
{
    struct made made = make(NULL);
    char script[64], text[128];

    write_file(program, &made, sizeof(made), 0755);
    snprintf(script, sizeof(script), "%s/script", directory);
    snprintf(text, sizeof(text), "#! %s -x\n", program);
    write_file(script, text, strlen(text), 0755);
    cr_expect_eq(cw_doctor_keeps_out(script, library, why, sizeof(why)), 1);
    cr_expect(strstr(why, program));
    /* A script that is its own interpreter terminates too. */
    snprintf(text, sizeof(text), "#!%s\n", script);
    write_file(script, text, strlen(text), 0755);
    cr_expect_eq(cw_doctor_keeps_out(script, library, why, sizeof(why)), 0);
    unlink(script);
}

Test(keeps_out, it_is_looked_for_in_PATH)
{
    struct made made = make(NULL);
    char path[128];

    write_file(program, &made, sizeof(made), 0755);
    snprintf(path, sizeof(path), "/nowhere:%s:/bin", directory);
    setenv("PATH", path, 1);
    cr_assert_eq(cw_doctor_keeps_out("program", library, why, sizeof(why)), 1);
    cr_assert(strstr(why, program));
    cr_assert_eq(cw_doctor_keeps_out("not-there", library, why, sizeof(why)), 0);
}

Test(keeps_out, of_what_is_no_program_nothing_is_claimed)
{
    static const char bad[][16] = {"",   "\177ELF", "\177ELF\002", "\177ELF\001xxxxxxx",
                                   "#!", "#!\n"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(program, bad[i], strlen(bad[i]), 0755);
        cr_expect_eq(cw_doctor_keeps_out(program, library, why, sizeof(why)), 0, "%zu: %s", i, why);
    }
}
