/* SPDX-License-Identifier: MIT */
/* Merging of native and Python stacks, written as words: see name_of. */
#include "core/stacks/merge.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "live/layout.h"

#define MAX 128

/* The interpreter lies at 1000, its evaluator from 1100 to 1200; the rest is other objects. */
static const struct cw_python_symbols interpreter = {
    .object = 1000, .object_end = 2000, .evaluator = 1100, .evaluator_end = 1200};

/* E: an evaluator; I: another function of the interpreter; lower case: of another object. */
static unsigned read_natives(const char *words, struct cw_merge_frame *out)
{
    unsigned count = 0;

    for (; *words != '\0'; words++)
        out[count++] = (struct cw_merge_frame){.pc = *words == 'E'   ? 1150
                                                     : *words == 'I' ? 1900
                                                                     : (uint64_t)*words,
                                               .module = 7};
    return count;
}

/* A digit: a Python frame; "!": the one before is an entry; "-": an entry that shows nothing. */
static unsigned read_pythons(const char *words, struct cw_merge_python *out)
{
    unsigned count = 0;

    for (; *words != '\0'; words++) {
        if (*words == '!')
            out[count - 1].is_entry = 1;
        else
            out[count++] = (struct cw_merge_python){.code = *words == '-' ? 0 : (uint32_t)*words,
                                                    .is_entry = *words == '-'};
    }
    return count;
}

static char name_of(const struct cw_merge_frame *frame)
{
    if (frame->module == CW_MODULE_PYTHON)
        return (char)frame->pc;
    return frame->pc == 1150 ? 'E' : frame->pc == 1900 ? 'I' : (char)frame->pc;
}

static void check_cut(const char *natives, int is_cut, const char *pythons, unsigned max,
                      const char *expected)
{
    struct cw_merge_frame native[MAX], out[MAX + 1];
    struct cw_merge_python python[MAX];
    struct cw_merge merge = {.native = native,
                             .natives = read_natives(natives, native),
                             .is_cut = is_cut,
                             .python = python,
                             .pythons = read_pythons(pythons, python),
                             .interpreter = &interpreter};
    char found[MAX + 1] = "";
    unsigned count;

    out[max].pc = 4711;
    count = cw_merge_stacks(&merge, out, max);
    cr_assert_leq(count, max);
    cr_expect_eq(out[max].pc, 4711u);
    for (unsigned i = 0; i < count; i++) {
        found[i] = name_of(&out[i]);
        cr_expect(out[i].module == 7 || out[i].module == CW_MODULE_PYTHON);
    }
    cr_expect_str_eq(found, expected, "%s and %s: %s, not %s", natives, pythons, found, expected);
}

static void check(const char *natives, const char *pythons, const char *expected)
{
    check_cut(natives, 0, pythons, 32, expected);
}

Test(merge, python_takes_the_place_of_the_interpreter)
{
    check("cIEIIls", "1!", "c1ls");
    check("cIEIls", "123!", "c123ls");
    check("cE", "1!", "c1");
    check("E", "12!", "12");
}

Test(merge, each_evaluator_stands_for_its_frames)
{
    check("cEIEIEs", "1!2!3!", "c123s");
    check("cEIfEIgEs", "12!3!456!", "c12f3g456s");
    /* A C extension that calls back, and a library that does so through it. */
    check("cIEIxyxIEIs", "1!23!", "c1xyx23s");
}

Test(merge, without_python_nothing_changes)
{
    check("cIEIs", "", "cIEIs");
    check("cIEIs", "-", "cIEIs");
    check("", "", "");
    check_cut("cIEIs", 1, "", 3, "cIE");
}

Test(merge, an_evaluator_whose_frame_is_gone_shows_nothing)
{
    check("cEfEs", "-1!", "cf1s");
    check("cEfEs", "1!-", "c1fs");
}

Test(merge, evaluators_that_are_not_known_lose_no_frame)
{
    /* The second one runs in a piece of the function that lies elsewhere. */
    check("cEIIs", "1!2!", "c12s");
    check("cIIs", "1!2!", "c12s");
    check("cIIfIIs", "1!2!", "cf12s");
    check("cEfIIs", "1!2!", "c1f2s");
    check("cs", "1!2!", "cs12");
    check("", "12!", "12");
}

