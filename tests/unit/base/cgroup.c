/* SPDX-License-Identifier: MIT */
/* The control group of the process, from trees that a test makes: namespaces, leaves that shadow
 * what is above them, groups without the controller. */
#include "base/cgroup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define BUS    "0000:41:00.0"
#define REGION "nvidia/0000:41:00.0/vidmem"

static char root[64];

/* Writes a file below the root; directories on the way are made. */
static void put(const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    file = fopen(path, "w");
    cr_assert_not_null(file, "%s: %s", path, strerror(errno));
    fputs(text, file);
    fclose(file);
}

static void begin(const char *group)
{
    char text[256];

    strcpy(root, "/tmp/cw-cgroup-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    snprintf(text, sizeof(text), "12:memory:/elsewhere\n1:name=systemd:/x\n0::%s\n", group);
    put("/proc/self/cgroup", text);
}

static void done(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", root);
    cr_expect_eq(system(command), 0);
}

TestSuite(cgroup, .fini = done);

/* Files of a group: each of one line for another GPU and one for ours. */
static void group(const char *path, const char *max, const char *min, const char *current)
{
    const char *const files[][2] = {{"max", max}, {"min", min}, {"current", current}};
    char name[256], text[256];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "/sys/fs/cgroup%s/dmem.%s", path, files[i][0]);
        snprintf(text, sizeof(text),
                 "drm/0000:41:00.0/vram0 7\nnvidia/0000:42:00.0/vidmem 5\n%s %s\n", REGION,
                 files[i][1]);
        put(name, text);
    }
}

static void expect(uint64_t hard, uint64_t hard_used, uint64_t soft, uint64_t soft_used)
{
    struct cw_cgroup_dmem dmem;

    cr_assert(cw_cgroup_dmem(root, BUS, &dmem));
    cr_expect_eq(dmem.hard, hard);
    cr_expect_eq(dmem.hard_used, hard_used);
    cr_expect_eq(dmem.soft, soft);
    cr_expect_eq(dmem.soft_used, soft_used);
}

static void expect_path(const char *wanted)
{
    char path[CW_CGROUP_MAX];

    cr_assert_eq(cw_cgroup_path(root, path, sizeof(path)), 0);
    cr_expect_str_eq(path + strlen(root), wanted);
}

Test(cgroup, has_its_own_limits)
{
    begin("/pod/leaf");
    group("/pod/leaf", "8000", "4000", "100");
    expect_path("/sys/fs/cgroup/pod/leaf");
    expect(8000, 100, 4000, 100);
}

Test(cgroup, what_cannot_be_read_is_not_taken_for_what_is_not_there)
{
    struct rlimit limit, none;
    struct cw_cgroup_dmem dmem;

    begin("/pod/leaf");
    group("/pod/leaf", "8000", "4000", "100");
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){0, limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    cr_expect_eq(cw_cgroup_dmem(root, BUS, &dmem), -1);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_expect_eq(cw_cgroup_dmem(root, BUS, &dmem), 1);
}

Test(cgroup, a_domain_may_have_eight_digits)
{
    struct cw_cgroup_dmem dmem;

    begin("/a");
    put("/sys/fs/cgroup/a/dmem.max", "nvidia/00000000:41:00.0/vidmem 9\n");
    cr_assert(cw_cgroup_dmem(root, BUS, &dmem));
    cr_expect_eq(dmem.hard, 9);
    cr_expect(cw_cgroup_dmem(root, "00000000:41:00.0", &dmem));
    cr_expect_not(cw_cgroup_dmem(root, "0000:41:00.1", &dmem));
    cr_expect_not(cw_cgroup_dmem(root, "", &dmem));
}

/* The leaf says max, and reports read the leaf; the kernel holds to what is above all the same. */
Test(cgroup, a_leaf_that_says_max_does_not_lift_what_is_above)
{
    begin("/pod/leaf");
    group("/pod", "8000", "6000", "7000");
    group("/pod/leaf", "max", "0", "100");
    expect(8000, 7000, 0, 0);
}

Test(cgroup, of_two_maxima_the_one_with_less_left_counts)
{
    begin("/pod/leaf");
    group("/pod", "8000", "0", "7900");
    group("/pod/leaf", "2000", "1000", "100");
    expect(8000, 7900, 1000, 100);
    group("/pod", "8000", "0", "100");
    expect(2000, 100, 1000, 100);
}

Test(cgroup, without_files_it_counts_with_the_nearest_above)
{
    begin("/pod/mid/leaf");
    put("/sys/fs/cgroup/pod/mid/leaf/cgroup.procs", "1\n");
    group("/pod", "8000", "4000", "300");
    expect(8000, 300, 4000, 300);
}

Test(cgroup, in_a_namespace_the_mount_is_the_group)
{
    begin("/");
    group("", "8000", "4000", "300");
    expect_path("/sys/fs/cgroup");
    expect(8000, 300, 4000, 300);
}

Test(cgroup, what_is_out_of_sight_is_read_at_the_mount)
{
    begin("/kubepods/pod1/container1"); /* as the host has it, and the mount is the container's */
    group("", "8000", "0", "300");
    expect_path("/sys/fs/cgroup");
    expect(8000, 300, 0, 0);
    begin("/../other");
    group("", "7000", "0", "300");
    expect_path("/sys/fs/cgroup");
    expect(7000, 300, 0, 0);
}

Test(cgroup, there_may_be_none)
{
    struct cw_cgroup_dmem dmem;
    char path[CW_CGROUP_MAX];

    begin("/a");
    cr_expect_eq(cw_cgroup_path(root, path, sizeof(path)), -1);
    cr_expect_not(cw_cgroup_dmem(root, BUS, &dmem));
    put("/sys/fs/cgroup/a/dmem.max", "nvidia/0000:42:00.0/vidmem 9\n");
    cr_expect_not(cw_cgroup_dmem(root, BUS, &dmem)); /* of another GPU */
    put("/proc/self/cgroup", "3:cpu:/a\n");
    cr_expect_eq(cw_cgroup_path(root, path, sizeof(path)), -1);
}

Test(cgroup, damaged_files_do_no_harm)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "nvidia",
                                        "nvidia/",
                                        "nvidia/0000:41:00.0",
                                        "nvidia/0000:41:00.0/vidmem",
                                        "nvidia/0000:41:00.0/ "};
    struct cw_cgroup_dmem dmem;

    begin("/a");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put("/sys/fs/cgroup/a/dmem.max", texts[i]);
        cw_cgroup_dmem(root, BUS, &dmem);
        cr_expect_eq(dmem.hard, 0, "'%s'", texts[i]);
    }
    put("/sys/fs/cgroup/a/dmem.max", REGION " 99999999999999999999999\n");
    expect(0, 0, 0, 0);
    put("/sys/fs/cgroup/a/dmem.max", REGION " 0\n"); /* none of it at all */
    expect(1, 0, 0, 0);
}
