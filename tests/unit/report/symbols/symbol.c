/* SPDX-License-Identifier: MIT */
/* Names of functions: from this program's own file, and from files that are damaged. */
#include "report/symbols/symbol.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "live_fixture.h"
#include "report/symbols/elf.h"
#include "report/symbols/stack.h"

static struct cw_view view;
static struct cw_symbols symbols;
static uint32_t own;

/* Two functions that the linker cannot fold, one of them not exported. */
static CW_NOINLINE int unexported_function(volatile int *value)
{
    *value += 17;
    return *value * 3;
}

int exported_function(volatile int *value);
CW_NOINLINE int exported_function(volatile int *value)
{
    *value -= 5;
    return *value * 7;
}

static void setup(void)
{
    fixture_create();
    own = fixture_own_module();
}

static void teardown(void)
{
    cw_symbols_fini(&symbols);
    fixture_destroy();
}

TestSuite(symbol, .init = setup, .fini = teardown);

static uint64_t file_address(const void *function)
{
    return (uint64_t)(uintptr_t)function - fixture_module_at(own)->bias;
}

static void want_all(cw_demangle_fn demangle, void *arg)
{
    view = fixture_view();
    cr_assert_eq(cw_symbols_init(&symbols, &view, demangle, arg), 0);
    for (uint32_t i = 1; i < symbols.frames; i++)
        cw_symbols_want(&symbols, i);
}

/* A name that there is not is no error. */
static void resolve_all(cw_demangle_fn demangle, void *arg)
{
    want_all(demangle, arg);
    cr_assert_eq(cw_symbols_resolve(&symbols), 0);
}

Test(symbol, names_static_and_exported_functions)
{
    uint32_t inner = fixture_frame(0, own, file_address(unexported_function) + 2);
    uint32_t first = fixture_frame(0, own, file_address(exported_function));
    uint32_t again = fixture_frame(first, own, file_address(exported_function));

    resolve_all(NULL, NULL);
    cr_assert_not_null(cw_symbols_name(&symbols, inner));
    cr_expect_str_eq(cw_symbols_name(&symbols, inner), "unexported_function");
    cr_expect_str_eq(cw_symbols_name(&symbols, first), "exported_function");
    cr_expect_str_eq(cw_symbols_name(&symbols, again), "exported_function");
    cr_expect_null(cw_symbols_name(&symbols, 0));
    cr_expect_null(cw_symbols_name(&symbols, 99999));
}

Test(symbol, call_at_the_very_end_of_a_function_is_not_the_next_function)
{
    /* The return address of a last call is the first byte behind the function. */
    uint32_t frame = fixture_frame(0, own, file_address(exported_function) - 1);
    const char *name;

    resolve_all(NULL, NULL);
    name = cw_symbols_name(&symbols, frame);
    cr_expect(!name || strcmp(name, "exported_function") != 0);
}

Test(symbol, only_wanted_stacks_are_looked_up_and_callers_are_part_of_them)
{
    uint32_t caller = fixture_frame(0, own, file_address(exported_function) + 1);
    uint32_t inner = fixture_frame(caller, own, file_address(unexported_function) + 1);
    uint32_t other = fixture_frame(0, own, file_address(unexported_function) + 1);

    view = fixture_view();
    cw_symbols_init(&symbols, &view, NULL, NULL);
    cw_symbols_want(&symbols, inner);
    cw_symbols_resolve(&symbols);
    cr_expect_not_null(cw_symbols_name(&symbols, inner));
    cr_expect_not_null(cw_symbols_name(&symbols, caller));
    cr_expect_null(cw_symbols_name(&symbols, other));
    cw_symbols_want(&symbols, other);
    cw_symbols_resolve(&symbols);
    cr_expect_not_null(cw_symbols_name(&symbols, other));
}

static const char *shout(const char *mangled, void *arg)
{
    cr_assert_eq(arg, &fixture);
    return strcmp(mangled, "exported_function") == 0 ? "readable(int)" : NULL;
}

