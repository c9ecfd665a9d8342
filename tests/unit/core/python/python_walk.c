/* SPDX-License-Identifier: MIT */
/* The walk over Python frames, in interpreters of every version that are no interpreters. */
#include "core/python/python.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "python_fixture.h"

#define MAX 64

static struct cw_python_frame out[MAX];

static int has_shims(void)
{
    return fake.layout.minor >= 12;
}

/* Three frames of Python code in one evaluator. */
static void start_three(uint32_t version)
{
    fake_start(version);
    for (unsigned i = 0; i < 3; i++)
        fake_set_frame(i, FAKE_THREAD, 4 + (int32_t)i * 2);
    fake_set_frame(3, FAKE_SHIM, 0);
    fake_link(has_shims() ? 4 : 3);
    if (fake.layout.is_entry != CW_PYTHON_NONE)
        ((char *)fake.frame[2])[fake.layout.is_entry] = 1;
    fake_arm();
}

static void finish(void)
{
    cw_python_set_symbols(NULL);
    pthread_key_delete(fake.key);
}

Test(python_walk, three_frames_of_each_version)
{
    for (unsigned v = 0; v < FAKE_VERSIONS; v++) {
        char name[8];

        start_three(fake_versions[v]);
        for (int round = 0; round < 2; round++) {
            cr_assert_eq(cw_python_walk(out, MAX), 3, "version %x", fake_versions[v]);
            for (unsigned i = 0; i < 3; i++) {
                cr_assert_eq(out[i].code, (uintptr_t)fake.code[i]);
                cr_assert_eq(out[i].instr, 4 + (int)i * 2);
                cr_assert_eq(out[i].is_entry, fake.layout.minor < 11 || i == 2);
            }
        }
        cr_assert_neq(out[0].stamp, out[1].stamp);
        snprintf(name, sizeof(name), "3.%u", fake_versions[v] >> 16 & 0xff);
        cr_assert_str_eq(cw_python_status(), name);
        finish();
        cr_assert_eq(cw_python_walk(out, MAX), 0);
    }
}

Test(python_walk, at_most_as_many_as_are_asked_for)
{
    for (unsigned v = 0; v < FAKE_VERSIONS; v++) {
        start_three(fake_versions[v]);
        memset(out, 0xff, sizeof(out));
        cr_assert_eq(cw_python_walk(out, 0), 0);
        cr_assert_eq(cw_python_walk(out, 2), 2);
        cr_assert_eq(out[2].code, UINT64_MAX);
        cr_assert_eq(out[1].is_entry, fake.layout.minor < 11);
        /* What the last one is, is told by the shim behind it. */
        cr_assert_eq(cw_python_walk(out, 3), 3);
        cr_assert_eq(out[2].is_entry, 1);
        finish();
    }
}

Test(python_walk, an_evaluator_whose_frame_is_gone)
{
    fake_start(0x030c01f0);
    fake_set_frame(0, FAKE_SHIM, 0);
    fake_set_frame(1, FAKE_THREAD, 8);
    fake_set_frame(2, FAKE_SHIM, 0);
    fake_set_frame(3, FAKE_SHIM, 0);
    fake_link(4);
    fake_arm();
    cr_assert_eq(cw_python_walk(out, MAX), 3);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(out[i].is_entry, 1);
    cr_assert_eq(out[0].code, 0);
    cr_assert_eq(out[1].code, (uintptr_t)fake.code[1]);
    cr_assert_eq(out[2].code, 0);
    cr_assert_eq(cw_python_describe(&out[0], &(struct cw_python_text){0}), -1);
    out[1].code = UINT64_MAX;
    cr_assert_eq(cw_python_walk(out, 1), 1);
    cr_assert_eq(out[1].code, UINT64_MAX);
}

