/* SPDX-License-Identifier: MIT */
/* Numbers of /proc/self/status. */
#include "base/process_status.h"

#include <criterion/criterion.h>
#include <unistd.h>

Test(process_status, is_what_the_kernel_tells)
{
    cr_expect_eq(cw_process_status("Pid"), getpid());
    cr_expect_eq(cw_process_status("PPid"), getppid());
    cr_expect_eq(cw_process_status("Tgid"), getpid());
}

Test(process_status, without_the_line_there_is_none)
{
    cr_expect_eq(cw_process_status("NoSuchLine"), -1);
    cr_expect_eq(cw_process_status("id"), -1);
}
