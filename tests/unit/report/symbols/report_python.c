/* SPDX-License-Identifier: MIT */
/* Lines of Python in the report. */
#include <criterion/criterion.h>

#include <string.h>

#include "report/snapshot/snapshot.h"
#include "report_fixture.h"

TestSuite(report_python, .init = fixture_create, .fini = report_teardown);

static uint32_t leak_at(uint32_t stack)
{
    uint32_t site = fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, 0);

    fixture_alloc(site, 512, 1, FIXTURE_MS);
    return site;
}

static uint32_t native(uint32_t caller, const char *path, uint64_t offset)
{
    return fixture_frame(caller, fixture_module(path, 0x10000, CW_MODULE_PROGRAM), offset);
}

/* main.py calls train.py by way of an extension module. */
static uint32_t two_lines(void)
{
    uint32_t at = fixture_line(0, "/home/me/main.py", "<module>", 3);

    at = fixture_line(at, "/home/me/main.py", "main", 12);
    at = native(at, "/lib/fast.cpython-311.so", 0x500);
    return fixture_line(at, "/home/me/train.py", "Model.step", 218);
}

Test(report_python, text_has_file_line_and_function)
{
    leak_at(two_lines());
    write_report(CW_REPORT_TEXT);
    expect_line("    #0 Model.step  train.py:218");
    expect_line("    #1 fast.cpython-311.so+0x500");
    expect_line("    #2 main        main.py:12"); /* is no main that ends a stack */
    expect_line("    #3 <module>    main.py:3");
    expect_text("cudaMalloc  Model.step (train.py:218)");
}

Test(report_python, an_unknown_line_is_left_out)
{
    leak_at(fixture_line(0, "<string>", "<module>", 0));
    write_report(CW_REPORT_TEXT);
    expect_line("    #0 <module>  <string>");
}

