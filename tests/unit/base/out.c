/* SPDX-License-Identifier: MIT */
/* The formatter, the writer, sizes and durations for people, JSON strings. */
#include "base/out.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

/* ---- the formatter ---- */

/* printf is the reference for everything that the formatter knows. */
#define EXPECT_AS_PRINTF(...)                                                                      \
    do {                                                                                           \
        char ours[256];                                                                            \
        char theirs[256];                                                                          \
        size_t len = cw_format(ours, sizeof(ours), __VA_ARGS__);                                   \
        int wanted = snprintf(theirs, sizeof(theirs), __VA_ARGS__);                                \
        cr_expect_str_eq(ours, theirs);                                                            \
        cr_expect_eq(len, (size_t)wanted);                                                         \
    } while (0)

/* What printf leaves open, or does otherwise. */
#define EXPECT_FORMAT(wanted, ...)                                                                 \
    do {                                                                                           \
        char buf[64];                                                                              \
        cw_format(buf, sizeof(buf), __VA_ARGS__);                                                  \
        cr_expect_str_eq(buf, wanted);                                                             \
    } while (0)

Test(format, prints_integers_of_every_length)
{
    EXPECT_AS_PRINTF("%d %i %u %x", -1, 0, 42u, 0xbeefu);
    EXPECT_AS_PRINTF("%ld %lu %lx", LONG_MIN, ULONG_MAX, ULONG_MAX);
    EXPECT_AS_PRINTF("%lld %llu %llx", LLONG_MIN, ULLONG_MAX, ULLONG_MAX);
    EXPECT_AS_PRINTF("%zd %zu %zx", (ssize_t)SSIZE_MAX, SIZE_MAX, SIZE_MAX);
    EXPECT_AS_PRINTF("%jd %ju %jx", INTMAX_MIN, UINTMAX_MAX, UINTMAX_MAX);
    EXPECT_AS_PRINTF("%d %d", INT_MIN, INT_MAX);
    EXPECT_FORMAT("-9223372036854775808", "%jd", (intmax_t)INT64_MIN);
}

Test(format, pads_to_the_field_width)
{
    EXPECT_AS_PRINTF("[%5d] [%-5d] [%05d] [%05d]", 42, 42, 42, -42);
    EXPECT_AS_PRINTF("[%*d] [%*d] [%-*d]", 6, 1, -6, 2, 6, 3);
    EXPECT_AS_PRINTF("[%8x] [%-8x] [%08x]", 255u, 255u, 255u);
    EXPECT_AS_PRINTF("[%2d] [%1d]", 12345, -12345);
    EXPECT_AS_PRINTF("[%10s] [%-10s] [%c] [%3c] [%-3c]", "right", "left", 'x', 'y', 'z');
    EXPECT_AS_PRINTF("[%020d]", -7);
    EXPECT_AS_PRINTF("[%40d]", 7);
}

Test(format, left_alignment_wins_over_zeros)
{
    EXPECT_FORMAT("[42   ]", "[%0*d]", -5, 42);
}

Test(format, cuts_strings_at_the_precision)
{
    static const char unterminated[3] = {'a', 'b', 'c'};

    EXPECT_AS_PRINTF("[%.3s] [%.*s] [%.0s] [%.s]", "abcdef", 2, "abcdef", "abc", "abc");
    EXPECT_AS_PRINTF("[%6.2s] [%-6.2s]", "abcdef", "abcdef");
    EXPECT_AS_PRINTF("[%.*s]", -1, "whole");
    EXPECT_AS_PRINTF("[%.3s]", unterminated);
}

Test(format, prints_a_percent_sign_and_pointers)
{
    EXPECT_AS_PRINTF("100%% %p", (void *)(uintptr_t)0x7f0012345678);
    EXPECT_FORMAT("0x0|           0xabc", "%p|%16p", NULL, (void *)(uintptr_t)0xabc);
}

Test(format, names_a_null_string)
{
    const char *volatile nothing = NULL;

    EXPECT_FORMAT("(null)", "%s", nothing);
}

