/* SPDX-License-Identifier: MIT */
/* Messages: their form, levels, ceiling, and that they disturb nothing. */
#include "base/log.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int captured = -1; /* what stderr writes to during a test */

static void capture_stderr(void)
{
    captured = memfd_create("stderr", 0);
    cr_assert_geq(captured, 0);
    dup2(captured, STDERR_FILENO);
}

static const char *captured_text(void)
{
    static char text[1 << 16];
    ssize_t len = pread(captured, text, sizeof(text) - 1, 0);

    text[len > 0 ? len : 0] = '\0';
    return text;
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

TestSuite(log, .init = capture_stderr);

Test(log, names_the_level_of_each_line)
{
    cw_log_set_level(CW_LOG_DEBUG);
    cw_log(CW_LOG_ERROR, "e %d", 1);
    cw_log(CW_LOG_WARN, "w %s", "two");
    cw_log(CW_LOG_INFO, "i");
    cw_log(CW_LOG_DEBUG, "d");
    cr_expect_str_eq(captured_text(), "cuwarden: error: e 1\n"
                                      "cuwarden: warning: w two\n"
                                      "cuwarden: i\n"
                                      "cuwarden: debug: d\n");
}

Test(log, prints_warnings_and_errors_until_told_otherwise)
{
    cr_expect_eq(cw_log_get_level(), CW_LOG_WARN);
    cw_log(CW_LOG_INFO, "hidden");
    cw_log(CW_LOG_WARN, "shown");
    cr_expect_str_eq(captured_text(), "cuwarden: warning: shown\n");
}

Test(log, prints_nothing_when_off)
{
    cw_log_set_level(CW_LOG_OFF);
    cw_log(CW_LOG_ERROR, "hidden");
    cw_log(CW_LOG_OFF, "hidden");
    cr_expect_str_eq(captured_text(), "");
}

Test(log, preserves_errno_even_when_stderr_is_closed)
{
    errno = EDOM;
    cw_log(CW_LOG_WARN, "text");
    cr_expect_eq(errno, EDOM);
    close(STDERR_FILENO);
    cw_log(CW_LOG_WARN, "text");
    cr_expect_eq(errno, EDOM);
}

Test(log, keeps_one_line_one_line)
{
    cw_log(CW_LOG_WARN, "%s", "a\nb\033[1mc\x7f\xc3\xa4");
    cr_expect_str_eq(captured_text(), "cuwarden: warning: a?b?[1mc?\xc3\xa4\n");
}

static char filler[2000];

Test(log, cuts_a_long_line_and_says_so)
{
    const char *text;

    memset(filler, 'x', sizeof(filler) - 1);
    cw_log(CW_LOG_WARN, "%s", filler);
    text = captured_text();
    cr_expect_eq(strlen(text), (size_t)CW_LOG_LINE_MAX);
    cr_expect_str_eq(text + strlen(text) - 5, "x...\n");
    cr_expect_eq(count_lines(text), 1u);
}

Test(log, cuts_between_characters)
{
    for (size_t i = 0; i + 2 < sizeof(filler); i += 2)
        memcpy(filler + i, "\xc3\xa4", 2);
    for (int shift = 0; shift < 2; shift++) {
        cr_assert_eq(ftruncate(captured, 0), 0);
        lseek(captured, 0, SEEK_SET);
        cw_log(CW_LOG_WARN, "%.*s%s", shift, "x", filler);
        const char *text = captured_text();
        cr_expect_str_eq(text + strlen(text) - 5, "\xa4...\n");
    }
}

Test(log, keeps_a_line_that_just_fits)
{
    size_t prefix = strlen("cuwarden: warning: ");

    memset(filler, 'x', sizeof(filler) - 1);
    cw_log(CW_LOG_WARN, "%.*s", (int)(CW_LOG_LINE_MAX - 4 - prefix), filler);
    cr_expect_eq(strlen(captured_text()), (size_t)CW_LOG_LINE_MAX - 3);
    cr_expect_null(strstr(captured_text(), "..."));
}

Test(log, stops_at_the_ceiling_and_says_so_once)
{
    for (int i = 0; i < CW_LOG_CEILING + 50; i++)
        cw_log(CW_LOG_WARN, "number %d", i);
    cr_expect_eq(count_lines(captured_text()), (size_t)CW_LOG_CEILING + 1);
    cr_expect_not_null(strstr(captured_text(), "number 99\n"));
    cr_expect_null(strstr(captured_text(), "number 100\n"));
    cr_expect_not_null(strstr(captured_text(), "prints no more"));
}

Test(log, the_ceiling_spares_information_and_starts_anew_after_a_reset)
{
    cw_log_set_level(CW_LOG_INFO);
    for (int i = 0; i < CW_LOG_CEILING + 2; i++)
        cw_log(CW_LOG_ERROR, "x");
    cw_log(CW_LOG_INFO, "still here");
    cr_expect_not_null(strstr(captured_text(), "still here"));
    cw_log_reset();
    cw_log(CW_LOG_ERROR, "the child");
    cr_expect_not_null(strstr(captured_text(), "the child"));
}

Test(log, once_prints_once_and_not_before_the_level_allows)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    cw_log_once(&said, CW_LOG_INFO, "first");
    cw_log_set_level(CW_LOG_INFO);
    cw_log_once(&said, CW_LOG_INFO, "second");
    cw_log_once(&said, CW_LOG_INFO, "third");
    cr_expect_str_eq(captured_text(), "cuwarden: second\n");
}

static void *log_many(void *arg)
{
    for (int i = 0; i < 20; i++)
        cw_log(CW_LOG_WARN, "%s %s %s", (char *)arg, (char *)arg, (char *)arg);
    return NULL;
}

Test(log, lines_of_threads_do_not_mix)
{
    char *words[] = {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"};
    pthread_t threads[3];
    const char *line;

    /* Appending, as to a terminal or pipe: the file offset of a memfd is shared but not atomic. */
    fcntl(STDERR_FILENO, F_SETFL, O_APPEND);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, log_many, words[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    line = captured_text();
    cr_expect_eq(count_lines(line), 60u);
    for (; *line; line = strchr(line, '\n') + 1) {
        const char *word = line + strlen("cuwarden: warning: ");

        cr_expect_eq(strncmp(word, word + 17, 16), 0);
        cr_expect_eq(word[50], '\n');
    }
}