Test(report_python, the_file_of_a_package_is_named_with_it)
{
    static const char *const cases[][2] = {{"/a/torch/__init__.py", "torch/__init__.py"},
                                           {"torch/__main__.py", "torch/__main__.py"},
                                           {"__init__.py", "__init__.py"},
                                           {"/__init__.py", "__init__.py"},
                                           {"/a/b/_c.py", "_c.py"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        leak_at(fixture_line(0, cases[i][0], "f", 1));
    write_report(CW_REPORT_TEXT);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[64] = "    #0 f  ";

        strcat(line, cases[i][1]);
        strcat(line, ":1");
        expect_line(line);
    }
}

Test(report_python, what_calls_for_python_is_hidden_before_its_lines)
{
    uint32_t at = two_lines();

    at = native(at, "/lib/_ctypes.cpython-311-x86_64-linux-gnu.so", 0x20);
    at = native(at, "/usr/lib/libffi.so.8", 0x30);
    leak_at(at);
    leak_at(native(0, "/usr/lib/libffi.so.8", 0x40));
    leak_at(native(native(two_lines(), "/lib/libx.so", 0x50), "/usr/lib/libffi.so.8", 0x60));
    write_report(CW_REPORT_TEXT);
    cr_expect_eq(count_of("    #0 Model.step  train.py:218"), 1);
    expect_line("    #0 libffi.so.8+0x40");
    expect_line("    #0 libffi.so.8+0x60");
    expect_no_text("ctypes");
}

Test(report_python, a_recursion_is_one_line_and_a_count)
{
    uint32_t at = fixture_line(0, "/a/b.py", "start", 1);
    uint32_t line = fixture_line(at, "/a/b.py", "again", 5), pc;

    pc = (uint32_t)((struct cw_live_frame *)cw_arena_at(&fixture.arena, CW_TABLE_FRAME, line))->pc;
    for (unsigned i = 0; i < 20; i++) {
        uint32_t next = fixture_line(line, "/a/b.py", "again", 5);

        ((struct cw_live_frame *)cw_arena_at(&fixture.arena, CW_TABLE_FRAME, next))->pc = pc;
        line = next;
    }
    leak_at(line);
    write_report(CW_REPORT_TEXT);
    expect_line("    #0 again  b.py:5");
    expect_line("    ... 20 more frames like it");
    expect_line("   #21 start  b.py:1");
    expect_no_text("#1 again");
}

Test(report_python, names_cannot_forge_a_line)
{
    leak_at(fixture_line(0, "/a/b\n==1== SUMMARY: c.py", "f\x1b[1m", 1));
    write_report(CW_REPORT_TEXT);
    cr_expect_null(strchr(report, '\x1b'));
    expect_line("    #0 f?[1m  b?==1== SUMMARY: c.py:1");
}

Test(report_python, json_has_the_whole_path)
{
    leak_at(two_lines());
    native(0, "/usr/bin/python3", 0x77); /* was replaced, and is in no stack */
    write_report(CW_REPORT_JSON);
    expect_text("\"lang\":\"python\",\"func\":\"Model.step\",\"file\":\"/home/me/train.py\","
                "\"line\":218}");
    expect_text("\"lang\":\"python\",\"func\":\"<module>\",\"file\":\"/home/me/main.py\","
                "\"line\":3}");
    expect_text("\"offset\":1280,");
    expect_no_text("\"offset\":119,");
}

Test(report_python, a_bad_record_is_harmless)
{
    uint32_t at = fixture_line(0, "/a/b.py", "f", 5);
    struct cw_live_frame *frame;

    at = fixture_line(at, "/a/b.py", "g", 6);
    frame = cw_arena_at(&fixture.arena, CW_TABLE_FRAME, at);
    leak_at(at);
    for (unsigned i = 0; i < 3; i++) {
        frame->pc = (uint64_t[]){0, 4711, UINT64_MAX}[i];
        write_report(CW_REPORT_TEXT);
        expect_line("    #0 ?");
        expect_line("    #1 f  b.py:5");
        write_report(CW_REPORT_JSON);
        expect_text(",\"lang\":\"python\"}");
    }
}

Test(report_python, says_what_python_is_not_known)
{
    leak_at(0);
    write_report(CW_REPORT_TEXT);
    expect_no_text("native frames only");
    fixture.arena.header->python = fixture_text("Python 3.15 is not known");
    write_report(CW_REPORT_TEXT);
    expect_line("Python 3.15 is not known: native frames only");
    expect_no_text("incomplete");
    write_report(CW_REPORT_JSON);
    expect_text("\"text\":\"Python 3.15 is not known: native frames only\"");
}

/* ---- of a framework's stack, the lines of the script ---- */

#define TORCH "/opt/venv/lib/python3.11/site-packages/torch/nn/"

/* main.py calls model.py by way of a package; that one's extension has `depth` frames. */
static uint32_t framework(unsigned depth)
{
    uint32_t at = fixture_line(0, "/usr/lib/python3.11/runpy.py", "run_path", 294);

    at = fixture_line(at, "/home/me/main.py", "train", 12);
    at = fixture_line(at, TORCH "module.py", "Module.call", 1798);
    at = fixture_line(at, "/home/me/model.py", "Net.forward", 5);
    at = fixture_line(at, TORCH "module.py", "Module.call", 1798);
    at = fixture_line(at, TORCH "linear.py", "Linear.forward", 125);
    for (unsigned i = 0; i < depth; i++)
        at = native(at, "/opt/libtorch.so", 0x100 + i);
    return at;
}

static void invalid_free_at(uint32_t stack)
{
    fixture_event(CW_EVENT_INVALID_FREE, fixture_site(stack, "cudaFree", CW_KIND_DEVICE, 0), 1);
    atomic_store(&fixture.arena.header->invalid_frees, 1);
}

static void expect_lines_in_a_row(const char *const *line)
{
    const char *at = strstr(report, line[0]);

    cr_assert_not_null(at, "no \"%s\" in\n%s", line[0], report);
    for (; *line; line++) {
        cr_assert_eq(strncmp(at, *line, strlen(*line)), 0, "no \"%s\" at\n%s", *line, at);
        at = strstr(at, "\n==");
        at = at ? strchr(at, ' ') + 1 : "";
    }
}

Test(report_python, a_short_stack_has_the_lines_of_the_script)
{
    static const char *const deep[] = {"    #0 libtorch.so+0x113",
                                       "    ... 21 frames of libtorch.so, torch",
                                       "   #22 Net.forward  model.py:5",
                                       "   #23 Module.call  module.py:1798",
                                       "   #24 train        main.py:12",
                                       "   #25 run_path     runpy.py:294",
                                       NULL};

    invalid_free_at(framework(20));
    write_report(CW_REPORT_TEXT);
    expect_lines_in_a_row(deep);
}

Test(report_python, where_all_frames_are_asked_for_there_are_all)
{
    static const char *const all[] = {"    #0 libtorch.so+0x107", "    #1 libtorch.so+0x106",
                                      "    #2 libtorch.so+0x105", NULL};

    invalid_free_at(framework(8));
    write_report_as((struct cw_report_request){.form = CW_REPORT_TEXT, .has_all_frames = 1});
    expect_lines_in_a_row(all);
    expect_line("   #13 run_path        runpy.py:294");
    expect_no_text("...");
}

Test(report_python, one_line_names_the_scripts_own_line)
{
    leak_at(framework(20));
    write_report(CW_REPORT_TEXT);
    expect_text("cudaMalloc  Net.forward (model.py:5)\n");
}

Test(report_python, one_line_names_a_package_that_nobody_of_the_script_called)
{
    leak_at(
        native(fixture_line(0, TORCH "module.py", "Module.call", 1798), "/opt/libtorch.so", 0x100));
    write_report(CW_REPORT_TEXT);
    expect_text("cudaMalloc  Module.call (module.py:1798)\n");
}

Test(report_python, a_trail_leaves_out_what_is_installed)
{
    leak_at(framework(20));
    write_report_as((struct cw_report_request){.form = CW_REPORT_TEXT, .old_ns = 100 * FIXTURE_MS});
    expect_text("      Net.forward (model.py:5) <- ... <- train (main.py:12)\n");
}

/* ---- identity ---- */

static uint32_t id_of(const char *file, const char *function, uint32_t line)
{
    uint32_t outer = fixture_line(0, "/a/main.py", "<module>", 9);
    uint32_t site = leak_at(fixture_line(outer, file, function, line)), id;
    struct cw_view view = fixture_view();
    struct cw_snapshot snapshot;

    cr_assert_eq(cw_snapshot_init(&snapshot, &view, 0), 0);
    id = cw_snapshot_find(&snapshot, site)->id;
    cw_snapshot_fini(&snapshot);
    return id;
}

Test(report_python, a_site_is_known_by_file_function_and_line)
{
    uint32_t id = id_of("/a/train.py", "step", 218);

    cr_expect_eq(id_of("/a/train.py", "step", 218), id);
    cr_expect_eq(id_of("/elsewhere/train.py", "step", 218), id);
    cr_expect_neq(id_of("/a/train.py", "step", 219), id);
    cr_expect_neq(id_of("/a/train.py", "stop", 218), id);
    cr_expect_neq(id_of("/a/drain.py", "step", 218), id);
    cr_expect_neq(id_of("/a/pkg/__init__.py", "step", 218),
                  id_of("/a/other/__init__.py", "step", 218));
}