Test(symbol, demangler_may_change_a_name_or_leave_it)
{
    uint32_t a = fixture_frame(0, own, file_address(exported_function) + 1);
    uint32_t b = fixture_frame(0, own, file_address(unexported_function) + 1);

    resolve_all(shout, &fixture);
    cr_expect_str_eq(cw_symbols_name(&symbols, a), "readable(int)");
    cr_expect_str_eq(cw_symbols_name(&symbols, b), "unexported_function");
}

Test(symbol, file_with_another_build_id_names_nothing)
{
    uint32_t frame = fixture_frame(0, own, file_address(exported_function) + 1);

    fixture_module_at(own)->build_id_len = 20;
    fixture_module_at(own)->build_id[3] ^= 1;
    resolve_all(NULL, NULL);
    cr_expect_null(cw_symbols_name(&symbols, frame));
}

Test(symbol, vdso_missing_files_devices_and_fifos_name_nothing)
{
    static const char *const paths[] = {"[vdso]",    "",     "/no/such/file",
                                        "/dev/zero", "/tmp", "/proc/self/maps"};
    uint32_t frames[CW_ARRAY_LEN(paths)];

    for (size_t i = 0; i < CW_ARRAY_LEN(paths); i++)
        frames[i] = fixture_frame(0, fixture_module(paths[i], 4096, CW_MODULE_PROGRAM), 0x40);
    resolve_all(NULL, NULL);
    for (size_t i = 0; i < CW_ARRAY_LEN(paths); i++)
        cr_expect_null(cw_symbols_name(&symbols, frames[i]));
}

/* ---- names that there may be, and that cannot be read ---- */

static void limit_to(int resource, size_t most)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(resource, &limit), 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    cr_assert_eq(setrlimit(resource, &limit), 0);
}

static const char *own_path(void)
{
    return cw_view_text(&view, fixture_module_at(own)->path);
}

static void expect_unread(uint32_t frame, int error, const char *path)
{
    cr_expect_eq(cw_symbols_resolve(&symbols), error);
    cr_expect_null(cw_symbols_name(&symbols, frame));
    cr_expect_str_eq(symbols.unread, path);
}

Test(symbol, a_file_that_cannot_be_opened_is_an_error)
{
    uint32_t frame = fixture_frame(0, own, file_address(exported_function) + 1);

    want_all(NULL, NULL);
    limit_to(RLIMIT_NOFILE, 3);
    expect_unread(frame, EMFILE, own_path());
    limit_to(RLIMIT_NOFILE, 256);
    cw_symbols_fini(&symbols);
    resolve_all(NULL, NULL);
    cr_expect_str_eq(cw_symbols_name(&symbols, frame), "exported_function");
}

Test(symbol, a_file_that_may_be_there_is_an_error_and_the_others_have_their_names)
{
    char loop[] = "/tmp/cuwarden-symbol-XXXXXX";
    uint32_t named = fixture_frame(0, own, file_address(exported_function) + 1);
    uint32_t frame;

    close(mkstemp(loop));
    cr_assert(unlink(loop) == 0 && symlink(loop, loop) == 0);
    frame = fixture_frame(0, fixture_module(loop, 4096, CW_MODULE_PROGRAM), 0x40);
    fixture_frame(0, fixture_module("/no/such/file", 8192, CW_MODULE_PROGRAM), 0x40);
    want_all(NULL, NULL);
    expect_unread(frame, ELOOP, loop);
    cr_expect_str_eq(cw_symbols_name(&symbols, named), "exported_function");
    unlink(loop);
}

Test(symbol, a_name_that_finds_no_room_is_an_error)
{
    uint32_t frame = fixture_frame(0, own, file_address(exported_function) + 1);

    want_all(NULL, NULL);
    symbols.text_len = symbols.text_cap - sizeof("exported_function") + 1;
    expect_unread(frame, ENOMEM, own_path());
}

