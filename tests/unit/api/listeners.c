/* SPDX-License-Identifier: MIT */
/* Listeners: who is told what and how often, what they may do meanwhile, and what is refused. */
#include <criterion/criterion.h>

#include <string.h>

#include "api/listeners.h"
#include "api_fixture.h"
#include "core/device/device.h"
#include "core/process/thread.h"

TestSuite(listeners, .init = api_setup);

/* One listener, and what it has heard. */
struct ear {
    unsigned count, depth;
    int device, level, before;
    uint64_t bytes;
    int answer;
    int (*inside)(void);
};
static struct ear one, other;

static void hear(const struct cuwarden_pressure *now, int before, void *arg)
{
    struct ear *ear = arg;

    ear->count++;
    ear->depth = cw_thread.depth;
    ear->device = now->device;
    ear->level = now->level;
    ear->before = before;
    if (ear->inside != NULL)
        ear->answer = ear->inside();
}

static int give(int device, uint64_t bytes, void *arg)
{
    struct ear *ear = arg;

    ear->count++;
    ear->depth = cw_thread.depth;
    ear->device = device;
    ear->bytes = bytes;
    return ear->inside != NULL ? ear->inside() : ear->answer;
}

/* So many hundredths of device 0 are in use by others, and due work is done. */
static void use(uint64_t percent)
{
    fake_driver.others = percent * (ASK_TOTAL / 100);
    fake_driver.now_ns += 200 * FAKE_MS;
    cw_device_sample(0);
    cw_api_notice_serve();
}

/* A request that no budget has room for: the program alone can help. */
static enum cw_ladder_step lack(uint64_t bytes)
{
    struct cw_ladder ladder;
    enum cw_ladder_step step;

    cw_ladder_begin(&ladder, 0, bytes);
    step = ask_climb(&ladder, CW_CAUSE_BUDGET);
    cw_ladder_end(&ladder);
    return step;
}

/* ---- the tables ---- */

static int listen_to_pressure(int is_on, void *arg)
{
    return cw_api_pressure_listen(hear, arg, is_on);
}

static int listen_to_memory(int is_on, void *arg)
{
    return cw_api_memory_listen(give, arg, is_on);
}

static int (*const listen[])(int is_on, void *arg) = {listen_to_pressure, listen_to_memory};

Test(listeners, are_8_of_each_kind_and_leave_once_for_each_time_they_came)
{
    for (int kind = 0; kind < 2; kind++) {
        for (int i = 0; i < 8; i++)
            API_WORKS(listen[kind](1, &one));
        API_FAILS(CUWARDEN_OUT_OF_HOST, "there are 8 listeners already", listen[kind](1, &one));
        API_FAILS(CUWARDEN_NOT_FOUND, "nobody listens by this function and argument",
                  listen[kind](0, &other));
        for (int i = 0; i < 8; i++)
            API_WORKS(listen[kind](0, &one));
        API_FAILS(CUWARDEN_NOT_FOUND, "nobody listens", listen[kind](0, &one));
        API_WORKS(listen[kind](1, NULL));
    }
}

Test(listeners, need_a_function)
{
    for (int is_on = 0; is_on < 2; is_on++) {
        API_FAILS(CUWARDEN_INVALID, "this one is NULL", cw_api_pressure_listen(NULL, &one, is_on));
        API_FAILS(CUWARDEN_INVALID, "this one is NULL", cw_api_memory_listen(NULL, &one, is_on));
    }
    cr_expect_eq(lack(1), CW_LADDER_END);
}

TestSuite(early_listeners, .init = api_setup_early);

Test(early_listeners, may_come_before_the_first_call_of_cuda_but_not_when_all_is_off)
{
    API_WORKS(listen_to_pressure(1, &one));
    core_options()->mode = CW_MODE_OFF;
    API_FAILS(CUWARDEN_NOT_ACTIVE, "CUWARDEN_MODE=off", listen_to_memory(1, &one));
    API_FAILS(CUWARDEN_NOT_ACTIVE, "CUWARDEN_MODE=off", listen_to_pressure(0, &one));
    api_setup();
    use(85);
    cr_expect_eq(one.count, 1);
}

