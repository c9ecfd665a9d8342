/* SPDX-License-Identifier: MIT */
/*
 * Reading the symbol table of an ELF64 file, piece by piece.
 *
 * By pread, not by mmap: a file that shrinks while it is mapped raises SIGBUS, and this runs inside
 * somebody else's process. Nothing in the file is trusted: what does not fit reads as absent.
 */
#ifndef CW_REPORT_ELF_H
#define CW_REPORT_ELF_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

struct cw_elf {
    int fd; /* -1: not open */
    uint64_t size;
    Elf64_Ehdr header;
    Elf64_Shdr *sections;
    uint32_t section_count;
    uint64_t symbols_offset, symbols; /* of the symbol table; number of symbols */
    uint64_t names_offset, names_size;
};

/*
 * Opens the file and finds .symtab, else .dynsym. 0, or -1 when it has neither or is no regular
 * ELF64 file, or when its build-id does not begin with build_id (build_id_len 0: any file will do).
 */
int cw_elf_open(struct cw_elf *elf, const char *path, const uint8_t *build_id, size_t build_id_len);
void cw_elf_close(struct cw_elf *elf);

/* Reads symbols from `first` on; how many of `count` there were. */
size_t cw_elf_read_symbols(const struct cw_elf *elf, uint64_t first, Elf64_Sym *out, size_t count);

/* Copies a name, cut to cap; its length, 0 when there is none. */
size_t cw_elf_read_name(const struct cw_elf *elf, uint32_t name, char *buf, size_t cap);

/* One past the last address of the section, 0 when there is no such section. */
uint64_t cw_elf_section_end(const struct cw_elf *elf, uint32_t index);

#endif
