/* SPDX-License-Identifier: MIT */
/*
 * ELF64 files, read with suspicion. See elf.h.
 *
 * Every offset is checked against the size that the file had when it was opened; a file that has
 * shrunk since gives short reads.
 */
#include "report/symbols/elf.h"

#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sys.h"

#define SECTIONS_MAX (1u << 16)
#define SEGMENTS_MAX 512
#define SYMBOLS_MAX  (1u << 25) /* a sparse file must not cost hours */
#define NOTES_MAX    (64u * 1024)
#define BUILD_ID_MAX 64

static int is_inside(const struct cw_elf *elf, uint64_t offset, uint64_t len)
{
    return offset <= elf->size && len <= elf->size - offset;
}

static int read_exactly(const struct cw_elf *elf, void *buf, size_t len, uint64_t offset)
{
    if (!is_inside(elf, offset, len) || cw_sys_read_at(elf->fd, buf, len, offset) != len)
        return -1;
    return 0;
}

/* Not a device or a FIFO that has taken the place of the file: opening those may block. */
static int open_regular(struct cw_elf *elf, const char *path)
{
    struct stat info;

    elf->fd = cw_sys_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (elf->fd < 0)
        return -1;
    if (cw_sys_stat(elf->fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0)
        return -1;
    elf->size = (uint64_t)info.st_size;
    return 0;
}

static int read_header(struct cw_elf *elf)
{
    const Elf64_Ehdr *header = &elf->header;

    if (read_exactly(elf, &elf->header, sizeof(elf->header), 0) != 0)
        return -1;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB)
        return -1;
    return 0;
}

/* ---- the build-id ---- */

/* Finds the build-id in a segment of notes; its length, or 0. */
static size_t find_build_id(const char *notes, size_t len, const char **out_id)
{
    size_t at = 0;

    while (len - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        size_t name, id;

        memcpy(&note, notes + at, sizeof(note));
        name = at + sizeof(note);
        if (note.n_namesz > len - name)
            return 0;
        id = name + (((size_t)note.n_namesz + 3) & ~(size_t)3);
        if (id > len || note.n_descsz > len - id)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0) {
            *out_id = notes + id;
            return note.n_descsz;
        }
        at = id + (((size_t)note.n_descsz + 3) & ~(size_t)3);
        if (at > len)
            return 0;
    }
    return 0;
}

static int is_match_in(const struct cw_elf *elf, const Elf64_Phdr *segment, const uint8_t *build_id,
                       size_t build_id_len)
{
    size_t len = segment->p_filesz < NOTES_MAX ? segment->p_filesz : NOTES_MAX;
    char *notes = cw_mem_alloc(len);
    const char *id = NULL;
    int match = 0;

    if (notes && len > 0 && read_exactly(elf, notes, len, segment->p_offset) == 0)
        match = find_build_id(notes, len, &id) >= build_id_len && id &&
                memcmp(id, build_id, build_id_len) == 0;
    cw_mem_free(notes, len);
    return match;
}

static int has_build_id(const struct cw_elf *elf, const uint8_t *build_id, size_t build_id_len)
{
    unsigned count = elf->header.e_phnum < SEGMENTS_MAX ? elf->header.e_phnum : SEGMENTS_MAX;

    if (build_id_len == 0)
        return 1;
    if (elf->header.e_phentsize != sizeof(Elf64_Phdr) || build_id_len > BUILD_ID_MAX)
        return 0;
    for (unsigned i = 0; i < count; i++) {
        Elf64_Phdr segment;

        if (elf->header.e_phoff > elf->size ||
            read_exactly(elf, &segment, sizeof(segment),
                         elf->header.e_phoff + i * sizeof(segment)) != 0)
            return 0;
        if (segment.p_type == PT_NOTE && is_match_in(elf, &segment, build_id, build_id_len))
            return 1;
    }
    return 0;
}

/* ---- sections ---- */

static int read_sections(struct cw_elf *elf)
{
    Elf64_Shdr first;
    uint64_t count = elf->header.e_shnum;

    if (elf->header.e_shentsize != sizeof(first) || elf->header.e_shoff == 0 ||
        read_exactly(elf, &first, sizeof(first), elf->header.e_shoff) != 0)
        return -1;
    if (count == 0) /* too many for the header: the first section tells */
        count = first.sh_size;
    if (count == 0 || count > SECTIONS_MAX)
        return -1;
    elf->section_count = (uint32_t)count;
    elf->sections = cw_mem_alloc(count * sizeof(first));
    if (!elf->sections)
        return -1;
    return read_exactly(elf, elf->sections, count * sizeof(first), elf->header.e_shoff);
}

static int use_table(struct cw_elf *elf, uint32_t type)
{
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

int cw_elf_open(struct cw_elf *elf, const char *path, const uint8_t *build_id, size_t build_id_len)
{
    memset(elf, 0, sizeof(*elf));
    if (open_regular(elf, path) == 0 && read_header(elf) == 0 &&
        has_build_id(elf, build_id, build_id_len) && read_sections(elf) == 0 &&
        (use_table(elf, SHT_SYMTAB) == 0 || use_table(elf, SHT_DYNSYM) == 0))
        return 0;
    cw_elf_close(elf);
    return -1;
}

void cw_elf_close(struct cw_elf *elf)
{
    if (elf->fd >= 0)
        cw_sys_close(elf->fd);
    cw_mem_free(elf->sections, elf->section_count * sizeof(*elf->sections));
    memset(elf, 0, sizeof(*elf));
    elf->fd = -1;
}

size_t cw_elf_read_symbols(const struct cw_elf *elf, uint64_t first, Elf64_Sym *out, size_t count)
{
    uint64_t left = first < elf->symbols ? elf->symbols - first : 0;
    size_t wanted = (left < count ? left : count) * sizeof(Elf64_Sym);

    return cw_sys_read_at(elf->fd, out, wanted, elf->symbols_offset + first * sizeof(Elf64_Sym)) /
           sizeof(Elf64_Sym);
}

size_t cw_elf_read_name(const struct cw_elf *elf, uint32_t name, char *buf, size_t cap)
{
    uint64_t left = name < elf->names_size ? elf->names_size - name : 0;
    size_t wanted = left < cap - 1 ? left : cap - 1;
    size_t len = cw_sys_read_at(elf->fd, buf, wanted, elf->names_offset + name);

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
