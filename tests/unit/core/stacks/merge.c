/* SPDX-License-Identifier: MIT */
/* Merging of native and Python stacks, written as words: see name_of. */
#include "core/stacks/merge.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#include "base/compiler.h"
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

/* A digit: a Python frame; "!": the one before is an entry; "-": an entry that shows nothing; "|":
 * what follows is of the thread that waits. */
static void read_pythons(const char *words, struct cw_merge_python *out, struct cw_merge *merge)
{
    int is_waiting = 0;

    for (; *words != '\0'; words++) {
        if (*words == '!') {
            out[merge->pythons - 1].is_entry = 1;
        } else if (*words == '|') {
            is_waiting = 1;
        } else {
            out[merge->pythons++] = (struct cw_merge_python){
                .code = *words == '-' ? 0 : (uint32_t)*words, .is_entry = *words == '-'};
            merge->waiting += (unsigned)is_waiting;
        }
    }
}

static char name_of(const struct cw_merge_frame *frame)
{
    if (frame->module == CW_MODULE_PYTHON)
        return (char)frame->pc;
    return frame->pc == 1150 ? 'E' : frame->pc == 1900 ? 'I' : (char)frame->pc;
}

static const struct {
    const char *natives;
    int is_cut;
    const char *pythons;
    unsigned max;
    const char *merged;
} cases[] = {
    /* Python takes the place of the interpreter. */
    {"cIEIIls", 0, "1!", 32, "c1ls"},
    {"cIEIls", 0, "123!", 32, "c123ls"},
    {"cE", 0, "1!", 32, "c1"},
    {"E", 0, "12!", 32, "12"},
    /* Each evaluator stands for its frames. */
    {"cEIEIEs", 0, "1!2!3!", 32, "c123s"},
    {"cEIfEIgEs", 0, "12!3!456!", 32, "c12f3g456s"},
    /* A C extension that calls back, and a library that does so through it. */
    {"cIEIxyxIEIs", 0, "1!23!", 32, "c1xyx23s"},
    /* Without Python nothing changes. */
    {"cIEIs", 0, "", 32, "cIEIs"},
    {"cIEIs", 0, "-", 32, "cIEIs"},
    {"", 0, "", 32, ""},
    {"cIEIs", 1, "", 3, "cIE"},
    /* An evaluator whose frame is gone shows nothing. */
    {"cEfEs", 0, "-1!", 32, "cf1s"},
    {"cEfEs", 0, "1!-", 32, "c1fs"},
    /* Evaluators that are not known lose no frame: */
    /* The second one runs in a piece of the function that lies elsewhere. */
    {"cEIIs", 0, "1!2!", 32, "c12s"},
    {"cIIs", 0, "1!2!", 32, "c12s"},
    {"cIIs", 0, "12!3!", 32, "c123s"},
    {"cIIsI", 0, "1!2!", 32, "c12s"},
    {"csI", 0, "1!2!", 32, "cs12"},
    /* Of several places each has one, the outermost the rest. */
    {"cIIfIIs", 0, "1!2!", 32, "c1f2s"},
    {"cIIfIIsI", 0, "1!23!4!", 32, "c1f234s"},
    {"cIfIgIs", 0, "1!2!3!4!", 32, "c1f2g34s"},
    {"cIfIgIs", 0, "1!2!", 32, "cf1g2s"},
    {"cIfIgIs", 0, "1!", 32, "cfg1s"},
    {"cIfEs", 0, "1!2!", 32, "cf12s"},
    {"cEfIIs", 0, "1!2!", 32, "c1f2s"},
    {"cs", 0, "1!2!", 32, "cs12"},
    {"", 0, "12!", 32, "12"},
    /* More evaluators than entries are no harm. */
    {"cEfEgEs", 0, "1!", 32, "c1fgs"},
    {"cEfEs", 0, "12", 32, "c12fs"},
    /* Of a cut stack the rest comes outermost. */
    {"cEfEI", 1, "1!2!3!4!", 32, "c1f234"},
    {"cEfEIg", 1, "1!2!3!", 32, "c1f2g3"},
    {"cde", 1, "1!2!", 32, "cde12"},
    /* Those of a thread that waits come outermost. */
    {"cs", 0, "|1!2!", 32, "cs12"},
    {"cEfIs", 0, "1!|2!", 32, "c1fs2"},
    {"cEfEIs", 0, "1!|2!3!", 32, "c1fs23"},
    {"cEfIIs", 0, "1!2!|3!", 32, "c1f2s3"},
    {"cEIg", 1, "1!2!|3!", 32, "c1g23"},
    {"cIs", 0, "|-", 32, "cIs"},
    {"abcdefgh", 1, "1!|23456!", 8, "abcd1234"},
    /* The depth counts merged frames. */
    {"cEs", 0, "123456!", 4, "c123"},
    {"cEs", 0, "1!", 2, "c1"},
    {"cEs", 0, "1!", 1, "1"},
    {"cEfEs", 0, "12!34!", 6, "c12f34"},
    {"cEfEs", 0, "12!34!", 5, "c12f3"},
    /* Python has a right to half the room. */
    {"abcdefgh", 1, "123456!", 8, "abcd1234"},
    {"abcdefgh", 1, "12!", 8, "abcdef12"},
    {"abcdefg", 1, "123456!", 7, "abc1234"},
    {"abcEdef", 0, "1!", 4, "abc1"},
};

Test(merge, python_takes_the_place_of_the_evaluators_that_run_it)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        unsigned max = cases[i].max, count;
        struct cw_merge_frame native[MAX], out[MAX + 1];
        struct cw_merge_python python[MAX];
        struct cw_merge merge = {.native = native,
                                 .natives = read_natives(cases[i].natives, native),
                                 .is_cut = cases[i].is_cut,
                                 .python = python,
                                 .interpreter = &interpreter};
        char found[MAX + 1] = "";

        read_pythons(cases[i].pythons, python, &merge);
        out[max].pc = 4711;
        count = cw_merge_stacks(&merge, out, max);
        cr_assert_leq(count, max);
        cr_expect_eq(out[max].pc, 4711u);
        for (unsigned k = 0; k < count; k++) {
            found[k] = name_of(&out[k]);
            cr_expect(out[k].module == 7 || out[k].module == CW_MODULE_PYTHON);
        }
        cr_expect_str_eq(found, cases[i].merged, "%s and %s: %s, not %s", cases[i].natives,
                         cases[i].pythons, found, cases[i].merged);
    }
}

/* The call may be the last instruction of the function, or the one before it the first. */
Test(merge, an_address_belongs_to_the_call_before_it)
{
    static const struct {
        uint64_t pc;
        unsigned count;
    } calls[] = {{1000, 2}, {1001, 1}, {1100, 1}, {1200, 1}, {1201, 1}, {2000, 1}, {2001, 2}};
    static const struct cw_merge_python python = {.code = 1, .is_entry = 1};

    for (size_t i = 0; i < CW_ARRAY_LEN(calls); i++) {
        struct cw_merge_frame native = {.pc = calls[i].pc, .module = 7}, out[4];
        struct cw_merge merge = {.native = &native,
                                 .natives = 1,
                                 .python = &python,
                                 .pythons = 1,
                                 .interpreter = &interpreter};

        cr_expect_eq(cw_merge_stacks(&merge, out, 4), calls[i].count, "at %d", (int)calls[i].pc);
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
