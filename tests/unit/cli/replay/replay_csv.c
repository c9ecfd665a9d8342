/* SPDX-License-Identifier: MIT */
/* Reading traces: RMM's and ours, good and bad lines, truncated files. */
#include "cli/replay/replay_csv.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdint.h>

#include "live/layout.h"

#define RMM  "Thread,Time,Action,Pointer,Size,Stream\n"
#define OURS "Thread,Time,Action,Pointer,Size,Stream,Device,Kind,Function,Nanoseconds,Id\n"

static char path[] = "/tmp/replay_csv.XXXXXX";
static struct cw_csv csv;
static struct cw_csv_event event;

static void put_file(const char *data, size_t len)
{
    int fd = mkstemp(path);

    cr_assert_eq(write(fd, data, len), (ssize_t)len);
    close(fd);
}

static void start(const char *text)
{
    put_file(text, strlen(text));
    cr_assert_eq(cw_csv_open(&csv, path), 0);
}

static void stop(void)
{
    cw_csv_close(&csv);
    unlink(path);
}

/* The reader's message on stderr, with the file name replaced by FILE. */
static void expect_error(const char *wanted)
{
    char line[512];

    fflush(stderr);
    cr_assert_not_null(fgets(line, sizeof(line), cr_get_redirected_stderr()));
    cr_expect_not_null(strstr(line, wanted), "'%s' in: %s", wanted, line);
}

Test(replay_csv, reads_a_log_of_rmm, .fini = stop)
{
    start(RMM "140,23:59:59.999999,allocate,0x7f00,1024,0\r\n"
              "140,00:00:00.000001,allocate failure,(nil),99,55d0\n"
              "140,00:00:00:000002,free,7F00,1024,0\n");
    cr_assert_eq(cw_csv_next(&csv, &event), 1);
    cr_expect(event.line == 2 && event.pointer == 0x7f00 && event.bytes == 1024);
    cr_expect(event.action == CW_CSV_ALLOCATE && event.device == 0 && event.kind == CW_KIND_DEVICE);
    cr_expect_eq(event.ns, UINT64_C(86399999999000));
    cr_assert_eq(cw_csv_next(&csv, &event), 1);
    cr_expect(event.action == CW_CSV_FAILURE && event.pointer == 0);
    cr_expect_eq(event.ns, UINT64_C(86400000001000), "midnight");
    cr_assert_eq(cw_csv_next(&csv, &event), 1);
    cr_expect(event.action == CW_CSV_FREE && event.pointer == 0x7f00);
    cr_expect_eq(cw_csv_next(&csv, &event), 0);
    cr_expect_eq(csv.is_cut, 0);
}

Test(replay_csv, knows_a_thread_that_was_overtaken_at_midnight, .fini = stop)
{
    start(RMM "1,23:59:59.999990,allocate,0x10,5,0\n"
              "1,00:00:00.000001,free,0x10,5,0\n"
              "2,23:59:59.999999,allocate,0x20,5,0\n"
              "1,00:00:00.000002,free,0x20,5,0\n"
              "1,13:00:00.000000,allocate,0x20,5,0\n");
    for (int i = 0; i < 4; i++)
        cr_assert_eq(cw_csv_next(&csv, &event), 1);
    cr_expect_eq(event.ns, UINT64_C(86400000002000), "one midnight");
    cr_assert_eq(cw_csv_next(&csv, &event), 1);
    cr_expect_eq(event.ns, UINT64_C(37) * 3600 * 1000000000, "and a night without work");
}

Test(replay_csv, reads_what_the_library_adds, .fini = stop)
{
    start(OURS "1,00:00:00.000000,allocate,0x10,5,0,63,pitched,f,70,1\n"
               "1,00:00:00.000000,allocate,0x20,5,0,host,pinned,f,60,2\n");
    cr_assert_eq(cw_csv_next(&csv, &event), 1);
    cr_expect(event.device == 63 && event.kind == CW_KIND_PITCHED && event.ns == 70);
    cr_assert_eq(cw_csv_next(&csv, &event), 1);
    cr_expect(event.device == CW_DEVICE_HOST && event.kind == CW_KIND_PINNED);
    cr_expect_eq(event.ns, 70, "time goes back to %ju", (uintmax_t)event.ns);
}

/* ---- compressed ---- */

#define PACKED_LINES 20000u

static void put_packed(void)
{
    gzFile file;

    put_file("", 0);
    file = gzopen(path, "wb");
    gzputs(file, RMM);
    for (unsigned i = 1; i <= PACKED_LINES; i++)
        gzprintf(file, "1,00:00:00.000000,allocate,0x%x,%u,0\n", i, i * 7919u % 100000);
    cr_assert_eq(gzclose(file), Z_OK);
}

Test(replay_csv, a_compressed_file_reads_as_a_plain_one, .fini = stop)
{
    unsigned lines = 0;

    put_packed();
    cr_assert_eq(cw_csv_open(&csv, path), 0);
    while (cw_csv_next(&csv, &event) == 1)
        cr_assert_eq(event.pointer, ++lines);
    cr_expect_eq(lines, PACKED_LINES);
    cr_expect_eq(csv.is_cut, 0);
}

