/* SPDX-License-Identifier: MIT */
/* Source lines and inlined functions in the report, from a reader of debug information that is made
 * up; and what suppressions make of them. */
#include "report/symbols/symbol.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "report_fixture.h"

static char file[] = "/tmp/cuwarden-lines-XXXXXX";
static uint32_t own, elsewhere;

NAMED_FUNCTION(in_table, "in_table")
NAMED_FUNCTION(in_runtime, "libcudart_static_8b73e19b9b6fb2b44091792b23d85fe1faddb831")
NAMED_FUNCTION(cuda_malloc, "cudaMallocPitch")

/* ---- the reader ---- */

static unsigned opened, asked;
static char opened_path[256];

#define CUDA_HEADER   "/usr/local/cuda/bin/../targets/x86_64-linux/include/cuda_runtime.h"
#define CUDA_TEMPLATE "cudaError cudaMalloc<float>(float**, unsigned long)"

/* By the offset in the file; what is in no row is not known. */
static const struct row {
    uint64_t offset;
    size_t count;
    struct cw_symbol_place place[3];
} rows[] = {
    {0x100, 3, {{"take", "src/take.h", 4}, {"_Z5twicei", "src/take.h", 9}, {"fill", "a/b.c", 88}}},
    {0x200, 1, {{"work", "/abs/c.c", 0}}},
    {0x300, 1, {{"nowhere", NULL, 0}}},
    {0x400, 2, {{NULL, NULL, 0}, {"outer", "d.c", 7}}},
    {0x500, 2, {{"c10::cuda::DeviceCachingAllocator::malloc", "x.c", 1}, {"plain", "y.c", 2}}},
    {0x700, 1, {{"c10::cuda::DeviceCachingAllocator::malloc", "x.c", 1}}},
    {0x800, 1, {{CUDA_TEMPLATE, CUDA_HEADER, 879}}},
    {0x810, 1, {{"make_layer(int)", "leak.cu", 5}}},
    {0x820, 2, {{CUDA_TEMPLATE, CUDA_HEADER, 879}, {"inlines", "leak.cu", 11}}},
    {0x830, 1, {{"cudaMalloc_wrapper", "wrap.c", 3}}},
    {0x840, 1, {{"cudaMalloc", NULL, 0}}},
    {0x600, 1, {{"evil", "a\n==1== SUMMARY: leaked_bytes=0", 3}}},
};

static void *open_file(void *arg, const char *path, const uint8_t *build_id, size_t build_id_len)
{
    cr_assert_eq(arg, &opened);
    cr_assert(build_id_len == 0 || build_id[0] != 0 || build_id_len == 20);
    opened++;
    snprintf(opened_path, sizeof(opened_path), "%s", path);
    return strstr(path, "libtrain") ? (void *)rows : NULL;
}

static size_t find(void *opened_file, uint64_t address, struct cw_symbol_place *places, size_t cap)
{
    cr_assert_eq(opened_file, rows);
    asked++;
    for (size_t i = 0; i < CW_ARRAY_LEN(rows); i++) {
        if (rows[i].offset != address)
            continue;
        cr_assert_leq(rows[i].count, cap);
        memcpy(places, rows[i].place, rows[i].count * sizeof(*places));
        return rows[i].count;
    }
    return 0;
}

static const struct cw_symbol_ops ops = {.open = open_file, .find = find, .arg = &opened};

static const char *readable(const char *name, void *arg)
{
    (void)arg;
    return strcmp(name, "_Z5twicei") == 0 ? "twice(int)" : NULL;
}

/* ---- the layout ---- */

static void setup(void)
{
    int fd = mkstemp(file);

    close(fd);
    fixture_create();
    opened = asked = 0;
    own = fixture_own_module();
    elsewhere = fixture_module("/opt/none/libtrain.so", 1 << 20, CW_MODULE_PROGRAM);
}

static void teardown(void)
{
    report_teardown();
    unlink(file);
}

TestSuite(symbol_lines, .init = setup, .fini = teardown);

