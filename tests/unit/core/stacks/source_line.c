/* SPDX-License-Identifier: MIT */
/* Lines of Python as records, and the stacks that have them. */
#include "core/stacks/source_line.h"

#include <criterion/criterion.h>

#include <string.h>

#include "core/account/site.h"
#include "core/stacks/stack.h"
#include "core/process/thread.h"
#include "core/stacks/unwind.h"
#include "core_file.h"
#include "fake_driver.h"
#include "python_fixture.h"

static const struct cw_unwinder unwinder = {.backtrace = _Unwind_Backtrace,
                                            .ip_info = _Unwind_GetIPInfo,
                                            .cfa = _Unwind_GetCFA,
                                            .gr = _Unwind_GetGR};

/* Three frames of 3.10, which has the simplest line table: four bytes a line, and each function
 * begins a line further down. */
static void start_python(void)
{
    static const uint8_t table[] = {4, 1, 4, 1, 4, 1, 4, 1, 100, 1};

    fake_start(0x030a0000);
    fake_set_text(&fake.file, "train.py", 8, 1, 1);
    fake_set_text(&fake.name, "step", 4, 1, 1);
    fake_set_table(table, sizeof(table));
    for (unsigned i = 0; i < 3; i++)
        fake_set_frame(i, FAKE_THREAD, (int32_t)i * 4);
    fake_link(3);
}

static void start(enum cw_stacks stacks, unsigned depth)
{
    core_start();
    cr_assert_eq(cw_site_init(core_arena, stacks, depth), 0);
    cw_unwind_set(&unwinder);
    start_python();
}

static void start_full(void)
{
    start(CW_STACKS_FULL, 32);
}

TestSuite(code, .init = start_full);

static const struct cw_live_code *code_at(uint32_t code)
{
    return core_at(CW_TABLE_CODE, code);
}

static const struct cw_live_frame *frame_at(uint32_t frame)
{
    return core_at(CW_TABLE_FRAME, frame);
}

static const char *text(uint32_t index)
{
    return core_at(CW_TABLE_TEXT, index);
}

/* The Python frames of a stack, from the innermost. */
static unsigned python_of(uint32_t stack, uint32_t *out)
{
    unsigned found = 0;

    for (; stack != 0; stack = frame_at(stack)->parent)
        if (frame_at(stack)->module == CW_MODULE_PYTHON)
            out[found++] = (uint32_t)frame_at(stack)->pc;
    return found;
}

static void find(uint32_t *out)
{
    struct cw_python_frame frames[FAKE_FRAMES];
    unsigned frame_count = cw_python_walk(frames, FAKE_FRAMES);

    cr_assert_eq(frame_count, 3u);
    cw_source_line_find(frames, frame_count, out);
}

Test(code, says_where_a_frame_is)
{
    uint32_t code[3];

    fake_arm();
    find(code);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_neq(code[i], 0u);
        cr_expect_str_eq(text(code_at(code[i])->file), "train.py");
        cr_expect_str_eq(text(code_at(code[i])->function), "step");
        cr_expect_eq(code_at(code[i])->line, code_at(code[0])->line + 2 * i);
    }
}

Test(code, is_one_record_for_each_line_and_one_text_for_each_name)
{
    uint32_t code[3], again[3];

    fake_arm();
    find(code);
    cr_expect_eq(core_count(CW_TABLE_CODE), 3u);
    cr_expect_eq(code_at(code[0])->file, code_at(code[1])->file);
    cr_expect_eq(code_at(code[0])->function, code_at(code[2])->function);
    find(again);
    cr_expect_eq(memcmp(code, again, sizeof(code)), 0);
    for (unsigned i = 0; i < 3; i++) /* other instructions of the same lines */
        fake_set_frame(i, FAKE_THREAD, (int32_t)i * 4 + 2);
    fake_link(3);
    find(again);
    cr_expect_eq(memcmp(code, again, sizeof(code)), 0);
    cr_expect_eq(core_count(CW_TABLE_CODE), 3u);
}

/* The same source, compiled again and again. */
Test(code, does_not_grow_with_code_objects)
{
    struct cw_python_frame frame;
    uint32_t first = 0, code = 0;

    fake_arm();
    cr_assert_eq(cw_python_walk(&frame, 1), 1u);
    for (unsigned i = 0; i < 100000; i++) {
        frame.stamp = i; /* as good as another one in the same place */
        cw_source_line_find(&frame, 1, &code);
        cr_assert_neq(code, 0u);
        first = i == 0 ? code : first;
        cr_assert_eq(code, first);
    }
    cr_expect_eq(core_count(CW_TABLE_CODE), 1u);
}

Test(code, of_a_frame_that_shows_nothing_is_none)
{
    struct cw_python_frame frame = {.instr = -1, .is_entry = 1};
    uint32_t code = 4711;

    fake_arm();
    cw_source_line_find(&frame, 1, &code);
    cr_expect_eq(code, 0u);
}

/* ---- stacks ---- */

static CW_NOINLINE uint32_t take(void)
{
    return cw_stack_here();
}