Test(format, copies_the_rest_after_an_unknown_conversion)
{
    const char *volatile fmt = "%d then %f and %d";
    char buf[64];
    struct cw_out out;

    cw_out_init(&out, -1, buf, sizeof(buf) - 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    cw_out_printf(&out, fmt, 7);
#pragma GCC diagnostic pop
    buf[out.len] = '\0';
    cr_expect_str_eq(buf, "7 then %f and %d");
}

Test(format, survives_a_lone_percent_at_the_end)
{
    const char *volatile fmt = "half 50%";
    char buf[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    cw_format(buf, sizeof(buf), fmt);
#pragma GCC diagnostic pop
    cr_expect_str_eq(buf, "half 50%");
}

Test(format, truncates_terminates_and_returns_the_whole_length)
{
    char buf[5] = "....";

    cr_expect_eq(cw_format(buf, sizeof(buf), "%s", "abcd"), 4u);
    cr_expect_str_eq(buf, "abcd");
    cr_expect_eq(cw_format(buf, sizeof(buf), "%d", 1234567), 7u);
    cr_expect_str_eq(buf, "1234");
    cr_expect_eq(cw_format(buf, 1, "%s", "abc"), 3u);
    cr_expect_str_eq(buf, "");
    cr_expect_eq(cw_format(NULL, 0, "%s", "abc"), 3u);
}

Test(format, preserves_errno)
{
    char buf[32];

    errno = EXDEV;
    cw_format(buf, sizeof(buf), "%d %s", 1, "x");
    cr_expect_eq(errno, EXDEV);
}

/* ---- sizes ---- */

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

/* With one decimal, rounded half up, and never 1024 of a unit. */
Test(out, prints_sizes)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {KIB, "1.0 KiB"},
        {4 * KIB, "4.0 KiB"},
        {MIB + MIB / 2, "1.5 MiB"},
        {UINT64_C(65712999629), "61.2 GiB"},
        {GIB * 1024, "1.0 TiB"},
        {GIB * 1024 * 1024, "1.0 PiB"},
        {UINT64_MAX, "16.0 EiB"},
        {KIB + 51, "1.0 KiB"},        /* 1.0498 */
        {KIB + 52, "1.1 KiB"},        /* 1.0508 */
        {20 * KIB + 256, "20.3 KiB"}, /* 20.25 exactly */
        {1048524, "1023.9 KiB"},      /* 1023.9492 */
        {1048525, "1.0 MiB"},         /* 1023.9502 */
        {MIB - 1, "1.0 MiB"},
        {MIB, "1.0 MiB"},
        {GIB - 1, "1.0 GiB"},
        {GIB * 1024 - 1, "1.0 TiB"},
        {GIB * GIB - 1, "1.0 EiB"},
    };
    char buf[16];

    for (size_t i = 0; i < CW_ARRAY_LEN(sizes); i++)
        cr_expect_str_eq(cw_format_size(buf, sizeof(buf), sizes[i].bytes), sizes[i].text);
}

/* ---- durations ---- */

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

/* By their magnitude, and never one that was rounded up in the smaller form. */
Test(out, prints_durations)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } durations[] = {
        {0, "0us"},
        {1, "1us"},
        {120999, "120us"},
        {MS - 1, "999us"},
        {MS, "0.001s"},
        {4 * MS, "0.004s"},
        {999 * MS, "0.999s"},
        {SECOND, "1.0s"},
        {12 * SECOND + 300 * MS, "12.3s"},
        {60 * SECOND, "00:01:00"},
        {2467 * SECOND, "00:41:07"},
        {86399 * SECOND, "23:59:59"},
        {86400 * SECOND, "1d 00:00:00"},
        {(3 * 86400 + 4 * 3600 + 5 * 60 + 6) * SECOND, "3d 04:05:06"},
        {UINT64_MAX, "213503d 23:34:33"},
        {999 * MS + MS / 2 - 1, "0.999s"},
        {999 * MS + MS / 2, "1.0s"},
        {59 * SECOND + 949 * MS, "59.9s"},
        {59 * SECOND + 950 * MS, "00:01:00"},
    };
    char buf[24];

    for (size_t i = 0; i < CW_ARRAY_LEN(durations); i++)
        cr_expect_str_eq(cw_format_duration(buf, sizeof(buf), durations[i].ns), durations[i].text);
}

/* ---- JSON ---- */

static void expect_json(const char *text, size_t len, const char *wanted)
{
    char buf[128];
    struct cw_out out;

    cw_out_init(&out, -1, buf, sizeof(buf) - 1);
    cw_out_json_string(&out, text, len);
    buf[out.len] = '\0';
    cr_expect_str_eq(buf, wanted);
}

#define EXPECT_JSON(text, wanted) expect_json("" text, sizeof(text) - 1, wanted)
#define BAD                       "\xef\xbf\xbd"

