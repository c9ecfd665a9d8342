/* SPDX-License-Identifier: MIT */
/* Finding files with debug information. See debug_files.h. */
#include "cli/debug/debug_files.h"

#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"

#define SYSTEM_DIR "/usr/lib/debug"
#define ID_MAX     64
#define BUFFER     ((size_t)64 * 1024)

/* 32-bit DWARF reaches no further, and a checksum takes seconds for so much. */
#define CHECKSUM_MAX (UINT64_C(4) << 30)

/* The caller must not free a rejected name again. */
static void drop(char **name)
{
    free(*name);
    *name = NULL;
}

/* An ELF file whose build-id begins with the key's; any file if the key has none. */
static int is_match(int fd, const struct cw_debug_key *key)
{
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    const void *id = NULL;
    int match = elf && elf_kind(elf) == ELF_K_ELF;

    if (match && key->build_id_len > 0) {
        ssize_t len = dwelf_elf_gnu_build_id(elf, &id);

        match = len > 0 && (size_t)len >= key->build_id_len &&
                memcmp(id, key->build_id, key->build_id_len) == 0;
    }
    elf_end(elf);
    return match;
}

int cw_debug_open_module(const char *path, const struct cw_debug_key *key)
{
    uint64_t size;
    int fd = cw_regular_open(path, 0, &size);

    if (fd < 0 || is_match(fd, key))
        return fd;
    close(fd);
    return -1;
}

/* The directories in search order; NULL after the last. */
static const char *directory_at(const struct cw_debug_options *options, size_t index)
{
    if (index < options->dirs)
        return options->dir[index];
    return index == options->dirs ? SYSTEM_DIR : NULL;
}

/* The system's directory is searched under the modules' root too. */
static int try_below(const struct cw_debug_options *options, size_t index, const char *rest,
                     const struct cw_debug_key *key, char **name)
{
    const char *const roots[] = {options->sysroot, ""};
    size_t first = index < options->dirs || options->sysroot[0] == '\0';

    for (size_t i = first; i < 2; i++) {
        int fd;

        if (asprintf(name, "%s%s%s", roots[i], directory_at(options, index), rest) < 0) {
            *name = NULL;
            return -1;
        }
        fd = cw_debug_open_module(*name, key);
        if (fd >= 0)
            return fd;
        drop(name);
    }
    return -1;
}

int cw_debug_open_by_id(const struct cw_debug_options *options, const struct cw_debug_key *key,
                        char **name)
{
    char rest[2 * ID_MAX + sizeof("/.build-id//.debug")];
    size_t len;
    int fd = -1;

    if (key->build_id_len < 2 || key->build_id_len > ID_MAX)
        return -1;
    len = (size_t)snprintf(rest, sizeof(rest), "/.build-id/%02x/", key->build_id[0]);
    for (size_t i = 1; i < key->build_id_len; i++)
        len += (size_t)snprintf(rest + len, sizeof(rest) - len, "%02x", key->build_id[i]);
    snprintf(rest + len, sizeof(rest) - len, ".debug");
    for (size_t i = 0; fd < 0 && directory_at(options, i); i++)
        fd = try_below(options, i, rest, key, name);
    return fd;
}

/* ---- .gnu_debuglink ---- */

/* The CRC-32 (Ethernet) of the whole file, as in .gnu_debuglink. */
static uint32_t add_checksum(uint32_t sum, const unsigned char *bytes, size_t len)
{
    static uint32_t table[256];

    if (table[1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++)
                table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
        }
    }
    while (len-- > 0)
        sum = table[(sum ^ *bytes++) & 0xff] ^ sum >> 8;
    return sum;
}

static int has_checksum(int fd, uint32_t checksum)
{
    unsigned char *buffer = malloc(BUFFER);
    uint32_t sum = UINT32_MAX;
    off_t at = 0;
    ssize_t len = -1;

    while (buffer && (uint64_t)at < CHECKSUM_MAX && (len = pread(fd, buffer, BUFFER, at)) > 0) {
        sum = add_checksum(sum, buffer, (size_t)len);
        at += len;
    }
    free(buffer);
    return len == 0 && ~sum == checksum;
}