static uint32_t call(uint32_t caller, uint64_t offset)
{
    return fixture_frame(caller, elsewhere, offset);
}

static uint32_t call_of(uint32_t caller, int (*function)(volatile int *))
{
    uint64_t address = (uint64_t)(uintptr_t)function - fixture_module_at(own)->bias;

    return fixture_frame(caller, own, address + 4);
}

static uint32_t call_of_table(uint32_t caller)
{
    return call_of(caller, in_table);
}

static void leak(uint32_t stack)
{
    uint32_t site = fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_alloc(site, 512, 1, FIXTURE_MS);
}

static const char *write_lines(enum cw_report_form form, const char *rules)
{
    FILE *out = fopen(file, "w");

    cr_assert_not_null(out);
    fputs(rules, out);
    fclose(out);
    return write_report_as((struct cw_report_request){
        .form = form, .lines = &ops, .demangle = readable, .suppressions = *rules ? file : NULL});
}

Test(symbol_lines, inlined_functions_are_frames_of_their_own)
{
    leak(call(call(call_of_table(0), 0x200), 0x100));
    write_lines(CW_REPORT_TEXT, "");
    expect_line("    #0 take        src/take.h:4 (inlined)");
    expect_line("    #1 twice(int)  src/take.h:9 (inlined)");
    expect_line("    #2 fill        a/b.c:88 libtrain.so");
    expect_line("    #3 work        /abs/c.c libtrain.so");
    expect_text("    #4 in_table    symbol_lines.ut+0x");
    expect_text("cudaMalloc  take (src/take.h:4)");
}

Test(symbol_lines, what_is_not_known_is_left_out)
{
    leak(call(call(call(0, 0x400), 0x300), 0x999));
    write_lines(CW_REPORT_TEXT, "");
    expect_line("    #0 libtrain.so+0x999");
    expect_line("    #1 nowhere  libtrain.so+0x300");
    expect_line("    #2 ?        (inlined)");
    expect_line("    #3 outer    d.c:7 libtrain.so");
}

Test(symbol_lines, a_name_cannot_forge_a_line)
{
    leak(call(0, 0x600));
    write_lines(CW_REPORT_TEXT, "");
    cr_expect_eq(count_of("\n==1== "), 0);
    cr_expect_eq(count_of("SUMMARY: leaked_bytes=512 "), 1);
}

Test(symbol_lines, json_has_them_in_the_frame)
{
    leak(call(call(0, 0x200), 0x100));
    write_lines(CW_REPORT_JSON, "");
    expect_text("\"func\":\"fill\",\"file\":\"a/b.c\",\"line\":88,\"inlined\":["
                "{\"func\":\"take\",\"file\":\"src/take.h\",\"line\":4},"
                "{\"func\":\"twice(int)\",\"file\":\"src/take.h\",\"line\":9}]");
    expect_text("\"func\":\"work\",\"file\":\"/abs/c.c\"");
}

Test(symbol_lines, without_a_reader_the_report_is_as_ever)
{
    leak(call(0, 0x100));
    write_report(CW_REPORT_TEXT);
    expect_line("    #0 libtrain.so+0x100");
    write_report(CW_REPORT_JSON);
    expect_no_text("inlined");
    cr_expect_eq(opened, 0);
}

Test(symbol_lines, an_address_is_looked_up_once_a_file_twice)
{
    uint32_t outer = 0;

    for (int i = 0; i < 1000; i++) {
        outer = i % 20 == 0 ? 0 : outer;
        outer = call(outer, 0x100);
        leak(outer);
    }
    write_lines(CW_REPORT_JSON, "");
    cr_expect_leq(opened, 2, "%u", opened); /* for classes, and for what is printed */
    cr_expect_leq(asked, 2, "%u", asked);
    cr_expect_geq(asked, 1);
}

Test(symbol_lines, the_driver_and_the_runtime_are_not_read)
{
    uint32_t driver = fixture_module("/opt/none/libtrain-cuda.so.1", 1 << 28, CW_MODULE_DRIVER);

    leak(fixture_frame(0, driver, 0x100));
    write_lines(CW_REPORT_TEXT, "");
    cr_expect_eq(opened, 0);
}

