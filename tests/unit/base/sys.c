/* SPDX-License-Identifier: MIT */
/* Files of ours, in programs that have closed descriptors 0 to 2. */
#include "base/sys.h"

#include <criterion/criterion.h>

#include <sys/resource.h>

static int is_closed(int fd)
{
    return fcntl(fd, F_GETFD) < 0;
}

Test(sys, a_file_never_lies_on_a_standard_descriptor)
{
    int fd, first;

    close(0);
    close(2);
    errno = EINVAL;
    first = cw_sys_open("/dev/null", O_RDWR, 0);
    fd = cw_sys_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
    cr_expect_eq(errno, EINVAL);
    cr_expect_geq(first, CW_SYS_FIRST_FD);
    cr_expect_geq(fd, CW_SYS_FIRST_FD);
    cr_expect(is_closed(0));
    cr_expect(is_closed(2));
    cr_expect_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    cw_sys_close(fd);
    cw_sys_close(first);
}

Test(sys, with_no_other_descriptor_left_it_is_none)
{
    struct rlimit none = {CW_SYS_FIRST_FD, CW_SYS_FIRST_FD};

    close(0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    cr_expect_eq(cw_sys_open("/dev/null", O_RDWR, 0), -1);
    cr_expect_eq(errno, EMFILE);
    cr_expect(is_closed(0));
}

Test(sys, one_that_is_not_there_is_said_as_open_does)
{
    cr_expect_eq(cw_sys_open("/nonexistent/file", O_RDONLY, 0), -1);
    cr_expect_eq(errno, ENOENT);
}