static size_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    cr_assert(file != NULL && fscanf(file, "%zu", &pages) == 1 && fclose(file) == 0);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* With a page more each time: either both names, or an error. */
static void expect_names_or_errors(void)
{
    uint32_t first = fixture_frame(0, own, file_address(exported_function) + 1);
    uint32_t other = fixture_frame(0, own, file_address(unexported_function) + 1);
    unsigned failures = 0;
    int error;

    do {
        want_all(NULL, NULL);
        limit_to(RLIMIT_AS, address_space() + failures * 64 * 1024);
        error = cw_symbols_resolve(&symbols);
        limit_to(RLIMIT_AS, SIZE_MAX);
        cr_assert(error == 0 || error == ENOMEM);
        cr_assert(error != 0 || (cw_symbols_name(&symbols, first) != NULL &&
                                 cw_symbols_name(&symbols, other) != NULL),
                  "no names with %u pages", failures);
        cw_symbols_fini(&symbols);
    } while (error != 0 && failures++ < 100);
    cr_expect(failures >= 5 && failures < 100, "%u failures", failures);
}

Test(symbol, names_missing_for_lack_of_memory_are_an_error)
{
    cw_mem_detach();
    expect_names_or_errors();
    fixture_module_at(own)->build_id_len = 0; /* no notes, whose memory sections would have next */
    expect_names_or_errors();
    cw_mem_attach();
}

/* ---- stacks ---- */

static void expect_visible(uint32_t innermost, unsigned count, uint32_t first)
{
    struct cw_stack stack;

    cw_stack_visible(&symbols, &view, innermost, &stack);
    cr_expect_eq(stack.count, count, "%u frames", stack.count);
    if (stack.count > 0)
        cr_expect_eq(stack.frame[0], first);
}

Test(symbol, cuda_frames_and_thread_start_are_hidden_unless_nothing_is_left)
{
    uint32_t cuda = fixture_module("/opt/libcuda.so.1", 1 << 20, CW_MODULE_DRIVER);
    uint32_t libc = fixture_module("/opt/none/libc.so.6", 2 << 20, CW_MODULE_PROGRAM);
    uint32_t clone3 = fixture_frame(0, libc, 0x20);
    uint32_t start = fixture_frame(clone3, libc, 0x10);
    uint32_t work = fixture_frame(start, own, file_address(exported_function) + 1);
    uint32_t callback = fixture_frame(work, cuda, 0x30);
    uint32_t inner = fixture_frame(callback, own, file_address(unexported_function) + 1);
    uint32_t driver = fixture_frame(inner, cuda, 0x40);
    uint32_t self =
        fixture_frame(driver, fixture_module("/opt/libcuwarden.so", 0, CW_MODULE_SELF), 1);
    uint32_t only = fixture_frame(clone3, cuda, 0x50);

    resolve_all(NULL, NULL);
    expect_visible(self, 3, inner);
    expect_visible(only, 2, only);
    expect_visible(0, 0, 0);
}

Test(symbol, stack_that_loops_or_is_too_deep_ends)
{
    uint32_t frame = 0;
    struct cw_stack stack;

    for (int i = 0; i < 300; i++)
        frame = fixture_frame(frame, own, 0x10);
    view = fixture_view();
    cw_stack_walk(&view, frame, &stack);
    cr_expect_eq(stack.count, CW_DEPTH_MAX);
    ((struct cw_live_frame *)cw_arena_at(&fixture.arena, CW_TABLE_FRAME, 300))->parent = 300;
    cw_stack_walk(&view, 300, &stack);
    cr_expect_eq(stack.count, 1);
    ((struct cw_live_frame *)cw_arena_at(&fixture.arena, CW_TABLE_FRAME, 7))->parent = 9;
    cw_stack_walk(&view, 9, &stack);
    cr_expect_eq(stack.count, 3);
}

/* ---- damaged files ---- */

static char *read_own_file(size_t *out_len)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    struct stat info;
    char *bytes;

    cr_assert(fd >= 0 && fstat(fd, &info) == 0);
    bytes = malloc((size_t)info.st_size);
    cr_assert_eq(read(fd, bytes, (size_t)info.st_size), info.st_size);
    close(fd);
    *out_len = (size_t)info.st_size;
    return bytes;
}

