/* SPDX-License-Identifier: MIT */
/* Tags and steps: which one a thread has, and what is refused. */
#include <criterion/criterion.h>

#include <string.h>

#include "api/tags.h"
#include "api_fixture.h"
#include "core/tags/tag.h"
#include "core/tags/tag_name.h"

TestSuite(tags, .init = api_setup);

static void expect_tag(const char *name)
{
    cr_expect_eq(cw_tag_here(), name != NULL ? cw_tag_name_find(0, name) : 0, "not '%s'", name);
}

Test(tags, are_those_of_the_innermost_push)
{
    API_WORKS(cw_api_tag_push("outer"));
    API_WORKS(cw_api_tag_push("inner"));
    expect_tag("inner");
    API_WORKS(cw_api_tag_pop());
    expect_tag("outer");
    API_WORKS(cw_api_step("step"));
    expect_tag("outer");
    API_WORKS(cw_api_tag_pop());
    expect_tag(NULL);
}

Test(tags, are_popped_as_often_as_they_were_pushed)
{
    char name[1000];

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    API_FAILS(CUWARDEN_UNBALANCED, "a pop without a push", cw_api_tag_pop());
    for (int i = 0; i < 1000; i++)
        API_WORKS(cw_api_tag_push(name));
    for (int i = 0; i < 1000; i++)
        API_WORKS(cw_api_tag_pop());
    API_FAILS(CUWARDEN_UNBALANCED, "a pop without a push", cw_api_tag_pop());
    expect_tag(NULL);
}

Test(tags, need_a_name)
{
    API_FAILS(CUWARDEN_INVALID, "this one is NULL", cw_api_tag_push(NULL));
    API_FAILS(CUWARDEN_INVALID, "this one is empty", cw_api_tag_push(""));
    API_FAILS(CUWARDEN_INVALID, "this one is NULL", cw_api_step(NULL));
    API_FAILS(CUWARDEN_INVALID, "this one is empty", cw_api_step(""));
    API_FAILS(CUWARDEN_UNBALANCED, "a pop without a push", cw_api_tag_pop());
}

static void push_and_end(unsigned id)
{
    (void)id;
    expect_tag(NULL);
    API_FAILS(CUWARDEN_UNBALANCED, "a pop without a push", cw_api_tag_pop());
    API_WORKS(cw_api_tag_push("forgotten"));
    expect_tag("forgotten");
}

Test(tags, of_a_thread_that_ends_go_with_it)
{
    API_WORKS(cw_api_tag_push("main"));
    for (int i = 0; i < 3; i++) /* the next has the slot of the one before */
        run_threads(2, push_and_end);
    expect_tag("main");
}

TestSuite(early_tags, .init = api_setup_early);

Test(early_tags, work_before_the_first_call_of_cuda_but_not_when_all_is_off)
{
    API_WORKS(cw_api_tag_push("early"));
    API_WORKS(cw_api_step("early"));
    API_WORKS(cw_api_tag_pop());
    core_options()->mode = CW_MODE_OFF;
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_tag_push("early"));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_tag_pop());
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_step("early"));
}
