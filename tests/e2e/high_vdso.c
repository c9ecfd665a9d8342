/* SPDX-License-Identifier: MIT */
/*
 * One more object in the loader's list: the kernel's vdso as gVisor has it, linked below the end of
 * the address space, its dynamic section not relocated. For preloading; it is a copy of the vdso of
 * this kernel, which is linked at 0. Its dl_iterate_phdr asks for the next one when it is first
 * called, as Seastar's does, and must not be called meanwhile.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define LINKED_AT UINT64_C(0xffffffffff700000)

static unsigned char copy[1 << 16] __attribute__((aligned(4096)));
static ElfW(Phdr) segments[16];
static unsigned count;

static int is_pointer(ElfW(Sxword) tag)
{
    return tag == DT_SYMTAB || tag == DT_STRTAB || tag == DT_HASH || tag == DT_GNU_HASH ||
           tag == DT_VERSYM || tag == DT_VERDEF;
}

static void link_high(void)
{
    const unsigned char *vdso = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
    const ElfW(Ehdr) *header = (const void *)vdso;

    if (vdso == NULL || header->e_phnum > 16)
        abort();
    memcpy(segments, vdso + header->e_phoff, header->e_phnum * sizeof(segments[0]));
    for (unsigned i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) *segment = &segments[i];

        if (segment->p_type == PT_LOAD) {
            if (segment->p_vaddr + segment->p_memsz > sizeof(copy))
                abort();
            memcpy(copy, vdso, segment->p_vaddr + segment->p_memsz);
        }
    }
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_DYNAMIC)
            for (ElfW(Dyn) *d = (void *)(copy + segments[i].p_vaddr); d->d_tag != DT_NULL; d++)
                if (is_pointer(d->d_tag))
                    d->d_un.d_ptr += LINKED_AT;
        segments[i].p_vaddr += LINKED_AT;
    }
    count = header->e_phnum;
}

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg)
{
    static __typeof__(dl_iterate_phdr) *next;
    static int is_starting;
    struct dl_phdr_info info = {.dlpi_name = "linux-vdso-of-gvisor.so.1"};
    int rc;

    if (next == NULL) {
        if (is_starting++)
            abort();
        link_high();
        next = (__typeof__(next))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    }
    rc = next(visit, arg);
    if (rc != 0)
        return rc;
    info.dlpi_addr = (uint64_t)(uintptr_t)copy - LINKED_AT;
    info.dlpi_phdr = segments;
    info.dlpi_phnum = (ElfW(Half))count;
    return visit(&info, sizeof(info), arg);
}
