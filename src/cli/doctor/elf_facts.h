/* SPDX-License-Identifier: MIT */
/*
 * What the dynamic linker would know of an ELF file, and what tells whether it uses CUDA. Nothing
 * in the file is trusted: what does not fit reads as absent.
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
    /* of the dynamic section; the text is in `strings` */
    const char *needed[CW_ELF_NEEDED_MAX];
    unsigned needed_count;
    const char *rpath, *runpath; /* NULL: none */
    int is_symbolic;             /* -Bsymbolic: its own definitions go first */
    unsigned glibc_minor;        /* newest GLIBC_2.x that it names, 0: none */
    char *strings;
    uint64_t strings_size;
    /* How it uses CUDA. */
    int defines_runtime; /* it has the functions of the CUDA runtime in itself */
    int exports_runtime; /* so that the dynamic linker sees them */
    int has_kernels;     /* a section of device code */
    int names_driver;    /* the text libcuda.so.1 is somewhere in it */
};

/* 0, or -1 with errno if it cannot be read; a file that is no ELF file reads as such. */
int cw_elf_facts_read(struct cw_elf_facts *facts, const char *path);
void cw_elf_facts_free(struct cw_elf_facts *facts);

/* "x86_64", or "machine 243". */
const char *cw_elf_machine_name(unsigned machine, char *buf, size_t cap);

#endif