Test(symbol_lines, files_are_under_the_sysroot)
{
    leak(call(0, 0x100));
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .lines = &ops, .sysroot = "/mnt/other"});
    cr_expect_str_eq(opened_path, "/mnt/other/opt/none/libtrain.so");
    /* No name of a file that happens to have the same path here. */
    leak(call_of_table(0));
    write_report_as(
        (struct cw_report_request){.form = CW_REPORT_TEXT, .lines = &ops, .sysroot = "/mnt/other"});
    expect_no_text("in_table");
}

/* ---- CUDA's own ---- */

static void expect_sites(unsigned sites)
{
    char text[32];

    snprintf(text, sizeof(text), " leak_sites=%u ", sites);
    expect_text(text);
}

static uint32_t driver_call(uint32_t caller)
{
    return fixture_frame(caller, fixture_module("/opt/libcuda.so.1", 1 << 28, CW_MODULE_DRIVER), 9);
}

Test(symbol_lines, a_static_runtime_and_the_toolkits_headers_are_no_place)
{
    uint32_t layer = call(call(0, 0x200), 0x810);

    leak(driver_call(call_of(call_of(call(layer, 0x800), cuda_malloc), in_runtime)));
    write_lines(CW_REPORT_TEXT, "");
    expect_line("    #0 make_layer(int)  leak.cu:5 libtrain.so");
    expect_text("cudaMalloc  make_layer(int) (leak.cu:5)");
    expect_no_text("cuda_runtime.h");
}

Test(symbol_lines, a_header_of_the_toolkit_is_no_place_where_it_is_inlined)
{
    leak(call(call(0, 0x200), 0x820));
    write_lines(CW_REPORT_TEXT, "");
    expect_line("    #0 inlines  leak.cu:11 libtrain.so");
    expect_line("    #1 work     /abs/c.c libtrain.so");
    expect_text("cudaMalloc  inlines (leak.cu:11)");
}

Test(symbol_lines, the_programs_own_wrapper_is_a_place_and_so_is_what_it_calls_again)
{
    leak(call(call(call(call(0, 0x200), 0x840), 0x830), 0x840));
    write_lines(CW_REPORT_TEXT, "");
    expect_line("    #0 cudaMalloc_wrapper  wrap.c:3 libtrain.so");
    expect_line("    #1 cudaMalloc          libtrain.so+0x840");
    expect_text("    #2 work ");
}

Test(symbol_lines, nameless_frames_are_of_the_runtime_that_called_them_in_the_same_file)
{
    leak(driver_call(call(call(call(call(0, 0x810), 0x840), 0x999), 0x998)));
    write_lines(CW_REPORT_TEXT, "");
    expect_line("    #0 make_layer(int)  leak.cu:5 libtrain.so");
}

Test(symbol_lines, nameless_frames_of_another_file_are_who_asked)
{
    leak(driver_call(call(call_of(0, cuda_malloc), 0x999)));
    write_lines(CW_REPORT_TEXT, "");
    expect_line("    #0 libtrain.so+0x999");
}

Test(symbol_lines, nameless_callers_of_the_runtime_stay)
{
    leak(driver_call(call(call(call(0, 0x810), 0x999), 0x840)));
    write_lines(CW_REPORT_TEXT, "");
    expect_line("    #0 libtrain.so+0x999");
}

Test(symbol_lines, of_a_stack_that_is_all_cudas_the_outermost_is_left)
{
    leak(driver_call(call_of(call(0, 0x800), in_runtime)));
    write_lines(CW_REPORT_TEXT, "");
    expect_text("cudaMalloc  " CUDA_TEMPLATE " (cuda_runtime.h:879)");
    expect_no_text("libcuda.so.1+");
    expect_no_text("libcudart_static_");
}

Test(symbol_lines, rules_still_match_what_is_no_place)
{
    leak(call(call(0, 0x820), 0x800));
    write_lines(CW_REPORT_TEXT, "leak:cuda_runtime.h\n");
    expect_sites(0);
    write_lines(CW_REPORT_TEXT, "leak:cudaMalloc<float>\n");
    expect_sites(0);
}

