/* SPDX-License-Identifier: MIT */
/* Facts of ELF files. See elf_facts.h. */
#include "cli/doctor/elf_facts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "report/symbols/elf.h"

#define SEGMENTS_MAX 512
#define DYNAMIC_MAX  4096
#define STRINGS_MAX  (64u << 20)
#define SYMBOLS_ONCE 512
#define CHUNK        (1u << 20)

struct source {
    int fd;
    uint64_t size;
    Elf64_Ehdr header;
    Elf64_Phdr segment[SEGMENTS_MAX];
    unsigned segments;
};

static int read_at(const struct source *source, void *buf, uint64_t len, uint64_t offset)
{
    if (offset > source->size || len > source->size - offset)
        return -1;
    return pread(source->fd, buf, len, (off_t)offset) == (ssize_t)len ? 0 : -1;
}

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

/* ---- header and segments ---- */

static void read_header(struct source *source, struct cw_elf_facts *facts)
{
    const Elf64_Ehdr *header = &source->header;
    uint16_t half[2]; /* e_type and e_machine stand at the same place in both classes */

    if (read_at(source, &source->header, EI_NIDENT, 0) != 0 ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        read_at(source, half, sizeof(half), EI_NIDENT) != 0)
        return;
    facts->is_elf = 1;
    facts->is_64_bit = header->e_ident[EI_CLASS] == ELFCLASS64;
    facts->is_little_endian = header->e_ident[EI_DATA] == ELFDATA2LSB;
    facts->type = half[0];
    facts->machine = half[1];
}

static void read_segments(struct source *source)
{
    const Elf64_Ehdr *header = &source->header;
    unsigned count;

    if (read_at(source, &source->header, sizeof(source->header), 0) != 0 ||
        header->e_phentsize != sizeof(Elf64_Phdr))
        return;
    count = header->e_phnum < SEGMENTS_MAX ? header->e_phnum : SEGMENTS_MAX;
    if (read_at(source, source->segment, count * sizeof(Elf64_Phdr), header->e_phoff) == 0)
        source->segments = count;
}

static const Elf64_Phdr *find_segment(const struct source *source, uint32_t type)
{
    for (unsigned i = 0; i < source->segments; i++) {
        if (source->segment[i].p_type == type)
            return &source->segment[i];
    }
    return NULL;
}

/* Where in the file an address is; UINT64_MAX: nowhere. */
static uint64_t offset_of(const struct source *source, uint64_t address)
{
    for (unsigned i = 0; i < source->segments; i++) {
        const Elf64_Phdr *segment = &source->segment[i];

        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz)
            return segment->p_offset + (address - segment->p_vaddr);
    }
    return UINT64_MAX;
}

static void read_interpreter(const struct source *source, struct cw_elf_facts *facts)
{
    const Elf64_Phdr *segment = find_segment(source, PT_INTERP);

    if (!segment || segment->p_filesz == 0 || segment->p_filesz >= sizeof(facts->interpreter) ||
        read_at(source, facts->interpreter, segment->p_filesz, segment->p_offset) != 0)
        facts->interpreter[0] = '\0';
}

/* ---- the dynamic section ---- */

static const char *string_at(const struct cw_elf_facts *facts, uint64_t offset)
{
    return offset < facts->strings_size ? facts->strings + offset : NULL;
}

/* 0, or -1; the strings end with a NUL of ours. */
static int read_strings(const struct source *source, struct cw_elf_facts *facts, uint64_t address,
                        uint64_t size)
{
    uint64_t offset = offset_of(source, address);

    if (size == 0 || size > STRINGS_MAX || offset > source->size || size > source->size - offset)
        return -1;
    facts->strings = malloc(size + 1);
    if (!facts->strings || read_at(source, facts->strings, size, offset) != 0)
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

/* Versions of symbols are names among the others: GLIBC_2.28. */
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

static void read_dynamic(const struct source *source, struct cw_elf_facts *facts)
{
    const Elf64_Phdr *segment = find_segment(source, PT_DYNAMIC);
    size_t count = segment ? segment->p_filesz / sizeof(Elf64_Dyn) : 0;
    Elf64_Dyn *entry;

    if (count == 0)
        return;
    if (count > DYNAMIC_MAX)
        count = DYNAMIC_MAX;
    facts->is_dynamic = 1;
    entry = calloc(count, sizeof(*entry));
    if (entry && read_at(source, entry, count * sizeof(*entry), segment->p_offset) == 0 &&
        read_strings(source, facts, value_of(entry, count, DT_STRTAB),
                     value_of(entry, count, DT_STRSZ)) == 0) {
        read_entries(facts, entry, count);
        facts->glibc_minor = newest_glibc(facts);
    }
    free(entry);
}

/* ---- what uses CUDA ---- */

/* Device code of nvcc and clang. */
static int has_kernels(const struct cw_elf *elf)
{
    uint64_t base, size;

    if (elf->header.e_shstrndx >= elf->section_count)
        return 0;
    base = elf->sections[elf->header.e_shstrndx].sh_offset;
    size = elf->sections[elf->header.e_shstrndx].sh_size;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        char name[16] = "";

        if (elf->sections[i].sh_name < size &&
            pread(elf->fd, name, sizeof(name) - 1, (off_t)(base + elf->sections[i].sh_name)) > 0 &&
            strcmp(name, ".nv_fatbin") == 0)
            return 1;
    }
    return 0;
}

static void look_at_symbols(const struct cw_elf *elf, struct cw_elf_facts *facts)
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

/* A stripped runtime still has the name of the library that it opens. */
static int names_driver(const struct source *source)
{
    static const char text[] = "libcuda.so.1";
    char *buf = malloc(CHUNK);
    uint64_t at = 0;
    int is_there = 0;

    while (buf && !is_there && at < source->size) {
        ssize_t len = pread(source->fd, buf, CHUNK, (off_t)at);

        if (len < (ssize_t)sizeof(text))
            break;
        is_there = memmem(buf, (size_t)len, text, sizeof(text)) != NULL;
        at += (uint64_t)len - sizeof(text) + 1;
    }
    free(buf);
    return is_there;
}

static void look_for_cuda(const struct source *source, struct cw_elf_facts *facts, const char *path)
{
    struct cw_elf elf;

    if (cw_elf_open(&elf, path, NULL, 0) == 0) {
        facts->has_kernels = has_kernels(&elf);
        look_at_symbols(&elf, facts);
        cw_elf_close(&elf);
    }
    facts->names_driver = names_driver(source);
}

/* ---- the file ---- */

static int open_regular(struct source *source, const char *path)
{
    struct stat status;

    source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->fd < 0)
        return -1;
    if (fstat(source->fd, &status) == 0 && S_ISREG(status.st_mode)) {
        source->size = (uint64_t)status.st_size;
        return 0;
    }
    close(source->fd);
    errno = EINVAL;
    return -1;
}

int cw_elf_facts_read(struct cw_elf_facts *facts, const char *path)
{
    struct source *source = calloc(1, sizeof(*source));

    *facts = (struct cw_elf_facts){.is_elf = 0};
    if (!source || open_regular(source, path) != 0) {
        free(source);
        return -1;
    }
    read_header(source, facts);
    if (facts->is_elf && facts->is_64_bit && facts->is_little_endian) {
        read_segments(source);
        read_interpreter(source, facts);
        read_dynamic(source, facts);
        look_for_cuda(source, facts, path);
    }
    close(source->fd);
    free(source);
    return 0;
}

void cw_elf_facts_free(struct cw_elf_facts *facts)
{
    free(facts->strings);
    facts->strings = NULL;
    facts->needed_count = 0;
}
