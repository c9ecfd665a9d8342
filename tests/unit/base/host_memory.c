/* SPDX-License-Identifier: MIT */
/* What the host has to spare, from files under a root of the test's own. */
#include "base/host_memory.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/cw-host-XXXXXX";

static int drop(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static void setup(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static void teardown(void)
{
    nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(host_memory, .init = setup, .fini = teardown);

static void put(const char *name, const char *text)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static uint64_t available(void)
{
    uint64_t bytes;

    errno = 77;
    bytes = cw_host_memory_available_at(root, root);
    cr_expect_eq(errno, 77);
    return bytes;
}

static void put_kernel(void)
{
    put("/proc/meminfo", "MemTotal:       100000 kB\nMemFree:  7 kB\nMemAvailable:    80000 kB\n");
}

#define KERNEL (UINT64_C(80000) * 1024)

#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/memory"

Test(host_memory, is_what_the_kernel_says_without_groups)
{
    put_kernel();
    cr_expect_eq(available(), KERNEL);
    put("/proc/self/cgroup", "0::/\n");
    cr_expect_eq(available(), KERNEL);
}

Test(host_memory, is_nothing_when_the_kernel_does_not_say)
{
    cr_expect_eq(available(), 0);
    put("/proc/meminfo", "");
    cr_expect_eq(available(), 0);
    put("/proc/meminfo", "MemTotal: 5 kB\n");
    cr_expect_eq(available(), 0);
    put("/proc/meminfo", "MemAvailable: lots\n");
    cr_expect_eq(available(), 0);
    put("/proc/meminfo", "MemAvailable: 99999999999999999999 kB\n");
    cr_expect_eq(available(), 0);
    put("/proc/meminfo", "MemAvailable: 18446744073709551 kB\n");
    cr_expect_geq(available(), 0);
}

Test(host_memory, version_2_leaves_what_is_not_used)
{
    put_kernel();
    put("/proc/self/cgroup", "0::/user/job\n");
    put(V2 "/user/job/memory.max", "5000000\n");
    put(V2 "/user/job/memory.current", "2000000\n");
    cr_expect_eq(available(), 3000000);
    put(V2 "/user/job/memory.current", "6000000\n");
    cr_expect_eq(available(), 0);
    put(V2 "/user/job/memory.max", "max\n");
    cr_expect_eq(available(), KERNEL);
}

Test(host_memory, the_tightest_of_nested_groups_counts)
{
    put_kernel();
    put("/proc/self/cgroup", "0::/a/b/c\n");
    put(V2 "/a/b/c/memory.max", "max\n");
    put(V2 "/a/b/c/memory.current", "1\n");
    put(V2 "/a/b/memory.max", "9000\n");
    put(V2 "/a/b/memory.current", "1000\n");
    put(V2 "/a/memory.max", "7000\n");
    put(V2 "/a/memory.current", "2000\n");
    cr_expect_eq(available(), 5000);
    put(V2 "/a/b/memory.current", "8999\n");
    cr_expect_eq(available(), 1);
}

Test(host_memory, version_1_has_a_line_and_files_of_its_own)
{
    put_kernel();
    put("/proc/self/cgroup", "12:cpu,cpuacct:/x\n7:memory:/docker/abc\n1:name=systemd:/y\n0::/z\n");
    put(V1 "/docker/abc/memory.limit_in_bytes", "4000000\n");
    put(V1 "/docker/abc/memory.usage_in_bytes", "1000000\n");
    put(V1 "/x/memory.limit_in_bytes", "1\n");
    put(V1 "/x/memory.usage_in_bytes", "0\n");
    cr_expect_eq(available(), 3000000);
    put(V1 "/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    cr_expect_eq(available(), KERNEL);
}

Test(host_memory, version_1_may_share_its_hierarchy)
{
    put_kernel();
    put("/proc/self/cgroup", "7:cpu,memory:/job\n");
    put(V1 "/job/memory.limit_in_bytes", "500\n");
    put(V1 "/job/memory.usage_in_bytes", "100\n");
    cr_expect_eq(available(), 400);
}

Test(host_memory, in_a_container_the_mount_is_the_group)
{
    put_kernel();
    put("/proc/self/cgroup", "0::/system.slice/docker-abc.scope\n");
    put(V2 "/memory.max", "6000\n");
    put(V2 "/memory.current", "1000\n");
    cr_expect_eq(available(), 5000);
    put("/proc/self/cgroup", "5:memory:/docker/abc\n");
    put(V1 "/memory.limit_in_bytes", "900\n");
    put(V1 "/memory.usage_in_bytes", "100\n");
    cr_expect_eq(available(), 800);
    put("/proc/self/cgroup", "0::/../../elsewhere\n");
    cr_expect_eq(available(), 5000);
}

Test(host_memory, junk_in_groups_is_no_limit)
{
    static const char *const lines[] = {
        "",           "\n\n",          "0",
        "0:",         "0::",           "::",
        ":::\n",      "0::relative\n", "0::/\n0::/no/such\nmemory\n",
        "x:memory\n", "0:://///\n",    "0::/a/b"};

    put_kernel();
    put(V2 "/a/memory.max", "huge\n");
    put(V2 "/a/memory.current", "-5\n");
    put(V2 "/a/b/memory.max", "99999999999999999999999\n");
    put(V2 "/a/b/memory.current", "5\n");
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        put("/proc/self/cgroup", lines[i]);
        cr_expect_eq(available(), KERNEL, "'%s'", lines[i]);
    }
    put(V2 "/a/memory.max", "100\n"); /* and no readable use */
    cr_expect_eq(available(), KERNEL);
}

Test(host_memory, lines_longer_than_any_do_no_harm)
{
    static char text[20000];

    put_kernel();
    memset(text, 'a', sizeof(text) - 1);
    memcpy(text, "0::/", 4);
    for (size_t i = 10; i < sizeof(text) - 1; i += 10)
        text[i] = '/';
    put("/proc/self/cgroup", text);
    cr_expect_eq(available(), KERNEL);
}

/* ---- without control groups ---- */

static struct cw_host_memory of(int node)
{
    struct cw_host_memory memory = {0};

    errno = 77;
    if (cw_host_memory_of_at(root, root, node, &memory) != 0)
        memory = (struct cw_host_memory){0};
    cr_expect_eq(errno, 77);
    return memory;
}

Test(host_memory, of_the_whole_host_does_not_ask_groups)
{
    put_kernel();
    put("/proc/self/cgroup", "0::/\n");
    put(V2 "/memory.max", "4096\n");
    put(V2 "/memory.current", "0\n");
    cr_expect_eq(of(CW_HOST_MEMORY_ALL).total, UINT64_C(100000) * 1024);
    cr_expect_eq(of(CW_HOST_MEMORY_ALL).available, KERNEL);
    put("/proc/meminfo", "MemTotal:       100000 kB\n");
    cr_expect_eq(of(CW_HOST_MEMORY_ALL).total, 0);
}

Test(host_memory, of_a_node_is_what_is_free_and_half_of_what_can_be_taken_back)
{
    put("/sys/devices/system/node/node9/meminfo",
        "Node 9 MemTotal:       1000 kB\nNode 9 MemFree:        100 kB\n"
        "Node 9 Inactive(anon):   7 kB\nNode 9 Active(file):    30 kB\n"
        "Node 9 Inactive(file):  50 kB\nNode 9 SReclaimable:    20 kB\n");
    cr_expect_eq(of(9).total, 1000 * 1024);
    cr_expect_eq(of(9).available, 150 * 1024);
    cr_expect_eq(of(8).total, 0, "a node that is not there");
}

Test(host_memory, the_real_host_has_some)
{
    struct cw_host_memory memory;

    cr_expect_gt(cw_host_memory_available(), 0);
    cr_assert_eq(cw_host_memory_of(CW_HOST_MEMORY_ALL, &memory), 0);
    cr_expect_gt(memory.total, memory.available);
}