/* Puts the bytes into a file and looks a few addresses up in it; nothing may crash. */
static void probe(const char *path, const char *bytes, size_t len, const uint8_t *build_id)
{
    static Elf64_Sym some[64];
    struct cw_elf elf;
    char name[128];
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
    if (cw_elf_open_symbols(&elf, path, build_id, build_id ? 20 : 0) == 0) {
        size_t count = cw_elf_read_symbols(&elf, elf.symbols > 64 ? elf.symbols - 64 : 0, some, 64);

        if (len % 3 == 0)
            cr_assert_eq(ftruncate(fd, (off_t)len / 2), 0);
        for (size_t i = 0; i < count; i++) {
            cw_elf_read_name(&elf, some[i].st_name, name, sizeof(name));
            cw_elf_section_end(&elf, some[i].st_shndx);
        }
        cw_elf_close(&elf);
    }
    close(fd);
}

Test(symbol, truncated_files_do_no_harm)
{
    char path[] = "/tmp/cuwarden-symbol-XXXXXX";
    const struct cw_live_module *module = fixture_module_at(own);
    size_t len;
    char *bytes = read_own_file(&len);

    close(mkstemp(path));
    for (size_t i = 0; i <= 128; i++)
        probe(path, bytes, i, NULL);
    for (size_t i = 1; i < 60; i++) {
        probe(path, bytes, len * i / 60, NULL);
        probe(path, bytes, len * i / 60, module->build_id_len == 20 ? module->build_id : NULL);
    }
    unlink(path);
    free(bytes);
}

/* Damages headers, the section table and notes, where offsets and lengths are. */
static void damage(char *bytes, size_t len, unsigned seed)
{
    const Elf64_Ehdr *header = (const void *)bytes;
    size_t sections = header->e_shoff;

    srand(seed);
    for (int i = 0; i < 8; i++) {
        size_t at = i % 2 ? (size_t)rand() % 1024 : sections + (size_t)rand() % (len - sections);

        bytes[at] ^= (char)(1 << rand() % 8);
    }
}

Test(symbol, damaged_files_do_no_harm)
{
    char path[] = "/tmp/cuwarden-symbol-XXXXXX";
    uint32_t frame;
    uint32_t module;
    size_t len;
    char *good = read_own_file(&len);
    char *bytes = malloc(len);

    close(mkstemp(path));
    module = fixture_module(path, 0, CW_MODULE_PROGRAM);
    frame = fixture_frame(0, module, file_address(exported_function) + 1);
    for (unsigned seed = 0; seed < 300; seed++) {
        memcpy(bytes, good, len);
        damage(bytes, len, seed);
        probe(path, bytes, len, NULL);
        resolve_all(NULL, NULL);
        cw_symbols_name(&symbols, frame);
        cw_symbols_fini(&symbols);
    }
    unlink(path);
    free(good);
    free(bytes);
}

Test(symbol, notes_with_absurd_lengths_do_no_harm)
{
    static const uint32_t lengths[] = {0xffffffff, 0xfffffffc, 0x7fffffff, 0x10000000, 0x10000};
    static const uint8_t other_id[20] = {1, 2, 3};
    char path[] = "/tmp/cuwarden-symbol-XXXXXX";
    size_t len;
    char *bytes = read_own_file(&len);
    const Elf64_Ehdr *header = (const void *)bytes;
    const Elf64_Phdr *segments = (const void *)(bytes + header->e_phoff);

    close(mkstemp(path));
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Nhdr *note = (void *)(bytes + segments[i].p_offset);
        Elf64_Nhdr good;

        if (segments[i].p_type != PT_NOTE)
            continue;
        good = *note;
        for (size_t k = 0; k < 2 * CW_ARRAY_LEN(lengths); k++) {
            if (k % 2)
                note->n_namesz = lengths[k / 2];
            else
                note->n_descsz = lengths[k / 2];
            probe(path, bytes, len, other_id);
            *note = good;
        }
    }
    unlink(path);
    free(bytes);
}