Test(replay_csv, a_compressed_file_that_was_cut_is_an_error, .init = cr_redirect_stderr,
     .fini = stop)
{
    struct stat info;
    int rc;

    put_packed();
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(truncate(path, info.st_size / 2), 0);
    cr_assert_eq(cw_csv_open(&csv, path), 0);
    while ((rc = cw_csv_next(&csv, &event)) == 1)
        ;
    cr_expect_eq(rc, -1);
    expect_error("unexpected end of file");
}

Test(replay_csv, columns_go_by_name, .fini = stop)
{
    start("Size,Whatever,Pointer,Action\n\n7,x,0x1,allocate\n");
    cr_assert_eq(cw_csv_next(&csv, &event), 1);
    cr_expect(event.bytes == 7 && event.pointer == 1 && event.line == 3 && event.ns == 0);
}

Test(replay_csv, a_killed_process_leaves_zeros_or_half_a_line, .fini = stop)
{
    static const char zeros[] = RMM "1,00:00:00.000000,allocate,0x10,5,0\n\0\0\0\0";

    put_file(zeros, sizeof(zeros) - 1);
    cr_assert_eq(cw_csv_open(&csv, path), 0);
    cr_expect_eq(cw_csv_next(&csv, &event), 1);
    cr_expect_eq(cw_csv_next(&csv, &event), 0);
    cr_expect_eq(csv.is_cut, 1);
}

Test(replay_csv, half_a_line_is_no_line, .fini = stop)
{
    start(RMM "1,00:00:00.000000,allocate,0x10,5,0\n1,00:00:00.000000,allocate,0x10,10");
    cr_expect_eq(cw_csv_next(&csv, &event), 1);
    cr_expect_eq(cw_csv_next(&csv, &event), 0);
    cr_expect_eq(csv.is_cut, 1);
}

Test(replay_csv, a_last_line_without_its_end_counts_when_it_is_whole, .fini = stop)
{
    start(RMM "1,00:00:00.000000,allocate,0x10,5,0");
    cr_expect_eq(cw_csv_next(&csv, &event), 1);
    cr_expect_eq(cw_csv_next(&csv, &event), 0);
    cr_expect_eq(csv.is_cut, 0);
}

Test(replay_csv, bad_lines_are_named, .init = cr_redirect_stderr)
{
    static const struct {
        const char *line, *wanted;
    } cases[] = {
        {"1,00:00:00.000000,lend,0x10,5,0\n", ":2: invalid Action 'lend'"},
        {"1,00:00:00.000000,allocate,0x1g,5,0\n", ":2: invalid Pointer '0x1g'"},
        {"1,00:00:00.000000,allocate,,5,0\n", ":2: invalid Pointer ''"},
        {"1,00:00:00.000000,allocate,0x10,-5,0\n", ":2: invalid Size '-5'"},
        {"1,00:00:00.000000,allocate,0x10,18446744073709551616,0\n", ":2: invalid Size '1844"},
        {"1,10:00,allocate,0x10,5,0\n", ":2: invalid Time '10:00'"},
        {"1,00:00:00.000000,allocate,0x10,5\n", ":2: this line has 5 columns"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];

        snprintf(text, sizeof(text), RMM "%s", cases[i].line);
        memcpy(path, "/tmp/replay_csv.XXXXXX", sizeof(path));
        start(text);
        cr_expect_eq(cw_csv_next(&csv, &event), -1, "%s", cases[i].line);
        expect_error(cases[i].wanted);
        stop();
    }
}

Test(replay_csv, what_is_no_trace_is_refused, .init = cr_redirect_stderr)
{
    put_file("Thread,Time,Action,Size\n", 24);
    cr_expect_eq(cw_csv_open(&csv, path), -1);
    expect_error("the first line must name the columns Action, Pointer and Size");
    unlink(path);
}

Test(replay_csv, too_many_columns_are_counted, .init = cr_redirect_stderr)
{
    char many[40]; /* 39 commas and a newline */

    memset(many, ',', sizeof(many));
    many[sizeof(many) - 1] = '\n';
    put_file(many, sizeof(many));
    cr_expect_eq(cw_csv_open(&csv, path), -1);
    expect_error("the first line has 40 columns, but a trace has at most 32");
    unlink(path);
}

/* Lines that cross the end of the buffer. */
Test(replay_csv, long_files_pass_through_one_buffer, .fini = stop)
{
    enum { LINES = 60000 };
    FILE *file;
    uint64_t lines = 0;
    int rc;

    put_file(RMM, sizeof(RMM) - 1);
    file = fopen(path, "a");
    for (uint64_t i = 1; i <= LINES; i++)
        fprintf(file, "1,00:00:00.000000,allocate,0x%jx,%ju,0\n", (uintmax_t)i, (uintmax_t)i * 3);
    fclose(file);
    cr_assert_eq(cw_csv_open(&csv, path), 0);
    while ((rc = cw_csv_next(&csv, &event)) == 1) {
        lines++;
        cr_assert(event.pointer == lines && event.bytes == 3 * lines && event.line == lines + 1);
    }
    cr_expect_eq(rc, 0);
    cr_expect_eq(lines, LINES);
}
