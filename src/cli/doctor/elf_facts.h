/* SPDX-License-Identifier: MIT */
/*
 * What the dynamic linker would read from an ELF file, and signs that it uses CUDA. Nothing in the
 * file is trusted: invalid data reads as absent.
 */
#ifndef CW_CLI_ELF_FACTS_H
#define CW_CLI_ELF_FACTS_H

#include <elf.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define CW_ELF_NEEDED_MAX 256

#if defined(__x86_64__)
#define CW_ELF_OWN_MACHINE EM_X86_64
#else
#define CW_ELF_OWN_MACHINE EM_AARCH64
#endif

struct cw_elf_facts {
    int is_elf;
    unsigned is_64_bit, is_little_endian, machine, type; /* of the header */
    int is_dynamic;                                      /* has a dynamic section */
    char interpreter[PATH_MAX];                          /* "": it has none */
    /* from the dynamic section; the text is in `strings` */
    const char *needed[CW_ELF_NEEDED_MAX];
    unsigned needed_count;
    const char *rpath, *runpath; /* NULL: none */
    int is_symbolic;             /* -Bsymbolic: its own definitions come first */
    unsigned glibc_minor;        /* newest GLIBC_2.x that it requires, 0: none */
    char *strings;
    uint64_t strings_size;
    /* How it uses CUDA. */
    int defines_runtime; /* it contains the functions of the CUDA runtime */
    int exports_runtime; /* visible to the dynamic linker */
    int has_kernels;     /* it has a section of device code */
    int names_driver;    /* it contains the text libcuda.so.1 */
};

/* 0, or -1 with errno if it cannot be read; a file that is not ELF is reported as such. */
int cw_elf_facts_read(struct cw_elf_facts *facts, const char *path);
void cw_elf_facts_free(struct cw_elf_facts *facts);
/* Why a file cannot be read, in words; and what to do about it. */
const char *cw_elf_reason(int error);
const char *cw_elf_way_out(int error);

/* "x86_64", or "machine 243". */
const char *cw_elf_machine_name(unsigned machine, char *buf, size_t cap);

#endif
