/* SPDX-License-Identifier: MIT */
/* What is kept for a thread is made once, known to the host as soon as that can tell of the
 * thread's end, and not made again behind it. */
#include "api/thread.h"

#include <criterion/criterion.h>

#include "core/process/host.h"
#include "fake_driver.h"

static int watched, answer;

static int watch(void)
{
    watched++;
    return answer;
}

static void setup(void)
{
    static const struct cw_host_ops host = {.watch_thread = watch};

    fake_driver_init();
    cw_host_set(&host);
}

TestSuite(api_thread, .init = setup);

Test(api_thread, the_end_of_a_thread_is_watched_once)
{
    struct cw_api_thread *thread = cw_api_thread();

    cr_assert_not_null(thread);
    cr_expect_eq(cw_api_thread(), thread);
    cr_expect_eq(watched, 1);
}

Test(api_thread, a_host_that_cannot_watch_yet_is_asked_again)
{
    answer = -1;
    cr_assert_not_null(cw_api_thread());
    answer = 0;
    cw_api_thread();
    cw_api_thread();
    cr_expect_eq(watched, 2);
}

Test(api_thread, nothing_is_made_behind_the_end)
{
    cw_api_thread();
    cw_thread.ended = 1;
    cw_api_thread_ends();
    cr_expect_null(cw_api_thread());
    cr_expect_eq(cw_api_fail(CUWARDEN_BUSY, "never mind"), CUWARDEN_BUSY);
    cr_expect_str_eq(cw_api_error_text(CUWARDEN_BUSY), "not now: ask again");
}
