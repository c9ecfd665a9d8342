/* SPDX-License-Identifier: MIT */
/*
 * Reads ELF files: headers, segments, sections and symbols, piece by piece. Objects loaded in this
 * process are read from memory instead, by hook/resolve/object.h and core/stacks/module.h.
 *
 * Uses pread, not mmap: a file that shrinks while mapped raises SIGBUS, and this runs inside the
 * user's process. Nothing in the file is trusted: invalid data reads as absent. What may be there
 * and cannot be read is told apart from it by `error`.
 */
#ifndef CW_REPORT_ELF_H
#define CW_REPORT_ELF_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

enum cw_elf_kind {
    CW_ELF_NONE,  /* not an ELF file */
    CW_ELF_OTHER, /* 32 bits, or big-endian: only e_ident, e_type and e_machine of the header are
                     valid */
    CW_ELF_64,    /* 64 bits, little-endian: fully readable */
};

struct cw_elf {
    int fd;    /* -1: not open */
    int error; /* why something that may be there could not be read, the first errno; 0: all was */
    enum cw_elf_kind kind;
    uint64_t size;
    Elf64_Ehdr header;
    Elf64_Phdr *segment;
    uint32_t segments;
    Elf64_Shdr *sections;
    uint32_t section_count;
    uint64_t symbols_offset, symbols; /* of the symbol table; number of symbols */
    uint64_t names_offset, names_size;
};

/* Opens a regular file of any format, and reads header and segments. 0, or -1 with errno. A file
 * that is no longer there, or no longer a regular one, is no error. */
int cw_elf_open(struct cw_elf *elf, const char *path);
/* The error stays. */
void cw_elf_close(struct cw_elf *elf);

/*
 * Opens an ELF64 file with its .symtab, or else its .dynsym. 0, or -1 if it has neither or cannot
 * be read, or if its build-id does not begin with build_id (build_id_len 0: any build-id). With an
 * error either may be incomplete.
 */
int cw_elf_open_symbols(struct cw_elf *elf, const char *path, const uint8_t *build_id,
                        size_t build_id_len);

/* Reads exactly len bytes at offset: 0, or -1. */
int cw_elf_read(struct cw_elf *elf, void *buf, size_t len, uint64_t offset);

/* The first segment of the type, or NULL. */
const Elf64_Phdr *cw_elf_segment(const struct cw_elf *elf, uint32_t type);
/* The file offset of an address; UINT64_MAX if none. */
uint64_t cw_elf_offset_of(const struct cw_elf *elf, uint64_t address);

/* Selects the table of SHT_SYMTAB or SHT_DYNSYM: 0, or -1 if there is none. */
int cw_elf_use_symbols(struct cw_elf *elf, uint32_t type);
/* Reads up to `count` symbols starting at `first`; returns how many. */
size_t cw_elf_read_symbols(struct cw_elf *elf, uint64_t first, Elf64_Sym *out, size_t count);
/* Copies a name, truncated to cap; returns its length, 0 if none. */
size_t cw_elf_read_name(struct cw_elf *elf, uint32_t name, char *buf, size_t cap);

/* The end address of the section, 0 if there is no such section. */
uint64_t cw_elf_section_end(const struct cw_elf *elf, uint32_t index);
/* 1 if a section has this name. */
int cw_elf_has_section(struct cw_elf *elf, const char *name);

#endif
