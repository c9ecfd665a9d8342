/* SPDX-License-Identifier: MIT */
/* Preloaded in front of the library under test: hands every dlsym on to that library's, and wraps
 * the cuGetProcAddress_v2 that comes back. For every request it writes to the file PROBE_LOG name
 * version flags return-code module symbol address where module and symbol are those of the answer.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *(*dlsym_fn)(void *, const char *);
typedef CUresult (*ask_fn)(const char *, void **, int, cuuint64_t,
                           CUdriverProcAddressQueryResult *);

static ask_fn real_ask;

/* The library's own dlsym. Nobody's dlsym can be asked for it: read from its symbol table, which
 * lies before its string table. */
static dlsym_fn library_dlsym(void)
{
    const char *path = getenv("PROBE_OURS");
    struct link_map *map = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    const ElfW(Sym) *symbol = NULL;
    const char *names = NULL;

    for (const ElfW(Dyn) *entry = map ? map->l_ld : NULL; entry && entry->d_tag != DT_NULL;
         entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbol = (const ElfW(Sym) *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB)
            names = (const char *)entry->d_un.d_ptr;
    }
    for (; symbol && (const char *)symbol < names; symbol++)
        if (symbol->st_shndx != SHN_UNDEF && strcmp(names + symbol->st_name, "dlsym") == 0)
            return (dlsym_fn)(map->l_addr + symbol->st_value);
    fputs("probe: no dlsym in the library\n", stderr);
    abort();
}

static CUresult ask(const char *name, void **out, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult *status)
{
    CUresult rc = real_ask(name, out, version, flags, status);
    FILE *log = fopen(getenv("PROBE_LOG"), "a");
    void *answer = rc == CUDA_SUCCESS && out ? *out : NULL;
    Dl_info info = {0};
    const char *slash;

    if (answer != NULL)
        dladdr(answer, &info);
    slash = info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    fprintf(log, "%s %d %d %d %s %s %lx\n", *name ? name : "-", version, (int)flags, (int)rc,
            slash ? slash + 1 : "-", info.dli_sname ? info.dli_sname : "-", (unsigned long)answer);
    fclose(log);
    /* It asks for the function itself, and goes on with what it gets. */
    if (answer != NULL && strcmp(name, "cuGetProcAddress") == 0 && version >= 12000) {
        real_ask = (ask_fn)answer;
        *out = (void *)ask;
    }
    return rc;
}

void *dlsym(void *handle, const char *name)
{
    static dlsym_fn next;
    void *found;

    if (next == NULL)
        next = library_dlsym();
    found = next(handle, name);
    if (found == NULL || strcmp(name, "cuGetProcAddress_v2") != 0)
        return found;
    real_ask = (ask_fn)found;
    return (void *)ask;
}
