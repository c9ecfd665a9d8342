/* SPDX-License-Identifier: MIT */
/*
 * Reads the functions that a 64-bit ELF library exports, from its mapped file.
 *
 * The file is untrusted: every offset is checked against its size before use. dlopen() would be
 * shorter, but would run the library's constructors in this process.
 */
#include "cli/cli.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_ORDER ELFDATA2LSB
#else
#define OWN_ORDER ELFDATA2MSB
#endif

/* Bytes [offset, offset + len) of the file, or NULL when it has no such bytes. */
static const void *slice(const struct cw_exports *exports, uint64_t offset, uint64_t len)
{
    if (offset > exports->file_len || len > exports->file_len - offset)
        return NULL;
    return (const char *)exports->file + offset;
}

static int map_file(struct cw_exports *exports, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    void *file = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0)
        file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED) {
        cw_cli_error("cannot read '%s': %s", path, errno ? strerror(errno) : "empty file");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    close(fd);
    exports->file = file;
    exports->file_len = (size_t)status.st_size;
    return 0;
}

static const Elf64_Ehdr *check_header(const struct cw_exports *exports)
{
    const Elf64_Ehdr *header = slice(exports, 0, sizeof(*header));

    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != OWN_ORDER ||
        header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % 8 != 0)
        return NULL;
    return header;
}

/* The sections that hold the dynamic exports and their names. */
static const Elf64_Shdr *find_dynsym(const struct cw_exports *exports, const Elf64_Shdr **names)
{
    const Elf64_Ehdr *header = check_header(exports);
    const Elf64_Shdr *sections;

    if (!header)
        return NULL;
    sections = slice(exports, header->e_shoff, (uint64_t)header->e_shnum * sizeof(*sections));
    for (size_t i = 0; sections && i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= header->e_shnum)
            continue;
        *names = &sections[sections[i].sh_link];
        return &sections[i];
    }
    return NULL;
}

static int is_exported_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    unsigned binding = ELF64_ST_BIND(symbol->st_info);

    return symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC) &&
           (binding == STB_GLOBAL || binding == STB_WEAK);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int collect(struct cw_exports *exports)
{
    const Elf64_Shdr *names_section;
    const Elf64_Shdr *section = find_dynsym(exports, &names_section);
    const Elf64_Sym *symbol;
    const char *names;
    size_t count;

    if (!section || section->sh_offset % 8 != 0)
        return -1;
    symbol = slice(exports, section->sh_offset, section->sh_size);
    names = slice(exports, names_section->sh_offset, names_section->sh_size);
    count = section->sh_size / sizeof(*symbol);
    if (!symbol || !names || names_section->sh_size == 0 || names[names_section->sh_size - 1])
        return -1;
    exports->name = calloc(count + 1, sizeof(*exports->name));
    if (!exports->name)
        return -1;
    for (size_t i = 0; i < count; i++) {
        if (is_exported_function(&symbol[i]) && symbol[i].st_name < names_section->sh_size)
            exports->name[exports->count++] = names + symbol[i].st_name;
    }
    qsort(exports->name, exports->count, sizeof(*exports->name), compare_names);
    return 0;
}

int cw_exports_read(struct cw_exports *exports, const char *path)
{
    *exports = (struct cw_exports){.name = NULL};
    errno = 0;
    if (map_file(exports, path) != 0)
        return -1;
    if (collect(exports) == 0)
        return 0;
    cw_cli_error("'%s' is not a 64-bit ELF library with dynamic exports", path);
    cw_exports_destroy(exports);
    return -1;
}

void cw_exports_destroy(struct cw_exports *exports)
{
    free(exports->name);
    munmap(exports->file, exports->file_len);
}
