/* SPDX-License-Identifier: MIT */
/* Where the dynamic linker would find a library: order of the places, links below another root, and
 * caches that are damaged. */
#include "cli/doctor/loader.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor/sysroot.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

static char root[64];
static struct cw_loader loader;
static char found[PATH_MAX];

static void init(void)
{
    strcpy(root, "/tmp/cuwarden-loader-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void fini(void)
{
    char command[128];

    cw_loader_destroy(&loader);
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

static const char *below(const char *path)
{
    static char buf[PATH_MAX];

    snprintf(buf, sizeof(buf), "%s%s", root, path);
    return buf;
}

static void make_directory(const char *path)
{
    cr_assert_eq(mkdir(below(path), 0700), 0, "%s", path);
}

static void write_file(const char *path, const void *data, size_t len)
{
    int fd = open(below(path), O_WRONLY | O_CREAT | O_TRUNC, 0700);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, len), (ssize_t)len);
    close(fd);
}

static void make_library(const char *path, unsigned machine)
{
    Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                         .e_type = ET_DYN,
                         .e_machine = (Elf64_Half)machine};

    write_file(path, &header, sizeof(header));
}

static const char *find(const struct cw_elf_facts *facts)
{
    return cw_loader_find(&loader, "libx.so.1", "/bin/program", facts, found);
}

/* A cache of one entry, in glibc's form; its length. */
static size_t make_cache(char *buf, const char *name, const char *path)
{
    uint32_t head[7] = {1, 0}, entry[6] = {3, 0};
    size_t at = 20 + sizeof(head) + sizeof(entry);

    memcpy(buf, "glibc-ld.so.cache1.1", 20);
    entry[1] = (uint32_t)at;
    entry[2] = (uint32_t)(at + strlen(name) + 1);
    memcpy(buf + 20, head, sizeof(head));
    memcpy(buf + 20 + sizeof(head), entry, sizeof(entry));
    strcpy(buf + at, name);
    strcpy(buf + entry[2], path);
    return entry[2] + strlen(path) + 1;
}

TestSuite(loader, .init = init, .fini = fini);

Test(loader, goes_through_the_places_in_order)
{
    struct cw_elf_facts old = {.rpath = "/none:$ORIGIN/../rpath"};
    struct cw_elf_facts new = {.rpath = "$ORIGIN/../rpath", .runpath = "${ORIGIN}/../runpath"};
    char cache[256];
    size_t len = make_cache(cache, "libx.so.1", "/cached/libx.so.1");

    make_directory("/bin");
    make_directory("/etc");
    make_directory("/usr");
    make_directory("/usr/lib");
    make_directory("/cached");
    make_directory("/path");
    make_directory("/rpath");
    make_directory("/runpath");
    write_file("/etc/ld.so.cache", cache, len);
    cw_loader_init(&loader, root, "/nowhere:/path");
    cr_assert_null(find(NULL));
    make_library("/usr/lib/libx.so.1", OWN_MACHINE);
    cr_assert_str_eq(find(NULL), "in a default directory");
    make_library("/cached/libx.so.1", OWN_MACHINE);
    cr_assert_str_eq(find(NULL), "by ld.so.cache");
    make_library("/runpath/libx.so.1", OWN_MACHINE);
    cr_assert_str_eq(find(&new), "by a RUNPATH");
    cr_assert_str_eq(found, "/runpath/libx.so.1");
    make_library("/path/libx.so.1", OWN_MACHINE);
    cr_assert_str_eq(find(&new), "by LD_LIBRARY_PATH");
    make_library("/rpath/libx.so.1", OWN_MACHINE);
    cr_assert_str_eq(find(&new), "by LD_LIBRARY_PATH"); /* a RUNPATH switches the RPATH off */
    cr_assert_str_eq(find(&old), "by an RPATH");
    cr_assert_str_eq(found, "/rpath/libx.so.1");
    /* One of another machine is passed by. */
    make_library("/rpath/libx.so.1", EM_386);
    cr_assert_str_eq(find(&old), "by LD_LIBRARY_PATH");
    write_file("/path/libx.so.1", "text", 4);
    cr_assert_str_eq(find(&old), "by ld.so.cache");
}

Test(loader, damaged_caches_find_nothing_and_do_no_harm)
{
    char cache[256], damaged[256];
    size_t len = make_cache(cache, "libx.so.1", "/cached/libx.so.1");

    make_directory("/etc");
    make_directory("/cached");
    make_library("/cached/libx.so.1", OWN_MACHINE);
    for (size_t cut = 0; cut < len; cut++) {
        write_file("/etc/ld.so.cache", cache, cut);
        cw_loader_init(&loader, root, NULL);
        if (cut < len - 1)
            cr_assert_null(find(NULL), "cut to %zu", cut);
        cw_loader_destroy(&loader);
    }
    for (size_t at = 0; at < len * 8; at++) {
        memcpy(damaged, cache, len);
        damaged[at / 8] ^= (char)(1 << at % 8);
        write_file("/etc/ld.so.cache", damaged, len);
        cw_loader_init(&loader, root, NULL);
        (void)find(NULL);
        cw_loader_destroy(&loader);
    }
    write_file("/etc/ld.so.cache", cache, len);
    cw_loader_init(&loader, root, NULL);
    cr_assert_str_eq(find(NULL), "by ld.so.cache");
}

Test(loader, links_stay_inside_the_root)
{
    char path[PATH_MAX];

    make_directory("/a");
    make_directory("/a/b");
    make_library("/a/b/file", OWN_MACHINE);
    cr_assert_eq(symlink("/a/b/file", below("/a/absolute")), 0);
    cr_assert_eq(symlink("../../../../a", below("/a/upwards")), 0);
    cr_assert_eq(symlink("loop", below("/loop")), 0);
    cr_assert_eq(cw_sysroot_resolve(root, "/a/absolute", path), 0);
    cr_assert_str_eq(path, "/a/b/file");
    cr_assert_eq(cw_sysroot_resolve(root, "//a/./upwards/b/../b/file", path), 0);
    cr_assert_str_eq(path, "/a/b/file");
    cr_assert_eq(cw_sysroot_resolve(root, "/loop", path), -1);
    cr_assert_eq(cw_sysroot_resolve(root, "/a/none", path), -1);
    cr_assert_not(cw_sysroot_has(root, "/etc/passwd"));
    cr_assert(cw_sysroot_has(root, "/../../../a"));
}
