/* SPDX-License-Identifier: MIT */
/* Directories of live files, and whose they must be. */
#include "live/live_dir.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[64];

static void setup(void)
{
    strcpy(scratch, "/tmp/cuwarden-unit-XXXXXX");
    cr_assert_not_null(mkdtemp(scratch));
}

static void teardown(void)
{
    char line[128];

    snprintf(line, sizeof(line), "rm -rf %s", scratch);
    cr_assert_eq(system(line), 0);
}

TestSuite(live_dir, .init = setup, .fini = teardown);

/* The path of a file there. */
static const char *in_scratch(const char *name)
{
    static char path[2][128]; /* of the last two */
    static unsigned which;

    which = 1 - which;
    snprintf(path[which], sizeof(path[which]), "%s/%s", scratch, name);
    return path[which];
}

Test(live_dir, makes_directories_and_keeps_others_out)
{
    const char *path, *link;
    struct stat status;
    int dir = cw_live_dir_open(in_scratch("a/b/c"), 0);

    cr_assert_geq(dir, 0);
    close(dir);
    path = in_scratch("private");
    link = in_scratch("link");
    cr_assert_eq(mkdir(path, 0755), 0);
    dir = cw_live_dir_open(path, 1);
    cr_assert_geq(dir, 0);
    cr_expect_eq(stat(path, &status), 0);
    cr_expect_eq(status.st_mode & 07777, 0700u);
    close(dir);
    cr_assert_eq(symlink(path, link), 0);
    cr_expect_eq(cw_live_dir_open(link, 1), -1);
    cr_expect(errno == ENOTDIR || errno == ELOOP);
}

Test(live_dir, refuses_a_directory_of_somebody_else)
{
    const char *path = in_scratch("theirs");

    if (geteuid() != 0)
        cr_skip_test("takes root");
    cr_assert_eq(mkdir(path, 0777), 0);
    cr_assert_eq(chown(path, 1, 1), 0);
    cr_expect_eq(cw_live_dir_open(path, 1), -1);
    cr_expect_eq(errno, EPERM);
}

/* What outlives a run names its directory, which anybody may make again. */
Test(live_dir, a_runs_directory_is_used_only_while_it_is_the_runs)
{
    static const char run[] = "run-12-1774060000-0123456789abcdef";
    char home[CW_PLACE_MAX], path[CW_PLACE_MAX], inner[CW_PLACE_MAX], buf[CW_PLACE_MAX];
    int dir;

    cr_assert_lt(snprintf(home, sizeof(home), "%s", in_scratch("home")), (int)sizeof(home));
    cr_assert_eq(mkdir(home, 0777), 0);
    cr_assert_lt(snprintf(path, sizeof(path), "%s/%s", home, run), (int)sizeof(path));
    cr_assert_lt(snprintf(inner, sizeof(inner), "%s/%s", path, run), (int)sizeof(inner));
    cr_expect_null(cw_live_dir_named("auto", buf, sizeof(buf)));
    cr_expect_str_eq(cw_live_dir_named(path, buf, sizeof(buf)), home);
    cr_expect_str_eq(cw_live_dir_named(inner, buf, sizeof(buf)), home);
    cr_expect_eq(cw_live_dir_open(path, 0), -1);
    cr_expect_eq(access(path, F_OK), -1);
    cr_assert_eq(symlink(home, path), 0);
    cr_expect_str_eq(cw_live_dir_named(path, buf, sizeof(buf)), home);
    cr_expect_eq(cw_live_dir_open(path, 0), -1);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_expect_str_eq(cw_live_dir_named(path, buf, sizeof(buf)), path);
    cr_expect_str_eq(cw_live_dir_named(inner, buf, sizeof(buf)), path);
    dir = cw_live_dir_open(path, 0);
    cr_expect_geq(dir, 0);
    close(dir);
    if (geteuid() == 0) { /* only root can make it another user's */
        cr_assert_eq(chown(path, 65534, (gid_t)-1), 0);
        cr_expect_str_eq(cw_live_dir_named(path, buf, sizeof(buf)), home);
        cr_expect_eq(cw_live_dir_open(path, 0), -1);
        cr_expect_eq(errno, EPERM);
    }
    /* Of a default directory, whoever's, nothing but the defaults is left. */
    cr_expect_null(
        cw_live_dir_named("/none/cuwarden-7/run-1-2-0123456789abcdef", buf, sizeof(buf)));
    cr_expect_str_eq(
        cw_live_dir_named("/none/cuwarden-x/run-1-2-0123456789abcdef", buf, sizeof(buf)),
        "/none/cuwarden-x");
    /* Names of the user's own. */
    cr_expect_str_eq(cw_live_dir_named("/none/run-2026-11-29", buf, sizeof(buf)),
                     "/none/run-2026-11-29");
    cr_expect_str_eq(cw_live_dir_named("off", buf, sizeof(buf)), "off");
}

Test(live_dir, default_directories_are_below_shm_and_tmpdir)
{
    char path[CW_PLACE_MAX];

    cr_assert_eq(cw_live_dir_default(0, 12, "/scratch", path, sizeof(path)), 0);
    cr_expect_str_eq(path, "/dev/shm/cuwarden-12");
    cr_assert_eq(cw_live_dir_default(1, 12, "/scratch", path, sizeof(path)), 0);
    cr_expect_str_eq(path, "/scratch/cuwarden-12");
    cr_assert_eq(cw_live_dir_default(1, 12, "relative", path, sizeof(path)), 0);
    cr_expect_str_eq(path, "/tmp/cuwarden-12");
    cr_assert_eq(cw_live_dir_default(1, 12, "", path, sizeof(path)), 0);
    cr_expect_str_eq(path, "/tmp/cuwarden-12");
    cr_expect_eq(cw_live_dir_default(1, 12, "/scratch", path, 12), -1);
}
