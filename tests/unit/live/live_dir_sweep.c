/* SPDX-License-Identifier: MIT */
/* Directories of live files: what of the dead is taken away, and when. */
#include "live/live_dir.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "live/file_lock.h"

#define HOUR 3600

static char directory[] = "/tmp/cuwarden-unit-XXXXXX";
static int dir;

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
    dir = cw_live_dir_open(directory, 1);
    cr_assert_geq(dir, 0);
}

static void teardown(void)
{
    close(dir);
    cr_assert_eq(rmdir(directory), 0, "something is left");
}

TestSuite(live_dir, .init = setup, .fini = teardown);

/* It was written to so long ago. */
static void age(const char *name, int hours)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - hours * HOUR},
                                {.tv_sec = time(NULL) - hours * HOUR}};

    cr_assert_eq(utimensat(dir, name, times, 0), 0);
}

/* Its descriptor. */
static int make(const char *name, int hours)
{
    int fd = openat(dir, name, O_RDWR | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    age(name, hours);
    return fd;
}

static int is_there(const char *name)
{
    return faccessat(dir, name, F_OK, 0) == 0;
}

static void sweep(void)
{
    cr_assert_eq(lseek(dir, 0, SEEK_SET), 0);
    cw_live_dir_sweep(dir);
}

Test(live_dir, files_of_the_dead_stay_for_a_day_from_when_that_was_seen)
{
    close(make("1-1-1.live", 100));
    sweep();
    cr_expect(is_there("1-1-1.live"));
    sweep();
    cr_expect(is_there("1-1-1.live"));
    age("1-1-1.live", 25);
    sweep();
    cr_expect_not(is_there("1-1-1.live"));
}

Test(live_dir, files_of_the_living_stay)
{
    int fd = make("1-1-1.live", 100);

    cr_assert_eq(cw_file_lock_claim(fd), 0);
    for (int i = 0; i < 3; i++)
        sweep();
    cr_expect(is_there("1-1-1.live"));
    close(fd);
    cr_assert_eq(unlinkat(dir, "1-1-1.live", 0), 0);
}

/* Who fills one is about to claim it. */
Test(live_dir, files_that_are_being_filled_are_left_as_they_are)
{
    int fd = make(".1-1-1.live", 23);
    struct stat info;

    sweep();
    cr_expect(fstat(fd, &info) == 0 && (info.st_mode & 0777) == 0600);
    age(".1-1-1.live", 25);
    sweep();
    cr_expect_not(is_there(".1-1-1.live"));
    close(fd);
}

Test(live_dir, dumps_stay_for_a_week_and_what_is_not_ours_for_ever)
{
    close(make("1-1-1.dump-1", 6 * 24));
    close(make("1-1-1.dump-2", 8 * 24));
    close(make("other", 8 * 24));
    sweep();
    cr_expect(is_there("1-1-1.dump-1") && is_there("other"));
    cr_expect_not(is_there("1-1-1.dump-2"));
    cr_assert_eq(unlinkat(dir, "1-1-1.dump-1", 0) | unlinkat(dir, "other", 0), 0);
}
