/* SPDX-License-Identifier: MIT */
/* LIMIT=platform: what this process shows to the others of its scope, and what they leave to it. */
#include "core/limits/scope.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask_fixture.h"
#include "base/out.h"
#include "core/account/usage.h"
#include "core/control/lifecycle.h"
#include "core/limits/limit.h"
#include "live/group_file.h"
#include "live/live_dir.h"

#define MOST (1000 * MIB)

static uint64_t own_scope;          /* no other program's devices have this in their uuid */
static struct cw_group_file other;  /* another process's part, as this test plays it */
static char sum_file[CW_PLACE_MAX]; /* the sum that the process has open */

/* How many sums this process has open. */
static unsigned find_sums(void)
{
    DIR *all = opendir("/proc/self/fd");
    unsigned count = 0;

    for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
        char link[32], target[CW_PLACE_MAX] = "";

        cw_format(link, sizeof(link), "/proc/self/fd/%.10s", entry->d_name);
        if (readlink(link, target, sizeof(target) - 1) <= 0 || !strstr(target, "/group-"))
            continue;
        strcpy(sum_file, target);
        count++;
    }
    closedir(all);
    return count;
}

static void arm(void)
{
    ask_arm("", "", ASK_TOTAL);
    fake_driver.uuid_end = own_scope;
    fake_set_current(pooled_context(0, 0));
}

static int reserve(uint64_t bytes)
{
    uint64_t reserved;
    enum cw_cause cause;

    return cw_limit_reserve(0, bytes, &reserved, &cause);
}

static void setup(void)
{
    struct cw_options *options = core_options();
    uint64_t key = 0;

    cr_assert_eq(cw_sizes_parse("platform", CW_SIZE_TAKES_PLATFORM, &options->limit), 0);
    cr_assert_eq(cw_sizes_parse("1000M", 0, &options->platform.of[CW_BOUND_NVIDIA_LIMIT]), 0);
    own_scope = (uint64_t)getpid();
    arm();
    cr_assert_eq(reserve(1), 0);
    cw_limit_cancel(0, 1);
    cr_assert_eq(find_sums(), 1u);
    cr_assert_eq(sscanf(strstr(sum_file, "/group-"), "/group-%16" SCNx64, &key), 1);
    cr_assert_eq(cw_group_file_open(&other, options->tmpdir, key), 0);
}

static void teardown(void)
{
    unlink(sum_file);
}

TestSuite(scope, .init = setup, .fini = teardown);

Test(scope, of_which_others_have_used_up_all_leaves_nothing)
{
    cw_group_file_show(&other, MOST);
    cr_expect_eq(reserve(MIB), -1);
    cr_expect_leq(cw_limit_room(0), 1u);
    cr_expect_geq(cw_limit_shortfall(0, MIB), MIB - 1);
    cw_group_file_show(&other, MOST - MIB);
    cr_expect_eq(reserve(MIB), 0);
}

Test(scope, shows_others_what_is_held_and_no_slack)
{
    cr_expect_eq(reserve(600 * MIB), 0);
    cr_expect_eq(cw_group_file_others(&other), 600 * MIB);
    cw_limit_cancel(0, 600 * MIB);
    cr_expect_eq(cw_group_file_others(&other), 0u);
}

/* What the thread has freed is slack until a request needs it. */
Test(scope, refuses_nothing_for_slack)
{
    cw_group_file_show(&other, 300 * MIB);
    cr_assert_eq(reserve(400 * MIB), 0);
    cw_limit_committed(0, 400 * MIB);
    cw_usage_sub(0, 0, 400 * MIB);
    cr_expect_eq(reserve(600 * MIB), 0);
    cr_expect_eq(reserve(101 * MIB), -1);
}

/* Its exit status says which of the lines is wrong. */
static void be_child(unsigned sums)
{
    cw_lifecycle_reset();
    if (find_sums() != sums)
        _exit(1);
    arm();
    if (reserve(500 * MIB) == 0)
        _exit(2);
    if (reserve(400 * MIB) != 0)
        _exit(3);
    _exit(cw_group_file_others(&other) == MOST ? 0 : 4);
}

Test(scope, has_a_forked_child_beside_its_parent)
{
    int status;
    pid_t pid;

    cr_assert_eq(reserve(600 * MIB), 0);
    pid = fork();
    if (pid == 0)
        be_child(1); /* that of `other` */
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0, "%x", (unsigned)status);
}
