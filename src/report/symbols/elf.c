/* SPDX-License-Identifier: MIT */
/*
 * ELF64 files, read with suspicion. See elf.h.
 *
 * Every offset is checked against the file's size when it was opened; a file that has shrunk since
 * yields short reads.
 */
#include "report/symbols/elf.h"

#include <errno.h>
#include <string.h>

#include "base/elf_note.h"
#include "base/mem.h"
#include "base/regular_file.h"
#include "base/sys.h"

#define SECTIONS_MAX (1u << 16)
#define SEGMENTS_MAX 512
#define SYMBOLS_MAX  (1u << 25) /* a sparse file must not cost hours */
#define NOTES_MAX    (64u * 1024)
#define BUILD_ID_MAX 64
#define SECTION_NAME 32

static int is_inside(const struct cw_elf *elf, uint64_t offset, uint64_t len)
{
    return offset <= elf->size && len <= elf->size - offset;
}

static void note_error(struct cw_elf *elf, int error)
{
    if (elf->error == 0)
        elf->error = error;
}

/* A short read without an errno is one at the end of the file. */
static size_t read_at(struct cw_elf *elf, void *buf, size_t len, uint64_t offset)
{
    size_t got;

    errno = 0;
    got = cw_sys_read_at(elf->fd, buf, len, offset);
    if (got < len)
        note_error(elf, errno);
    return got;
}

int cw_elf_read(struct cw_elf *elf, void *buf, size_t len, uint64_t offset)
{
    return is_inside(elf, offset, len) && read_at(elf, buf, len, offset) == len ? 0 : -1;
}

static void *take_memory(struct cw_elf *elf, size_t len)
{
    void *memory = cw_mem_alloc(len);

    if (!memory)
        note_error(elf, ENOMEM);
    return memory;
}

/* ---- the file ---- */

/* Something else is there by now, which cw_regular_open refuses, or nothing. */
static int is_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EINVAL || error == EFBIG;
}

/* e_type and e_machine have the same offset in both classes. */
static enum cw_elf_kind read_header(struct cw_elf *elf)
{
    Elf64_Ehdr *header = &elf->header;

    if (cw_elf_read(elf, header, offsetof(Elf64_Ehdr, e_version), 0) != 0 ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return CW_ELF_NONE;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        cw_elf_read(elf, header, sizeof(*header), 0) != 0)
        return CW_ELF_OTHER;
    return CW_ELF_64;
}

static void read_segments(struct cw_elf *elf)
{
    const Elf64_Ehdr *header = &elf->header;
    uint32_t count = header->e_phnum < SEGMENTS_MAX ? header->e_phnum : SEGMENTS_MAX;

    if (header->e_phentsize != sizeof(Elf64_Phdr) || count == 0)
        return;
    elf->segment = take_memory(elf, count * sizeof(Elf64_Phdr));
    elf->segments = elf->segment ? count : 0;
    if (elf->segment &&
        cw_elf_read(elf, elf->segment, elf->segments * sizeof(Elf64_Phdr), header->e_phoff) == 0)
        return;
    cw_mem_free(elf->segment, elf->segments * sizeof(Elf64_Phdr));
    elf->segment = NULL;
    elf->segments = 0;
}

int cw_elf_open(struct cw_elf *elf, const char *path)
{
    *elf = (struct cw_elf){.fd = -1};
    elf->fd = cw_regular_open(path, 0, &elf->size);
    if (elf->fd < 0) {
        if (!is_gone(errno))
            note_error(elf, errno);
        return -1;
    }
    elf->kind = read_header(elf);
    if (elf->kind == CW_ELF_64)
        read_segments(elf);
    return 0;
}

void cw_elf_close(struct cw_elf *elf)
{
    if (elf->fd >= 0)
        cw_sys_close(elf->fd);
    cw_mem_free(elf->segment, elf->segments * sizeof(*elf->segment));
    cw_mem_free(elf->sections, elf->section_count * sizeof(*elf->sections));
    *elf = (struct cw_elf){.fd = -1, .error = elf->error};
}

/* ---- segments ---- */

const Elf64_Phdr *cw_elf_segment(const struct cw_elf *elf, uint32_t type)
{
    for (uint32_t i = 0; i < elf->segments; i++) {
        if (elf->segment[i].p_type == type)
            return &elf->segment[i];
    }
    return NULL;
}

uint64_t cw_elf_offset_of(const struct cw_elf *elf, uint64_t address)
{
    for (uint32_t i = 0; i < elf->segments; i++) {
        const Elf64_Phdr *segment = &elf->segment[i];

        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz)
            return segment->p_offset + (address - segment->p_vaddr);
    }
    return UINT64_MAX;
}

static int is_match_in(struct cw_elf *elf, const Elf64_Phdr *segment, const uint8_t *build_id,
                       size_t build_id_len)
{
    size_t len = segment->p_filesz < NOTES_MAX ? segment->p_filesz : NOTES_MAX;
    char *notes = take_memory(elf, len);
    const char *id = NULL;
    int match = 0;

    if (notes && len > 0 && cw_elf_read(elf, notes, len, segment->p_offset) == 0)
        match = cw_elf_note_build_id(notes, len, &id) >= build_id_len && id &&
                memcmp(id, build_id, build_id_len) == 0;
    cw_mem_free(notes, len);
    return match;
}

