/* SPDX-License-Identifier: MIT */
/* Placements: which device is chosen, where an allocation ends up, and what is refused. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "api/budgets.h"
#include "api/placements.h"
#include "api/tags.h"
#include "api_fixture.h"
#include "core/limits/limit.h"
#include "core/process/gate.h"
#include "fake_driver.h"

#define GIB ((uint64_t)1 << 30)

/* Devices that were entered for an allocation, in order, and what each gives. */
static struct {
    char entered[16];
    int code_of_enter[2], code_of_alloc[2];
    int current, depth;
    int is_given_back;  /* the context that was entered last */
    int serves, served; /* the pool has a block at hand; how often it gave one */
} driver;

static int enter(uint8_t device, struct cw_device_stay *out)
{
    *out = (struct cw_device_stay){.device = device};
    driver.entered[strlen(driver.entered)] = (char)('0' + device);
    if (driver.code_of_enter[device] != 0)
        return driver.code_of_enter[device];
    driver.current = device;
    driver.depth++;
    return 0;
}

static void leave(const struct cw_device_stay *stay)
{
    cr_expect_eq(stay->device, driver.current);
    driver.is_given_back = stay->is_borrowed;
    driver.depth--;
}

static int alloc(uint64_t bytes, uint64_t *out_address)
{
    cr_expect(bytes != 0 && driver.depth == 1);
    if (driver.code_of_alloc[driver.current] == 0)
        *out_address = 0x1000u + (unsigned)driver.current;
    return driver.code_of_alloc[driver.current];
}

static uint64_t serve(uint8_t device, uint64_t bytes, uint64_t now_ns, void *caller)
{
    cr_expect(bytes != 0 && now_ns == cw_session_now() && caller != NULL);
    driver.served += driver.serves;
    return driver.serves ? 0x1000u + device : 0;
}

static const struct cw_buffer_ops memory = {.alloc = alloc};
static const struct cw_device_ops ops = {.enter = enter, .leave = leave, .serve = serve};

static void setup(void)
{
    api_setup();
    memset(&driver, 0, sizeof(driver));
    cw_api_placements_init(&memory, &ops);
    pool_get(MIB); /* device 0 is known; device 1 is taken to be free but for a reserve */
}

TestSuite(placements, .init = setup);

static int pick(const char *name, uint64_t bytes)
{
    int32_t device = -7;

    API_WORKS(cw_api_device_pick(name, bytes, &device));
    return device;
}

static int take(uint64_t bytes)
{
    int32_t device = -7;
    void *block = NULL;
    int error = cw_api_device_alloc(NULL, bytes, &device, &block);

    cr_expect_eq(driver.depth, 0);
    cr_expect_eq(error == CUWARDEN_OK, block == (void *)(uintptr_t)(0x1000u + (unsigned)device));
    return error;
}

static void expect_entered(const char *wanted)
{
    cr_expect_str_eq(driver.entered, wanted);
    memset(driver.entered, 0, sizeof(driver.entered));
}

Test(placements, are_where_there_is_most_room_and_a_name_stays)
{
    int first = pick("field", GIB), other = 1 - first;

    cr_expect_eq(pick(NULL, 0), first);
    API_WORKS(cw_api_device_alloc("field", GIB, NULL, &(void *){NULL}));
    expect_entered(first == 0 ? "0" : "1");
    cw_limit_set((uint8_t)first, 2 * GIB); /* now the other has more */
    cr_expect_eq(pick("field", GIB), first);
    cr_expect_eq(pick("new", GIB), other);
    cr_expect_eq(pick("field", 3 * GIB), other);
    cw_api_placements_reset();
    cr_expect_eq(pick("field", GIB), other);
}

Test(placements, go_to_the_pool_at_once_while_the_last_answer_holds)
{
    int best, served = 0;

    driver.serves = 1;
    API_WORKS(take(MIB)); /* there is no answer yet */
    cr_expect_eq(driver.served, 0);
    best = driver.current;
    expect_entered(best == 0 ? "0" : "1");
    API_WORKS(take(MIB));
    cr_expect_eq(driver.served, ++served);
    fake_driver.now_ns += 1000000;
    API_WORKS(take(MIB));
    cr_expect_eq(driver.served, served);
    expect_entered(best == 0 ? "0" : "1");
    driver.serves = 0;
    API_WORKS(take(MIB));
    expect_entered(best == 0 ? "0" : "1");
    driver.serves = 1;
    cw_limit_set((uint8_t)best, GIB); /* which each allocation looks at */
    API_WORKS(take(MIB));
    cr_expect_eq(driver.served, served);
    expect_entered(best == 0 ? "1" : "0");
}

/* Another thread moves `field` to another device, and then all names after it make it forgotten:
 * both while that thread has taken what the first device has. Only small requests are answered as
 * the last one was. */
