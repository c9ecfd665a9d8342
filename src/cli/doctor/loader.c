/* SPDX-License-Identifier: MIT */
/* Library search like the dynamic linker's. See loader.h. */
#include "cli/doctor/loader.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/regular_file.h"
#include "cli/doctor/sysroot.h"
#include "report/symbols/elf.h"

#if defined(__x86_64__)
#define OWN_PLATFORM  "x86_64"
#define OWN_MULTIARCH "x86_64-linux-gnu"
#else
#define OWN_PLATFORM  "aarch64"
#define OWN_MULTIARCH "aarch64-linux-gnu"
#endif

#define CACHE_MAX   (16u << 20)
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
#define LIST_MAX    8192 /* of a search path, after token substitution */

/* glibc's format (elf/cache): a header, entries, then text; offsets are relative to the header. */
struct cache_header {
    char magic[20];
    uint32_t entries, text_size;
    uint32_t unused[5];
};

struct cache_entry {
    int32_t flags;
    uint32_t name, path;
    uint32_t os_version;
    uint64_t hwcap;
};

void cw_loader_init(struct cw_loader *loader, const char *root, const char *library_path)
{
    char path[PATH_MAX];
    uint64_t size = 0;
    int fd;

    *loader = (struct cw_loader){.root = root, .library_path = library_path};
    if (cw_sysroot_outside(root, "/etc/ld.so.cache", path, sizeof(path)) != 0)
        return;
    fd = cw_regular_open(path, O_NOFOLLOW, &size);
    if (fd < 0)
        return;
    if (size > 0 && size <= CACHE_MAX)
        loader->cache = malloc(size + 1);
    if (loader->cache && read(fd, loader->cache, size) == (ssize_t)size) {
        loader->cache_size = size;
        loader->cache[loader->cache_size] = '\0';
    }
    close(fd);
}

void cw_loader_destroy(struct cw_loader *loader)
{
    free(loader->cache);
    loader->cache = NULL;
}

/* Libraries of another architecture are skipped, as the linker does. */
static int is_usable(const char *root, const char *candidate, char *buf)
{
    char outside[PATH_MAX];
    struct cw_elf elf;
    int is_ours;

    if (cw_sysroot_resolve(root, candidate, buf) != 0 ||
        cw_sysroot_outside(root, buf, outside, sizeof(outside)) != 0 ||
        cw_elf_open(&elf, outside) != 0)
        return 0;
    is_ours = elf.kind == CW_ELF_64 && elf.header.e_machine == CW_ELF_OWN_MACHINE;
    cw_elf_close(&elf);
    return is_ours;
}

/* Replaces $ORIGIN, $LIB and $PLATFORM, also in braces. 0, or -1 if it does not fit. */
static int expand(const char *list, const char *from, char *out, size_t cap)
{
    char origin[PATH_MAX] = "";
    const char *slash = from ? strrchr(from, '/') : NULL;
    const struct {
        const char *token, *value;
    } tokens[] = {
        {"ORIGIN", origin},
        {"{ORIGIN}", origin},
        {"LIB", "lib/" OWN_MULTIARCH},
        {"{LIB}", "lib/" OWN_MULTIARCH},
        {"PLATFORM", OWN_PLATFORM},
        {"{PLATFORM}", OWN_PLATFORM},
    };
    size_t len = 0;

    if (slash)
        snprintf(origin, sizeof(origin), "%.*s", (int)(slash - from), from);
    while (*list && len + 1 < cap) {
        const char *value = NULL;

        for (size_t i = 0; *list == '$' && !value && i < CW_ARRAY_LEN(tokens); i++) {
            size_t token = strlen(tokens[i].token);

            if (strncmp(list + 1, tokens[i].token, token) != 0)
                continue;
            value = tokens[i].value;
            list += 1 + token;
        }
        if (value)
            len += (size_t)snprintf(out + len, cap - len, "%s", value);
        else
            out[len++] = *list++;
    }
    if (len >= cap || *list)
        return -1;
    out[len] = '\0';
    return 0;
}

/* `list` is separated by colons, and LD_LIBRARY_PATH by semicolons too. */
static int find_in_list(const struct cw_loader *loader, const char *list, const char *from,
                        const char *name, char *buf)
{
    char expanded[LIST_MAX], candidate[PATH_MAX], *rest = expanded, *directory;

    if (!list || expand(list, from, expanded, sizeof(expanded)) != 0)
        return 0;
    while ((directory = strsep(&rest, ":;"))) {
        if (*directory &&
            snprintf(candidate, sizeof(candidate), "%s/%s", directory, name) <
                (int)sizeof(candidate) &&
            is_usable(loader->root, candidate, buf))
            return 1;
    }
    return 0;
}

/* The text at this offset of the cache, NULL if it is outside of the file. */
static const char *text_at(const struct cw_loader *loader, size_t start, uint32_t offset)
{
    return offset < loader->cache_size - start ? loader->cache + start + offset : NULL;
}

static int find_in_cache(const struct cw_loader *loader, const char *name, char *buf)
{
    struct cache_header header;
    const char *begin =
        loader->cache ? memmem(loader->cache, loader->cache_size, CACHE_MAGIC, sizeof(header.magic))
                      : NULL;
    size_t start = begin ? (size_t)(begin - loader->cache) : 0;

    if (!begin || loader->cache_size - start < sizeof(header))
        return 0;
    memcpy(&header, begin, sizeof(header));
    if (header.entries > (loader->cache_size - start - sizeof(header)) / sizeof(struct cache_entry))
        return 0;
    for (uint32_t i = 0; i < header.entries; i++) {
        struct cache_entry entry;
        const char *library, *path;

        memcpy(&entry, begin + sizeof(header) + i * sizeof(entry), sizeof(entry));
        library = text_at(loader, start, entry.name);
        path = text_at(loader, start, entry.path);
        if (library && path && strcmp(library, name) == 0 && is_usable(loader->root, path, buf))
            return 1;
    }
    return 0;
}

const char *cw_loader_find(const struct cw_loader *loader, const char *name, const char *from,
                           const struct cw_elf_facts *facts, char *buf)
{
    if (strchr(name, '/'))
        return is_usable(loader->root, name, buf) ? "by its path" : NULL;
    if (facts && !facts->runpath && find_in_list(loader, facts->rpath, from, name, buf))
        return "by an RPATH";
    if (find_in_list(loader, loader->library_path, from, name, buf))
        return "by LD_LIBRARY_PATH";
    if (facts && find_in_list(loader, facts->runpath, from, name, buf))
        return "by a RUNPATH";
    if (find_in_cache(loader, name, buf))
        return "by ld.so.cache";
    if (find_in_list(loader,
                     "/lib/" OWN_MULTIARCH ":/usr/lib/" OWN_MULTIARCH
                     ":/lib64:/usr/lib64:/lib:/usr/lib",
                     from, name, buf))
        return "in a default directory";
    return NULL;
}
