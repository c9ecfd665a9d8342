/* SPDX-License-Identifier: MIT */
/*
 * As much of Criterion as the tests of many threads use, because Criterion itself does not start
 * under ThreadSanitizer: each test runs in a process of its own, and the program's exit status is
 * the number of tests that failed. Arguments: the names of the tests to run, all if there are none.
 */
#ifndef CW_TESTS_CRITERION_H
#define CW_TESTS_CRITERION_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct test_suite {
    void (*init)(void), (*fini)(void);
};

struct test {
    const char *name;
    void (*body)(void);
    const struct test_suite *suite;
    struct test *next;
};

static struct test *first_test;
static int failures;

#define TestSuite(suite_name, ...) static const struct test_suite suite_##suite_name = {__VA_ARGS__}

#define Test(suite_name, test_name, ...)                                                           \
    static const struct test_suite suite_##suite_name; /* of nothing, unless defined elsewhere */  \
    static void test_name(void);                                                                   \
    static void __attribute__((constructor)) register_##test_name(void)                            \
    {                                                                                              \
        static struct test test = {#test_name, test_name, &suite_##suite_name, NULL};              \
        test.next = first_test;                                                                    \
        first_test = &test;                                                                        \
    }                                                                                              \
    static void test_name(void)

#define CHECK(condition, text, fatal)                                                              \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, text);                      \
            failures++;                                                                            \
            if (fatal)                                                                             \
                _exit(1);                                                                          \
        }                                                                                          \
    } while (0)

#define cr_assert(a, ...)           CHECK(a, #a, 1)
#define cr_assert_eq(a, b, ...)     CHECK((a) == (b), #a " == " #b, 1)
#define cr_assert_neq(a, b, ...)    CHECK((a) != (b), #a " != " #b, 1)
#define cr_assert_gt(a, b, ...)     CHECK((a) > (b), #a " > " #b, 1)
#define cr_assert_not_null(a, ...)  CHECK((a) != NULL, #a " is not NULL", 1)
#define cr_expect(a, ...)           CHECK(a, #a, 0)
#define cr_expect_not(a, ...)       CHECK(!(a), "not " #a, 0)
#define cr_expect_eq(a, b, ...)     CHECK((a) == (b), #a " == " #b, 0)
#define cr_expect_neq(a, b, ...)    CHECK((a) != (b), #a " != " #b, 0)
#define cr_expect_gt(a, b, ...)     CHECK((a) > (b), #a " > " #b, 0)
#define cr_expect_geq(a, b, ...)    CHECK((a) >= (b), #a " >= " #b, 0)
#define cr_expect_lt(a, b, ...)     CHECK((a) < (b), #a " < " #b, 0)
#define cr_expect_leq(a, b, ...)    CHECK((a) <= (b), #a " <= " #b, 0)
#define cr_expect_not_null(a, ...)  CHECK((a) != NULL, #a " is not NULL", 0)
#define cr_expect_null(a, ...)      CHECK((a) == NULL, #a " is NULL", 0)
#define cr_expect_str_eq(a, b, ...) CHECK(strcmp(a, b) == 0, #a " is " #b, 0)

static void run_test(const struct test *test)
{
    if (test->suite->init != NULL)
        test->suite->init();
    test->body();
    if (test->suite->fini != NULL)
        test->suite->fini();
    exit(failures != 0); /* with the sanitizer's own status if it has seen a race */
}

static int is_wanted(const struct test *test, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], test->name) == 0)
            return 1;
    return argc == 1;
}

int main(int argc, char **argv)
{
    int failed = 0, run = 0;

    for (const struct test *test = first_test; test != NULL; test = test->next) {
        int status = -1;
        pid_t child;

        if (!is_wanted(test, argc, argv))
            continue;
        fflush(NULL);
        child = fork();
        if (child == 0)
            run_test(test);
        if (child > 0)
            waitpid(child, &status, 0);
        printf("%s %s\n", status == 0 ? "ok" : "not ok", test->name);
        failed += status != 0;
        run++;
    }
    if (argc > 1 && run != argc - 1) {
        fprintf(stderr, "%d tests were named, %d found\n", argc - 1, run);
        return 99;
    }
    return failed;
}

#endif
