/* SPDX-License-Identifier: MIT */
/* Alternate debug files. See debug_alternate.h. */
#include "cli/debug/debug_alternate.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The smallest file that libdw takes: it must have a section of DWARF, and that one needs a name.
 */
struct empty_file {
    Elf64_Ehdr header;
    Elf64_Shdr section[3];
    char names[32]; /* also the content of .debug_line */
};

#define NAMES      "\0.debug_line\0.shstrtab"
#define NAME_LINE  1
#define NAME_NAMES 13

static void fill(struct empty_file *file)
{
    const Elf64_Off names = offsetof(struct empty_file, names);

    *file = (struct empty_file){
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                               EV_CURRENT},
                   .e_type = ET_DYN,
                   .e_machine = EM_X86_64,
                   .e_version = EV_CURRENT,
                   .e_shoff = offsetof(struct empty_file, section),
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 3,
                   .e_shstrndx = 2},
        .section =
            {{.sh_type = SHT_NULL},
             {.sh_name = NAME_LINE, .sh_type = SHT_PROGBITS, .sh_offset = names, .sh_size = 1},
             {.sh_name = NAME_NAMES,
              .sh_type = SHT_STRTAB,
              .sh_offset = names,
              .sh_size = sizeof(NAMES)}},
    };
    memcpy(file->names, NAMES, sizeof(NAMES));
}

int cw_debug_alternate_init(struct cw_debug_alternate *none)
{
    static struct empty_file file;

    fill(&file);
    *none = (struct cw_debug_alternate){.elf = elf_memory((char *)&file, sizeof(file))};
    if (none->elf)
        none->dwarf = dwarf_begin_elf(none->elf, DWARF_C_READ, NULL);
    if (none->dwarf)
        return 0;
    cw_debug_alternate_fini(none);
    return -1;
}

/* The file whose build-id and name the module has. 0, or -1 if there is none. */
static int find(Dwarf *dwarf, const char *file, const struct cw_debug_options *options,
                struct cw_debug_alternate *out)
{
    const char *name;
    const void *build_id;
    ssize_t len = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id);
    struct cw_debug_key key = {.build_id = build_id, .build_id_len = len > 0 ? (size_t)len : 0};

    if (len <= 0)
        return -1;
    out->fd = cw_debug_open_alternate(options, &key, file, name);
    if (out->fd < 0)
        out->fd = 0;
    else
        out->elf = elf_begin(out->fd, ELF_C_READ_MMAP, NULL);
    if (out->elf)
        out->dwarf = dwarf_begin_elf(out->elf, DWARF_C_READ, NULL);
    return out->dwarf ? 0 : -1;
}

void cw_debug_alternate_set(Dwarf *dwarf, const char *file, const struct cw_debug_options *options,
                            const struct cw_debug_alternate *none, struct cw_debug_alternate *out)
{
    if (find(dwarf, file, options, out) != 0) {
        dwarf_setalt(dwarf, none->dwarf);
        return;
    }
    dwarf_setalt(out->dwarf, none->dwarf); /* an alternate file may name one too */
    dwarf_setalt(dwarf, out->dwarf);
}

void cw_debug_alternate_fini(struct cw_debug_alternate *alternate)
{
    if (alternate->dwarf)
        dwarf_end(alternate->dwarf);
    if (alternate->elf)
        elf_end(alternate->elf);
    if (alternate->fd > 0)
        close(alternate->fd);
    *alternate = (struct cw_debug_alternate){.fd = 0};
}