static void *move_field(void *unused)
{
    uint64_t key;

    fake_set_current(FIRST_CONTEXT);
    key = pool_get(8 * GIB);
    pick("field", fake_driver.total_bytes - 4 * GIB);
    pool_put(key);
    return unused;
}

static void *forget_field(void *unused)
{
    char name[16];
    uint64_t key;

    fake_set_current(FIRST_CONTEXT);
    key = pool_get(8 * GIB);
    for (int i = 0; i < 256; i++) {
        cw_format(name, sizeof(name), "name %d", i);
        pick(name, MIB);
    }
    pool_put(key);
    return unused;
}

static void in_another_thread(void *(*work)(void *))
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, work, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(placements, of_a_name_that_was_asked_for_last_are_where_the_name_is_now)
{
    cr_assert_eq(pick("field", MIB), 0);
    cr_expect_eq(pick("field", MIB), 0);
    in_another_thread(move_field);
    cr_expect_eq(pick("field", MIB), 1);
    in_another_thread(forget_field);
    cr_expect_eq(pick("field", MIB), 0);
}

Test(placements, that_no_device_has_room_for_say_what_each_has)
{
    int32_t device = -7;

    API_FAILS(CUWARDEN_OUT_OF_DEVICE, "no device has room for",
              cw_api_device_pick(NULL, UINT64_MAX, &device));
    cw_limit_set(0, GIB);
    cw_limit_set(1, 2 * GIB);
    API_FAILS(CUWARDEN_OUT_OF_LIMIT, "device 1 has 2.0 GiB by its limit",
              cw_api_device_pick(NULL, 3 * GIB, &device));
    cr_expect_eq(device, -7);
    expect_entered("");
}

Test(placements, try_the_next_device_only_where_memory_has_run_out)
{
    int best = pick(NULL, GIB);

    driver.code_of_alloc[best] = CW_BUFFER_NO_MEMORY;
    API_WORKS(take(GIB));
    expect_entered(best == 0 ? "01" : "10");
    driver.code_of_alloc[1 - best] = CW_BUFFER_NO_MEMORY;
    API_FAILS(CUWARDEN_OUT_OF_DEVICE, "no device has room", take(GIB));
    expect_entered(best == 0 ? "01" : "10");
    driver.code_of_alloc[best] = 719;
    API_FAILS(CUWARDEN_DRIVER, "cannot allocate: the driver's code is 719", take(GIB));
    expect_entered(best == 0 ? "0" : "1");
    driver.code_of_enter[0] = driver.code_of_enter[1] = 101;
    API_FAILS(CUWARDEN_DRIVER, "the driver's code is 101", take(GIB));
}

static int shut_best(void)
{
    int best = pick(NULL, GIB);

    driver.code_of_enter[best] = 46;
    return best;
}

Test(placements, go_on_where_a_device_gives_no_context_and_come_back_to_it)
{
    int best = shut_best();

    cr_expect_eq(pick("field", GIB), best);
    API_WORKS(take(GIB));
    expect_entered(best == 0 ? "01" : "10");
    API_WORKS(take(GIB));
    expect_entered(best == 0 ? "1" : "0");
    cr_expect_eq(pick("field", GIB), 1 - best);
    cr_expect_eq(pick(NULL, GIB), 1 - best);
    fake_driver.now_ns += 2000000000;
    driver.code_of_enter[best] = 0;
    cr_expect_eq(pick(NULL, GIB), best);
    API_WORKS(take(GIB));
    expect_entered(best == 0 ? "0" : "1");
}

Test(placements, where_one_device_gives_no_context_are_short_of_what_the_other_has)
{
    int best = shut_best();

    cw_limit_set((uint8_t)(1 - best), MIB);
    API_WORKS(take(GIB)); /* what the other can give back is tried */
    expect_entered(best == 0 ? "01" : "10");
    driver.code_of_alloc[1 - best] = CW_BUFFER_NO_MEMORY;
    API_FAILS(CUWARDEN_OUT_OF_LIMIT, ", and gives no context", take(GIB));
}

/* ---- two at once ---- */

static _Thread_local int is_second;
static _Atomic int second_is_in, first_has_left, first_gave_back;

static int enter_one_of_two(uint8_t device, struct cw_device_stay *out)
{
    *out = (struct cw_device_stay){.device = device, .is_borrowed = (uint8_t)is_second};
    return 0;
}

static void leave_one_of_two(const struct cw_device_stay *stay)
{
    if (is_second)
        return;
    atomic_store(&first_gave_back, stay->is_borrowed);
    atomic_store(&first_has_left, 1);
}

static void *take_as_second(void *unused)
{
    int32_t device = -7;
    void *block;

    is_second = 1;
    cr_expect_eq(cw_api_device_alloc(NULL, GIB, &device, &block), CUWARDEN_OK);
    return unused;
}

