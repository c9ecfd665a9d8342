/* SPDX-License-Identifier: MIT */
/* Files of the trace that follow each other: a descriptor stays open no longer than its file is
 * written, or the next one begins. What lines say is in tests/e2e/trace.test. */
#include "core/account/trace.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/account/tracker.h"
#include "fake_driver.h"

#define WINDOW (1u << 20)

static char path[] = "/tmp/cuwarden-unit-XXXXXX";

static void setup(void)
{
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && close(fd) == 0);
    core_arm();
}

static void remove_file(void)
{
    unlink(path);
}

TestSuite(trace, .init = setup, .fini = remove_file);

/* A new file by this name, as each trace has one. */
static int make_file(void)
{
    int fd;

    unlink(path);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert(fd >= 0);
    return fd;
}

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

/* Blocks come and go until the file would have to grow beyond `most`. */
static void fill(rlim_t most)
{
    struct rlimit limit = {most, RLIM_INFINITY};
    uint32_t site = core_site("cuMemAlloc", CW_KIND_DEVICE, 0);

    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (unsigned i = 0; cw_trace_has_file(); i++) {
        cr_assert_lt(i, most);
        core_put(site, 0x10000, 1000);
        cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, 0x10000), CW_FREE_DONE);
    }
}

Test(trace, that_is_stopped_closes_its_file)
{
    int fd = make_file();

    cr_assert_eq(cw_trace_begin(core_arena, fd, path), 0);
    cr_expect_eq(cw_trace_stop(), 0);
    cr_expect_eq(is_open(fd), 0);
    cr_expect_eq(cw_trace_stop(), -1);
}

Test(trace, after_one_that_had_no_room_leaves_one_descriptor)
{
    int first = make_file(), second;

    cr_assert_eq(cw_trace_begin(core_arena, first, path), 0);
    fill(WINDOW);
    second = make_file();
    cr_assert_eq(cw_trace_begin(core_arena, second, path), 0);
    cr_expect_eq(is_open(first), 0);
    cr_expect_eq(is_open(second), 1);
    cr_expect_eq(cw_trace_stop(), 0);
    cr_expect_eq(is_open(second), 0);
}

/* The program has closed all that it does not know; the number, and what the file system calls the
 * file, come again. */
Test(trace, after_one_whose_descriptor_the_program_has_closed_keeps_its_own)
{
    int first = make_file(), second;

    cr_assert_eq(cw_trace_begin(core_arena, first, path), 0);
    fill(WINDOW);
    cr_assert(close(first) == 0 && truncate(path, 0) == 0);
    second = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(second, first, "the test is about one number");
    cr_assert_eq(cw_trace_begin(core_arena, second, path), 0);
    cr_expect_eq(is_open(second), 1);
    cr_expect_eq(cw_trace_stop(), 0);
}

/* What the program has closed is found by its name again, and nothing else of that name is. */
Test(trace, goes_on_in_its_file_after_the_program_has_closed_it)
{
    int first = make_file();
    struct stat info;

    cr_assert_eq(cw_trace_begin(core_arena, first, path), 0);
    cr_assert_eq(close(first), 0);
    fill(2 * WINDOW);
    cr_assert_eq(stat(path, &info), 0);
    cr_expect_gt(info.st_size, WINDOW);
}

Test(trace, never_writes_into_another_file_of_its_name)
{
    char aside[sizeof(path) + 2], text[8] = "";
    int first = make_file(), other;

    cr_assert_eq(cw_trace_begin(core_arena, first, path), 0);
    snprintf(aside, sizeof(aside), "%s.1", path);
    cr_assert_eq(rename(path, aside), 0);
    cr_assert_eq(close(first), 0);
    other = make_file();
    cr_assert_eq(write(other, "mine", 4), 4);
    fill(2 * WINDOW);
    cr_expect(pread(other, text, sizeof(text), 0) == 4 && strcmp(text, "mine") == 0);
    unlink(aside);
}
