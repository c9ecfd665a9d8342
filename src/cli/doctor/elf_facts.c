/* SPDX-License-Identifier: MIT */
/* Facts of ELF files. See elf_facts.h. */
#include "cli/doctor/elf_facts.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/regular_file.h"
#include "report/symbols/elf.h"

#define DYNAMIC_MAX  4096
#define STRINGS_MAX  (64u << 20)
#define SYMBOLS_ONCE 512
#define CHUNK        (1u << 20)

const char *cw_elf_machine_name(unsigned machine, char *buf, size_t cap)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {
        {EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}, {EM_386, "i386"},
        {EM_ARM, "arm"},       {EM_PPC64, "ppc64"},     {EM_RISCV, "riscv"},
    };

    for (size_t i = 0; i < CW_ARRAY_LEN(names); i++) {
        if (names[i].machine == machine)
            return names[i].name;
    }
    snprintf(buf, cap, "machine %u", machine);
    return buf;
}

static void read_interpreter(struct cw_elf *elf, struct cw_elf_facts *facts)
{
    const Elf64_Phdr *segment = cw_elf_segment(elf, PT_INTERP);

    if (!segment || segment->p_filesz == 0 || segment->p_filesz >= sizeof(facts->interpreter) ||
        cw_elf_read(elf, facts->interpreter, segment->p_filesz, segment->p_offset) != 0)
        facts->interpreter[0] = '\0';
}

/* ---- the dynamic section ---- */

static const char *string_at(const struct cw_elf_facts *facts, uint64_t offset)
{
    return offset < facts->strings_size ? facts->strings + offset : NULL;
}

/* 0, or -1; a NUL is appended to the strings. */
static int read_strings(struct cw_elf *elf, struct cw_elf_facts *facts, uint64_t address,
                        uint64_t size)
{
    uint64_t offset = cw_elf_offset_of(elf, address);

    if (size == 0 || size > STRINGS_MAX || offset > elf->size || size > elf->size - offset)
        return -1;
    facts->strings = malloc(size + 1);
    if (!facts->strings || cw_elf_read(elf, facts->strings, size, offset) != 0)
        return -1;
    facts->strings[size] = '\0';
    facts->strings_size = size;
    return 0;
}

static uint64_t value_of(const Elf64_Dyn *entry, size_t count, int64_t tag)
{
    for (size_t i = 0; i < count && entry[i].d_tag != DT_NULL; i++) {
        if (entry[i].d_tag == tag)
            return entry[i].d_un.d_val;
    }
    return 0;
}

/* Symbol versions are among the strings: GLIBC_2.28. */
static unsigned newest_glibc(const struct cw_elf_facts *facts)
{
    unsigned newest = 0;

    for (uint64_t at = 0; at < facts->strings_size; at += strlen(facts->strings + at) + 1) {
        unsigned minor;
        int len = 0;

        if (sscanf(facts->strings + at, "GLIBC_2.%3u%n", &minor, &len) == 1 && minor > newest &&
            (facts->strings[at + (unsigned)len] == '\0' ||
             facts->strings[at + (unsigned)len] == '.'))
            newest = minor;
    }
    return newest;
}

static void read_entries(struct cw_elf_facts *facts, const Elf64_Dyn *entry, size_t count)
{
    for (size_t i = 0; i < count && entry[i].d_tag != DT_NULL; i++) {
        const char *text = string_at(facts, entry[i].d_un.d_val);

        switch (entry[i].d_tag) {
        case DT_NEEDED:
            if (text && facts->needed_count < CW_ELF_NEEDED_MAX)
                facts->needed[facts->needed_count++] = text;
            break;
        case DT_RPATH:
            facts->rpath = text;
            break;
        case DT_RUNPATH:
            facts->runpath = text;
            break;
        case DT_SYMBOLIC:
            facts->is_symbolic = 1;
            break;
        case DT_FLAGS:
            facts->is_symbolic |= (entry[i].d_un.d_val & DF_SYMBOLIC) != 0;
            break;
        default:
            break;
        }
    }
}