/* ---- pressure ---- */

Test(listeners, hear_each_change_once_and_what_it_was_before)
{
    listen_to_pressure(1, &one);
    use(10);
    cr_expect_eq(one.count, 0);
    use(85);
    cr_expect(one.count == 1 && one.level == CUWARDEN_HIGH && one.before == CUWARDEN_LOW);
    cr_expect_eq(one.device, 0);
    use(84);
    cr_expect_eq(one.count, 1);
    use(99);
    cr_expect(one.count == 2 && one.level == CUWARDEN_CRITICAL && one.before == CUWARDEN_HIGH);
    listen_to_pressure(0, &one);
    use(10);
    cr_expect_eq(one.count, 2);
}

Test(listeners, are_called_as_if_the_program_was_in_no_call_of_ours)
{
    unsigned depth = cw_api_enter();

    one.depth = other.depth = 7;
    listen_to_pressure(1, &one);
    listen_to_memory(1, &other);
    use(85);
    lack(5);
    cr_expect(one.depth == 0 && other.depth == 0);
    cr_expect_eq(cw_thread.depth, depth + 1);
    cr_expect_eq(cw_api_notice_is_here(), 1);
    cw_thread.is_helper = 1;
    cr_expect_eq(cw_api_notice_is_here(), 0);
    cr_expect(lack(5) == CW_LADDER_END && other.count == 1);
}

static int leave_and_replace(void)
{
    return listen_to_pressure(0, &one) + listen_to_pressure(0, &other) +
           listen_to_pressure(1, &one);
}

Test(listeners, may_leave_and_send_others_away_while_they_are_told)
{
    one.inside = leave_and_replace;
    listen_to_pressure(1, &one);
    listen_to_pressure(1, &other);
    use(85);
    cr_expect(one.count == 1 && one.answer == CUWARDEN_OK && other.count == 0);
    one.inside = NULL;
    use(10);
    cr_expect(one.count == 2 && other.count == 0);
}

/* ---- lack of memory ---- */

Test(listeners, are_all_asked_and_one_that_has_freed_is_enough)
{
    cr_expect_eq(lack(5), CW_LADDER_END);
    other.answer = 7; /* whatever is not 0 */
    listen_to_memory(1, &other);
    listen_to_memory(1, &one);
    cr_expect_eq(lack(5), CW_LADDER_ASK);
    cr_expect(one.count == 1 && one.bytes == 5 && one.device == 0 && other.count == 1);
    listen_to_memory(0, &other);
    cr_expect_eq(lack(UINT64_MAX), CW_LADDER_END);
    cr_expect(one.count == 2 && one.bytes == UINT64_MAX && other.count == 1);
}

static int lack_inside(void)
{
    return lack(6) == CW_LADDER_ASK;
}

Test(listeners, are_not_asked_inside_themselves)
{
    one.inside = lack_inside;
    other.answer = 1;
    listen_to_memory(1, &one);
    listen_to_memory(1, &other);
    cr_expect_eq(lack(5), CW_LADDER_ASK);
    cr_expect(one.count == 1 && one.bytes == 5 && other.count == 1);
    cr_expect_eq(lack(5), CW_LADDER_ASK);
    cr_expect_eq(one.count, 2);
}

/* ---- a forked child ---- */

static int reset(void)
{
    cw_api_reset();
    cw_api_listeners_reset();
    return 0;
}

Test(listeners, go_on_in_a_forked_child_whose_levels_are_low)
{
    listen_to_pressure(1, &one);
    listen_to_memory(1, &other);
    other.inside = reset; /* forked in a callback, of which the child returns */
    use(85);
    lack(5);
    other.inside = NULL;
    lack(5);
    cr_expect_eq(other.count, 2);
    cw_api_notice_serve();
    cr_expect(one.count == 2 && one.before == CUWARDEN_LOW);
    API_WORKS(listen_to_pressure(0, &one)); /* it waits for no call of the parent's */
    API_WORKS(listen_to_memory(0, &other));
}
