/* SPDX-License-Identifier: MIT */
/* The build-id among ELF notes, in a file or in memory. */
#ifndef CW_BASE_ELF_NOTE_H
#define CW_BASE_ELF_NOTE_H

#include <elf.h>
#include <stddef.h>
#include <string.h>

/* The length of the build-id, which *out_id points to; 0: there is none, and nothing is set. */
static inline size_t cw_elf_note_build_id(const char *notes, size_t len, const char **out_id)
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

#endif