static int is_linked(int fd, const struct cw_debug_key *key, uint32_t checksum)
{
    return key->build_id_len > 0 || has_checksum(fd, checksum);
}

static int try_linked(int fd, const struct cw_debug_key *key, uint32_t checksum, char **name)
{
    if (fd < 0 || is_linked(fd, key, checksum))
        return fd;
    close(fd);
    drop(name);
    return -1;
}

/* Beside the module, and in .debug beside it. */
static int try_beside(const struct cw_debug_key *key, const char *module_path, const char *link,
                      uint32_t checksum, char **name)
{
    static const char *const between[] = {"", ".debug/"};
    const char *slash = strrchr(module_path, '/');
    int len = slash ? (int)(slash + 1 - module_path) : 0;

    for (size_t i = 0; i < 2; i++) {
        int fd;

        if (asprintf(name, "%.*s%s%s", len, module_path, between[i], link) < 0) {
            *name = NULL;
            return -1;
        }
        fd = cw_debug_open_module(*name, key);
        if (fd < 0)
            drop(name);
        fd = try_linked(fd, key, checksum, name);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

/* In the directory `index`: under the module's own path, and for a user's directory, also
 * directly. */
static int try_directory(const struct cw_debug_options *options, size_t index,
                         const struct cw_debug_key *key, const char *module_path, const char *link,
                         uint32_t checksum, char **name)
{
    const char *path = module_path + strlen(options->sysroot);
    const char *slash = strrchr(path, '/');
    char *rest;
    int fd = -1;

    if (slash && asprintf(&rest, "%.*s%s", (int)(slash + 1 - path), path, link) >= 0) {
        fd = try_linked(try_below(options, index, rest, key, name), key, checksum, name);
        free(rest);
    }
    if (fd >= 0 || index >= options->dirs || asprintf(&rest, "/%s", link) < 0)
        return fd;
    fd = try_linked(try_below(options, index, rest, key, name), key, checksum, name);
    free(rest);
    return fd;
}

int cw_debug_open_by_link(const struct cw_debug_options *options, const struct cw_debug_key *key,
                          const char *module_path, const char *link, uint32_t checksum, char **name)
{
    int fd;

    if (*link == '\0' || strchr(link, '/')) /* must not lead out of the directory */
        return -1;
    fd = try_beside(key, module_path, link, checksum, name);
    for (size_t i = 0; fd < 0 && directory_at(options, i); i++)
        fd = try_directory(options, i, key, module_path, link, checksum, name);
    return fd;
}

/* ---- .gnu_debugaltlink ---- */

/* A relative name starts from where the file lies, which is often known by a link. */
static int open_beside(const struct cw_debug_key *key, const char *file, const char *link)
{
    char path[PATH_MAX], *name, *slash;
    int fd = -1;

    if (!realpath(file, path))
        return -1;
    slash = strrchr(path, '/');
    if (asprintf(&name, "%.*s/%s", (int)(slash - path), path, link) >= 0) {
        fd = cw_debug_open_module(name, key);
        free(name);
    }
    return fd;
}

static int open_absolute(const struct cw_debug_options *options, const struct cw_debug_key *key,
                         const char *link)
{
    char *name;
    int fd = -1;

    if (options->sysroot[0] != '\0' && asprintf(&name, "%s%s", options->sysroot, link) >= 0) {
        fd = cw_debug_open_module(name, key);
        free(name);
    }
    return fd >= 0 ? fd : cw_debug_open_module(link, key);
}

int cw_debug_open_alternate(const struct cw_debug_options *options, const struct cw_debug_key *key,
                            const char *file, const char *link)
{
    char *name = NULL;
    int fd = cw_debug_open_by_id(options, key, &name);

    free(name);
    if (fd >= 0)
        return fd;
    return link[0] == '/' ? open_absolute(options, key, link) : open_beside(key, file, link);
}
