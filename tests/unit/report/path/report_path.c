/* SPDX-License-Identifier: MIT */
/* Names of report files, directories, renaming, and destinations that cannot be written. */
#include "report/path/path.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "live_fixture.h"
#include "report/report.h"

static char directory[64];

static void setup(void)
{
    strcpy(directory, "/tmp/cuwarden-path-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    fixture_create();
}

static void teardown(void)
{
    char command[128];

    fixture_destroy();
    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(path, .init = setup, .fini = teardown);

static char *variables[] = {"RANK=3", "RANKS=8", "EMPTY=", "OUT=/data/x", "UP=..", NULL};

/* The last four are no escapes, and stay as they are. */
Test(path, escapes_are_expanded)
{
    static const struct cw_path_values values = {.pid = 4711,
                                                 .host = "node/7",
                                                 .program = "/opt/demo/victim",
                                                 .start_seconds = 1700000000,
                                                 .number = 12,
                                                 .rank = "7",
                                                 .env = variables};
    static const char *const pairs[][2] = {
        {"plain.txt", "plain.txt"},
        {"%p.%h.%e.%t.%n", "4711.node_7.victim.1700000000.12"},
        {"%q{RANK}-%q{RANKS}", "3-8"},
        {"%q{OUT}/r", "_data_x/r"},
        {"%q{UP}/r", "__/r"},
        {"r-%r.json", "r-7.json"},
        {"a%q{EMPTY}b%q{UNSET}c%q{RAN}d", "abcd"},
        {"100%%", "100%"},
        {"%%p", "%p"},
        {"%x%", "%x%"},
        {"%q", "%q"},
        {"%q{RANK", "%q{RANK"},
        {"%qRANK}", "%qRANK}"},
    };
    char path[256];

    for (size_t i = 0; i < CW_ARRAY_LEN(pairs); i++) {
        cr_expect_eq(cw_path_expand(path, sizeof(path), pairs[i][0], &values), 0);
        cr_expect_str_eq(path, pairs[i][1]);
    }
}

Test(path, too_long_a_name_is_refused_and_terminated)
{
    struct cw_path_values values = {.pid = 4711};
    char path[8];

    cr_expect_eq(cw_path_expand(path, sizeof(path), "1234567", &values), 0);
    cr_expect_eq(cw_path_expand(path, sizeof(path), "1234%p", &values), -1);
    cr_expect_eq(strlen(path), 7);
}

Test(path, without_a_rank_it_is_zero)
{
    struct cw_path_values values = {.rank = NULL};
    char path[16];

    cr_expect_eq(cw_path_expand(path, sizeof(path), "%r-", &values), 0);
    cr_expect_str_eq(path, "0-");
    values.rank = "";
    cr_expect_eq(cw_path_expand(path, sizeof(path), "%r-", &values), 0);
    cr_expect_str_eq(path, "0-");
}

Test(path, a_name_is_shared_unless_an_escape_tells_processes_apart)
{
    static const char *const shared[] = {"r.json",      "%h/%e.%t.json", "%q{HOME}/r",   "r-%%p",
                                         "r-%q{RAN}",   "r-%q{JOB_ID}",  "r-%%%%n.json", "r%",
                                         "%q{HOME}/%h", "r-%q{RANK"};
    static const char *const own[] = {"r-%p",
                                      "r.%n.json",
                                      "r-%r",
                                      "%%%p",
                                      "%h-%q{RANK}",
                                      "%q{LOCAL_RANK}",
                                      "%q{A}%q{OMPI_COMM_WORLD_RANK}.txt",
                                      "%q{SLURM_PROCID}/r"};

    for (size_t i = 0; i < CW_ARRAY_LEN(shared); i++)
        cr_expect(cw_path_is_shared(shared[i]), "%s", shared[i]);
    for (size_t i = 0; i < CW_ARRAY_LEN(own); i++)
        cr_expect_not(cw_path_is_shared(own[i]), "%s", own[i]);
}

Test(path, a_device_a_fifo_and_a_link_are_shared_by_nobody)
{
    char path[128], target[128];

    cr_expect_not(cw_path_is_shared("/dev/null"));
    snprintf(path, sizeof(path), "%s/fifo", directory);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_not(cw_path_is_shared(path));
    snprintf(path, sizeof(path), "%s/link", directory);
    snprintf(target, sizeof(target), "%s/r", directory);
    cr_assert_eq(symlink(target, path), 0);
    cr_expect_not(cw_path_is_shared(path));
    close(open(target, O_CREAT | O_WRONLY, 0600));
    cr_expect(cw_path_is_shared(target));
}

Test(path, a_text_goes_before_the_extension)
{
    static const char *const pairs[][2] = {{"r.json", "r.x.json"},
                                           {"a.b/r", "a.b/r.x"},
                                           {".r", ".r.x"},
                                           {"r.%p", "r.%p.x"},
                                           {"/a/r.1.txt", "/a/r.1.x.txt"}};
    char path[64];

    for (size_t i = 0; i < CW_ARRAY_LEN(pairs); i++) {
        cr_expect_eq(cw_path_insert(path, sizeof(path), pairs[i][0], ".x"), 0);
        cr_expect_str_eq(path, pairs[i][1]);
    }
    cr_expect_eq(cw_path_insert(path, 9, "rr.txt", ".x"), 0);
    cr_expect_eq(cw_path_insert(path, 9, "rrr.txt", ".x"), -1);
}

/* ---- reports ---- */

static int write_report_of(enum cw_report_form form, const char *name, int fd)
{
    struct cw_view view = fixture_view();
    char destination[256];
    struct cw_report_request request = {
        .form = form, .destination = destination, .fd = fd, .env = variables};

    snprintf(destination, sizeof(destination), "%s%s%s", *name == '/' ? "" : directory,
             *name == '/' ? "" : "/", name);
    return cw_report_write(&view, &request);
}

/* The first bytes of a file in the directory; "" when it does not exist. */
static const char *head_of(const char *name)
{
    static char head[32];
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    memset(head, 0, sizeof(head));
    fd = open(path, O_RDONLY);
    if (fd < 0)
        return "";
    cr_assert_geq(read(fd, head, sizeof(head) - 1), 0);
    close(fd);
    return head;
}

static unsigned count_files(void)
{
    char command[160];
    unsigned count;
    FILE *pipe;

    snprintf(command, sizeof(command), "find '%s' -type f | wc -l", directory);
    pipe = popen(command, "r");
    cr_assert_eq(fscanf(pipe, "%u", &count), 1);
    pclose(pipe);
    return count;
}

static int is_text(const char *name)
{
    return strncmp(head_of(name), "==4711== cuwarden", 17) == 0;
}

static int is_json(const char *name)
{
    return strncmp(head_of(name), "{\"schema\":\"cuwarden", 19) == 0;
}

Test(path, missing_directories_are_made_and_nothing_else_is_left)
{
    umask(027);
    cr_expect_eq(write_report_of(CW_REPORT_TEXT, "a/b-%q{RANK}/%e.%p.txt", 0), 0);
    cr_expect(is_text("a/b-3/victim.4711.txt"));
    cr_expect_eq(count_files(), 1);
}

Test(path, an_older_report_is_replaced)
{
    cr_expect_eq(write_report_of(CW_REPORT_TEXT, "r", 0), 0);
    cr_expect_eq(write_report_of(CW_REPORT_JSON, "r", 0), 0);
    cr_expect(is_json("r"));
    cr_expect_eq(count_files(), 1);
}

Test(path, both_forms_are_two_files)
{
    cr_expect_eq(write_report_of(CW_REPORT_BOTH, "r", 0), 0);
    cr_expect(is_text("r"));
    cr_expect(is_json("r.json"));
    cr_expect_eq(count_files(), 2);
}

Test(path, number_is_the_first_that_is_free)
{
    for (int i = 0; i < 3; i++)
        cr_expect_eq(write_report_of(CW_REPORT_BOTH, "d/r.%n", 0), 0);
    cr_expect(is_text("d/r.1") && is_text("d/r.2") && is_text("d/r.3"));
    cr_expect(is_json("d/r.1.json") && is_json("d/r.3.json"));
    cr_expect_eq(count_files(), 6);
    cr_expect_eq(write_report_of(CW_REPORT_TEXT, "100%%n", 0), 0);
    cr_expect(is_text("100%n"));
}

/* Neither of the two files of a number is one that was there. */
Test(path, number_is_free_for_both_forms)
{
    static const char *const rows[][3] = {{"d/r.%n.json", "d/r.1.json", "d/r.2.json"},
                                          {"t.%n", "t.1.json", "t.2"}};

    char path[128];

    snprintf(path, sizeof(path), "%s/d", directory);
    cr_assert_eq(mkdir(path, 0700), 0);
    for (unsigned i = 0; i < 2; i++) {
        FILE *old;

        snprintf(path, sizeof(path), "%s/%s", directory, rows[i][1]);
        old = fopen(path, "w");
        cr_assert(old != NULL && fputs("old", old) >= 0 && fclose(old) == 0);
        cr_expect_eq(write_report_of(CW_REPORT_BOTH, rows[i][0], 0), 0);
        cr_expect_str_eq(head_of(rows[i][1]), "old");
        cr_expect(i == 0 ? is_json(rows[i][2]) : is_text(rows[i][2]));
    }
    cr_expect(is_text("d/r.2.json.txt") && is_json("t.2.json"));
    cr_expect_eq(count_files(), 6);
}

/* What a server has no room for may be said as late as that. */
Test(path, an_error_of_the_close_keeps_the_older_report)
{
    struct cw_path_values values = {0};
    struct cw_report_file *file = calloc(1, sizeof(*file));
    char path[128];

    cr_expect_eq(write_report_of(CW_REPORT_TEXT, "r", 0), 0);
    snprintf(path, sizeof(path), "%s/r", directory);
    cr_assert_eq(cw_report_file_open(file, path, "", NULL, &values), 0);
    close(file->fd);
    cr_expect_eq(cw_report_file_close(file, 0), EBADF);
    cr_expect(is_text("r"));
    cr_expect_eq(count_files(), 1);
    free(file);
}

Test(path, nothing_due_makes_no_file)
{
    cr_expect_eq(write_report_of(CW_REPORT_SHORT_IF_LEAKED, "d/r", 0), 0);
    cr_expect_eq(count_files(), 0);
    cr_expect_str_eq(head_of("d"), "");
}

static void expect_fallback(enum cw_report_form form, const char *name)
{
    int fd = memfd_create("fallback", 0);
    char head[64] = "";

    cr_expect_eq(write_report_of(form, name, fd), -1);
    cr_expect_gt(pread(fd, head, sizeof(head) - 1, 0), 20);
    cr_expect_eq(strncmp(head, "==4711== cuwarden", 17), 0, "%s", head);
    close(fd);
}

Test(path, unwritable_destinations_warn_and_the_text_is_not_lost)
{
    static char text[4096];
    int saved = dup(2);
    int warnings = memfd_create("warnings", 0);

    dup2(warnings, 2);
    cr_assert_eq(write_report_of(CW_REPORT_TEXT, "file", 0), 0);
    expect_fallback(CW_REPORT_TEXT, "/proc/nowhere/report");
    expect_fallback(CW_REPORT_JSON, "file/below");
    expect_fallback(CW_REPORT_BOTH, "/dev/full");
    expect_fallback(CW_REPORT_TEXT, "/tmp");
    dup2(saved, 2);
    cr_assert_gt(pread(warnings, text, sizeof(text) - 1, 0), 0);
    cr_expect_not_null(strstr(text, "cannot write the report to \"/proc/nowhere/report\": no such "
                                    "file or directory"));
    cr_expect_not_null(strstr(text, "/file/below\": a part of the path is not a directory"));
    cr_expect_not_null(strstr(text, "\"/dev/full\": no space left on the device"));
    cr_expect_not_null(strstr(text, "\"/tmp\": is a directory"));
    cr_expect_not_null(strstr(text, "writing it to stderr instead"));
    cr_expect_eq(count_files(), 1);
}

Test(path, devices_and_fifos_are_written_to_and_not_replaced)
{
    char path[128];
    struct stat info;
    char head[18] = "";
    int reader;

    snprintf(path, sizeof(path), "%s/fifo", directory);
    cr_assert_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    cr_expect_eq(write_report_of(CW_REPORT_TEXT, "fifo", 0), 0);
    cr_expect_eq(read(reader, head, 17), 17);
    cr_expect_str_eq(head, "==4711== cuwarden");
    cr_assert_eq(stat(path, &info), 0);
    cr_expect(S_ISFIFO(info.st_mode));
    cr_expect_eq(write_report_of(CW_REPORT_TEXT, "/dev/null", 0), 0);
    cr_assert_eq(stat("/dev/null", &info), 0);
    cr_expect(S_ISCHR(info.st_mode));
    close(reader);
}

Test(path, fifo_without_a_reader_does_not_block)
{
    char path[128];
    int saved = dup(2);

    dup2(open("/dev/null", O_WRONLY), 2);
    snprintf(path, sizeof(path), "%s/fifo", directory);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_fallback(CW_REPORT_TEXT, "fifo");
    dup2(saved, 2);
}