Test(python_walk, frames_that_are_not_of_python_code)
{
    fake_start(0x030e00f0);
    for (unsigned i = 0; i < 4; i++)
        fake_set_frame(i, FAKE_THREAD, 8);
    ((char *)fake.frame[0])[fake.layout.owner] = FAKE_OTHER;
    fake_put_word(fake.code[1], CW_PYTHON_TYPE, (uintptr_t)fake.unicode_type);
    /* The interpreter's own: its file's name is its name, and it has no line. */
    fake_put_word(fake.code[2], fake.layout.file, (uintptr_t)&fake.name);
    fake_put_int(fake.code[2], fake.layout.first_line, 0);
    fake_link(4);
    fake_arm();
    cr_assert_eq(cw_python_walk(out, MAX), 1);
    cr_assert_eq(out[0].code, (uintptr_t)fake.code[3]);
}

Test(python_walk, before_the_first_instruction)
{
    start_three(0x030b02f0);
    fake_set_frame(0, FAKE_THREAD, -2);
    cr_assert_eq(cw_python_walk(out, MAX), 3);
    cr_assert_eq(out[0].instr, -1);
}

/* ---- whose state it is ---- */

Test(python_walk, no_interpreter_yet_and_none_any_more)
{
    start_three(0x030c01f0);
    fake_put_int(fake.runtime, fake.layout.key, 0);
    cr_assert_eq(cw_python_walk(out, MAX), 0);
    fake_put_int(fake.runtime, fake.layout.key, 1);
    cr_assert_eq(cw_python_walk(out, MAX), 3);
    fake_put_int(fake.runtime, fake.layout.key, 0);
    cr_assert_eq(cw_python_walk(out, MAX), 0);
}

Test(python_walk, a_key_that_is_elsewhere)
{
    for (int by = -64; by <= 64; by += 64) {
        start_three(0x030c01f0);
        fake_put_int(fake.runtime, fake.layout.key, 0);
        fake_put_int(fake.runtime, fake.layout.key + by, 1);
        fake_put_int(fake.runtime, fake.layout.key + by + 4, fake.key);
        cr_assert_eq(cw_python_walk(out, MAX), 3);
        finish();
    }
    start_three(0x030c01f0);
    fake_put_int(fake.runtime, fake.layout.key, 0);
    fake_put_int(fake.runtime, fake.layout.key + 72, 1);
    fake_put_int(fake.runtime, fake.layout.key + 76, fake.key);
    cr_assert_eq(cw_python_walk(out, MAX), 0);
}

Test(python_walk, a_state_that_is_not_ours)
{
    start_three(0x030b02f0);
    fake.state[fake.layout.thread_id / 8]++;
    cr_assert_eq(cw_python_walk(out, MAX), 0);
    fake.state[fake.layout.thread_id / 8]--;
    cr_assert_eq(cw_python_walk(out, MAX), 3);
    fake.state[fake.layout.thread_id / 8]++;
    cr_assert_eq(cw_python_walk(out, MAX), 0);
    pthread_setspecific(fake.key, (void *)fake_nowhere());
    cr_assert_eq(cw_python_walk(out, MAX), 0);
    pthread_setspecific(fake.key, NULL);
    cr_assert_eq(cw_python_walk(out, MAX), 0);
}

static void *walk_elsewhere(void *arg)
{
    return (void *)(uintptr_t)cw_python_walk(arg, MAX);
}

Test(python_walk, a_thread_without_a_state)
{
    pthread_t thread;
    void *count;

    start_three(0x030d00f0);
    for (int round = 0; round < 2; round++) {
        pthread_create(&thread, NULL, walk_elsewhere, out);
        pthread_join(thread, &count);
        cr_assert_eq((uintptr_t)count, 0);
        cr_assert_eq(cw_python_walk(out, MAX), 3);
    }
}

Test(python_walk, while_the_interpreter_ends)
{
    for (unsigned v = 0; v < FAKE_VERSIONS; v++) {
        start_three(fake_versions[v]);
        cr_assert_eq(cw_python_walk(out, MAX), 3);
        fake_put_word(fake.runtime, fake.layout.finalizing, (uintptr_t)fake.state + 4096);
        cr_assert_eq(cw_python_walk(out, MAX), 0);
        fake_put_word(fake.runtime, fake.layout.finalizing, (uintptr_t)fake.state);
        cr_assert_eq(cw_python_walk(out, MAX), 3);
        finish();
    }
}

