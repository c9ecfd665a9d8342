/* SPDX-License-Identifier: MIT */
/*
 * Runs the tests of a program, each in a forked child, and prints TAP: all, or those that are named
 * by the arguments. A test fails by an expectation that does not hold, by a signal or an exit
 * status that it does not name, and by taking too long.
 */
#include "criterion.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redirect.h"

#define SKIPPED   77
#define TIMEOUT_S 1700

static struct cr_test *tests, **tests_end = &tests;
static struct cr_suite *suites;
static int has_failed, redirected = -1;
static FILE *read_from; /* what was written there */

void cr_add_test(struct cr_test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

void cr_add_suite(struct cr_suite *suite)
{
    suite->next = suites;
    suites = suite;
}

void cr_failed(int is_fatal, const char *file, int line, const char *what, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    printf("# %s:%d: %s:", file, line, what);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
    va_end(arguments);
    __atomic_store_n(&has_failed, 1, __ATOMIC_RELAXED);
    if (is_fatal)
        _exit(1);
}

void cr_skipped(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    printf("# skipped:");
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
    va_end(arguments);
    _exit(SKIPPED);
}

void cr_redirect_stderr(void)
{
    char path[64];

    fflush(stderr);
    redirected = memfd_create("stderr", 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", redirected);
    if (redirected < 0 || dup2(redirected, STDERR_FILENO) < 0 || !(read_from = fopen(path, "r")))
        cr_failed(1, __FILE__, __LINE__, "standard error is redirected", " ");
}

FILE *cr_get_redirected_stderr(void)
{
    fflush(stderr);
    clearerr(read_from);
    return read_from;
}

int cr_stderr_is(const char *text)
{
    static char found[1 << 16];
    size_t length = fread(found, 1, sizeof(found) - 1, cr_get_redirected_stderr());

    found[length] = 0;
    return strcmp(found, text) == 0;
}

static const struct cr_options *options_of(const char *suite)
{
    static const struct cr_options none;

    for (const struct cr_suite *at = suites; at; at = at->next)
        if (strcmp(at->name, suite) == 0)
            return &at->options;
    return &none;
}

static void call(void (*function)(void))
{
    if (function)
        function();
}

static void run(const struct cr_test *test, const struct cr_options *suite)
{
    alarm(TIMEOUT_S);
    call(suite->init);
    call(test->options.init);
    test->run();
    call(test->options.fini);
    call(suite->fini);
    fflush(stdout);
    _exit(__atomic_load_n(&has_failed, __ATOMIC_RELAXED));
}

/* Returns whether the test came out as it should, or SKIPPED. */
static int outcome(const struct cr_test *test)
{
    const struct cr_options *suite = options_of(test->suite);
    int status = 0, signal = test->options.signal ? test->options.signal : suite->signal;
    pid_t child;

    if (test->options.disabled || suite->disabled)
        return SKIPPED;
    fflush(stdout);
    child = fork();
    if (child == 0)
        run(test, suite);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 0;
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) != signal)
            printf("# %s\n", strsignal(WTERMSIG(status)));
        return WTERMSIG(status) == signal;
    }
    return WEXITSTATUS(status) == SKIPPED ? SKIPPED : WEXITSTATUS(status) == 0 && !signal;
}

static int is_wanted(const struct cr_test *test, int names, char **name)
{
    for (int i = 0; i < names; i++)
        if (strcmp(name[i], test->name) == 0)
            return 1;
    return names == 0;
}

int main(int argc, char **argv)
{
    int count = 0, failed = 0;

    for (const struct cr_test *test = tests; test; test = test->next) {
        int result;

        if (!is_wanted(test, argc - 1, argv + 1))
            continue;
        result = outcome(test);
        count++;
        failed += result == 0;
        printf("%sok %d - %s::%s%s\n", result ? "" : "not ", count, test->suite, test->name,
               result == SKIPPED ? " # SKIP" : "");
    }
    printf("1..%d\n", count);
    if (argc > 1 && count != argc - 1) {
        fprintf(stderr, "%d tests were named, %d found\n", argc - 1, count);
        return 99;
    }
    return failed != 0;
}