static void read_dynamic(struct cw_elf *elf, struct cw_elf_facts *facts)
{
    const Elf64_Phdr *segment = cw_elf_segment(elf, PT_DYNAMIC);
    size_t count = segment ? segment->p_filesz / sizeof(Elf64_Dyn) : 0;
    Elf64_Dyn *entry;

    if (count == 0)
        return;
    if (count > DYNAMIC_MAX)
        count = DYNAMIC_MAX;
    facts->is_dynamic = 1;
    entry = calloc(count, sizeof(*entry));
    if (entry && cw_elf_read(elf, entry, count * sizeof(*entry), segment->p_offset) == 0 &&
        read_strings(elf, facts, value_of(entry, count, DT_STRTAB),
                     value_of(entry, count, DT_STRSZ)) == 0) {
        read_entries(facts, entry, count);
        facts->glibc_minor = newest_glibc(facts);
    }
    free(entry);
}

/* ---- what uses CUDA ---- */

static void look_at_symbols(struct cw_elf *elf, struct cw_elf_facts *facts)
{
    Elf64_Sym symbol[SYMBOLS_ONCE];
    size_t count;

    for (uint64_t first = 0; (count = cw_elf_read_symbols(elf, first, symbol, SYMBOLS_ONCE)) > 0;
         first += count) {
        for (size_t i = 0; i < count; i++) {
            char name[16];

            if (symbol[i].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol[i].st_info) != STT_FUNC ||
                cw_elf_read_name(elf, symbol[i].st_name, name, sizeof(name)) == 0 ||
                strcmp(name, "cudaMalloc") != 0)
                continue;
            facts->defines_runtime = 1;
            facts->exports_runtime |= ELF64_ST_BIND(symbol[i].st_info) != STB_LOCAL &&
                                      ELF64_ST_VISIBILITY(symbol[i].st_other) == STV_DEFAULT;
        }
    }
}

/* A stripped runtime still contains the name of the library that it opens. */
static int names_driver(const struct cw_elf *elf)
{
    static const char text[] = "libcuda.so.1";
    char *buf = malloc(CHUNK);
    uint64_t at = 0;
    int is_there = 0;

    while (buf && !is_there && at < elf->size) {
        ssize_t len = pread(elf->fd, buf, CHUNK, (off_t)at);

        if (len < (ssize_t)sizeof(text))
            break;
        is_there = memmem(buf, (size_t)len, text, sizeof(text)) != NULL;
        at += (uint64_t)len - sizeof(text) + 1;
    }
    free(buf);
    return is_there;
}

/* ---- the file ---- */

int cw_elf_facts_read(struct cw_elf_facts *facts, const char *path)
{
    struct cw_elf elf;

    *facts = (struct cw_elf_facts){.is_elf = 0};
    if (cw_elf_open(&elf, path) != 0)
        return -1;
    facts->is_elf = elf.kind != CW_ELF_NONE;
    if (facts->is_elf) {
        facts->is_64_bit = elf.header.e_ident[EI_CLASS] == ELFCLASS64;
        facts->is_little_endian = elf.header.e_ident[EI_DATA] == ELFDATA2LSB;
        facts->type = elf.header.e_type;
        facts->machine = elf.header.e_machine;
    }
    if (elf.kind == CW_ELF_64) {
        read_interpreter(&elf, facts);
        read_dynamic(&elf, facts);
        facts->has_kernels = cw_elf_has_section(&elf, ".nv_fatbin"); /* of nvcc and clang */
        if (cw_elf_use_symbols(&elf, SHT_SYMTAB) == 0 || cw_elf_use_symbols(&elf, SHT_DYNSYM) == 0)
            look_at_symbols(&elf, facts);
        facts->names_driver = names_driver(&elf);
    }
    cw_elf_close(&elf);
    return 0;
}

const char *cw_elf_reason(int error)
{
    const char *refused = cw_regular_reason(error);

    return refused ? refused : strerror(error);
}

const char *cw_elf_way_out(int error)
{
    return cw_regular_reason(error) ? "give the program's own file"
                                    : "run cuwarden doctor as its owner or as root";
}

void cw_elf_facts_free(struct cw_elf_facts *facts)
{
    free(facts->strings);
    facts->strings = NULL;
    facts->needed_count = 0;
}
