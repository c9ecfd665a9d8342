/* SPDX-License-Identifier: MIT */
/* Names of reports that are made while the process runs. */
#include "report/path/dump_name.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];
static struct cw_dump_name name;
static struct cw_path_values values;

static void setup(void)
{
    strcpy(directory, "/tmp/cuwarden-dump-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    values = (struct cw_path_values){.pid = 4711, .program = "/opt/train", .host = "node"};
}

static void teardown(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(dump_name, .init = setup, .fini = teardown);

static void expect_numbered(const char *pattern, const char *wanted)
{
    char buf[256];

    cr_expect_eq(cw_dump_name_number(buf, sizeof(buf), pattern, 3), 0);
    cr_expect_str_eq(buf, wanted);
}

Test(dump_name, the_number_comes_before_the_extension)
{
    expect_numbered("r.json", "r.dump-3.json");
    expect_numbered("/a.b/r", "/a.b/r.dump-3");
    expect_numbered("/a.b/r.tar.gz", "/a.b/r.tar.dump-3.gz");
    expect_numbered("%e-%p.txt", "%e-%p.dump-3.txt");
    expect_numbered("report.%p", "report.%p.dump-3");
    expect_numbered("r-%q{A.B}", "r-%q{A.B}.dump-3");
    expect_numbered("/d/.hidden", "/d/.hidden.dump-3");
    expect_numbered("r.", "r..dump-3");
}

Test(dump_name, one_that_does_not_fit_is_refused)
{
    char buf[14];

    cr_expect_eq(cw_dump_name_number(buf, sizeof(buf), "r.json", 3), 0);
    cr_expect_eq(cw_dump_name_number(buf, sizeof(buf), "rr.json", 3), -1);
}

/* The name in the directory that is taken for the pattern, from number `from` on. */
static const char *take(const char *pattern, int with_json, unsigned from)
{
    char full[256];
    int error;

    snprintf(full, sizeof(full), "%s/%s", directory, pattern);
    error = cw_dump_name_take(&name, full, with_json, &from, &values);
    return error == 0 ? name.path + strlen(directory) + 1 : "";
}

static int make(const char *file)
{
    char full[256];
    int fd;

    snprintf(full, sizeof(full), "%s/%s", directory, file);
    fd = open(full, O_CREAT | O_WRONLY, 0600);
    return fd >= 0 ? close(fd) : -1;
}

static int is_there(const char *file)
{
    char full[256];

    snprintf(full, sizeof(full), "%s/%s", directory, file);
    return access(full, F_OK) == 0;
}

Test(dump_name, a_file_that_is_there_keeps_its_name)
{
    cr_assert_eq(make("r.dump-1.json"), 0);
    cr_assert_eq(make("r.dump-2.json"), 0);
    cr_expect_str_eq(take("r.json", 0, 1), "r.dump-3.json");
    cr_expect(is_there("r.dump-3.json"));
    cr_expect_str_eq(take("r.json", 0, 1), "r.dump-4.json");
    cr_expect_str_eq(take("r.json", 0, 9), "r.dump-9.json");
}

Test(dump_name, two_files_have_one_number)
{
    cr_assert_eq(make("r.dump-1.json"), 0);
    cr_expect_str_eq(take("r", 1, 1), "r.dump-2");
    cr_expect(is_there("r.dump-2.json"));
    cr_expect_not(is_there("r.dump-1"));
    cw_dump_name_drop(&name);
    cr_expect_not(is_there("r.dump-2"));
    cr_expect_not(is_there("r.dump-2.json"));
}

Test(dump_name, the_templates_number_is_chosen_once)
{
    cr_assert_eq(make("r-1.dump-1.txt"), 0);
    cr_expect_str_eq(take("r-%n.txt", 0, 1), "r-2.dump-1.txt");
    cr_expect_eq(values.number, 2);
    cr_expect_str_eq(take("r-%n.txt", 0, 2), "r-2.dump-2.txt");
}

Test(dump_name, escapes_and_directories_are_as_in_a_report)
{
    cr_expect_str_eq(take("a/b/%e.%p", 0, 1), "a/b/train.4711.dump-1");
}

Test(dump_name, what_cannot_be_made_is_told)
{
    unsigned number = 1;

    cr_assert_eq(make("plain"), 0);
    cr_expect_str_eq(take("plain/r", 0, 1), "");
    cr_expect_eq(cw_dump_name_take(&name, "/proc/none/r", 0, &number, &values), ENOENT);
    cr_expect_eq(number, 1);
}

Test(dump_name, an_escaped_path_stands_for_itself)
{
    char escaped[64], back[64];

    cw_dump_name_escape(escaped, sizeof(escaped), "/a%p/%%/b");
    cr_expect_eq(cw_path_expand(back, sizeof(back), escaped, &values), 0);
    cr_expect_str_eq(back, "/a%p/%%/b");
    cr_expect_not(cw_path_has_number(escaped));
}