Test(merge, more_evaluators_than_entries_are_no_harm)
{
    check("cEfEgEs", "1!", "c1fgs");
    check("cEfEs", "12", "c12fs");
}

Test(merge, of_a_cut_stack_the_rest_comes_outermost)
{
    check_cut("cEfEI", 1, "1!2!3!4!", 32, "c1f234");
    check_cut("cEfEIg", 1, "1!2!3!", 32, "c1f2g3");
    check_cut("cde", 1, "1!2!", 32, "cde12");
}

Test(merge, the_depth_counts_merged_frames)
{
    check_cut("cEs", 0, "123456!", 4, "c123");
    check_cut("cEs", 0, "1!", 2, "c1");
    check_cut("cEs", 0, "1!", 1, "1");
    check_cut("cEfEs", 0, "12!34!", 6, "c12f34");
    check_cut("cEfEs", 0, "12!34!", 5, "c12f3");
}

Test(merge, python_has_a_right_to_half_the_room)
{
    check_cut("abcdefgh", 1, "123456!", 8, "abcd1234");
    check_cut("abcdefgh", 1, "12!", 8, "abcdef12");
    check_cut("abcdefg", 1, "123456!", 7, "abc1234");
    check_cut("abcEdef", 0, "1!", 4, "abc1");
}

/* The call may be the last instruction of the function, or the one before it the first. */
Test(merge, an_address_belongs_to_the_call_before_it)
{
    static const struct {
        uint64_t pc;
        unsigned count;
    } cases[] = {{1000, 2}, {1001, 1}, {1100, 1}, {1200, 1}, {1201, 1}, {2000, 1}, {2001, 2}};
    static const struct cw_merge_python python = {.code = 1, .is_entry = 1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cw_merge_frame native = {.pc = cases[i].pc, .module = 7}, out[4];
        struct cw_merge merge = {.native = &native,
                                 .natives = 1,
                                 .python = &python,
                                 .pythons = 1,
                                 .interpreter = &interpreter};

        cr_expect_eq(cw_merge_stacks(&merge, out, 4), cases[i].count, "at %d", (int)cases[i].pc);
    }
}

/* Whatever it is given: Python's frames come in their order, all of those for which there is room,
 * and what stays of the native ones in theirs; nothing of the interpreter stays beside Python. */
Test(merge, random_stacks)
{
    srand(1);
    for (unsigned round = 0; round < 100000; round++) {
        struct cw_merge_frame native[MAX], out[MAX];
        struct cw_merge_python python[MAX];
        unsigned natives = (unsigned)rand() % 20, pythons = (unsigned)rand() % 20;
        unsigned max = 1 + (unsigned)rand() % 32, count, seen = 0, kept = 0;
        struct cw_merge merge = {.native = native,
                                 .natives = natives,
                                 .is_cut = rand() % 2,
                                 .python = python,
                                 .pythons = pythons,
                                 .interpreter = &interpreter};

        for (unsigned i = 0; i < natives; i++)
            native[i] = (struct cw_merge_frame){.pc = rand() % 3 == 0 ? 1150
                                                      : rand() % 2    ? 1900
                                                                      : 3000 + i,
                                                .module = 7};
        for (unsigned i = 0; i < pythons; i++)
            python[i] = (struct cw_merge_python){.code = i + 1, .is_entry = rand() % 2};
        count = cw_merge_stacks(&merge, out, max);
        cr_assert_leq(count, max);
        for (unsigned i = 0; i < count; i++) {
            if (out[i].module == CW_MODULE_PYTHON) {
                cr_assert_eq(out[i].pc, ++seen);
            } else {
                cr_assert(out[i].pc >= 3000 || pythons == 0);
                cr_assert(kept == 0 || out[i].pc > kept || pythons == 0);
                kept = (unsigned)out[i].pc;
            }
        }
        cr_assert(seen == pythons || count == max);
        cr_assert_geq(seen, pythons < (max + 1) / 2 ? pythons : (max + 1) / 2);
    }
}