/* The test program is no interpreter: the lines come outermost, behind what is native. */
Test(code, is_in_the_stack)
{
    uint32_t native = take(), merged, python[FAKE_FRAMES];

    cr_assert_neq(native, 0u);
    cr_expect_eq(python_of(native, python), 0u);
    fake_arm();
    merged = take();
    cr_assert_neq(merged, native);
    cr_assert_eq(python_of(merged, python), 3u);
    cr_expect_eq(code_at(python[1])->line, code_at(python[0])->line + 2);
    cr_expect_eq(code_at(python[2])->line, code_at(python[0])->line + 4);
    cr_expect_eq(take(), merged);
    cw_epoch_advance();
    cr_expect_eq(take(), merged);
    cw_python_set_symbols(NULL);
    cr_expect_eq(take(), native);
}

Test(code, tells_stacks_apart_that_are_native_the_same)
{
    uint32_t stack[4];

    fake_arm();
    for (unsigned i = 0; i < 8; i++) {
        uint32_t here;

        fake_set_frame(2, FAKE_THREAD, (int32_t)(i % 4) * 4);
        fake_link(3);
        here = take();
        if (i < 4)
            stack[i] = here;
        cr_assert_eq(here, stack[i % 4]);
        for (unsigned j = 0; j < i && j < 4; j++)
            cr_assert(j == i % 4 || here != stack[j]);
    }
}

Test(code, has_the_room_of_the_depth_again, .init = NULL)
{
    uint32_t python[FAKE_FRAMES];

    start(CW_STACKS_FULL, 2);
    cr_expect_eq(frame_at(take())->depth, 2u);
    fake_arm();
    cr_expect_eq(frame_at(take())->depth, 4u);
    cr_expect_eq(python_of(take(), python), 2u);
}

Test(code, in_caller_mode_is_the_innermost_line, .init = NULL)
{
    uint32_t python[FAKE_FRAMES], stack;

    start(CW_STACKS_CALLER, 32);
    cw_thread.caller = (void *)0x1234;
    stack = take();
    cr_expect_eq(frame_at(stack)->pc, 0x1234u);
    fake_arm();
    stack = take();
    cr_expect_eq(frame_at(stack)->depth, 1u);
    cr_assert_eq(python_of(stack, python), 1u);
    cr_expect_str_eq(text(code_at(python[0])->file), "train.py");
    fake_link(0);
    stack = take();
    cr_expect_eq(frame_at(stack)->pc, 0x1234u);
}

Test(code, in_off_mode_is_none, .init = NULL)
{
    start(CW_STACKS_OFF, 32);
    fake_arm();
    cr_expect_eq(take(), 0u);
    cr_expect_eq(core_count(CW_TABLE_CODE), 0u);
}

/* A Python that is not known is noted, when it is found or when the arena is made. */
Test(code, says_why_there_is_none)
{
    cr_expect_eq(atomic_load(&core_header()->python), 0u);
    fake.symbols.version = 0x03100000;
    fake_arm();
    cw_stack_note_python();
    cr_expect_str_eq(text(atomic_load(&core_header()->python)), "Python 3.16 is not known");
}

/* ---- threads ---- */

static void take_often(unsigned id)
{
    for (unsigned i = 0; i < 20000; i++) {
        struct cw_python_frame frames[3];
        uint32_t found[3];

        for (unsigned k = 0; k < 3; k++)
            frames[k] = (struct cw_python_frame){.code = (uintptr_t)fake.code[k],
                                                 .instr = (int32_t)(i + k) % 5 * 4,
                                                 .stamp = i,
                                                 .is_entry = 1};
        cw_source_line_find(frames, 3, found);
    }
    (void)id;
}

Test(code, is_one_record_for_all_threads)
{
    fake_arm();
    for (unsigned i = 0; i < 3; i++)
        fake_set_frame(i, FAKE_THREAD, 0);
    run_threads(4, take_often);
    cr_expect_eq(core_count(CW_TABLE_CODE), 7u); /* lines 101 to 107 */
}

/* ---- somebody writes over the live file ---- */

static void start_with_file(void)
{
    core_start_with_file();
    cr_assert_eq(cw_site_init(core_arena, CW_STACKS_FULL, 32), 0);
    start_python();
}

Test(code_file, has_each_line_once_whatever_is_written_there, .init = start_with_file)
{
    uint32_t code[3], again[3], texts;

    fake_arm();
    find(code);
    texts = core_count(CW_TABLE_TEXT);
    core_scribble(CW_TABLE_CODE, 'A');
    core_scribble(CW_TABLE_TEXT, 'A');
    for (unsigned i = 0; i < 3; i++) /* other instructions of the same lines */
        fake_set_frame(i, FAKE_THREAD, (int32_t)i * 4 + 2);
    fake_link(3);
    find(again);
    cr_expect_eq(memcmp(code, again, sizeof(code)), 0);
    cr_expect_eq(core_count(CW_TABLE_CODE), 3u);
    cr_expect_eq(core_count(CW_TABLE_TEXT), texts);
    cr_expect_str_eq(text(code_at(code[0])->file), "train.py");
}