/* ---- suppressions ---- */

Test(symbol_lines, rules_match_files_and_inlined_functions_where_they_are_known)
{
    static const char *const good[] = {"leak:take.h\n", "leak:^a/b.c$\n", "leak:^take$\n",
                                       "leak:^twice(int)$\n", "leak:^fill$\n"};
    static const char *const bad[] = {"leak:take.c\n", "leak:^b.c\n", "module:take.h\n"};

    leak(call(0, 0x100));
    for (size_t i = 0; i < CW_ARRAY_LEN(good); i++) {
        write_lines(CW_REPORT_TEXT, good[i]);
        expect_sites(0);
        write_report_as((struct cw_report_request){.form = CW_REPORT_TEXT, .suppressions = file});
        expect_sites(1); /* as the library has it */
    }
    for (size_t i = 0; i < CW_ARRAY_LEN(bad); i++) {
        write_lines(CW_REPORT_TEXT, bad[i]);
        expect_sites(1);
    }
}

Test(symbol_lines, built_in_rules_do_not_hang_on_debug_information)
{
    leak(call(0, 0x500));
    write_lines(CW_REPORT_TEXT, "");
    expect_text("#0 c10::cuda::DeviceCachingAllocator::malloc");
    expect_sites(1);
    leak(call(0, 0x700));
    write_lines(CW_REPORT_TEXT, "");
    cr_expect_eq(count_of("#0 c10::cuda::DeviceCachingAllocator::malloc"), 2);
    expect_sites(2);
}

Test(symbol_lines, the_first_rule_decides_whatever_it_is_about)
{
    leak(call(0, 0x100));
    write_lines(CW_REPORT_TEXT, "leak:b.c\nmodule:libtrain\n");
    expect_text("    line 2  module:libtrain"); /* matched nothing */
    write_lines(CW_REPORT_TEXT, "module:libtrain\nleak:b.c\n");
    expect_text("    line 2  leak:b.c");
}

Test(symbol_lines, rules_match_functions_and_files_of_python)
{
    static const char *const good[] = {"leak:^Model.step$\n", "leak:me/train.py$\n",
                                       "leak:main.py\n"};

    leak(fixture_line(fixture_line(0, "/home/me/main.py", "<module>", 3), "/home/me/train.py",
                      "Model.step", 218));
    for (size_t i = 0; i < CW_ARRAY_LEN(good); i++) {
        write_lines(CW_REPORT_TEXT, good[i]);
        expect_sites(0);
        write_report_as((struct cw_report_request){.form = CW_REPORT_TEXT, .suppressions = file});
        expect_sites(0); /* the library knows them too */
    }
    write_lines(CW_REPORT_TEXT, "leak:other.py\nmodule:train.py\n");
    expect_sites(1);
}

/* Whether the library would not know the function's name. */
static int is_debug_name(const char *function)
{
    struct cw_view view = fixture_view();
    struct cw_report_request request = {.lines = &ops, .demangle = readable};
    struct cw_report_job *job = cw_report_open(&view, &request);
    const struct cw_report_model *model = job ? cw_report_of(job) : NULL;
    int is_debug = -1;

    cr_assert(job);
    cw_report_read_stacks(job, 0);
    for (uint32_t i = 0; i < model->frames; i++)
        if (model->frame[i].function && strcmp(model->frame[i].function, function) == 0)
            is_debug = model->frame[i].is_debug_name;
    cw_report_close(job);
    return is_debug;
}

Test(symbol_lines, names_that_the_library_does_not_know_are_marked)
{
    leak(call_of_table(0));
    leak(call(0, 0x100));
    leak(fixture_line(0, "/home/me/train.py", "Model.step", 218));
    cr_expect_eq(is_debug_name("in_table"), 0);
    cr_expect_eq(is_debug_name("fill"), 1);
    cr_expect_eq(is_debug_name("Model.step"), 0);
}
