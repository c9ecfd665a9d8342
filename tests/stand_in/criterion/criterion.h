/* SPDX-License-Identifier: MIT */
/*
 * Stands in for Criterion under qemu-user and ThreadSanitizer. Criterion starts a process of the
 * program anew for each test, and the kernel cannot start one of another processor; under the
 * sanitizer it does not start. Here each test is a forked child. What tests/unit uses of it;
 * criterion.c runs them, and prints TAP.
 */
#ifndef CRITERION_STANDIN_H
#define CRITERION_STANDIN_H

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cr_options {
    int unused; /* so that an initialiser is never empty */
    void (*init)(void);
    void (*fini)(void);
    int signal;
    int disabled;
    double timeout;
};

struct cr_test {
    const char *suite, *name;
    void (*run)(void);
    struct cr_options options;
    struct cr_test *next;
};

struct cr_suite {
    const char *name;
    struct cr_options options;
    struct cr_suite *next;
};

void cr_add_test(struct cr_test *test);
void cr_add_suite(struct cr_suite *suite);
void cr_failed(int is_fatal, const char *file, int line, const char *what, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void cr_skipped(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define Test(suite_, name_, ...)                                                                   \
    static void suite_##_##name_##_run(void);                                                      \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)                          \
    {                                                                                              \
        static struct cr_test test = {                                                             \
            #suite_, #name_, suite_##_##name_##_run, {.unused = 0, ##__VA_ARGS__}, NULL};          \
        cr_add_test(&test);                                                                        \
    }                                                                                              \
    static void suite_##_##name_##_run(void)

#define TestSuite(name_, ...)                                                                      \
    __attribute__((constructor)) static void name_##_suite_add(void)                               \
    {                                                                                              \
        static struct cr_suite suite = {#name_, {.unused = 0, ##__VA_ARGS__}, NULL};               \
        cr_add_suite(&suite);                                                                      \
    }                                                                                              \
    struct cr_suite

#define CR_CHECK(is_fatal, holds, what, ...)                                                       \
    ((holds) ? (void)0 : cr_failed((is_fatal), __FILE__, __LINE__, (what), " " __VA_ARGS__))

#define cr_assert(c, ...)            CR_CHECK(1, (c), #c, ##__VA_ARGS__)
#define cr_expect(c, ...)            CR_CHECK(0, (c), #c, ##__VA_ARGS__)
#define cr_assert_not(c, ...)        CR_CHECK(1, !(c), "not " #c, ##__VA_ARGS__)
#define cr_expect_not(c, ...)        CR_CHECK(0, !(c), "not " #c, ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...)      CR_CHECK(1, (a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...)      CR_CHECK(0, (a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...)     CR_CHECK(1, (a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...)     CR_CHECK(0, (a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...)      CR_CHECK(1, (a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...)      CR_CHECK(0, (a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...)      CR_CHECK(1, (a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...)      CR_CHECK(0, (a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...)     CR_CHECK(1, (a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...)     CR_CHECK(0, (a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...)     CR_CHECK(1, (a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...)     CR_CHECK(0, (a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_assert_null(p, ...)       CR_CHECK(1, (p) == NULL, #p " is NULL", ##__VA_ARGS__)
#define cr_expect_null(p, ...)       CR_CHECK(0, (p) == NULL, #p " is NULL", ##__VA_ARGS__)
#define cr_assert_not_null(p, ...)   CR_CHECK(1, (p) != NULL, #p " is not NULL", ##__VA_ARGS__)
#define cr_expect_not_null(p, ...)   CR_CHECK(0, (p) != NULL, #p " is not NULL", ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)  CR_CHECK(1, !strcmp((a), (b)), #a " eq " #b, ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)  CR_CHECK(0, !strcmp((a), (b)), #a " eq " #b, ##__VA_ARGS__)
#define cr_expect_str_neq(a, b, ...) CR_CHECK(0, strcmp((a), (b)), #a " neq " #b, ##__VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...)                                                             \
    CR_CHECK(0, !memcmp((a), (b), (n)), #a " eq " #b, ##__VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...)                                                           \
    CR_CHECK(1, fabs((double)(a) - (double)(b)) <= (e), #a " = " #b, ##__VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...)                                                           \
    CR_CHECK(0, fabs((double)(a) - (double)(b)) <= (e), #a " = " #b, ##__VA_ARGS__)
#define cr_assert_fail(...) CR_CHECK(1, 0, "not reached", ##__VA_ARGS__)
#define cr_skip_test(...)   cr_skipped(" " __VA_ARGS__)
#define cr_skip(...)        cr_skipped(" " __VA_ARGS__)

#endif