static int has_build_id(struct cw_elf *elf, const uint8_t *build_id, size_t build_id_len)
{
    if (build_id_len == 0)
        return 1;
    for (uint32_t i = 0; build_id_len <= BUILD_ID_MAX && i < elf->segments; i++) {
        if (elf->segment[i].p_type == PT_NOTE &&
            is_match_in(elf, &elf->segment[i], build_id, build_id_len))
            return 1;
    }
    return 0;
}

/* ---- sections ---- */

/* Done once, at the first request. */
static int read_sections(struct cw_elf *elf)
{
    Elf64_Shdr first;
    uint64_t count = elf->header.e_shnum;

    if (elf->sections)
        return 0;
    if (elf->kind != CW_ELF_64 || elf->header.e_shentsize != sizeof(first) ||
        elf->header.e_shoff == 0 ||
        cw_elf_read(elf, &first, sizeof(first), elf->header.e_shoff) != 0)
        return -1;
    if (count == 0) /* too many for the header: stored in the first section */
        count = first.sh_size;
    if (count == 0 || count > SECTIONS_MAX)
        return -1;
    elf->sections = take_memory(elf, count * sizeof(first));
    elf->section_count = elf->sections ? (uint32_t)count : 0;
    if (elf->sections &&
        cw_elf_read(elf, elf->sections, count * sizeof(first), elf->header.e_shoff) == 0)
        return 0;
    cw_mem_free(elf->sections, elf->section_count * sizeof(first));
    elf->sections = NULL;
    elf->section_count = 0;
    return -1;
}

int cw_elf_has_section(struct cw_elf *elf, const char *name)
{
    char buf[SECTION_NAME];
    size_t len = strlen(name) + 1;
    uint64_t base;

    if (len > sizeof(buf) || read_sections(elf) != 0 ||
        elf->header.e_shstrndx >= elf->section_count)
        return 0;
    base = elf->sections[elf->header.e_shstrndx].sh_offset;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (is_inside(elf, base, elf->sections[i].sh_name) &&
            cw_elf_read(elf, buf, len, base + elf->sections[i].sh_name) == 0 &&
            memcmp(buf, name, len) == 0)
            return 1;
    }
    return 0;
}

int cw_elf_use_symbols(struct cw_elf *elf, uint32_t type)
{
    if (read_sections(elf) != 0)
        return -1;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        const Elf64_Shdr *table = &elf->sections[i];
        const Elf64_Shdr *names;

        if (table->sh_type != type || table->sh_entsize != sizeof(Elf64_Sym) ||
            table->sh_link >= elf->section_count)
            continue;
        names = &elf->sections[table->sh_link];
        if (names->sh_type != SHT_STRTAB || !is_inside(elf, table->sh_offset, table->sh_size) ||
            !is_inside(elf, names->sh_offset, names->sh_size))
            continue;
        elf->symbols_offset = table->sh_offset;
        elf->symbols = table->sh_size / sizeof(Elf64_Sym);
        if (elf->symbols > SYMBOLS_MAX)
            elf->symbols = SYMBOLS_MAX;
        elf->names_offset = names->sh_offset;
        elf->names_size = names->sh_size;
        return 0;
    }
    return -1;
}

int cw_elf_open_symbols(struct cw_elf *elf, const char *path, const uint8_t *build_id,
                        size_t build_id_len)
{
    if (cw_elf_open(elf, path) == 0 && elf->kind == CW_ELF_64 &&
        has_build_id(elf, build_id, build_id_len) &&
        (cw_elf_use_symbols(elf, SHT_SYMTAB) == 0 || cw_elf_use_symbols(elf, SHT_DYNSYM) == 0))
        return 0;
    cw_elf_close(elf);
    return -1;
}

size_t cw_elf_read_symbols(struct cw_elf *elf, uint64_t first, Elf64_Sym *out, size_t count)
{
    uint64_t left = first < elf->symbols ? elf->symbols - first : 0;
    size_t wanted = (left < count ? left : count) * sizeof(Elf64_Sym);

    return read_at(elf, out, wanted, elf->symbols_offset + first * sizeof(Elf64_Sym)) /
           sizeof(Elf64_Sym);
}

size_t cw_elf_read_name(struct cw_elf *elf, uint32_t name, char *buf, size_t cap)
{
    uint64_t left = name < elf->names_size ? elf->names_size - name : 0;
    size_t wanted = left < cap - 1 ? left : cap - 1;
    size_t len = read_at(elf, buf, wanted, elf->names_offset + name);

    buf[len] = '\0';
    return strlen(buf);
}

uint64_t cw_elf_section_end(const struct cw_elf *elf, uint32_t index)
{
    const Elf64_Shdr *section;

    if (index >= elf->section_count || index >= SHN_LORESERVE)
        return 0;
    section = &elf->sections[index];
    return section->sh_addr + section->sh_size;
}
