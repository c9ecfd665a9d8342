/* SPDX-License-Identifier: MIT */
/* What is kept for a thread is made once, known to the host as soon as that can tell of the
 * thread's end, and not made again behind it. */
#include "api/thread.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/scopes.h"
#include "api/tags.h"
#include "api_fixture.h"
#include "base/mem.h"
#include "core/process/host.h"

static int watched, answer;

static int watch(void)
{
    watched++;
    return answer;
}

static void setup(void)
{
    static const struct cw_host_ops host = {.watch_thread = watch};

    api_setup();
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

Test(api_thread, that_nobody_watches_has_nothing_after_its_last_scope)
{
    answer = -1;
    API_WORKS(cw_api_scope_begin("outer"));
    API_WORKS(cw_api_scope_begin("inner"));
    API_WORKS(cw_api_scope_end(NULL, 0));
    cr_expect_not_null(cw_api_thread_seen());
    API_WORKS(cw_api_scope_end(NULL, 0));
    cr_expect_null(cw_api_thread_seen());
}

Test(api_thread, that_only_hears_that_there_is_no_account_has_nothing)
{
    core_options()->mode = CW_MODE_OFF;
    atomic_store(&cw_session.state, CW_SESSION_NEW);
    API_FAILS(CUWARDEN_NOT_ACTIVE, "CUWARDEN_MODE=off", cw_api_keep(&answer));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "CUWARDEN_MODE=off",
              cw_api_fail(CUWARDEN_INVALID, "never mind"));
    core_options()->mode = CW_MODE_POOL;
    API_FAILS(CUWARDEN_NOT_STARTED, "cudaFree(0) is enough", cw_api_keep(&answer));
    atomic_store(&cw_session.state, CW_SESSION_FINISHED);
    API_FAILS(CUWARDEN_NOT_ACTIVE, "the account of this process has ended", cw_api_keep(&answer));
    cr_expect_null(cw_api_thread_seen());
}

TestSuite(early_api_thread, .init = api_setup_early);

static void ask_and_end(unsigned id)
{
    (void)id;
    API_FAILS(CUWARDEN_UNBALANCED, "no tag to end", cw_api_tag_pop());
    cr_expect_eq(cw_api_thread()->is_watched, 1);
}

Test(early_api_thread, may_end_before_the_first_call_of_cuda)
{
    run_threads(2, ask_and_end);
}

/* Without room for it, what a thread asks is refused, and it shares nothing with others. */
static void expect_nothing_kept(void)
{
    struct cuwarden_block block;

    cr_expect_null(cw_api_thread());
    API_FAILS(CUWARDEN_OUT_OF_HOST, "out of host memory", cw_api_scope_begin("none"));
    API_FAILS(CUWARDEN_UNBALANCED, "", cw_api_scope_end(NULL, 0));
    API_FAILS(CUWARDEN_OUT_OF_HOST, "out of host memory",
              cw_api_block_find(&block, &block, sizeof(block)));
    cr_expect_eq(cw_api_fail(CUWARDEN_BUSY, "never mind"), CUWARDEN_BUSY);
    cr_expect_str_eq(cw_api_error_text(CUWARDEN_BUSY), "not now: ask again");
}

Test(api_thread, nothing_is_made_behind_the_end)
{
    cw_api_thread();
    cw_thread.ended = 1;
    cw_api_thread_ends();
    expect_nothing_kept();
}

Test(api_thread, nothing_is_shared_without_memory)
{
    struct rlimit limit = {4096, RLIM_INFINITY}, before;

    cr_assert_eq(getrlimit(RLIMIT_AS, &before), 0);
    limit.rlim_max = before.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    while (cw_mem_alloc(sizeof(struct cw_api_thread)) != NULL)
        ;
    expect_nothing_kept();
    cr_assert_eq(setrlimit(RLIMIT_AS, &before), 0);
}
