/* SPDX-License-Identifier: MIT */
/* Which files are opened at all. That a file was opened is told by inotify. */
#include "base/regular_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"

#define TERABYTE ((off_t)1 << 40)

static char directory[64];

static void setup(void)
{
    strcpy(directory, "/tmp/cuwarden-regular-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
}

static void teardown(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(regular_file, .init = setup, .fini = teardown);

static void make(const char *name, const char *text, off_t size)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);

    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    cr_assert_eq(ftruncate(fd, size), 0);
    cr_assert_eq(close(fd), 0);
}

static void expect_refused(const char *path, int flags, int error)
{
    uint64_t size = 17;

    errno = 0;
    cr_expect_eq(cw_regular_open(path, flags, &size), -1, "'%s'", path);
    cr_expect_eq(errno, error, "'%s': %s", path, strerror(errno));
    cr_expect_eq(size, 17, "'%s'", path);
}

static void expect_opened(const char *path, uint64_t expected)
{
    uint64_t size = 0;
    char byte = 0;
    int fd = cw_regular_open(path, 0, &size);

    cr_assert(fd >= 0, "'%s': %s", path, strerror(errno));
    cr_expect(read(fd, &byte, 1) == 1 && byte == 'x', "'%s'", path);
    cr_expect_eq(size, expected, "'%s'", path);
    cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

Test(regular_file, what_is_none_is_not_even_opened)
{
    static const char *const path[] = {"fifo", "to-fifo", "/dev/zero", "to-device", "."};
    int events = inotify_init1(IN_NONBLOCK);
    char event[4096];

    cr_assert(mkfifo("fifo", 0600) == 0 && symlink("fifo", "to-fifo") == 0 &&
              symlink("/dev/zero", "to-device") == 0);
    cr_assert(inotify_add_watch(events, "fifo", IN_OPEN) >= 0);
    for (size_t i = 0; i < CW_ARRAY_LEN(path); i++)
        expect_refused(path[i], 0, EINVAL);
    cr_expect(read(events, event, sizeof(event)) < 0 && errno == EAGAIN, "the FIFO was opened");
    expect_refused("nowhere", 0, ENOENT);
    close(events);
}

Test(regular_file, a_link_is_followed_unless_that_is_not_wanted)
{
    make("file", "x", 1);
    cr_assert_eq(symlink("file", "link"), 0);
    expect_opened("file", 1);
    expect_opened("link", 1);
    expect_refused("link", O_NOFOLLOW, EINVAL);
}

Test(regular_file, a_large_one_with_little_on_disk_is_refused)
{
    make("small", "x", (off_t)1 << 20);
    make("huge", "x", 4 * TERABYTE);
    expect_opened("small", 1 << 20);
    expect_refused("huge", 0, EFBIG);
    cr_expect(strstr(cw_regular_reason(EFBIG), "holes") != NULL);
}
