/* SPDX-License-Identifier: MIT */
/* Links in the place of a file. Of other users, and exchanged meanwhile: e2e/strangers.test. */
#include "base/links.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64], end_path[256];

static void setup(void)
{
    strcpy(directory, "/tmp/cuwarden-links-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    cr_assert_eq(chdir(directory), 0);
    cr_assert_eq(mkdir("d", 0700), 0);
    cr_assert_eq(close(open("d/file", O_CREAT | O_WRONLY, 0600)), 0);
}

static void teardown(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(links, .init = setup, .fini = teardown);

static int leads_to(const char *path, const char *expected)
{
    enum cw_links_end end;

    return cw_links_follow(path, end_path, sizeof(end_path), &end) == 0 && end == CW_LINKS_FILE &&
           strcmp(end_path, expected) == 0;
}

static void make(const char *target, const char *name)
{
    cr_assert_eq(symlink(target, name), 0);
}

Test(links, lead_from_the_directory_that_they_are_in)
{
    char whole[128];

    snprintf(whole, sizeof(whole), "%s/d/file", directory);
    make("file", "d/beside");
    make("../d/beside", "d/up");
    make("d/up", "here");
    make(whole, "absolute");
    make("nobody", "d/dangling");
    cr_expect(leads_to("d/file", "d/file"));
    cr_expect(leads_to("new", "new"));
    cr_expect(leads_to("d/beside", "d/file"));
    cr_expect(leads_to("here", "d/../d/file"));
    cr_expect(leads_to("absolute", whole));
    cr_expect(leads_to("d/dangling", "d/nobody"));
}

Test(links, that_lead_nowhere_are_refused)
{
    char small[8];
    enum cw_links_end end;

    make("b", "a");
    make("a", "b");
    cr_expect_eq(cw_links_follow("a", end_path, sizeof(end_path), &end), -1);
    cr_expect_eq(errno, ELOOP);
    cr_expect_eq(cw_links_follow("d/file/x", end_path, sizeof(end_path), &end), -1);
    cr_expect_eq(errno, ENOTDIR);
    make("d/file", "c");
    cr_expect_eq(cw_links_follow("12345678", small, sizeof(small), &end), -1);
    cr_expect_eq(errno, ENAMETOOLONG);
    cr_expect_eq(cw_links_follow("c", small, 6, &end), -1);
    cr_expect_eq(errno, ENAMETOOLONG);
    cr_expect_eq(cw_links_follow("c", small, 7, &end), 0);
}

Test(links, of_procfs_are_the_kernels)
{
    char path[64];
    enum cw_links_end end;
    int ends[2], fd;

    cr_assert_eq(pipe(ends), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
    make(path, "to-pipe");
    cr_assert_eq(cw_links_follow("to-pipe", end_path, sizeof(end_path), &end), 0);
    cr_expect_eq(end, CW_LINKS_KERNEL);
    cr_expect_str_eq(end_path, path);
    fd = cw_links_open("to-pipe", O_WRONLY, end_path, sizeof(end_path));
    cr_assert_geq(fd, 3);
    cr_expect_eq(write(fd, "x", 1), 1);
    cr_expect_eq(read(ends[0], path, sizeof(path)), 1);
}

Test(links, are_opened_where_they_lead)
{
    char byte;
    int fd;

    make("d/file", "link");
    fd = cw_links_open("link", O_WRONLY | O_TRUNC, end_path, sizeof(end_path));
    cr_assert_geq(fd, 3);
    cr_expect_eq(write(fd, "y", 1), 1);
    close(fd);
    fd = open("d/file", O_RDONLY);
    cr_expect_eq(read(fd, &byte, 1), 1);
    cr_expect_eq(byte, 'y');
    close(fd);
    cr_expect_eq(cw_links_open("none", O_WRONLY, end_path, sizeof(end_path)), -1);
    cr_expect_eq(errno, ENOENT);
    if (geteuid() == 0) { /* only root can make a link another user's */
        cr_assert_eq(lchown("link", 65534, (gid_t)-1), 0);
        cr_expect_eq(cw_links_open("link", O_WRONLY | O_TRUNC, end_path, sizeof(end_path)), -1);
        cr_expect_eq(errno, EPERM);
    }
}

/* ---- streams ---- */

static off_t size_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? status.st_size : -1;
}

static int open_stream(const char *path)
{
    return cw_links_open_stream(path, O_WRONLY | O_NONBLOCK, end_path, sizeof(end_path));
}

/* A hard link to somebody's file, in the place of the FIFO that was there when it was looked at. */
Test(links, a_stream_is_no_regular_file_but_behind_a_link)
{
    int reader, fd;

    cr_assert_eq(mkfifo("fifo", 0600), 0);
    reader = open("fifo", O_RDONLY | O_NONBLOCK);
    cr_expect_geq(open_stream("fifo"), 0);
    cr_expect_geq(open_stream("/dev/null"), 0);
    fd = open("d/file", O_WRONLY);
    cr_assert_eq(write(fd, "precious", 8), 8);
    cr_assert_eq(link("d/file", "hard"), 0);
    cr_expect_eq(open_stream("hard"), -1);
    cr_expect(errno == EEXIST && size_of("hard") == 8);
    make("d/file", "soft");
    cr_expect_geq(open_stream("soft"), 0);
    cr_expect_eq(size_of("d/file"), 0);
    if (geteuid() == 0) { /* only root can make a FIFO another user's */
        cr_assert_eq(chown("fifo", 65534, (gid_t)-1), 0);
        cr_expect_eq(open_stream("fifo"), -1);
        cr_expect_eq(errno, EPERM);
        cr_expect_eq(cw_links_open("fifo", O_WRONLY | O_NONBLOCK, end_path, sizeof(end_path)), -1);
        cr_expect_eq(errno, EPERM);
        /* Nor is there a wait for its reader. */
        cr_expect_eq(close(reader), 0);
        cr_expect_eq(cw_links_open_stream("fifo", O_WRONLY, end_path, sizeof(end_path)), -1);
        cr_expect_eq(errno, EPERM);
    }
    close(fd);
}

/* As of `sudo cuwarden report -o /dev/stdout | less`. */
Test(links, a_pipe_of_another_user_is_written_to)
{
    char path[64];
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    if (geteuid() == 0)
        cr_assert_eq(fchown(ends[1], 65534, (gid_t)-1), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
    cr_expect_geq(open_stream(path), 0);
}