Test(json, escapes_quotes_backslashes_and_control_characters)
{
    EXPECT_JSON("", "\"\"");
    expect_json(NULL, 0, "\"\"");
    EXPECT_JSON("plain /", "\"plain /\"");
    EXPECT_JSON("\"\\", "\"\\\"\\\\\"");
    EXPECT_JSON("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
    EXPECT_JSON("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"");
    EXPECT_JSON("a\0b", "\"a\\u0000b\"");
}

Test(json, keeps_valid_utf8)
{
    EXPECT_JSON("\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82\"");
    EXPECT_JSON("\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"");
    EXPECT_JSON("\xed\x9f\xbf\xee\x80\x80", "\"\xed\x9f\xbf\xee\x80\x80\"");
}

Test(json, replaces_invalid_utf8)
{
    EXPECT_JSON("\xff", "\"" BAD "\"");
    EXPECT_JSON("a\x80z", "\"a" BAD "z\"");
    EXPECT_JSON("\xc0\xaf", "\"" BAD BAD "\"");                 /* overlong slash */
    EXPECT_JSON("\xe0\x80\x80", "\"" BAD BAD BAD "\"");         /* overlong */
    EXPECT_JSON("\xed\xa0\x80", "\"" BAD BAD BAD "\"");         /* surrogate */
    EXPECT_JSON("\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""); /* past U+10FFFF */
    EXPECT_JSON("\xe2\x82", "\"" BAD "\"");                     /* cut at the end */
    EXPECT_JSON("\xe2\x82\"", "\"" BAD "\\\"\"");               /* cut by a quote */
    EXPECT_JSON("\xf0\x9f\x99", "\"" BAD "\"");
}

/* ---- the writer ---- */

Test(out, passes_text_through_a_small_buffer_unharmed)
{
    char buf[7];
    char seen[64] = "";
    struct cw_out out;
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    cw_out_init(&out, ends[1], buf, sizeof(buf));
    cw_out_string(&out, "a text longer than the buffer ");
    cw_out_printf(&out, "%s", "and more");
    cw_out_char(&out, '\n');
    cr_expect_eq(cw_out_flush(&out), 0);
    cr_expect_gt(read(ends[0], seen, sizeof(seen) - 1), 0);
    cr_expect_str_eq(seen, "a text longer than the buffer and more\n");
    cr_expect_eq(out.total, strlen(seen));
    cr_expect_eq(out.truncated, 0);
}

Test(out, remembers_the_first_failed_write_and_drops_the_rest)
{
    char buf[16];
    struct cw_out out;
    int full = open("/dev/full", O_WRONLY);

    cr_assert_geq(full, 0);
    errno = EDOM;
    cw_out_init(&out, full, buf, sizeof(buf));
    cw_out_string(&out, "more than sixteen bytes of text");
    cr_expect_eq(out.error, ENOSPC);
    close(full);
    cw_out_string(&out, "and again more than sixteen bytes of text");
    cr_expect_eq(cw_out_flush(&out), ENOSPC);
    cr_expect_eq(out.len, 0u);
    cr_expect_eq(errno, EDOM);
}

Test(out, marks_a_string_that_did_not_fit)
{
    char buf[4];
    struct cw_out out;

    cw_out_init(&out, -1, buf, sizeof(buf));
    cw_out_string(&out, "abcd");
    cr_expect_eq(out.truncated, 0);
    cw_out_char(&out, 'e');
    cr_expect_eq(out.truncated, 1);
    cr_expect_eq(out.total, 5u);
    cr_expect_eq(memcmp(buf, "abcd", 4), 0);
}

static volatile sig_atomic_t pipe_signals;

static void count_pipe_signal(int number)
{
    (void)number;
    pipe_signals++;
}

Test(out, a_closed_pipe_is_an_error_and_no_signal)
{
    int ends[2];
    sigset_t mask;

    signal(SIGPIPE, count_pipe_signal);
    cr_assert_eq(pipe(ends), 0);
    close(ends[0]);
    cr_expect_eq(cw_write(ends[1], "x", 1, 0), EPIPE);
    cr_expect_eq(pipe_signals, 0);
    sigprocmask(SIG_SETMASK, NULL, &mask);
    cr_expect_not(sigismember(&mask, SIGPIPE));
}

Test(out, a_sigpipe_that_was_pending_before_stays_pending)
{
    int ends[2];
    sigset_t pipe_only;
    sigset_t pending;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_only, NULL);
    raise(SIGPIPE);
    cr_assert_eq(pipe(ends), 0);
    close(ends[0]);
    cr_expect_eq(cw_write(ends[1], "x", 1, 0), EPIPE);
    sigpending(&pending);
    cr_expect(sigismember(&pending, SIGPIPE));
}

Test(out, a_full_non_blocking_pipe_is_waited_for_no_longer_than_told)
{
    static char bulk[1 << 20];
    int ends[2];

    cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
    cr_expect_eq(cw_write(ends[1], bulk, sizeof(bulk), 10), EAGAIN);
    cr_expect_eq(cw_write(ends[1], bulk, 1, 0), EAGAIN);
}

Test(out, what_is_not_stderr_is_left_alone)
{
    int ends[2];
    char byte;

    cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
    cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    cr_expect_eq(cw_write(STDERR_FILENO, "x", 1, 0), 0);
    cr_expect_eq(read(ends[0], &byte, 1), 1);
    cw_write_never_to_stderr();
    cr_expect_eq(cw_write(STDERR_FILENO, "y", 1, 0), EBADF);
    cr_expect_eq(read(ends[0], &byte, 1), -1);
    cr_expect_eq(cw_write(ends[1], "z", 1, 0), 0);
    cr_expect_eq(read(ends[0], &byte, 1), 1);
}