/* The second comes while the first is about to fail, and is in until the first has left. */
static int alloc_of_two(uint64_t bytes, uint64_t *out_address)
{
    static pthread_t second;

    *out_address = bytes;
    if (!is_second) {
        pthread_create(&second, NULL, take_as_second, NULL);
        pthread_detach(second);
    }
    atomic_fetch_or(&second_is_in, is_second);
    while (!atomic_load(is_second ? &first_has_left : &second_is_in))
        sched_yield();
    return is_second ? 0 : CW_BUFFER_NO_MEMORY;
}

/* For the second, the context is the program's own, as it is there. */
Test(placements, that_failed_leave_a_context_that_another_one_is_in)
{
    static const struct cw_buffer_ops one_memory = {.alloc = alloc_of_two};
    static const struct cw_device_ops one_driver = {
        .enter = enter_one_of_two, .leave = leave_one_of_two, .serve = serve};
    int32_t device;
    void *block;

    cw_api_placements_init(&one_memory, &one_driver);
    cw_limit_set(0, MIB);
    cr_expect_neq(cw_api_device_alloc(NULL, GIB, &device, &block), CUWARDEN_OK);
    cr_expect(first_has_left && !first_gave_back);
}

Test(placements, that_failed_leave_no_context_behind)
{
    int32_t device;
    void *block;

    driver.code_of_alloc[0] = driver.code_of_alloc[1] = CW_BUFFER_NO_MEMORY;
    cw_api_device_alloc(NULL, GIB, &device, &block);
    cr_expect_eq(driver.is_given_back, driver.current == 1); /* device 0 has memory */
    driver.code_of_alloc[0] = driver.code_of_alloc[1] = 0;
    cw_api_device_alloc(NULL, GIB, &device, &block);
    cr_expect_eq(driver.is_given_back, 0);
}

Test(placements, that_a_budget_refuses_are_tried_on_no_other_device)
{
    int best = pick(NULL, GIB);

    API_WORKS(cw_api_budget_set("cache", MIB, CUWARDEN_REFUSE));
    API_WORKS(cw_api_tag_push("cache"));
    driver.code_of_alloc[best] = CW_BUFFER_NO_MEMORY;
    API_FAILS(CUWARDEN_OUT_OF_BUDGET,
              "1.0 GiB cannot be had: the tag's budget is 1048576 bytes, and 0 are used",
              take(GIB));
    expect_entered(best == 0 ? "0" : "1");
    API_WORKS(cw_api_tag_pop());
    API_WORKS(take(GIB));
    expect_entered(best == 0 ? "01" : "10");
}

Test(placements, need_a_place_for_the_answer_a_short_name_and_bytes)
{
    char name[49];
    int32_t device = -7;
    void *block = NULL;

    memset(name, 'n', 48);
    name[48] = '\0';
    API_FAILS(CUWARDEN_INVALID, "no place for the answer", cw_api_device_pick("a", 1, NULL));
    API_FAILS(CUWARDEN_INVALID, "no place for the answer",
              cw_api_device_alloc("a", 1, &device, NULL));
    API_FAILS(CUWARDEN_INVALID, "has 48 bytes, and may have 47",
              cw_api_device_pick(name, 1, &device));
    API_FAILS(CUWARDEN_INVALID, "has 48 bytes", cw_api_device_alloc(name, 1, &device, &block));
    API_FAILS(CUWARDEN_INVALID, "of no bytes", take(0));
    atomic_store(&cw_gate_captures, 1);
    API_FAILS(CUWARDEN_BUSY, "a stream is captured", cw_api_device_pick("a", 1, &device));
    API_FAILS(CUWARDEN_BUSY, "a stream is captured", take(1));
    atomic_store(&cw_gate_captures, 0);
    cr_expect(device == -7 && block == NULL);
    expect_entered("");
}

Test(placements, forget_the_name_that_was_asked_for_longest_ago)
{
    int first = pick("first", GIB);
    char name[16];

    cw_limit_set((uint8_t)first, 2 * GIB);
    for (int i = 0; i < 256; i++) {
        cw_format(name, sizeof(name), "name %d", i);
        pick(name, GIB);
    }
    cr_expect_eq(pick("first", GIB), 1 - first);
}

TestSuite(early_placements, .init = api_setup_early);

Test(early_placements, wait_for_the_first_call_of_cuda)
{
    int32_t device;

    API_FAILS(CUWARDEN_NOT_STARTED, "", cw_api_device_pick("a", 1, &device));
    API_FAILS(CUWARDEN_NOT_STARTED, "", take(1));
    core_options()->mode = CW_MODE_OFF;
    API_FAILS(CUWARDEN_NOT_ACTIVE, "MODE=off", cw_api_device_pick("a", 1, &device));
}