/* ---- another layout ---- */

static void expect_cut(unsigned count)
{
    cr_assert_eq(cw_python_walk(out, MAX), count);
    cr_assert_str_eq(cw_python_status(), "this Python is not laid out as its version is");
}

Test(python_walk, what_cannot_be_read_is_not_read)
{
    for (unsigned v = 0; v < FAKE_VERSIONS; v++) {
        uintptr_t bad = fake_nowhere();

        start_three(fake_versions[v]);
        fake_put_word(fake.frame[1], fake.layout.previous, bad);
        expect_cut(2);
        fake_put_word(fake.frame[1], fake.layout.code, bad);
        expect_cut(1);
        fake_put_word(fake.code[0], fake.layout.file, bad);
        expect_cut(0);
        fake_put_word(fake.frame[0], fake.layout.code, 12345);
        expect_cut(0);
        fake_put_word(fake.state, fake.layout.thread_frame, bad);
        expect_cut(0);
        start_three(fake_versions[v]);
        cr_assert_eq(cw_python_walk(out, MAX), 3);
        finish();
    }
}

Test(python_walk, a_name_that_is_no_text)
{
    start_three(0x030c01f0);
    fake_put_word(fake.code[0], fake.layout.function, (uintptr_t)fake.code[1]);
    expect_cut(0);
}

Test(python_walk, chains_without_an_end)
{
    start_three(0x030c01f0);
    fake_put_word(fake.frame[0], fake.layout.previous, (uintptr_t)fake.frame[0]);
    cr_assert_eq(cw_python_walk(out, MAX), MAX);
    fake_put_word(fake.code[0], fake.layout.file, (uintptr_t)&fake.name);
    fake_put_int(fake.code[0], fake.layout.first_line, 0);
    cr_assert_eq(cw_python_walk(out, MAX), 0);
}

/* ---- versions ---- */

static void expect_status(const char *text)
{
    fake_arm();
    cr_assert_str_eq(cw_python_status(), text);
    cr_assert_eq(cw_python_walk(out, MAX), 0);
    cw_python_set_symbols(NULL);
    cr_assert_str_eq(cw_python_status(), "no Python");
}

Test(python_walk, versions_that_are_not_known)
{
    cr_assert_str_eq(cw_python_status(), "no Python");
    fake_start(0x030b02f0);
    fake.symbols.version = 0;
    expect_status("Python before 3.9 is not known");
    fake.symbols.version = 0x031000f0;
    expect_status("Python 3.16 is not known");
    fake.symbols.version = 0x040b00f0;
    expect_status("Python 4.11 is not known");
    fake.symbols.version = 0x030b00f0;
    fake.symbols.thread_value = NULL;
    expect_status("symbols of Python 3.11 are missing");
}

Test(python_walk, what_the_runtime_publishes)
{
    fake_start(0x030d00f0);
    fake.runtime[2] = 1;
    expect_status("free-threaded build of Python 3.13");
    fake.runtime[2] = 0;
    fake.runtime[0] = 0;
    expect_status("Python 3.13 does not say how it is laid out");
    fake_start(0x030e00f0);
    fake.runtime[1]++;
    expect_status("Python 3.14 does not say how it is laid out");
    fake.runtime[1]--;
    fake.runtime[4] += 8; /* one word more than is known of */
    expect_status("the layout of this Python 3.14 is not known");
    fake.runtime[4] -= 8;
    fake.runtime[26] = 4096;
    expect_status("the layout of this Python 3.14 is not known");
    fake.runtime[26] = 72;
    fake.runtime[51] = 16;
    expect_status("the layout of this Python 3.14 is not known");
}

Test(python_walk, the_first_symbols_stay)
{
    struct cw_python_symbols other;

    start_three(0x030c01f0);
    other = fake.symbols;
    other.version = 0x030b00f0;
    cw_python_set_symbols(&other);
    cw_python_reset();
    cr_assert_str_eq(cw_python_status(), "3.12");
    cr_assert_eq(cw_python_walk(out, MAX), 3);
}
