/* SPDX-License-Identifier: MIT */
/* Suppressions that are suggested: one for each leak, and they work. */
#include "cli/export/form_suggestions.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report_fixture.h"

NAMED_FUNCTION(plain, "app_train")
NAMED_FUNCTION(main_function, "main")

TestSuite(suggest, .init = fixture_create, .fini = report_teardown);

/* What would be suggested; a name `only_debug` is in the debug information alone. */
static void suggest(char *buf, size_t cap, const char *only_debug)
{
    struct cw_view view = fixture_view();
    struct cw_report_request request = {.process = CW_REPORT_PROCESS_DEAD};
    struct cw_report_job *job = cw_report_open(&view, &request);
    struct cw_report_model *model;
    struct cw_out out;

    cr_assert(job);
    cw_report_read_stacks(job, 0);
    model = cw_report_of(job);
    for (uint32_t i = 0; i < model->frames; i++)
        if (only_debug && model->frame[i].function &&
            strcmp(model->frame[i].function, only_debug) == 0)
            model->frame[i].is_debug_name = 1;
    cw_out_init(&out, -1, buf, cap - 1);
    cw_suppressions_suggest(model, &out);
    buf[out.len] = '\0';
    cw_report_close(job);
}

/* A leak whose stack is of one frame. */
static void leak_at(uint32_t module, uint64_t offset, const char *api, uint64_t bytes)
{
    uint32_t stack = module ? fixture_frame(0, module, offset) : 0;

    fixture_leak(stack, api, bytes, 1);
}

static void leak_of_each_kind(void)
{
    uint32_t own = fixture_own_module();
    uint32_t lib = fixture_module("/opt/none/lib\ntrain.so", 1 << 20, CW_MODULE_PROGRAM);
    uint64_t address = (uint64_t)(uintptr_t)plain - fixture_module_at(own)->bias;
    struct cw_view view = fixture_view();
    const char *exe = cw_view_text(&view, fixture.arena.header->exe);
    uint32_t program = fixture_module(exe, 1 << 24, CW_MODULE_PROGRAM);

    leak_at(own, address + 4, "cudaMalloc", 5 * MIB);
    leak_at(lib, 0x99, "cuMemAlloc", 4 * MIB);
    leak_at(program, 0x99, "cuMemAlloc", 3 * MIB);
    leak_at(0, 0, "cuMem\nAlloc", 2 * MIB);
    leak_at(own, address + 5, "cudaMallocManaged", MIB);
    address = (uint64_t)(uintptr_t)main_function - fixture_module_at(own)->bias;
    leak_at(own, address + 4, "cuMemAllocManaged", 512);
}

Test(suggest, suggests_a_rule_for_each_leak)
{
    static char text[1 << 14];

    leak_of_each_kind();
    suggest(text, sizeof(text), NULL);
    cr_expect(strstr(text, "\n# 5.0 MiB in 1 block, lost, cudaMalloc on device 0, site "));
    cr_expect(strstr(text, "\nleak:^app_train$\n"));
    cr_expect(strstr(text, "\nmodule:/lib*train.so$\n"));
    cr_expect(strstr(text, "\n# 2.0 MiB in 1 block, lost, cuMem?Alloc on device 0, site "));
    cr_expect(strstr(text, "\n# as above: leak:^app_train$\n"));
    /* Neither would leave anything to be found. */
    cr_expect_null(strstr(text, "victim$"));
    cr_expect_null(strstr(text, "main$"));
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        cr_expect(*line == '#' || *line == '\n' || *line == '\0' ||
                      strncmp(line, "leak:^", 6) == 0 || strncmp(line, "module:/", 8) == 0 ||
                      strncmp(line, "site:", 5) == 0,
                  "%s", line);
}

/* What is suggested works. */
Test(suggest, with_all_suggestions_nothing_is_leaked)
{
    static char text[1 << 14];
    char file[] = "/tmp/cuwarden-suggest-XXXXXX";
    int fd = mkstemp(file);

    leak_of_each_kind();
    suggest(text, sizeof(text), NULL);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    write_report_as((struct cw_report_request){.form = CW_REPORT_TEXT, .suppressions = file});
    unlink(file);
    expect_text("SUMMARY: leaked_bytes=0 leaked_blocks=0 leak_sites=0 ");
    expect_line("SUPPRESSED  15.0 MiB in 6 blocks, not counted as leaked");
    expect_no_text("matched nothing");
}

Test(suggest, a_name_that_the_library_does_not_know_is_no_rule)
{
    static char text[1 << 14];

    leak_of_each_kind();
    suggest(text, sizeof(text), "app_train");
    cr_expect_null(strstr(text, "app_train$"));
    fixture_leak(fixture_line(0, "/home/me/train.py", "Model.step", 218), "cudaMalloc", MIB, 1);
    fixture_leak(fixture_line(0, "/home/me/train.py", "<module>", 1), "cudaMalloc", MIB, 1);
    suggest(text, sizeof(text), NULL);
    cr_expect(strstr(text, "\nleak:^Model.step$\n"), "%s", text);
    cr_expect_null(strstr(text, "<module>"), "%s", text);
}
